"""The binary log of applied transactions: what is in it, and that crash or not it ends where the target stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rplctl.demo
from rplctl.applied_log.end import logged_record
from rplctl.applied_log.files import binary_log_files
from rplctl.applied_log.record import PositionRecord
from rplctl.applier.feed.plan import Batch, BatchKind
from rplctl.applier.log_bin.catch_up import Remedy, remedy_for
from rplctl.durable import write_all
from rplctl.errors import RelayLogError
from rplctl.event.scan import GroupKind
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.purge import purge_all
from tests.applied_log.applied import (
    apply_rest,
    events_of,
    kill_in_between,
    logs_of,
    positions_are_exact,
    receive,
    resumed,
    tables,
    types_of,
    vendor_reads,
)
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.servers import MariadbServer
from tests.kit.vendor_dump import tool_for

pytestmark = pytest.mark.slow

DEMO = Path(rplctl.demo.__file__).parent / "data" / "binlog.000001"
DATA = Path(__file__).parents[2] / "data"
OPTIONS: dict[str, Any] = {"log_bin": "binlog", "max_binlog_size": 20_000}
MODES = {"transaction": {"relay_log_info_repository": "TABLE"}, "marker": {"relay_log_info_repository": "FILE"}}


def new_instance(folder: Path, **options: Any) -> Instance:
    """With the demo's log received, nothing applied."""
    return Instance(folder, receive(folder, DEMO), **{**OPTIONS, **options})


def in_step(instance: Instance) -> bool:
    record = logged_record(binary_log_files(instance.config, instance.channel))
    return record is not None and record.after.is_at(instance.applier.info)


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """The demo's log, applied with a binary log of small files."""
    folder = tmp_path_factory.mktemp("applied") / "instance"
    groups = receive(folder, DEMO)
    instance = Instance(folder, groups, **OPTIONS)
    apply_rest(instance, groups)
    instance.applier.close()
    yield instance
    instance.target.close()


def test_the_sources_events_are_in_it_unchanged_but_for_their_place(applied: Instance) -> None:
    logs = logs_of(applied.config.datadir)
    assert len(logs) > 3
    assert events_of(logs) == events_of([DEMO])
    assert all(positions_are_exact(path) for path in logs)


def test_mariadb_binlog_reads_it_and_finds_the_same_transactions(applied: Instance) -> None:
    tool = tool_for("mariadb")
    text = vendor_reads(tool, logs_of(applied.config.datadir))
    assert text.count("Xid = ") == vendor_reads(tool, [DEMO]).count("Xid = ") > 100
    assert "GTID 0-1-193" in text


def test_its_end_is_the_committed_position(applied: Instance) -> None:
    assert in_step(applied)
    record = logged_record(binary_log_files(applied.config, applied.channel))
    assert record is not None and record.after.gtid_executed == applied.applier.info.gtid_executed == "0-1-193"


def test_a_replica_of_the_log_equals_it(applied: Instance, tmp_path: Path) -> None:
    logs = [groups_of(path) for path in logs_of(applied.config.datadir)]
    chained = Instance(tmp_path / "chained", logs[0])
    for groups in logs:
        chained.apply(groups)
    assert tables(chained) == tables(applied) != {}
    assert chained.applier.info.gtid_executed == "0-1-193"
    chained.target.close()


@pytest.mark.long(
    "One point of a transaction stays; tests/command/test_crash_test.py walks all points.",
    keeps=r"transaction-crash_commit_after_log",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "point"),
    [
        *(("transaction", f"{name}=kill@3") for name in ("crash_commit_before", "crash_commit_after_log")),
        *((mode, "crash_commit_before_unlog=kill@5") for mode in MODES),
        ("marker", "crash_commit_after=kill@5"),
        ("transaction", "crash_before_rotate_relaylog=kill@2"),
        ("transaction", "crash_create_critical_before_update_index=kill@2"),
        ("marker", "crash_create_after_update_index=kill@2"),
    ],
)
def test_killed_anywhere_log_and_target_go_on_together(
    tmp_path: Path, mode: str, point: str, applied: Instance
) -> None:
    folder, options = tmp_path / "instance", {**OPTIONS, **MODES[mode]}
    groups = receive(folder, DEMO)
    kill_in_between(folder, point, options)
    instance = resumed(folder, **options)
    assert in_step(instance)
    apply_rest(instance, groups)
    instance.applier.close()
    assert events_of(logs_of(folder)) == events_of([DEMO])
    assert tables(instance) == tables(applied)
    assert all(positions_are_exact(path) for path in logs_of(folder))
    instance.target.close()


@pytest.fixture
def ended(tmp_path: Path) -> Iterator[Instance]:
    """The demo's log is applied, in many commits."""
    instance = new_instance(tmp_path / "half", max_binlog_size=1 << 20)
    apply_rest(instance, groups_of_relay(instance))
    instance.applier.close()
    yield instance
    instance.target.close()


