"""The applier's loop with a real Spark: a relay log in, tables out, stopped exactly where it was told to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.applier import loop
from rplctl.applier.feed import batch_size as pace
from rplctl.applier.feed.batch_size import CommitGroupSize
from rplctl.applier.feed.plan import Batch, plan_batches
from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions, Until
from rplctl.applier.spark import pipeline
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.split_task import Split
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.demo import BINLOG_FOLDER
from rplctl.errors import BinlogFormatError, ConfigError, NotConfigured, RplError
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.repository import open_relay_log_info
from rplctl.schema.plan import Catalog
from rplctl.status import read_status
from rplctl.target import open_engine
from rplctl.target.base import TableChunk
from tests.applier.demo_log import demo_groups
from tests.kit.no_spark import without_spark

__all__ = ["without_spark"]
SPARK_AT_ONCE = "spark.rplctl.tests=1"  # spark_conf: whatever is set for Spark, it is tried at once
pytestmark = [pytest.mark.spark, pytest.mark.slow]
START = BinlogPosition("binlog.000001", 4)
TOOK = CommitGroupSize.took


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    """A channel whose relay log is the demo's first binary log."""
    channel = Channel("", tmp_path)
    writer = RelayLogWriter(channel, Config(datadir=tmp_path), 1)
    writer.open_new(START)
    begin = writer.end
    writer.close()
    with (tmp_path / begin.log_name).open("ab") as file:
        file.write((BINLOG_FOLDER / "binlog.000001").read_bytes()[4:])
    config = Config(datadir=tmp_path)
    repository = open_relay_log_info(config, channel, lambda: open_engine(config.target_url))
    repository.flush(RelayLogInfo(master_log_name=START.log_name, master_log_pos=4), force=True)
    return channel


def rows(channel: Channel, table: str) -> int:
    with closing(sqlite3.connect(channel.datadir / "target.db")) as connection:
        return int(connection.execute(f'SELECT count(*) FROM "shop__{table}"').fetchone()[0])


