"""WL#3970's commit grouping on a real MariaDB: one commit for many, savepoints where the source committed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rplctl.applier.apply.live_tables import COMMIT_WAS_HERE, LiveTables
from rplctl.applier.apply.savepoint_groups import apply_members
from rplctl.applier.feed.plan import BatchKind, plan_batches
from rplctl.errors import TargetError
from rplctl.event.types import EventType
from tests.applier.instance import Instance
from tests.applier.test_two_phase import Recorded, Started, prepare, record, rows
from tests.commit.xa_probe import killed_at
from tests.kit.servers import MariadbServer

SQL = (
    "SET binlog_format=STATEMENT; {insert}(1); BEGIN; {insert}(2); UPDATE t SET v=v+10; COMMIT;"
    " BEGIN; UPDATE t SET v=99; INSERT INTO m (v) VALUES (7); ROLLBACK; {insert}(3);"
    " INSERT INTO m (v) VALUES (8); {insert}(4); CREATE TABLE d (id INT PRIMARY KEY); {insert}(5); {insert}(6)"
)
NAME = "members"
XID, ROWS = EventType.XID, EventType.WRITE_ROWS


class Statements:
    """What is said to the target, and where each event was applied."""

    def __init__(self, *failures: tuple[int, int]) -> None:
        self.failures = list(failures)  # number of the event, errno; once each
        self.said: list[int | str] = []
        self.result = SimpleNamespace(changes=0, by_spark=0, by_driver=0)

    def apply(self, number: int) -> None:
        self.said.append(number)
        if self.failures and self.failures[0][0] == number:
            raise TargetError("x", errno=self.failures.pop(0)[1])
        self.result.changes += 1

    def commit_was_here(self) -> None:
        self.said.append("savepoint")

    def roll_back(self) -> None:
        self.said.append("back")

    def go(self, *types: EventType, retries: int = 1, is_server: bool = True) -> list[int | str]:
        run: Any = SimpleNamespace(types=np.array(types, np.uint8))
        statements: Any = self if is_server else None
        apply_members(run, self.apply, statements, retries, self.result)
        return self.said


def test_the_commits_of_all_but_the_last_are_savepoints() -> None:
    made = Statements()
    assert made.go(ROWS, XID, ROWS, XID, ROWS, XID) == [0, 1, "savepoint", 2, 3, "savepoint", 4, 5]
    assert made.result.changes == 6
    assert Statements().go(ROWS, XID) == [0, 1]
    assert Statements().go(ROWS, XID, EventType.QUERY) == [0, 1, "savepoint", 2]
    assert Statements().go(ROWS, XID, ROWS, XID, is_server=False) == [0, 1, 2, 3]


def test_a_lock_wait_costs_the_member_that_met_it() -> None:
    made = Statements((4, 1205))
    assert made.go(ROWS, XID, ROWS, XID, ROWS, XID) == [0, 1, "savepoint", 2, 3, "savepoint", 4, "back", 4, 5]
    assert made.result.changes == 6
    again = Statements((3, 1205))
    assert again.go(ROWS, XID, ROWS, ROWS, XID) == [0, 1, "savepoint", 2, 3, "back", 2, 3, 4]
    assert again.result.changes == 5


@pytest.mark.parametrize(
    ("failures", "retries", "is_server"),
    [
        ([(0, 1205)], 1, True),  # the first member: the whole group is begun again
        ([(2, 1213)], 1, True),
        ([(2, 1205)], 0, True),
        ([(2, 1205), (2, 1205)], 1, True),
        ([(2, 1205)], 1, False),
    ],
)
def test_what_costs_more_than_a_member_is_the_callers(
    failures: list[tuple[int, int]], retries: int, is_server: bool
) -> None:
    made = Statements(*failures)
    with pytest.raises(TargetError):
        made.go(ROWS, XID, ROWS, XID, retries=retries, is_server=is_server)
    assert made.failures == []


@pytest.fixture(scope="module")
def target(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--skip-log-bin", "--skip-log-slave-updates", "--innodb-lock-wait-timeout=1")


@pytest.fixture(scope="module")
def log(mariadb: MariadbServer, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(mariadb, tmp_path_factory.mktemp("logs"), NAME, SQL)


@pytest.fixture
def instance(target: MariadbServer, log: Recorded, tmp_path: Path) -> Instance:
    """The tables are there, nothing else; positions in a TABLE."""
    target.sql(f"DROP DATABASE IF EXISTS {NAME}; DROP DATABASE IF EXISTS rplctl")
    made = Instance(tmp_path, log.groups, target=target.url())
    made.apply(log.groups, log.first)
    return made


def go_on(instance: Instance, log: Recorded, per_commit: int = 0, stop: int | None = None) -> None:
    stop = len(log.groups.scan) if stop is None else stop
    for batch in plan_batches(log.groups, stop, has_rollbacks=True, per_commit=lambda: per_commit):
        if batch.first >= log.first:
            instance.applier.apply(batch)


def count_commits(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counted: list[int] = []
    really_commit = instance.target.commit

    def commit() -> None:
        counted.append(1)
        really_commit()

    monkeypatch.setattr(instance.target, "commit", commit)
    return counted


def test_a_group_ends_at_ddl_at_a_commit_without_transactions_and_at_its_size(log: Recorded) -> None:
    def sizes(per_commit: int) -> list[tuple[BatchKind, int]]:
        planned = plan_batches(log.groups, len(log.groups.scan), has_rollbacks=True, per_commit=lambda: per_commit)
        return [(b.kind, b.last - b.first) for b in planned if b.first >= log.first and b.transaction_count]

    group, single = BatchKind.COMMIT_GROUP, BatchKind.SINGLE
    # 1, 2 and the ROLLBACK | 3 | MyISAM | 4 | DDL | 5, 6
    alone = [(single, 1)] * 4
    assert sizes(0) == [(group, 3), *alone, (group, 2)]
    assert sizes(2) == [(group, 2), (single, 1), *alone, (group, 2)]
    assert {kind for kind, _ in sizes(1)} == {single}


@pytest.mark.long("One of the three groups stays.", keeps=r"^2-10$")
@pytest.mark.parametrize(("per_commit", "expected"), [(0, 11), (2, 10), (1, 12)])
def test_many_transactions_are_one_commit_and_a_logged_rollback_keeps_those_before_it(
    instance: Instance,
    log: Recorded,
    target: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
    per_commit: int,
    expected: int,
) -> None:
    """Nine transactions of the source and a ROTATE behind them, which needs no commit of its own to be counted. DDL and
    the two that change MyISAM are noted first, and are alone.
    """
    counted = count_commits(instance, monkeypatch)
    go_on(instance, log, per_commit)
    assert rows(target, NAME) == log.rows
    control = sum(
        b.transaction_count == 0 and b.first >= log.first for b in plan_batches(log.groups, len(log.groups.scan))
    )
    assert len(counted) - control == expected
    instance.target.close()


SAVEPOINTS = (
    "SET binlog_format=STATEMENT; {insert}(1); BEGIN; SAVEPOINT ours; {insert}(2); SAVEPOINT COMMIT_WAS_HERE;"
    " {insert}(3); INSERT INTO m (v) VALUES (7); SAVEPOINT {long}; UPDATE t SET v=v+10; ROLLBACK TO {LONG};"
    " ROLLBACK TO ours; {insert}(4); COMMIT; BEGIN; UPDATE t SET v=99; SAVEPOINT ours; SAVEPOINT COMMIT_WAS_HERE;"
    " INSERT INTO m (v) VALUES (8); SAVEPOINT ours; {insert}(5); ROLLBACK; {insert}(6)"
)


def test_savepoints_of_the_source_do_not_interfere_with_ours(
    mariadb: MariadbServer, target: MariadbServer, tmp_path: Path
) -> None:
    """Nested, by the worklog's name and by our own: a logged ROLLBACK goes back to ours alone. Names of 64 characters,
    whose case says nothing.
    """
    ours, long = COMMIT_WAS_HERE, "x" * 64
    sql = SAVEPOINTS.replace("ours", ours).replace("{long}", long).replace("{LONG}", long.upper())
    log = record(mariadb, tmp_path, "savepoints", sql)
    for logged in (f"SAVEPOINT `{ours}`", f"SAVEPOINT `{long}`", f"ROLLBACK TO `{long.upper()}`"):
        assert logged.encode() in log.groups.data.tobytes()
    target.sql("DROP DATABASE IF EXISTS savepoints; DROP DATABASE IF EXISTS rplctl")
    made = Instance(tmp_path / "replica", log.groups, target=target.url())
    made.apply(log.groups, log.first)
    go_on(made, log)
    assert rows(target, "savepoints") == log.rows
    made.target.close()


def test_a_lock_wait_timeout_costs_one_member_only(
    instance: Instance, log: Recorded, target: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1205 at the second transaction's UPDATE: the first is not executed again."""
    executed: list[str] = []
    really_run = LiveTables.run

    def run(self: LiveTables, query: Any, description: Any) -> Any:
        executed.append(query.sql.split()[0])
        return really_run(self, query, description)

    target.sql(f"INSERT INTO {NAME}.t VALUES (1000, 0)")
    with closing(target.connect()) as holder:
        holder.begin()
        holder.cursor().execute(f"UPDATE {NAME}.t SET v=0 WHERE id=1000")
        really_roll_back = LiveTables.roll_back

        def roll_back(self: LiveTables) -> None:
            really_roll_back(self)
            holder.rollback()

        monkeypatch.setattr(LiveTables, "run", run)
        monkeypatch.setattr(LiveTables, "roll_back", roll_back)
        go_on(instance, log, stop=log.first + 2)
    assert executed == ["INSERT", "INSERT", "UPDATE", "INSERT", "UPDATE"]
    assert instance.applier.retried == 0
    assert target.sql(f"SELECT v FROM {NAME}.t WHERE id < 1000 ORDER BY id") == [(11,), (12,)]
    instance.target.close()


