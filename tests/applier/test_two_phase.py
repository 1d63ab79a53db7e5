"""WL#3970's kinds of groups in two-phase commit: recorded on a real MariaDB, applied to another, killed in between."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.applier.apply.batch import BatchApplier
from rplctl.applier.apply.ordered_batch import NOT_IN_XA
from rplctl.applier.feed.plan import plan_batches
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.channel import Channel
from rplctl.commit.step import CommitMode
from rplctl.commit.two_phase import XaPositionStore
from rplctl.config import Config
from rplctl.event.scan import GroupKind, scan_groups
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.target import open_target
from tests.applier.instance import Instance
from tests.commit.xa_probe import killed_at, program_killed_at
from tests.kit.replica import new_log
from tests.kit.servers import MariadbServer, MysqlServer

POINTS = {
    "crash_commit_before": False,
    "crash_commit_after_prepare": False,
    "crash_commit_after_log": True,
    "crash_commit_between_engines": True,
    "crash_commit_before_unlog": True,
    "crash_commit_after": True,
}
KEY_POINTS = ("crash_commit_after_prepare", "crash_commit_after_log", "crash_commit_before_unlog")
GROUPS = {
    "statement": "SET binlog_format=STATEMENT; {insert}(1); {insert}(2); {insert}(3)",
    "rows": "SET binlog_format=ROW; {insert}(1); {insert}(2); {insert}(3)",
    "transaction": "SET binlog_format=STATEMENT; BEGIN; {insert}(1); UPDATE t SET v=v+10; COMMIT; {insert}(5)",
    "savepoints": "SET binlog_format=ROW; BEGIN; {insert}(1); SAVEPOINT s; {insert}(2); ROLLBACK TO s; COMMIT",
}


@dataclass
class Recorded:
    groups: RelayGroups
    rows: list[Any]
    first: int  # group behind the DDL


@pytest.fixture(scope="module")
def target(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--skip-log-bin", "--skip-log-slave-updates")


def record(source: MariadbServer, folder: Path, name: str, sql: str) -> Recorded:
    """The binary log of these statements, after CREATE TABLE t and, in MyISAM, m."""
    log = new_log(source)
    source.sql(f"CREATE DATABASE {name}")
    table = "(id INT AUTO_INCREMENT PRIMARY KEY, v INT)"
    source.sql(f"CREATE TABLE t {table} ENGINE=InnoDB; CREATE TABLE m {table} ENGINE=MyISAM", name)
    source.sql(sql.format(insert="INSERT INTO t (v) VALUES "), name)
    rows = [source.sql(f"SELECT * FROM {t} ORDER BY id", name) for t in ("t", "m")]
    source.sql(f"FLUSH LOGS; DROP DATABASE {name}")
    path = folder / log
    shutil.copy(source.data / log, path)
    groups = groups_of(path)
    ddl = np.flatnonzero(groups.scan.kind == GroupKind.QUERY)
    return Recorded(groups, rows, int(ddl[2]) + 1)


def groups_of(path: Path) -> RelayGroups:
    """The whole file, as if it were our first relay log."""
    log = path.name
    data = np.fromfile(path, np.uint8)
    scan = scan_groups(data, 4, BinlogPosition(log, 4), len(data))
    start, end = (RelayLogPosition("relay-bin.000001", at) for at in (4, int(scan.end[-1])))
    description = scan.description_at(int(scan.end[-1]))
    return RelayGroups(
        path=path,
        log_name=start.log_name,
        data=data,
        scan=scan,
        format_description=description,
        start=start,
        start_source=BinlogPosition(log, 4),
        end=end,
        end_source=scan.end_position,
    )


@pytest.fixture(scope="module")
def recorded(mariadb: MariadbServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    folder = tmp_path_factory.mktemp("logs")
    return {kind: record(mariadb, folder, f"xa_{kind}", sql) for kind, sql in GROUPS.items()}


class Started(Instance):
    """On what another start left, in commit mode xa."""

    def __init__(self, folder: Path, url: str, **options: Any) -> None:
        self.config = Config(folder, target=url, commit_mode="xa", **options)
        self.channel = Channel("", folder)
        self.target = open_target(url)
        self.pipeline = InProcessPipeline()
        self.stop = threading.Event()
        self.applier = self.reopen()

    def go_on(self, groups: RelayGroups) -> BatchApplier:
        """Apply what is behind the stored position."""
        at = self.applier.info.exec_position
        ends = [groups.scan.source_position(n) for n in range(len(groups.scan))]
        self.apply_from(groups, sum(not at.is_before(end) for end in ends))
        return self.applier


def prepare(server: MariadbServer, folder: Path, name: str, recorded: Recorded) -> None:
    """The tables of the recorded log in an otherwise empty target."""
    server.sql(f"DROP DATABASE IF EXISTS {name}; DROP DATABASE IF EXISTS rplctl")
    instance = Instance(
        folder, recorded.groups, target=server.url(), commit_mode="xa", relay_log_info_repository="FILE"
    )
    instance.apply(recorded.groups, recorded.first)
    instance.target.close()


def rows(server: MariadbServer, name: str) -> list[Any]:
    return [server.sql(f"SELECT * FROM {table} ORDER BY id", name) for table in ("t", "m")]


@pytest.mark.long("tests/commit/test_two_phase.py has the points without a process.")
@pytest.mark.mariadb
@pytest.mark.parametrize(
    ("kind", "point"),
    [
        pytest.param(kind, point, marks=[] if point in KEY_POINTS else pytest.mark.torture)
        for kind in GROUPS
        for point in POINTS
        if kind == "rows" or point in KEY_POINTS
    ],
)
def test_each_kind_of_group_is_whole_after_each_crash_point(
    target: MariadbServer, recorded: dict[str, Recorded], tmp_path: Path, kind: str, point: str
) -> None:
    log, name = recorded[kind], f"xa_{kind}"
    prepare(target, tmp_path, name, log)
    if kind == "rows":
        folder, path = str(tmp_path), str(log.groups.path)
        opened = f"Started(Path({folder!r}), {target.url()!r})"
        program_killed_at(
            point, f"from tests.applier.test_two_phase import *; {opened}.go_on(groups_of(Path({path!r})))"
        )
    else:
        killed_at(point, lambda: Started(tmp_path, target.url()).go_on(log.groups))
    left = target.sql("XA RECOVER")
    assert len(left) == (point in ("crash_commit_after_prepare", "crash_commit_after_log"))
    started = Started(tmp_path, target.url())
    assert target.sql("XA RECOVER") == []
    assert bool(rows(target, name)[0]) == POINTS[point]
    assert isinstance(started.store, XaPositionStore)
    assert started.go_on(log.groups).info.exec_position == log.groups.end_source
    started.target.close()
    assert rows(target, name) == log.rows
    assert target.sql("XA RECOVER") == []


@pytest.mark.long("One commit mode stays.", keeps=r"^xa$")
@pytest.mark.mariadb
@pytest.mark.parametrize("mode", ["auto", "xa"])
def test_a_logged_rollback_moves_the_position_outside_the_transaction(
    mariadb: MariadbServer, target: MariadbServer, tmp_path: Path, mode: str
) -> None:
    """WL#3970's second rollback, WL#2775 statement 23: what MyISAM keeps is kept, InnoDB's part is not."""
    name = f"rolled_back_{mode}"
    sql = (
        "SET binlog_format=STATEMENT; INSERT INTO t (v) VALUES (1);"
        " BEGIN; UPDATE t SET v=99; INSERT INTO m (v) VALUES (2); ROLLBACK; INSERT INTO t (v) VALUES (3)"
    )
    log = record(mariadb, tmp_path, name, sql)
    _, number, _ = np.flatnonzero(log.groups.scan.kind == GroupKind.STATEMENT).tolist()
    target.sql("DROP DATABASE IF EXISTS rplctl")
    instance = Instance(
        tmp_path / "i", log.groups, target=target.url(), commit_mode=mode, relay_log_info_repository="FILE"
    )
    for batch in plan_batches(log.groups, number + 1, has_rollbacks=True):
        instance.applier.apply(batch)
    assert instance.applier.info.exec_position == log.groups.scan.source_position(number)
    assert rows(target, name) == [[(1, 1)], [(1, 2)]]
    instance.apply_from(log.groups, number + 1)
    assert rows(target, name) == log.rows
    assert b"prepared:" not in (tmp_path / "i/relay-log.info").read_bytes()
    instance.target.close()


