"""Transactions on MyISAM tables, many to a commit: killed after any row, they end as if nothing had happened; an error
stops at its transaction, and what is no error the first time is none the second time.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.applier.feed.plan import plan_batches
from rplctl.applier.interrupt import Stopped
from rplctl.command.selftest.crash_run import in_child
from rplctl.errors import TargetError
from rplctl.event.scan import GroupKind
from rplctl.own_tables.group_begun import kept_group
from rplctl.relay_log.reader import RelayGroups
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.replica import new_log
from tests.kit.servers import MariadbServer

DATABASE = "without_rollback"
CUTS, STATEMENTS = 4, 60
OLDER = "(21, 221, 'older'), (22, 222, 'older'), (23, 223, 'older')"
pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
Make = Callable[[RelayGroups], Instance]


class Killed(BaseException):
    """In place of SIGKILL: nothing in the program catches it, and nothing is sent to the target behind it."""


def written(seed: int) -> Iterator[str]:
    """Statements that succeed: rows come, change, move to other keys, trade their second unique key, go, come back."""
    draw = random.Random(seed)
    rows = {key: 100 + key for key in range(8)}
    yield f"INSERT INTO t VALUES {','.join(f'({key}, {u}, NULL)' for key, u in rows.items())}, {OLDER}"
    yield "UPDATE t SET id = 20 WHERE id = 21"  # a key that was another row's when this was applied first
    yield "DELETE FROM t WHERE id = 22"
    yield "UPDATE t SET id = 22 WHERE id = 23"
    yield "INSERT INTO t VALUES (24, 124, 'moves on')"
    yield "UPDATE t SET id = 25, u = 126 WHERE id = 24"
    yield "UPDATE t SET u = 125 WHERE id = 25"
    for number in range(STATEMENTS):
        free = draw.choice([k for k in range(12) if k not in rows] or [None])
        key = draw.choice(list(rows)) if rows else None
        match draw.choice(["insert", "insert", "update", "move", "trade", "delete"]):
            case "insert" if free is not None:
                rows[free] = number
                yield f"INSERT INTO t VALUES ({free}, {number}, REPEAT('x', {number}))"
            case "update" if key is not None:
                rows[key] = number
                yield f"UPDATE t SET u = {number}, note = '{number}' WHERE id = {key}"
            case "move" if key is not None and free is not None:
                rows[free] = rows.pop(key)
                yield f"UPDATE t SET id = {free} WHERE id = {key}"
            case "trade" if key is not None and free is not None:
                u = rows.pop(key)
                rows[free] = u
                yield f"DELETE FROM t WHERE id = {key}"
                yield f"INSERT INTO t VALUES ({free}, {u}, 'traded')"
            case "delete" if key is not None:
                del rows[key]
                yield f"DELETE FROM t WHERE id = {key}"
    yield "INSERT INTO t SELECT 100 + seq, 1000 + seq, 'many' FROM seq_1_to_5; UPDATE t SET u = u + 5000"
    yield "INSERT INTO bystander VALUES (1)"


@pytest.fixture(scope="module")
def target_server(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--skip-log-bin", "--skip-log-slave-updates")


@pytest.fixture
def log_of(mariadb: MariadbServer, tmp_path: Path) -> Callable[..., RelayGroups]:
    def log_of(statements: Iterable[str], image: str = "FULL") -> RelayGroups:
        log = new_log(mariadb)
        tables = "CREATE TABLE t (id INT PRIMARY KEY, u INT, note VARCHAR(80), UNIQUE (u)) ENGINE=MyISAM;"
        tables += "CREATE TABLE bystander (id INT PRIMARY KEY) ENGINE=Aria;"
        mariadb.sql(
            f"DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE}; USE {DATABASE};"
            f"SET binlog_format=ROW, binlog_row_image={image}; {tables} {';'.join(statements)}; FLUSH LOGS"
        )
        return groups_of(Path(shutil.copy(mariadb.data / log, tmp_path / "log.000001")))

    return log_of


@pytest.fixture
def make(target_server: MariadbServer, tmp_path: Path) -> Iterator[Make]:
    made: list[Instance] = []

    def make(groups: RelayGroups) -> Instance:
        target_server.sql(f"DROP DATABASE IF EXISTS {DATABASE}; DROP DATABASE IF EXISTS rplctl")
        made.append(Instance(tmp_path / f"instance{len(made)}", groups, target=target_server.url()))
        return made[-1]

    yield make
    for instance in made:
        instance.applier.close()
        instance.target.close()


def begin(instance: Instance, groups: RelayGroups) -> None:
    """Up to the first transaction, and with it: what comes then meets rows that are older."""
    instance.apply(groups, stop=int(np.flatnonzero(groups.scan.kind == GroupKind.ROWS)[0]) + 1)


def apply_rest(instance: Instance, groups: RelayGroups) -> None:
    at, scan = instance.applier.info.exec_position, groups.scan
    done = sum(not at.is_before(scan.source_position(n)) for n in range(len(scan)))
    for batch in plan_batches(groups, len(scan), has_rollbacks=True):
        if batch.last > done:
            instance.applier.apply(replace(batch, first=max(batch.first, done)))


@contextmanager
def at_row(instance: Instance, number: int, behind: BaseException, *, before: bool = False) -> Iterator[None]:
    """The `number`th row from here on is applied, and `behind` it raised; `before`: in place of it."""
    really, left = instance.target.apply_change, [number]

    def apply_change(*change: Any) -> None:
        left[0] -= 1
        if before and left[0] == 0:
            raise behind
        really(*change)
        if left[0] == 0:
            raise behind

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(instance.target, "apply_change", apply_change)
        yield


def restart(instance: Instance) -> None:
    """What was sent in a transaction and not committed is lost with its connection."""
    instance.target.reconnect()
    instance.applier = instance.reopen()


def content(server: MariadbServer) -> list[tuple[Any, ...]]:
    return server.sql(f"SELECT id, u, note FROM {DATABASE}.t ORDER BY id") + server.sql(
        f"SELECT id FROM {DATABASE}.bystander"
    )


def left_open(instance: Instance) -> object:
    with instance.target.engine.connect() as connection:
        return kept_group(connection, "")


@pytest.mark.long(
    "test_an_error_stops_behind_the_last_whole_transaction_and_the_next_start_is_strict holds the marker.",
)
@pytest.mark.parametrize("seed", range(3))
def test_killed_after_any_row_and_twice_the_rows_are_those_of_the_source(
    seed: int, log_of: Callable[..., RelayGroups], make: Make, mariadb: MariadbServer, target_server: MariadbServer
) -> None:
    groups = log_of(written(seed))
    wanted = content(mariadb)
    draw = random.Random(seed)
    for _ in range(CUTS):
        instance = make(groups)
        begin(instance, groups)
        killed = 0
        for cut in (draw.randint(1, 30), draw.randint(1, 30)):
            with at_row(instance, cut, Killed()):
                try:
                    apply_rest(instance, groups)
                except Killed:
                    killed += 1
            restart(instance)
        apply_rest(instance, groups)
        assert content(target_server) == wanted
        assert left_open(instance) is None
        assert killed


@pytest.mark.long("A kill between two rows of a table without transactions is rare.")
@pytest.mark.parametrize("number", [1, 20])
def test_a_process_killed_in_the_middle_leaves_what_the_next_one_applies_once_more(
    number: int, log_of: Callable[..., RelayGroups], make: Make, mariadb: MariadbServer, target_server: MariadbServer
) -> None:
    groups = log_of(written(7))
    instance = make(groups)
    begin(instance, groups)
    instance.target.close()

    def go_on(_: object) -> None:
        restart(instance)
        apply_rest(instance, groups)

    assert in_child(go_on, f"crash_after_commit_before_update_pos=kill@{number}").killed
    assert left_open(instance) is not None
    restart(instance)
    apply_rest(instance, groups)
    assert content(target_server) == content(mariadb)
    assert left_open(instance) is None


@pytest.mark.long("It counts commits; the rows are held by the other tests of this file.")
def test_a_run_of_them_takes_two_commits_and_not_one_each(
    log_of: Callable[..., RelayGroups], make: Make, target_server: MariadbServer
) -> None:
    groups = log_of(f"INSERT INTO t VALUES ({n}, {n}, '')" for n in range(200))
    instance = make(groups)
    before = int(target_server.sql("SHOW GLOBAL STATUS LIKE 'Handler_commit'")[0][1])
    apply_rest(instance, groups)
    commits = int(target_server.sql("SHOW GLOBAL STATUS LIKE 'Handler_commit'")[0][1]) - before
    assert len(target_server.sql(f"SELECT id FROM {DATABASE}.t")) == 200
    assert commits < 60  # DDL and what is read on the way count, too


@pytest.mark.long("One of the three places stays.", keeps=r"^7$")
@pytest.mark.parametrize("number", [2, 7, 30])
def test_an_error_stops_behind_the_last_whole_transaction_and_the_next_start_is_strict(
    number: int, log_of: Callable[..., RelayGroups], make: Make, target_server: MariadbServer
) -> None:
    groups = log_of(f"INSERT INTO t VALUES ({n}, {n}, '')" for n in range(40))
    instance = make(groups)
    begin(instance, groups)
    target_server.sql(f"INSERT INTO {DATABASE}.t VALUES ({number}, 9999, 'of somebody else')")
    for _ in range(2):
        with pytest.raises(TargetError, match="Duplicate entry"):
            apply_rest(instance, groups)
        assert len(target_server.sql(f"SELECT id FROM {DATABASE}.t")) == number + 1
        assert left_open(instance) is None
        restart(instance)
    target_server.sql(f"DELETE FROM {DATABASE}.t WHERE id = {number}")
    apply_rest(instance, groups)
    assert target_server.sql(f"SELECT count(*), max(u) FROM {DATABASE}.t") == [(40, 39)]


def test_stop_in_the_middle_commits_what_is_whole(
    log_of: Callable[..., RelayGroups], make: Make, target_server: MariadbServer
) -> None:
    groups = log_of(f"INSERT INTO t VALUES ({n}, {n}, '')" for n in range(40))
    instance = make(groups)
    begin(instance, groups)
    really = instance.target.apply_change

    def apply_change(*change: Any) -> None:
        really(*change)
        if len(target_server.sql(f"SELECT id FROM {DATABASE}.t")) == 11:
            instance.stop.set()

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Stopped):
        patched.setattr(instance.target, "apply_change", apply_change)
        apply_rest(instance, groups)
    instance.stop.clear()
    assert left_open(instance) is None
    restart(instance)
    apply_rest(instance, groups)  # strict: what was applied would stop it
    assert len(target_server.sql(f"SELECT id FROM {DATABASE}.t")) == 40


@pytest.mark.long("tests/stories/test_target_faults.py loses connections in make test.")
def test_a_lost_connection_in_the_middle_is_tried_again_without_an_error(
    log_of: Callable[..., RelayGroups],
    make: Make,
    target_server: MariadbServer,
    mariadb: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rplctl.applier.apply.batch.RETRY_PAUSE_SECONDS", 0.01)
    groups = log_of(written(1))
    instance = make(groups)
    begin(instance, groups)
    lost = TargetError("Lost connection to MySQL server during query", errno=2013, transient=True)
    with at_row(instance, 13, lost):
        apply_rest(instance, groups)
    assert instance.applier.retried == 1
    assert content(target_server) == content(mariadb)
    assert left_open(instance) is None


@pytest.mark.long("tests/applier/test_multisets.py has MINIMAL images in make test.")
def test_images_that_leave_columns_out_go_one_by_one(
    log_of: Callable[..., RelayGroups], make: Make, target_server: MariadbServer, mariadb: MariadbServer
) -> None:
    groups = log_of(written(2), "MINIMAL")
    instance = make(groups)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("rplctl.applier.apply.committer.keep_group", lambda *_: pytest.fail("a group"))
        apply_rest(instance, groups)
    assert content(target_server) == content(mariadb)


def test_beside_tables_with_transactions_nothing_that_is_rolled_back_has_its_position_committed(
    log_of: Callable[..., RelayGroups], make: Make, target_server: MariadbServer
) -> None:
    both = "BEGIN; INSERT INTO t VALUES ({0}, {0}, ''); INSERT INTO kept VALUES ({0}); COMMIT"
    groups = log_of(["CREATE TABLE kept (id INT PRIMARY KEY) ENGINE=InnoDB", *(both.format(n) for n in range(20))])
    instance = make(groups)
    begin(instance, groups)
    target_server.sql(f"INSERT INTO {DATABASE}.t VALUES (12, 9999, 'of somebody else')")
    with pytest.raises(TargetError, match="Duplicate entry"):
        apply_rest(instance, groups)
    assert target_server.sql(f"SELECT count(*) FROM {DATABASE}.kept") == [(12,)]


def test_a_position_that_was_moved_since_makes_what_was_left_open_void(
    log_of: Callable[..., RelayGroups], make: Make, target_server: MariadbServer
) -> None:
    groups = log_of(f"INSERT INTO t VALUES ({n}, {n}, '')" for n in range(40))
    instance = make(groups)
    begin(instance, groups)
    with at_row(instance, 9, Killed()), pytest.raises(Killed):
        apply_rest(instance, groups)
    instance.target.reconnect()
    at = groups.scan.source_position(14).log_pos
    end = int(groups.scan.end[14])
    target_server.sql(f"UPDATE rplctl.slave_relay_log_info SET Master_log_pos = {at}, Relay_log_pos = {end}")
    instance.applier = instance.reopen()
    assert left_open(instance) is None
    target_server.sql(f"INSERT INTO {DATABASE}.t VALUES (30, 9999, 'of somebody else')")
    with pytest.raises(TargetError, match="Duplicate entry"):
        apply_rest(instance, groups)