@pytest.mark.long("tests/stories/test_target_faults.py repeats transactions in make test.")
def test_a_deadlock_begins_the_whole_group_again(
    instance: Instance, log: Recorded, target: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1213 has ended the transaction with its savepoints: nothing of it may be left, nothing is applied twice."""
    calls: list[int] = []
    really_run = LiveTables.run
    monkeypatch.setattr("rplctl.applier.apply.batch.RETRY_PAUSE_SECONDS", 0.0)

    def run(self: LiveTables, query: Any, description: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            instance.target.connection.exec_driver_sql("ROLLBACK")
            raise TargetError("Deadlock found when trying to get lock", errno=1213, transient=True)
        return really_run(self, query, description)

    monkeypatch.setattr(LiveTables, "run", run)
    go_on(instance, log)
    assert instance.applier.retried == 1
    assert rows(target, NAME) == log.rows
    instance.target.close()


@pytest.mark.long("The other tests of this file hold the groups; which member failed is told by the same code.")
def test_what_fails_in_a_group_is_found_and_those_before_it_are_kept(
    instance: Instance, log: Recorded, target: MariadbServer
) -> None:
    target.sql(f"INSERT INTO {NAME}.t VALUES (2, 0)")  # the second member's key
    with pytest.raises(TargetError) as caught:
        go_on(instance, log)
    assert caught.value.errno == 1062
    assert instance.applier.info.exec_position == log.groups.scan.source_position(log.first)
    assert rows(target, NAME) == [[(1, 1), (2, 0)], []]
    instance.target.close()


@pytest.mark.long("tests/commit/test_two_phase.py prepares groups in make test.")
def test_in_two_phases_the_group_is_prepared_and_committed_as_a_whole(
    log: Recorded, target: MariadbServer, tmp_path: Path
) -> None:
    prepare(target, tmp_path, NAME, log)

    def work() -> None:
        go_on(Started(tmp_path, target.url()), log)

    killed_at("crash_commit_after_log", work)
    started = Started(tmp_path, target.url())
    assert rows(target, NAME) == [[(1, 11), (2, 12)], [(1, 7)]]
    for batch in plan_batches(log.groups, len(log.groups.scan), has_rollbacks=True):
        if batch.first >= log.first + 2:
            started.applier.apply(batch)
    started.target.close()
    assert rows(target, NAME) == log.rows
    assert target.sql("XA RECOVER") == []