@pytest.mark.long("`crash-test` has tables without transactions in two phases.")
@pytest.mark.mariadb
def test_a_group_on_a_table_without_transactions_has_no_prepare(
    recorded: dict[str, Recorded], target: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WL#3970: one participant cannot do it, so nobody prepares; the others of the log still do."""
    log = recorded["rows"]
    prepare(target, tmp_path, "xa_rows", log)
    target.sql("ALTER TABLE t ENGINE=MyISAM", "xa_rows")
    started = Started(tmp_path, target.url())
    store = started.store
    assert isinstance(store, XaPositionStore)
    monkeypatch.setattr(store.participant, "prepare", lambda *_: pytest.fail("prepared"))
    assert started.go_on(log.groups).info.exec_position == log.groups.end_source
    started.target.close()
    assert rows(target, "xa_rows") == log.rows


@pytest.mark.long("Two phases are opt-in, and such statements are rare in them.")
@pytest.mark.mysql
def test_what_mysql_does_not_let_into_xa_is_applied_without_a_prepare(
    mysql_factory: Callable[..., MysqlServer], tmp_path: Path
) -> None:
    """A group with a temporary table, which MySQL refuses inside XA with 4091; those around it have a prepare."""
    server = mysql_factory("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--binlog-format=STATEMENT")
    sql = (
        "{insert}(1); CREATE TEMPORARY TABLE x (v INT);"
        " BEGIN; {insert}(2); INSERT INTO x VALUES (3); INSERT INTO t (v) SELECT v FROM x; COMMIT; {insert}(4)"
    )
    log = record(server, tmp_path, "xa_temporary", sql)
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("XA START 'seen'")
        with pytest.raises(Exception) as refused:
            cursor.execute("CREATE TEMPORARY TABLE mysql.x (v INT)")
        cursor.execute("XA END 'seen'")
        cursor.execute("XA ROLLBACK 'seen'")
    assert refused.value.args[0] in NOT_IN_XA - {1399}
    prepare(server, tmp_path, "xa_temporary", log)
    started = Started(tmp_path, server.url())
    assert started.go_on(log.groups).info.exec_position == log.groups.end_source
    assert started.store.mode is CommitMode.XA
    started.target.close()
    assert rows(server, "xa_temporary") == log.rows and server.sql("XA RECOVER") == []