def groups_of_relay(instance: Instance) -> Any:
    from tests.applied_log.applied import all_groups

    return all_groups(instance.config.datadir)


def cut_back(instance: Instance, commits: int) -> Path:
    """Take the last commits out of the log, as if they had never been written; the file."""
    log = logs_of(instance.config.datadir)[-1]
    data = log.read_bytes()
    for _ in range(commits):
        data = data[: data.rindex(b"rplctl-position\0") - 19]
    end = data.rindex(b"rplctl-position\0") - 19
    length = int.from_bytes(data[end + 9 : end + 13], "little")
    log.write_bytes(data[: end + length])
    return log


@pytest.mark.long("One transaction stays in make test.", keeps=r"^1$")
@pytest.mark.parametrize("commits", [1, 4])
def test_what_a_power_cut_took_from_the_log_comes_from_the_relay_log(ended: Instance, commits: int) -> None:
    whole = events_of(logs_of(ended.config.datadir))
    log = cut_back(ended, commits)
    assert len(events_of([log])) < len(whole)
    ended.applier = ended.reopen()
    assert in_step(ended)
    assert events_of(logs_of(ended.config.datadir)) == whole


@pytest.mark.long("One tail stays in make test.", keeps=r"^half$")
@pytest.mark.parametrize("tail", [b"\0" * 500, b"\xff" * 7, b"half"])
def test_a_torn_tail_is_cut_off(ended: Instance, tail: bytes) -> None:
    log = logs_of(ended.config.datadir)[-1]
    whole = log.read_bytes()
    cut_back(ended, 1)
    log.write_bytes(whole[:-60] if tail == b"half" else log.read_bytes() + tail)
    ended.applier = ended.reopen()
    ended.applier.close()
    assert in_step(ended) and positions_are_exact(log)
    assert events_of([log]) == events_of([DEMO])


def test_transactions_that_cannot_be_had_any_more_are_an_incident_in_the_log(ended: Instance) -> None:
    cut_back(ended, 2)
    purge_all(ended.channel)
    ended.applier = ended.reopen()
    ended.applier.close()
    logs = logs_of(ended.config.datadir)
    assert len(logs) == 2 and types_of(logs[1:]) == ["INCIDENT"]
    assert in_step(ended)
    assert groups_of(logs[1]).scan.kind.tolist().count(GroupKind.INCIDENT) == 1
    assert "Incident" in vendor_reads(tool_for("mariadb"), logs)


AT = [RelayLogInfo().at(RelayLogPosition("relay-bin.000001", n), BinlogPosition("b.000001", n)) for n in (10, 20, 30)]


@pytest.mark.parametrize(
    ("record", "committed", "in_relay_logs", "log_decides", "remedy"),
    [
        (None, AT[1], False, False, Remedy.NOTHING),
        (PositionRecord(before=AT[0], after=AT[1]), AT[1], False, False, Remedy.NOTHING),
        (PositionRecord(before=AT[0], after=AT[1]), AT[2], True, False, Remedy.APPEND),
        (PositionRecord(before=AT[0], after=AT[1]), AT[2], False, False, Remedy.INCIDENT),
        (PositionRecord(before=AT[0], after=AT[1], changes=False), AT[0], False, False, Remedy.COMMIT),
        (PositionRecord(before=AT[0], after=AT[1]), AT[0], False, True, Remedy.COMMIT),
        (PositionRecord(before=AT[0], after=AT[1]), AT[0], False, False, Remedy.RESTART),
        (PositionRecord(before=AT[1], after=AT[2]), AT[0], False, True, Remedy.RESTART),
        (
            PositionRecord(before=AT[0], after=replace(AT[1], gtid_executed="0-1-5")),
            replace(AT[2], gtid_executed="0-1-5"),
            False,
            False,
            Remedy.RESTART,
        ),
    ],
)
def test_the_remedy_at_start(
    record: PositionRecord | None, committed: RelayLogInfo, in_relay_logs: bool, log_decides: bool, remedy: Remedy
) -> None:
    assert remedy_for(record, committed, is_in_relay_logs=in_relay_logs, log_decides=log_decides) is remedy


def test_filters_leave_their_rows_out_and_keep_the_gtids(tmp_path: Path) -> None:
    instance = new_instance(tmp_path / "i", replicate_ignore_table="shop.order_items", max_binlog_size=1 << 20)
    groups = groups_of_relay(instance)
    apply_rest(instance, groups)
    instance.applier.close()
    logs = logs_of(tmp_path / "i")
    text = vendor_reads([*tool_for("mariadb"), "-vv", "--base64-output=DECODE-ROWS"], logs)
    assert "order_items" not in text and "`shop`.`orders`" in text
    assert all(positions_are_exact(path) for path in logs)
    chained = Instance(tmp_path / "chained", groups_of(logs[0]))
    chained.apply(groups_of(logs[0]))
    assert tables(chained) == tables(instance) and "shop__order_items" not in tables(chained)
    for one in (instance, chained):
        one.target.close()


