from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from rplctl.channel import Channel
from rplctl.command.selftest.crash_run import in_child
from rplctl.commit.branches import PATIENCE_SECONDS, Branches, decided_batch, resolve_branches
from rplctl.commit.resolve import refuse_half_committed
from rplctl.commit.step import CommitStep
from rplctl.commit.transaction import commit_in_branches
from rplctl.config import OPTIONS
from rplctl.errors import ConfigError, LockBusy, NotRunning, TargetError
from rplctl.event.scan import GroupKind
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.target import dialect_of, open_engine, open_target
from tests.applier.demo_log import groups_of
from tests.commit.branch_applier import apply_log
from tests.commit.branch_server import BranchServer, Cut
from tests.kit.servers import MariadbServer, PostgresqlServer

SLOTS = ("-c", "max_prepared_transactions=10")
TABLES = ("a", "b", "c", "d")
MADE = """CREATE DATABASE f;
CREATE TABLE f.a (id INT PRIMARY KEY, v VARCHAR(40)); CREATE TABLE f.c (id INT PRIMARY KEY, v INT, w INT UNIQUE);
CREATE TABLE f.b (id INT PRIMARY KEY, a INT, v INT, FOREIGN KEY (a) REFERENCES f.a (id));
CREATE TABLE f.d (v INT, w VARCHAR(20))"""
CHANGED = """BEGIN; INSERT INTO f.a SELECT {0} + seq, CONCAT('row ', seq) FROM f.seq_1_to_600;
INSERT INTO f.b SELECT {0} + seq, {0} + seq, seq FROM f.seq_1_to_600;
INSERT INTO f.c SELECT {0} + seq, seq, {0} + seq FROM f.seq_1_to_600;
INSERT INTO f.d SELECT seq, 'd' FROM f.seq_1_to_300; COMMIT;
BEGIN; UPDATE f.a SET v = CONCAT(v, 'x'); UPDATE f.c SET v = v + 1; DELETE FROM f.b WHERE id % 7 = 0;
DELETE FROM f.d WHERE v % 2 = 0; UPDATE f.b SET v = -v; COMMIT"""
POINTS = {  # → transactions that are prepared when the applier is killed there, of two branches
    "crash_after_update_pos_before_apply": 0,
    "crash_after_apply": 0,
    "crash_commit_after_prepare": 2,
    "crash_commit_after_log": 2,
    "crash_commit_between_engines": 1,
    "crash_commit_before_unlog": 0,
}