@pytest.mark.long("test_nothing_behind_until_is_decoded_ahead stops at its transaction, too.")
def test_until_stops_at_its_transaction_and_the_next_run_goes_on(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run's commits are to take a millisecond: no job of Spark does, so they become single transactions."""
    config = Config(datadir=channel.datadir, spark="auto", spark_conf=SPARK_AT_ONCE)
    groups = demo_groups()
    middle = groups.scan.source_position(len(groups.scan) // 2)
    until = Until(kind="master_pos", log_name=middle.log_name, log_pos=middle.log_pos)
    Applier(config, channel, StartOptions(until=until)).run()
    status = read_status(channel.status_path("applier"))
    assert (status.exec_log_name, status.exec_log_pos) == (middle.log_name, middle.log_pos)
    assert (status.until_condition, status.state, status.commit_mode) == ("Master", "", "marker")
    before = rows(channel, "orders")
    groups_of: list[int] = []

    def took(size: CommitGroupSize, transactions: int, seconds: float) -> None:
        groups_of.append(transactions)
        TOOK(size, transactions, seconds)

    monkeypatch.setattr(CommitGroupSize, "took", took)
    hurried = replace(config, commit_group_milliseconds=1)
    Applier(hurried, channel, StartOptions(until_source=groups.end_source)).run()
    assert rows(channel, "orders") > before
    assert set(groups_of[1:]) <= {0, 1} and 3 < sum(groups_of) < len(groups.scan)
    assert read_status(channel.status_path("applier")).exec_log_pos == groups.end_source.log_pos
    assert not channel.spool_folder.exists() or not list(channel.spool_folder.iterdir())


def test_nothing_behind_until_is_decoded_ahead(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few groups, each read while the one before is applied."""
    monkeypatch.setattr(loop, "SMALLEST_SPLIT", 0)
    monkeypatch.setattr(pace, "FIRST_BYTES_AS_VALUES", 1 << 12)
    monkeypatch.setattr(pace, "GROWTH", 1)
    decode, ends = Pipeline.decode, []

    def noted(pipeline: Pipeline, splits: Sequence[Split], catalog: Catalog) -> list[TableChunk]:
        ends.append(splits[-1].end)
        return decode(pipeline, splits, catalog)

    monkeypatch.setattr(Pipeline, "decode", noted)
    config = Config(datadir=channel.datadir, spark="auto")
    groups = demo_groups()
    until = groups.scan.source_position(3 * len(groups.scan) // 4)
    Applier(
        config, channel, StartOptions(until=Until(kind="master_pos", log_name=until.log_name, log_pos=until.log_pos))
    ).run()
    stopped = open_relay_log_info(config, channel, lambda: open_engine(config.target_url)).read()
    assert stopped.exec_position == until
    assert len(ends) > 3 and ends == sorted(set(ends)), "each piece once"
    assert ends[-1] <= stopped.relay_log_pos


@pytest.mark.usefixtures("without_spark")
def test_an_error_is_told_in_the_status_and_raised(channel: Channel) -> None:
    with closing(sqlite3.connect(channel.datadir / "target.db")) as connection:
        connection.execute('CREATE TABLE "shop__orders" (x)')
    end = demo_groups().end_source
    with pytest.raises(RplError) as caught:
        Applier(Config(datadir=channel.datadir, spark="auto"), channel, StartOptions(until_source=end)).run()
    assert caught.value.errno == 1050
    status = read_status(channel.status_path("applier"))
    assert status.last_errno == 1050
    assert status.last_error_timestamp > 0
    assert status.exec_log_name == START.log_name != end.log_name


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("times", [1, 2])
def test_damage_that_the_plan_meets_is_read_again_once(
    times: int, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As damage that a task meets: a recovery may have cut the file since; what stays is the error that is told."""
    met: list[int] = []

    def damaged(groups: RelayGroups, stop: int, *args: Any, **kwargs: Any) -> Iterator[Batch]:
        batches = plan_batches(groups, stop, *args, **kwargs)
        if not met:
            yield next(batches)
        if len(met) < times:
            met.append(stop)
            raise BinlogFormatError("zeros", errno=1594)
        yield from batches

    monkeypatch.setattr(loop, "plan_batches", damaged)
    end = demo_groups().end_source
    run = Applier(Config(datadir=channel.datadir, spark="auto"), channel, StartOptions(until_source=end)).run
    if times == 1:
        run()
    else:
        with pytest.raises(BinlogFormatError, match="zeros"):
            run()
    status = read_status(channel.status_path("applier"))
    assert len(met) == times
    assert (status.exec_log_name, status.last_errno) == ((end.log_name, 0) if times == 1 else (START.log_name, 1594))


@pytest.mark.usefixtures("without_spark")
def test_without_a_position_the_applier_does_not_start(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    with pytest.raises(NotConfigured):
        Applier(Config(datadir=tmp_path), channel, StartOptions()).run()


@pytest.mark.parametrize(
    ("name", "value", "begins"),
    [("", 0, False), ("SMALL_JOB", 1000, True), ("spark_conf", SPARK_AT_ONCE, True)],
)
def test_with_auto_spark_begins_for_a_large_log_or_where_the_operator_set_it(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, name: str, value: int | str, begins: bool
) -> None:
    """All is applied without it meanwhile."""
    begun: list[Pipeline] = []
    monkeypatch.setattr(Pipeline, "begin_beside", lambda made, _: begun.append(made))
    config = Config(datadir=channel.datadir, spark="auto")
    if name == "spark_conf":
        config = replace(config, spark_conf=str(value))
    elif name:
        monkeypatch.setattr(pipeline, name, value)
    Applier(config, channel, StartOptions(until_source=demo_groups().end_source)).run()
    assert (bool(begun), rows(channel, "orders") > 0) == (begins, True)


def test_a_java_that_is_none_is_told_before_spark_is_wanted(channel: Channel) -> None:
    config = Config(datadir=channel.datadir, spark="auto", java_home=str(channel.datadir))
    with pytest.raises(ConfigError, match="has no working bin/java"):
        Applier(config, channel, StartOptions(until_source=demo_groups().end_source)).run()