def test_databases_have_in_the_log_the_name_they_have_here(tmp_path: Path) -> None:
    instance = new_instance(tmp_path / "i", replicate_rewrite_db="shop->store", max_binlog_size=1 << 20)
    apply_rest(instance, groups_of_relay(instance))
    instance.applier.close()
    log = groups_of(logs_of(tmp_path / "i")[0])
    chained = Instance(tmp_path / "chained", log)
    chained.apply(log)
    assert tables(chained) == tables(instance) and "store__orders" in tables(chained)
    for one in (instance, chained):
        one.target.close()


@pytest.mark.parametrize("own", ["rplctl", "RPLCTL"])
def test_a_database_with_our_name_is_not_in_the_log_in_any_case(
    tmp_path: Path, mariadb: MariadbServer, own: str
) -> None:
    """The filters exclude it in upper and lower case, so the target lacks its rows."""
    mariadb.sql(f"DROP DATABASE IF EXISTS {own}; FLUSH BINARY LOGS; CREATE DATABASE {own}")
    path = mariadb.binlog_files[-1]
    mariadb.sql(f"CREATE TABLE {own}.t (id INT); INSERT INTO {own}.t VALUES (1); DROP DATABASE {own}")
    mariadb.sql("DROP DATABASE IF EXISTS other; CREATE DATABASE other; CREATE TABLE other.t (id INT PRIMARY KEY)")
    mariadb.sql("INSERT INTO other.t VALUES (1)")
    instance = Instance(tmp_path / "i", receive(tmp_path / "i", path), **OPTIONS)
    apply_rest(instance, groups_of_relay(instance))
    instance.applier.close()
    data = b"".join(path.read_bytes() for path in logs_of(tmp_path / "i"))
    assert b"\5other\0\1t" in data
    assert f"TABLE {own}".encode() not in data and b"\6" + own.encode() + b"\0\1t" not in data
    assert tables(instance).keys() == {"other__t"}
    instance.target.close()


def test_a_log_that_cannot_be_written_stops_before_the_next_commit_and_lacks_nothing_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = new_instance(tmp_path / "i", max_binlog_size=1 << 20)
    groups = groups_of_relay(instance)
    passed = 0

    def full_disk(descriptor: int, data: bytes | memoryview) -> None:
        nonlocal passed
        passed += 1
        if passed > 30:
            raise OSError(28, "No space left on device")
        write_all(descriptor, data)

    monkeypatch.setattr("rplctl.applied_log.writer.write_all", full_disk)
    with pytest.raises(RelayLogError, match="No space left on device") as stopped:
        apply_rest(instance, groups)
    assert stopped.value.errno == 1598 and stopped.value.transient
    committed = instance.applier.info
    assert committed.relay_log_pos < groups.end.log_pos
    monkeypatch.undo()
    instance.applier = instance.reopen()
    assert instance.applier.info.is_at(committed) and in_step(instance)
    apply_rest(instance, groups)
    instance.applier.close()
    assert events_of(logs_of(tmp_path / "i")) == events_of([DEMO])
    instance.target.close()


@pytest.mark.long("test_mariadb_binlog_reads_it_and_finds_the_same_transactions holds it for MariaDB.")
@pytest.mark.slow
@pytest.mark.mysql
def test_mysqlbinlog_reads_a_log_of_mysqls_events_and_skipped_gtids_are_empty_transactions(tmp_path: Path) -> None:
    import lzma

    source = tmp_path / "binlog.000001"
    source.write_bytes(lzma.decompress((DATA / "my97-json.xz").read_bytes()))
    groups = receive(tmp_path / "i", source)
    instance = Instance(tmp_path / "i", groups, log_bin="binlog")
    real = np.flatnonzero(groups.scan.gtid_offset >= 0)
    instance.apply(groups, int(real[-1]))
    instance.applier.apply(Batch(kind=BatchKind.SKIP, groups=groups, first=int(real[-1]), last=len(groups.scan)))
    instance.applier.close()
    logs = logs_of(tmp_path / "i")
    whole, kept = events_of([source]), events_of(logs)
    text = vendor_reads(tool_for("mysql"), logs)
    assert types_of(logs)[-2:] == ["QUERY", "QUERY"] and len(kept) < len(whole)
    assert kept[:-2] == whole[: len(kept) - 2], "all but the skipped one's events"
    assert text.count("SET @@SESSION.GTID_NEXT= '") - 1 == len(real)
    assert positions_are_exact(logs[0])
    instance.target.close()
