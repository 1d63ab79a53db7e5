"""A record that is gone or damaged: the hint is carried out, and every transaction is applied once (design D22)."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import one_engine
from rplctl.command.check.verb import CheckLimits, check
from rplctl.command.init import init
from rplctl.command.process.preparation import prepare
from rplctl.command.process.start_request import StartRequest
from rplctl.command.recover import recover
from rplctl.command.reset import reset
from rplctl.command.switch_repo import switch_repo
from rplctl.errors import NotConfigured, RepositoryConflict, RplError
from rplctl.status import ThreadStatus
from tests.kit.channel_life import TRANSACTIONS, Archive, Life

pytestmark = pytest.mark.slow
ALL = list(range(1, TRANSACTIONS + 1))
WAYS: list[dict[str, Any]] = [{}, {"master_auto_position": True}]


@pytest.fixture
def begin() -> Iterator[Callable[..., Life]]:
    usable = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    memory = Path(tempfile.mkdtemp(prefix="rplctl-", dir=usable))
    (memory / "source").mkdir()
    archive = Archive(memory / "source")
    archive.fill()

    def made(kind: str, way: dict[str, Any], applied: int) -> Life:
        options = {"master_info_repository": kind, "relay_log_info_repository": kind}
        life = Life.begin(memory / "life", archive, MasterChanges(**way), **options)
        life.receive(6)
        if applied:
            life.apply(applied)
        return life

    yield made
    shutil.rmtree(memory)


def sql(life: Life, statement: str) -> None:
    with life.opened() as repositories, repositories.engine().begin() as connection:
        connection.execute(text(statement))


def lose(life: Life, record: str) -> None:
    """The file with its durable copy, or the row."""
    if life.config.relay_log_info_repository == "TABLE":
        sql(life, f"DELETE FROM slave_{record.replace('-', '_')}_info")
        return
    for path in life.folder.glob(f"*{record}.info*"):
        path.unlink()
    for path in life.folder.glob(f".{record}.info*"):
        path.unlink(missing_ok=True)


def refused(life: Life, kind: type[RplError] = RplError) -> RplError:
    with pytest.raises(kind) as told, one_engine():
        prepare(life.config, life.channel, StartRequest())
    return told.value


def carry_out(life: Life, hint: str) -> None:
    """The change-master of the hint."""
    found = re.search(r"--master-log-file (\S+) --master-log-pos (\d+)", hint)
    assert found, hint
    off: dict[str, Any] = {"master_auto_position": False} if "--master-auto-position 0" in hint else {}
    life.change(MasterChanges(master_log_file=found[1], master_log_pos=int(found[2]), **off))
    life.go_on()


@pytest.mark.long("One verb stays in make test.", keeps=r"^start")
@pytest.mark.parametrize("way", WAYS, ids=["first log", "GTID"])
@pytest.mark.parametrize("then", ["start", "change-master"])
def test_a_lost_file_is_made_again_from_the_targets_marker(begin: Any, way: dict[str, Any], then: str) -> None:
    life = begin("FILE", way, 3)
    at = life.records()[1].exec_position
    lose(life, "relay-log")
    with one_engine():
        findings = {
            item.code: item for item in check(life.config, "", CheckLimits(warning_s=60, critical_s=600)).findings
        }
    assert str(at) in findings["repository_missing"].text and "rplctl start" in findings["repository_missing"].repair
    if then == "change-master":
        life.change(MasterChanges(master_connect_retry=7))
        assert life.records()[1].exec_position == at
    life.go_on()
    assert life.numbers() == ALL


@pytest.mark.parametrize("way", WAYS, ids=["first log", "GTID"])
def test_a_lost_row_is_told_with_the_place_that_the_applier_named_last(begin: Any, way: dict[str, Any]) -> None:
    life = begin("TABLE", way, 3)
    relay = life.records()[1]
    status = ThreadStatus(exec_log_name=relay.master_log_name, exec_log_pos=relay.master_log_pos)
    status.write(life.channel.status_path("applier"))
    lose(life, "relay-log")
    with pytest.raises(RplError, match="the record RelayLogInfo"):
        life.change(MasterChanges(master_connect_retry=7))
    told = refused(life)
    assert (
        told.errno == 1201
        and f"position of the applier is {relay.exec_position}" in told.message
        and "the read position is" in told.message
    )
    carry_out(life, told.hint)
    assert life.numbers() == ALL


@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
def test_before_anything_was_applied_the_relay_logs_say_where_all_began(begin: Any, kind: str) -> None:
    life = begin(kind, {}, 0)
    lose(life, "relay-log")
    told = refused(life)
    assert "the relay logs begin at binlog.000001:4" in told.message
    carry_out(life, told.hint)
    assert life.numbers() == ALL


@pytest.mark.long("One repository by GTID and one by position stay.", keeps=r"^(TABLE-first log|FILE-GTID)-3$")
@pytest.mark.parametrize("applied", [0, 3])
@pytest.mark.parametrize("way", WAYS, ids=["first log", "GTID"])
@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
def test_with_the_connection_lost_the_position_stands(begin: Any, kind: str, way: dict[str, Any], applied: int) -> None:
    life = begin(kind, way, applied)
    before = life.records()[1]
    lose(life, "master")
    assert refused(life, NotConfigured).hint.startswith(
        "to set the source, run: rplctl change-master --master-host HOST"
    )
    life.change(MasterChanges(master_binlog_dir=str(life.archive.folder), **way))
    after = life.records()[1]
    assert (after.exec_position, after.gtid_executed) == (before.exec_position, before.gtid_executed)
    life.go_on()
    assert life.numbers() == ALL


@pytest.mark.parametrize("table", ["master", "relay_log"])
def test_a_damaged_table_is_made_anew_by_its_hint(begin: Any, table: str) -> None:
    life = begin("TABLE", {}, 3)
    column = "Heartbeat" if table == "master" else "Sql_delay"
    sql(life, f"ALTER TABLE slave_{table}_info DROP COLUMN {column}")
    told = refused(life)
    assert f"DROP TABLE main.slave_{table}_info; rplctl init; rplctl change-master" in told.hint
    sql(life, f"DROP TABLE slave_{table}_info")
    with one_engine():
        init(life.folder, {})
    if table == "relay_log":
        carry_out(life, told.hint)
    else:
        life.change(MasterChanges(master_binlog_dir=str(life.archive.folder)))
        life.go_on()
    assert life.numbers() == ALL


def test_of_two_records_both_places_are_named(begin: Any) -> None:
    life = begin("FILE", {}, 3)
    at = life.records()[1].exec_position
    copy = (life.folder / "relay-log.info").read_bytes()
    with one_engine():
        switch_repo(life.config, "", "table")
    life.apply(2)
    later = life.records()[1].exec_position
    (life.folder / "relay-log.info").write_bytes(copy)
    told = refused(life, RepositoryConflict)
    assert f"relay-log.info (at {at}" in told.message and f"(at {later}" in told.message
    (life.folder / "relay-log.info").unlink()  # the hint: the later one stays
    life.go_on()
    assert life.numbers() == ALL


@pytest.mark.long("One case by GTID stays.", keeps=r"^TABLE-GTID-3$")
@pytest.mark.parametrize("applied", [0, 3])
@pytest.mark.parametrize("way", WAYS, ids=["first log", "GTID"])
@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
def test_what_is_fetched_again_by_hand_comes_once(begin: Any, kind: str, way: dict[str, Any], applied: int) -> None:
    """Before anything was applied, too: the relay logs say where they began, and that is stored before they go."""
    life = begin(kind, way, applied)
    with one_engine():
        assert recover(life.config, "", refetch=True, dry_run=True).Notes.startswith("1 relay logs are removed")
        recover(life.config, "", refetch=True)
    assert not list(life.folder.glob("relay-bin.0*"))
    life.go_on()
    assert life.numbers() == ALL


@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
def test_reset_begins_anew_and_says_so_with_nothing_applied(begin: Any, kind: str) -> None:
    """The way out that recovery names when nothing tells where all began."""
    life = begin(kind, {}, 0)
    for path in life.folder.glob("relay-bin.0*"):
        path.write_bytes(b"noise")
    with pytest.raises(RplError) as told:
        life.go_on()
    assert "run: rplctl reset; rplctl start" in told.value.hint
    with one_engine():
        reset(life.config, "")
    life.go_on()
    assert life.numbers() == ALL
