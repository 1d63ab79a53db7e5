"""Statements that commit by themselves, killed at each point around them, on real servers: each is carried out once."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.applier.feed.plan import plan_batches
from rplctl.command.selftest.crash_run import ChildOutcome, in_child
from rplctl.commit.noted import Decision, decide, is_of
from rplctl.errors import TargetError
from rplctl.event.scan import GroupKind
from rplctl.info import RelayLogInfo
from rplctl.own_tables.statement_note import NoteState, StatementNote
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.affected import Affected, ServerObject, affected_by
from rplctl.schema.context import DdlContext
from rplctl.target.base import Definition
from rplctl.target.mysql.target import MysqlTarget
from tests.applier.instance import Instance
from tests.applier.test_two_phase import groups_of
from tests.kit.replica import new_log, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12

DATABASES = ("noted", "noted_2")
SETUP = """
CREATE DATABASE noted; USE noted;
CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 10);
CREATE TABLE u (a INT, b INT); INSERT INTO u VALUES (2, 20);
CREATE TABLE p (a INT, b INT) PARTITION BY HASH (a) PARTITIONS 3; INSERT INTO p VALUES (0, 0), (1, 1), (2, 2), (3, 3);
CREATE TABLE e (a INT, b INT); INSERT INTO e VALUES (3, 33);
CREATE TABLE d1 (a INT); CREATE TABLE d2 (a INT);
CREATE TABLE `odd ü-``name` (a INT); INSERT INTO `odd ü-``name` VALUES (5);
CREATE TABLE parent (a INT PRIMARY KEY); CREATE TABLE child (a INT)
"""
TWICE = (  # statements that succeed twice, or that fail the second time; rows between them
    "RENAME TABLE t TO x, u TO t, x TO u",
    "INSERT INTO t VALUES (100, 100)",
    "RENAME TABLE t TO x, u TO t, x TO u",
    "RENAME TABLE t TO moved",
    "RENAME TABLE moved TO t",
    "RENAME TABLE `odd ü-``name` TO x, d1 TO `odd ü-``name`, x TO d1",
    "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE e",
    "INSERT INTO e VALUES (9, 99)",
    "ALTER TABLE t CHANGE a b INT, CHANGE b a INT",
    "INSERT INTO t (a, b) VALUES (200, 201)",
    "ALTER TABLE u ADD INDEX (a)",
    "CREATE INDEX more ON u (b)",
    "ALTER TABLE p ADD PARTITION PARTITIONS 1",
    "ALTER TABLE p COALESCE PARTITION 1",
    "ALTER TABLE u ADD CHECK (a > 0)",
    "ALTER TABLE child ADD FOREIGN KEY (a) REFERENCES parent (a)",
    "TRUNCATE TABLE u",
    "INSERT INTO u VALUES (7, 70)",
    "CREATE TABLE made AS SELECT * FROM t",
    "CREATE TABLE made_like LIKE made",
    "ALTER TABLE made ADD COLUMN c INT DEFAULT 5, RENAME TO made_2",
    "UPDATE made_2 SET c = c + 1",
    "ALTER TABLE made_2 DROP COLUMN c",
    "DROP TABLE d1, d2",
    "CREATE VIEW v AS SELECT a FROM t",
    "CREATE OR REPLACE VIEW v AS SELECT b FROM t",
    "DROP VIEW v",
    "CREATE TRIGGER tr BEFORE INSERT ON child FOR EACH ROW SET NEW.a = NEW.a",
    "DROP TRIGGER tr",
    "CREATE PROCEDURE pr() SELECT 1",
    "DROP PROCEDURE pr",
    "CREATE DATABASE noted_2",
    "CREATE TABLE noted_2.t (a INT PRIMARY KEY)",
    "DROP DATABASE noted_2",
    "CREATE USER noted_user",
    "RENAME USER noted_user TO noted_other",
    "GRANT SELECT ON noted.* TO noted_other",
    "REVOKE SELECT ON noted.* FROM noted_other",
    "DROP USER noted_other",
)
ON_MARIADB = (
    "CREATE SEQUENCE s",
    "SELECT SETVAL(s, 100)",
    "DO NEXTVAL(s)",
    "ALTER SEQUENCE s RESTART 7",
    "DROP SEQUENCE s",
    "XA START 'noted'; INSERT INTO u VALUES (50, 50); XA END 'noted'; XA PREPARE 'noted'; XA COMMIT 'noted'",
    "CREATE OR REPLACE TABLE made_like (z INT) AS SELECT 5 AS z",
    "SET STATEMENT max_statement_time=100 FOR ALTER TABLE u ADD COLUMN late INT",
)
AS_STATEMENTS = (
    "CREATE TABLE made_3 AS SELECT * FROM u",
    "INSERT INTO u (a, b) SELECT a + 1, b FROM u",
    "SET STATEMENT max_statement_time=100 FOR INSERT INTO u (a, b) SELECT a + 1, b FROM u",
    "/*!50000 INSERT INTO u (a, b) SELECT a + 1, b FROM u */",
)
MODES: dict[str, dict[str, Any]] = {
    "table": {"relay_log_info_repository": "TABLE"},
    "file": {"relay_log_info_repository": "FILE"},
    "xa": {"relay_log_info_repository": "FILE", "commit_mode": "xa"},
}
NOTED, SENT = "crash_statement_after_note", "crash_statement_after_commit"
APPLIED, COMMITTED = "crash_after_commit_before_update_pos", "crash_commit_after"
IN_THE_SUITE = {("table", SENT), ("xa", COMMITTED)}
MOST_KILLS = 120


def content(server: MariadbServer) -> list[Any]:
    """All that the statements may change."""
    found: list[Any] = []
    for database in DATABASES:
        tables = server.sql(
            f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA='{database}' ORDER BY 1"
        )
        for (name,) in tables:
            quoted = f"`{database}`.`{name.replace('`', '``')}`"
            text = server.sql(f"SHOW CREATE TABLE {quoted}")[0][1]
            is_hash = " PARTITION BY HASH" in text
            parts = [f"PARTITION (p{n})" for n in range(text.count("PARTITIONS 3") * 3)] if is_hash else [""]
            found.append(
                (
                    database,
                    name,
                    text,
                    [sorted(server.sql(f"SELECT * FROM {quoted} {part}"), key=repr) for part in parts],
                )
            )
        for what in ("TRIGGERS", "ROUTINES"):
            column = what[:-1]
            found += server.sql(
                f"SELECT {column}_NAME FROM information_schema.{what} WHERE {column}_SCHEMA='{database}'"
            )
    return [*found, *server.sql("SELECT User FROM mysql.user WHERE User LIKE 'noted%'")]


def clear(server: MariadbServer) -> None:
    server.sql("".join(f"DROP DATABASE IF EXISTS {name};" for name in (*DATABASES, "rplctl")))
    for (name,) in server.sql("SELECT User FROM mysql.user WHERE User LIKE 'noted%'"):
        server.sql(f"DROP USER {name}")


class Recorded:
    """The log of these statements, and what they left on the server that executed them. Bytes are in cp1251."""

    def __init__(
        self, server: MariadbServer, folder: Path, statements: Sequence[str | bytes], setup: str = SETUP
    ) -> None:
        clear(server)
        log = new_log(server)
        server.sql(setup)
        for statement in statements:
            with contextlib.closing(server.connect("noted")) as session, session.cursor() as cursor:
                if isinstance(statement, bytes):
                    cursor.execute("SET character_set_client=cp1251")
                cursor.execute(statement)
                while cursor.nextset():
                    pass
        self.content = content(server)
        server.sql("FLUSH BINARY LOGS")
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / log
        shutil.copy(server.data / log, self.path)
        clear(server)

    @property
    def groups(self) -> RelayGroups:
        return groups_of(self.path)


class Killed:
    """An instance on a server, whose appliers are killed while they apply a recorded log."""

    def __init__(self, server: MariadbServer, folder: Path, log: RelayGroups, mode: str) -> None:
        clear(server)
        self.server, self.log = server, log
        self.instance = Instance(folder, log, target=server.url(), **MODES[mode])
        self.instance.target.close()

    def go_on(self, *_: object, without_last: bool = False) -> None:
        """A start: apply what is behind the stored position."""
        self.instance.target.reconnect()
        work = self.instance.applier = self.instance.reopen()
        at, scan = work.info.exec_position, self.log.scan
        done = sum(not at.is_before(scan.source_position(n)) for n in range(len(scan)))
        stop = int(np.flatnonzero(scan.kind != GroupKind.CONTROL)[-1]) if without_last else len(scan)
        for batch in plan_batches(self.log, stop, has_rollbacks=True, per_commit=lambda: 1):
            if batch.last > done:
                work.apply(replace(batch, first=max(batch.first, done)))
        self.instance.store.close(work.info)
        self.instance.target.close()

    def until_done(self, points: str, again: str) -> int:
        """Start until an applier ends by itself; the number of those killed, the first at `points`, others `again`."""
        for number in range(MOST_KILLS):
            outcome = in_child(self.go_on, again if number else points)
            if not outcome.killed:
                assert outcome == ChildOutcome(killed=False, said=()), outcome
                return number
        raise AssertionError("no end")


def walk(server: MariadbServer, folder: Path, recorded: Recorded, mode: str, point: str) -> int:
    """Each statement in turn is the one behind or before which the applier is killed."""
    killed = Killed(server, folder, recorded.groups, mode)
    again = 2 if point in (APPLIED, COMMITTED) else 1  # the one that only moves its position passes it, too
    count = killed.until_done(f"{point}=kill", f"{point}=kill@{again}")
    assert content(server) == recorded.content
    notes = server.sql("SELECT * FROM rplctl.rplctl_statement_note")
    clear(server)
    assert notes == []
    return count


CASES = [
    pytest.param(mode, point, marks=[] if (mode, point) in IN_THE_SUITE else pytest.mark.torture)
    for mode in MODES
    for point in (NOTED, SENT, APPLIED, COMMITTED)
]


FEW = TWICE[:12]  # the main ones


@pytest.mark.long("One point in two phases stays; the note is the same in each mode.", keeps=r"^xa-crash_commit_after$")
@pytest.mark.mariadb
@pytest.mark.parametrize(("mode", "point"), CASES)
def test_killed_around_each_statement_mariadb_is_as_the_source(
    mariadb: MariadbServer, tmp_path: Path, request: pytest.FixtureRequest, mode: str, point: str
) -> None:
    statements: tuple[str, ...] = FEW
    if mode == "table" or request.node.get_closest_marker("torture") is not None:
        statements = (*TWICE, *ON_MARIADB, *(f"SET binlog_format=STATEMENT; {text}" for text in AS_STATEMENTS))
    recorded = Recorded(mariadb, tmp_path / "log", statements)
    assert walk(mariadb, tmp_path, recorded, mode, point) > len(statements) // 2


@pytest.mark.long("MariaDB stays; a note is decided by definitions in the same way.")
@pytest.mark.mysql
@pytest.mark.parametrize(
    ("mode", "point"), [("table", SENT), *(pytest.param(*case.values, marks=pytest.mark.torture) for case in CASES)]
)
def test_killed_around_each_statement_mysql_is_as_the_source(
    mysql: MysqlServer, tmp_path: Path, request: pytest.FixtureRequest, mode: str, point: str
) -> None:
    statements = FEW if request.node.get_closest_marker("torture") is None else TWICE
    recorded = Recorded(mysql, tmp_path / "log", statements)
    assert walk(mysql, tmp_path, recorded, mode, point) > len(statements) // 2


@pytest.fixture
def before_last(mariadb: MariadbServer, tmp_path: Path) -> Iterator[Callable[[str], Killed]]:
    """An instance on which all but this statement is applied."""

    def made(statement: str) -> Killed:
        recorded = Recorded(mariadb, tmp_path, [statement])
        killed = Killed(mariadb, tmp_path / "i", recorded.groups, "table")
        killed.go_on(without_last=True)
        return killed

    yield made
    clear(mariadb)


def tables(server: MariadbServer) -> set[str]:
    return {name for (name,) in server.sql("SHOW TABLES", "noted")}


def test_a_lost_answer_is_decided_without_a_start(
    before_last: Callable[[str], Killed], mariadb: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = before_last("RENAME TABLE t TO x, u TO t, x TO u")
    monkeypatch.setattr("rplctl.applier.apply.batch.RETRY_PAUSE_SECONDS", 0.01)
    target = killed.instance.target
    assert isinstance(target, MysqlTarget)
    really, sent = target.run_statement, list[Any]()

    def run_statement(statement: Any) -> None:
        really(statement)
        sent.append(statement)
        raise TargetError("Lost connection to server during query", errno=2013, transient=True)

    monkeypatch.setattr(target, "run_statement", run_statement)
    killed.go_on()
    assert (len(sent), mariadb.sql("SELECT a FROM t", "noted")) == (1, [(2,)])


@pytest.mark.long("test_killed_around_each_statement_mariadb_is_as_the_source holds the notes.")
def test_an_answer_that_is_an_error_leaves_no_doubt(
    before_last: Callable[[str], Killed], mariadb: MariadbServer
) -> None:
    killed = before_last("CREATE TABLE made (a INT)")
    mariadb.sql("CREATE TABLE made (b INT)", "noted")
    assert [in_child(killed.go_on).errno for _ in range(2)] == [1050, 1050]
    mariadb.sql("DROP TABLE made", "noted")
    assert in_child(killed.go_on) == ChildOutcome(killed=False, said=())
    assert mariadb.sql("SELECT * FROM rplctl.rplctl_statement_note") == []


def test_definitions_that_are_neither_stop_with_both_and_a_way_out(
    before_last: Callable[[str], Killed], mariadb: MariadbServer
) -> None:
    killed = before_last("RENAME TABLE t TO moved")
    assert in_child(killed.go_on, f"{NOTED}=kill").killed
    mariadb.sql("CREATE TABLE moved (a INT)", "noted")
    for _ in range(2):
        stopped = in_child(killed.go_on)
        assert stopped.errno == 1593
        assert "TABLE noted.t is as before, TABLE noted.moved is new" in stopped.error
    mariadb.sql("DROP TABLE moved", "noted")
    assert in_child(killed.go_on) == ChildOutcome(killed=False, said=())
    assert {"t", "moved"} & tables(mariadb) == {"moved"}


@pytest.mark.long("test_killed_around_each_statement_mariadb_is_as_the_source holds the notes.")
def test_without_the_note_a_statement_is_executed(before_last: Callable[[str], Killed], mariadb: MariadbServer) -> None:
    """The last way out of the stop."""
    killed = before_last("RENAME TABLE t TO moved")
    assert in_child(killed.go_on, f"{NOTED}=kill").killed
    mariadb.sql("CREATE TABLE moved (a INT)", "noted")
    assert in_child(killed.go_on).errno == 1593
    mariadb.sql("DROP TABLE moved; ALTER TABLE t COMMENT 'by hand'", "noted")
    assert in_child(killed.go_on).errno == 1593
    mariadb.sql("DELETE FROM rplctl.rplctl_statement_note WHERE Channel_name=''")
    assert in_child(killed.go_on) == ChildOutcome(killed=False, said=())
    assert {"t", "moved"} & tables(mariadb) == {"moved"}


@pytest.mark.long(
    "test_killed_around_each_statement_mariadb_is_as_the_source holds the notes; a cut list of tables is rare.",
)
def test_a_drop_of_several_that_was_cut_is_finished(
    before_last: Callable[[str], Killed], mariadb: MariadbServer
) -> None:
    killed = before_last("DROP TABLE d1, d2")
    assert in_child(killed.go_on, f"{NOTED}=kill").killed
    mariadb.sql("DROP TABLE d1", "noted")
    assert in_child(killed.go_on) == ChildOutcome(killed=False, said=())
    assert not {"d1", "d2"} & tables(mariadb)


@pytest.mark.mysql
def test_a_replacement_that_was_cut_between_its_drop_and_its_create_is_finished(
    mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    """MySQL has no CREATE OR REPLACE TABLE: it gets two statements."""
    recorded = Recorded(mariadb, tmp_path, ["CREATE OR REPLACE TABLE t (z INT)"])
    killed = Killed(mysql, tmp_path / "i", recorded.groups, "table")
    killed.go_on(without_last=True)
    assert in_child(killed.go_on, f"{NOTED}=kill").killed
    mysql.sql("DROP TABLE IF EXISTS t", "noted")  # as the first of the two
    assert in_child(killed.go_on) == ChildOutcome(killed=False, said=())
    assert [column for column, *_ in mysql.sql("SHOW COLUMNS FROM t", "noted")] == ["z"]
    assert mysql.sql("SELECT * FROM rplctl.rplctl_statement_note") == []
    clear(mysql)


SAME = "ALTER TABLE t CHANGE a b INT, CHANGE b a INT FIRST"


@pytest.mark.long("One crash point stays.", keeps=r"^crash_statement_after_commit$")
@pytest.mark.parametrize("point", [NOTED, SENT])
def test_columns_that_change_places_under_the_same_definition(
    before_last: Callable[[str], Killed], mariadb: MariadbServer, point: str
) -> None:
    killed = before_last(SAME)
    definition = mariadb.sql("SHOW CREATE TABLE t", "noted")
    made = "SELECT CREATE_TIME < SYSDATE() FROM information_schema.TABLES WHERE TABLE_SCHEMA='noted' AND TABLE_NAME='t'"
    wait_until(lambda: mariadb.sql(made) == [(1,)])  # else nothing would tell, and the channel stops
    assert in_child(killed.go_on, f"{point}=kill").killed
    assert in_child(killed.go_on) == ChildOutcome(killed=False, said=())
    assert mariadb.sql("SHOW CREATE TABLE t", "noted") == definition
    assert mariadb.sql("SELECT a, b FROM t", "noted") == [(10, 1)]


def before(**identities: str) -> dict[ServerObject, Definition | None]:
    return {ServerObject("TABLE", "d", name): Definition("", value) for name, value in identities.items()}


@pytest.mark.parametrize(("t", "u"), [("=1", "=1"), ("", ""), ("made 2026", "made 2026")])
def test_names_that_change_places_and_look_alike_are_not_guessed(t: str, u: str) -> None:
    changed = affected_by("RENAME TABLE t TO x, u TO t, x TO u", "d", DdlContext(server_version="9.0"))
    assert changed is not None
    kept = before(t=t, u=u) | {ServerObject("TABLE", "d", "x"): None}
    assert decide(changed, kept, kept) is Decision.STOP


def test_partitions_without_numbers_are_not_guessed() -> None:
    changed = affected_by("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", "d", DdlContext(server_version="9.0"))
    assert changed is not None
    assert decide(changed, before(t="", u=""), before(t="", u="")) is Decision.STOP
    assert decide(changed, before(t="=1", u="=2"), before(t="=1", u="=2")) is Decision.EXECUTE
    assert decide(changed, before(t="=1", u="=2"), before(t="=3", u="=2")) is Decision.STOP
    assert decide(changed, before(t="=1", u="=2"), before(t="=2", u="=3")) is Decision.MOVE_ON


def test_a_statement_that_is_not_understood_is_not_guessed() -> None:
    assert decide(Affected(), {}, {}) is Decision.STOP


def test_what_the_account_may_not_see_is_not_guessed() -> None:
    changed = affected_by("DROP TABLE t", "d", DdlContext(server_version="9.0"))
    hidden = {ServerObject("TABLE", "d", "t"): Definition("?")}
    assert changed is not None and decide(changed, hidden, hidden) is Decision.STOP


def test_a_note_is_met_by_its_position_or_by_its_gtid() -> None:
    """Another source has the transaction elsewhere."""
    start, info = BinlogPosition("bin.000001", 4), RelayLogInfo(gtid_executed="0-1-6")
    note = StatementNote(before=start, executed="0-1-7", state=NoteState.SENT)
    here, there = (
        info.at(RelayLogPosition("r.000001", 4), BinlogPosition(name, 4)) for name in ("bin.000001", "b.000009")
    )
    assert is_of(note, here, here)
    assert is_of(note, there, replace(there, gtid_executed="0-1-7"))
    assert not is_of(note, there, replace(there, gtid_executed="0-1-8"))
    assert not is_of(replace(note, executed=""), there, replace(there, gtid_executed=""))


SETUP_KEPT = """
CREATE DATABASE noted; USE noted;
CREATE TABLE m (a INT) ENGINE=MyISAM; INSERT INTO m VALUES (1);
CREATE TABLE k (a INT PRIMARY KEY, b INT) ENGINE=MyISAM; CREATE TABLE i (a INT PRIMARY KEY) ENGINE=InnoDB;
INSERT INTO i VALUES (7); CREATE VIEW v AS SELECT a FROM m; CREATE TABLE g (a INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TRIGGER fired AFTER INSERT ON g FOR EACH ROW UPDATE m SET a = a + 10;
CREATE FUNCTION called() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE m SET a = a + 10; RETURN 5; END
"""
KEPT = {
    "a statement": "SET binlog_format=STATEMENT; INSERT INTO m VALUES (2)",
    "rows without a key": "INSERT INTO m VALUES (3), (4)",
    "both kinds of tables": "SET binlog_format=STATEMENT; BEGIN; INSERT INTO i VALUES (1); UPDATE m SET a = 2; COMMIT",
    "a join": "SET binlog_format=STATEMENT; UPDATE i, m SET m.a = m.a + 1 WHERE i.a = 7",
    "a view": "SET binlog_format=STATEMENT; INSERT INTO v VALUES (2)",
    "a trigger": "SET binlog_format=STATEMENT; INSERT INTO g VALUES (1)",
    "a function": "SET binlog_format=STATEMENT; INSERT INTO i VALUES (called())",
    "a comment within": "SET binlog_format=STATEMENT; INSERT /* why */ INTO m VALUES (2)",
}
IN_MYSQL = ("a statement", "rows without a key")


@pytest.mark.long(
    "A comment within a statement stays; the others are kept alike.", keeps=r"^mariadb-a comment within-table$"
)
@pytest.mark.parametrize("mode", ["table", pytest.param("xa", marks=pytest.mark.torture)])
@pytest.mark.parametrize(
    ("vendor", "name"), [*(("mariadb", name) for name in KEPT), *(("mysql", name) for name in IN_MYSQL)]
)
def test_a_transaction_that_a_table_keeps_in_part_is_not_applied_again(
    request: pytest.FixtureRequest, tmp_path: Path, vendor: str, name: str, mode: str
) -> None:
    server: MariadbServer = request.getfixturevalue(vendor)
    recorded = Recorded(server, tmp_path, [KEPT[name]], SETUP_KEPT)
    killed = Killed(server, tmp_path / "i", recorded.groups, mode)
    killed.go_on(without_last=True)
    assert in_child(killed.go_on, f"{APPLIED}=kill").killed
    for _ in range(2):  # the second start knows no more
        stopped = in_child(killed.go_on)
        assert (stopped.killed, stopped.errno, "noted.m" in stopped.error) == (False, 1593, True), stopped
    clear(server)


@pytest.mark.long("A crash at a name in another character set is rare.")
@pytest.mark.mariadb
def test_a_name_in_the_clients_character_set_is_the_tables(mariadb: MariadbServer, tmp_path: Path) -> None:
    """`ї` as cp1251 writes it: read as another letter, no table would be found, before and after."""
    statement = "ALTER TABLE `ї` ADD INDEX (a)".encode("cp1251")
    recorded = Recorded(mariadb, tmp_path / "log", [statement], f"{SETUP}; CREATE TABLE `ї` (a INT)")
    killed = Killed(mariadb, tmp_path / "i", recorded.groups, "table")
    killed.go_on(without_last=True)
    assert in_child(killed.go_on, f"{SENT}=kill").killed
    assert in_child(killed.go_on) == ChildOutcome(killed=False, said=())
    assert content(mariadb) == recorded.content
    clear(mariadb)