@pytest.fixture(scope="module")
def source(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    """Its last binary log holds the tables and three batches."""
    server = mariadb_factory()
    server.sql("FLUSH BINARY LOGS")
    server.sql(MADE)
    for turn in range(3):
        server.sql(CHANGED.format(1000 * turn))
    return server


def rows(server: MariadbServer | PostgresqlServer, table: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in server.sql(f"SELECT * FROM f.{table}"))


def prepared(server: MariadbServer | PostgresqlServer) -> int:
    return len(
        server.sql("SELECT gid FROM pg_prepared_xacts" if isinstance(server, PostgresqlServer) else "XA RECOVER")
    )


def options_of(target: MariadbServer | PostgresqlServer, **more: Any) -> dict[str, Any]:
    return {"target": target.url(), "replica_parallel_workers": 2, "relay_log_info_repository": "TABLE", **more}


def emptied(target: MariadbServer | PostgresqlServer) -> None:
    for name in ("f", "rplctl"):
        is_postgresql = isinstance(target, PostgresqlServer)
        target.sql(f"DROP {'SCHEMA' if is_postgresql else 'DATABASE'} IF EXISTS {name}{' CASCADE' * is_postgresql}")


def killed_everywhere(source: MariadbServer, target: MariadbServer | PostgresqlServer, folder: Path) -> None:
    """At each point in the second batch; the next start goes on, and all is there once."""
    log = source.binlog_files[-1]
    for number, (point, left) in enumerate(POINTS.items()):
        emptied(target)
        options = options_of(target, relay_log_info_repository="FILE" if number % 2 else "TABLE")

        def work(_: Any) -> None:
            apply_log(folder / point, log, options)  # noqa: B023

        done = in_child(work, f"{point}=kill@2")
        assert done.killed, f"{point} was not passed: {done.error}"
        assert prepared(target) == left, point
        told = nullcontext() if left == 0 else pytest.raises(NotRunning, match=f"{left} transactions are prepared")
        with closing(open_target(target.url())) as opened, told:
            refuse_half_committed(Channel("", folder / point), partial(getattr, opened, "engine"))
        assert apply_log(folder / point, log, options) >= 1
        assert prepared(target) == 0, point
        for table in TABLES:
            assert rows(source, table) == rows(target, table), (point, table)


@pytest.mark.long("tests/commit/test_fault_matrix.py walks the points of a commit; branches are opt-in.")
def test_killed_anywhere_all_branches_have_a_batch_or_none_has_on_mariadb(
    source: MariadbServer, mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    killed_everywhere(source, mariadb_factory(), tmp_path)


@pytest.mark.long("test_whatever_call_is_the_last_the_next_start_finds_all_or_nothing has the same calls in make test.")
@pytest.mark.postgresql
def test_killed_anywhere_all_branches_have_a_batch_or_none_has_on_postgresql(
    source: MariadbServer, postgresql_factory: Callable[..., PostgresqlServer], tmp_path: Path
) -> None:
    target = postgresql_factory(*SLOTS)
    killed_everywhere(source, target, tmp_path)
    assert target.sql("SELECT count(*) FROM pg_class WHERE starts_with(relname, 'rplctl_stage')") == [(0,)]


@pytest.mark.torture
@pytest.mark.mysql
def test_killed_anywhere_all_branches_have_a_batch_or_none_has_on_mysql(
    source: MariadbServer, mysql_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    killed_everywhere(source, mysql_factory(), tmp_path)


@pytest.mark.postgresql
def test_tables_that_only_the_target_ties_together_are_applied_by_one_from_then_on(
    source: MariadbServer,
    postgresql_factory: Callable[..., PostgresqlServer],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    target, log = postgresql_factory(*SLOTS), source.binlog_files[-1]
    tables_made = groups_of(log).scan.kind.tolist().index(GroupKind.ROWS)
    apply_log(tmp_path / "replica", log, options_of(target), stop=tables_made)
    target.sql("ALTER TABLE f.c ADD FOREIGN KEY (id) REFERENCES f.a (id)")
    assert apply_log(tmp_path / "replica", log, options_of(target)) == 0
    assert "f.a, f.b, f.c, f.d: one connection" in caplog.text
    assert [rows(target, table) for table in TABLES] == [rows(source, table) for table in TABLES]


@pytest.mark.long("test_whatever_call_is_the_last_the_next_start_finds_all_or_nothing commits by the same branches.")
@pytest.mark.timeout(300)
def test_who_holds_the_position_for_long_is_waited_for(
    source: MariadbServer, mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    """As rplctl repair does: no branch is in another's way then."""
    target, log = mariadb_factory(), source.binlog_files[-1]
    tables_made = groups_of(log).scan.kind.tolist().index(GroupKind.ROWS)
    apply_log(tmp_path / "replica", log, options_of(target), stop=tables_made)
    with closing(target.connect()) as other, other.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("UPDATE rplctl.slave_relay_log_info SET channel_name = channel_name")
        cursor.execute("SELECT channel_name FROM rplctl.slave_relay_log_info FOR UPDATE")
        threading.Timer(PATIENCE_SECONDS + 3, other.rollback).start()
        assert apply_log(tmp_path / "replica", log, options_of(target)) >= 1
    assert [rows(target, table) for table in TABLES] == [rows(source, table) for table in TABLES]


def test_a_target_with_one_connection_refuses_workers(source: MariadbServer, tmp_path: Path) -> None:
    options = {"replica_parallel_workers": 2, "relay_log_info_repository": "TABLE", "target": ""}
    with pytest.raises(ConfigError, match="workers=2: a target of kind sqlite cannot prepare") as caught:
        apply_log(tmp_path / "replica", source.binlog_files[-1], options)
    assert caught.value.exit_code == 78


@pytest.mark.postgresql
@pytest.mark.parametrize("kind", ["mariadb", "postgresql"])
def test_as_many_branches_as_may_be_asked_for_have_their_connections(request: pytest.FixtureRequest, kind: str) -> None:
    server, most = request.getfixturevalue(kind), OPTIONS["replica_parallel_workers"].high
    engine = open_engine(server.url())
    with ExitStack() as opened:
        targets = [dialect_of(engine.dialect.name).open_target(engine) for _ in range(most)]
        for target in targets:
            opened.callback(target.reconnect)
        assert len({id(target.connection.connection.driver_connection) for target in targets}) == most
        with engine.connect():
            pass
    engine.dispose()


@pytest.mark.postgresql
def test_a_server_without_room_for_all_branches_is_told(
    source: MariadbServer, postgresql_factory: Callable[..., PostgresqlServer], tmp_path: Path
) -> None:
    target = postgresql_factory("-c", "max_prepared_transactions=1")
    with pytest.raises(ConfigError, match="2 prepared transactions are too many") as caught:
        apply_log(tmp_path / "replica", source.binlog_files[-1], options_of(target))
    assert "= 20" in caught.value.hint


def begun(database: Path, count: int = 2, **more: Any) -> tuple[BranchServer, Branches]:
    server = BranchServer(create_engine(f"sqlite:///{database}"), **more)
    create_own_tables(server.engine)
    return server, server.branches(count)


def commit_rows(server: BranchServer, branches: Branches) -> None:
    """One on each branch; the position moves."""
    first: Any = server.first
    step = CommitStep(position(0), position(1))
    commit_in_branches(first, server.store(branches), step, lambda: server.insert_on_each(branches))


def position(number: int) -> RelayLogInfo:
    relay, source = RelayLogPosition("relay-bin.000001", 4 + number), BinlogPosition("binlog.000001", 4 + number)
    return RelayLogInfo().at(relay, source)


@pytest.mark.long("Two calls stay in make test.", keeps=r"-2$")
@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("is_late", [False, True])
def test_whatever_call_is_the_last_the_next_start_finds_all_or_nothing(
    tmp_path: Path, count: int, is_late: bool
) -> None:
    """A crash at each call of each branch; `is_late`: that one arrives at the server all the same."""
    ends, is_whole = list[int](), False
    while not is_whole:
        server, branches = begun(tmp_path / f"{len(ends)}.db", count, cut_at=len(ends) + 1, is_late=is_late)
        server.arm()
        try:
            commit_rows(server, branches)
            is_whole = True
        except Cut:
            server.restart()
        resolve_branches(server.engine, "", server.prefix, server)
        assert server.prepared == {}, server.said
        assert server.rows in ([], sorted(range(count))), server.said
        assert bool(server.rows) == server.has_moved, server.said
        ends.append(len(server.rows))
    assert set(ends) == {0, count}
    assert len(ends) == 4 * count + 3, "begin, insert, prepare, commit of each; the position; the decision; no cut"


@pytest.mark.parametrize("has_arrived", [False, True])
def test_a_decision_without_an_answer_is_taken_back_or_found(tmp_path: Path, has_arrived: bool) -> None:
    server, branches = begun(tmp_path / "target.db")
    decide, calls = branches.swap_decision, list[str]()

    def lost(name: str) -> bool:
        calls.append(name)
        if len(calls) > 1:
            return decide(name)
        if has_arrived:
            decide(name)
        raise TargetError("Lost connection", errno=2013, transient=True)

    branches.swap_decision = lost  # type: ignore[method-assign]
    if has_arrived:
        commit_rows(server, branches)
        assert decided_batch(server.engine, "") == calls[0]
    else:
        with pytest.raises(TargetError, match="Lost connection"):
            commit_rows(server, branches)
        assert decided_batch(server.engine, "") == calls[1], "what arrives late finds another name"
    assert (server.rows, server.has_moved, server.prepared) == ([0, 1] if has_arrived else [], has_arrived, {})
    commit_rows(server, branches)  # goes on
    assert server.rows == ([0, 0, 1, 1] if has_arrived else [0, 1])


def test_a_branch_that_fails_undoes_all_and_the_next_batch_is_whole(tmp_path: Path) -> None:
    server, branches = begun(tmp_path / "target.db")

    def fail(target: object) -> None:
        raise TargetError("Lock wait timeout exceeded", errno=1205, transient=True)

    store, step = server.store(branches), CommitStep(position(0), position(1))
    first: Any = server.first
    with pytest.raises(TargetError, match="Lock wait"):
        commit_in_branches(first, store, step, lambda: branches.apply({0: lambda target: None, 1: fail}))
    assert (server.rows, server.has_moved, server.prepared) == ([], False, {})
    commit_rows(server, branches)
    assert server.rows == [0, 1] and server.has_moved


def test_somebody_else_who_decides_for_the_channel_ends_it(tmp_path: Path) -> None:
    server, branches = begun(tmp_path / "target.db")
    assert server.branches(2).swap_decision("0" * 16)
    with pytest.raises(LockBusy, match="another applier"):
        commit_rows(server, branches)
    assert (server.rows, server.has_moved, server.prepared) == ([], False, {})
