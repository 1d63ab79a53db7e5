"""Statements as the servers log them, into every target, beside a replica of the source's own vendor: all end alike.

The module's servers are started once for each vendor; a trial is one log (tests/kit/beside.py).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kit.beside import Beside, Tables, differences, rows_only, server_state
from tests.kit.servers import Mariadb118Server, MariadbServer, MysqlServer, PostgresqlServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TORTURE = pytest.mark.torture
KINDS = ("server", "sqlite", "postgresql")


def three(make: Callable[..., MariadbServer], postgresql: PostgresqlServer, folder: Path) -> Beside:
    return Beside(folder, make(), make(), make(), postgresql)


@pytest.fixture(scope="module")
def mariadb_beside(
    mariadb_factory: Callable[..., MariadbServer],
    postgresql: PostgresqlServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Beside:
    return three(mariadb_factory, postgresql, tmp_path_factory.mktemp("mariadb"))


@pytest.fixture(scope="module")
def mariadb_118_beside(
    mariadb_118_factory: Callable[..., Mariadb118Server],
    postgresql: PostgresqlServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Beside:
    return three(mariadb_118_factory, postgresql, tmp_path_factory.mktemp("118"))


@pytest.fixture(scope="module")
def mysql_beside(
    mysql_factory: Callable[..., MysqlServer], postgresql: PostgresqlServer, tmp_path_factory: pytest.TempPathFactory
) -> Beside:
    return three(mysql_factory, postgresql, tmp_path_factory.mktemp("mysql"))


@pytest.fixture(params=["mariadb", "mariadb_118", "mysql"])
def beside(request: pytest.FixtureRequest) -> Iterator[Beside]:
    yield request.getfixturevalue(f"{request.param}_beside")


def assert_alike(
    beside: Beside,
    statements: list[str],
    expected: Collection[int] = (),
    kinds: tuple[str, ...] = KINDS,
    may_stop: Collection[int] = (),
) -> None:
    """Applied by ours to the last statement, with what the native replica has. `may_stop`: errors at which a target
    that is no server of the source's family stops instead.
    """
    native = beside.run(statements, expected)
    found = {}
    for kind in kinds:
        ended = beside.apply(kind)
        found[kind] = (ended.errno, differences(native if kind == "server" else rows_only(native), ended.state))
        if kind != "server" and ended.errno in may_stop:
            found[kind] = (0, [])
    assert found == {kind: (0, []) for kind in kinds}


SESSIONS = [
    *(f"collation_connection={name}" for name in ("ucs2_general_ci", "utf16_general_ci", "utf32_bin")),
    *(f"NAMES {name}" for name in ("sjis", "swe7", "big5", "gbk", "latin1")),
    "sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH'",
    *("time_zone='-05:30'", "lc_time_names='de_DE'", "foreign_key_checks=0, unique_checks=0", "sql_auto_is_null=1"),
    *("auto_increment_increment=7, auto_increment_offset=3", "collation_server=ucs2_bin"),
    *("collation_database=utf16_bin", "autocommit=0", "timestamp=1000000000.25", "insert_id=77"),
    *("default_storage_engine=MyISAM", "explicit_defaults_for_timestamp=0"),
]
MARIADB_SESSIONS = ["sql_mode='ORACLE'", "check_constraint_checks=0", "sql_if_exists=1"]
MYSQL_SESSIONS = ["sql_require_primary_key=1", "default_collation_for_utf8mb4=utf8mb4_general_ci"]
# no literal where the session may be of two bytes a character: the source would read it so, too
COUNTED = """
USE {d};
SET {session};
UPDATE m SET a=a+10, at=NOW();
COMMIT;
UPDATE i SET a=a+10, at=NOW();
COMMIT;
INSERT INTO m (a, v, at) VALUES (5, 'x', NOW());
COMMIT;
START TRANSACTION;
INSERT INTO i (a, v) VALUES (6, DATE_FORMAT(20240301, _latin1'%M'));
SAVEPOINT one;
UPDATE i SET a=a+100;
SET @u='ab';
INSERT INTO i (a, v) VALUES (7, @u);
ROLLBACK TO one;
INSERT INTO i (a, v) VALUES (8, 'z');
COMMIT;
LOAD DATA INFILE '{file}' INTO TABLE i CHARACTER SET latin1 (a);
COMMIT;
SET time_zone=@plus, autocommit=1;
UPDATE m SET a=a+1000, at=20240101000000;
CREATE TABLE n (v VARCHAR(5), t TIMESTAMP, PRIMARY KEY (v))
"""
TABLES = """
SET SESSION binlog_format=STATEMENT, @plus='+02:00';
CREATE DATABASE {d};
CREATE TABLE {d}.m (id INT AUTO_INCREMENT PRIMARY KEY, a INT, v VARCHAR(80), at TIMESTAMP NULL)
    ENGINE=MyISAM CHARACTER SET utf8mb4;
CREATE TABLE {d}.i (id INT AUTO_INCREMENT PRIMARY KEY, a INT, v VARCHAR(80), at TIMESTAMP NULL)
    ENGINE=InnoDB CHARACTER SET utf8mb4;
INSERT INTO {d}.m (a) VALUES (1);
INSERT INTO {d}.i (a) VALUES (1);
"""
RESTORED = """
SET NAMES utf8mb4;
SET sql_mode=DEFAULT, character_set_server=DEFAULT, time_zone=DEFAULT, sql_auto_is_null=0, timestamp=DEFAULT;
SET default_storage_engine=InnoDB, auto_increment_increment=1, auto_increment_offset=1, lc_time_names=DEFAULT
"""


TOGETHER = [
    "collation_connection=ucs2_general_ci, foreign_key_checks=0, unique_checks=0, sql_auto_is_null=1, lc_time_names=1",
    "NAMES swe7, time_zone='-05:30', auto_increment_increment=7, auto_increment_offset=3, collation_server=ucs2_bin",
    "sql_mode='ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT', timestamp=1000000000.25, autocommit=0",
]


@pytest.mark.long("MariaDB stays; both vendors take the same statements of ours.", keeps=r"^mariadb$")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_what_we_say_is_said_in_our_own_session_whatever_the_statements_was(
    vendor: str, request: pytest.FixtureRequest
) -> None:
    """Every variable that a QUERY event carries, then a position, savepoints, LOAD DATA, rows: what is not
    transactional runs once.
    """
    mariadb = [TOGETHER[0], "NAMES swe7, sql_mode='ORACLE', check_constraint_checks=0, sql_if_exists=1"]
    say_behind(request.getfixturevalue(f"{vendor}_beside"), mariadb if vendor == "mariadb" else TOGETHER[:1])


@TORTURE
def test_what_we_say_is_said_in_our_own_session_behind_each_single_variable(beside: Beside) -> None:
    say_behind(beside, [*TOGETHER, *SESSIONS, *(MYSQL_SESSIONS if beside.source.kind == "mysql" else MARIADB_SESSIONS)])


def say_behind(beside: Beside, sessions: list[str]) -> None:
    (beside.source.data.parent / "n.txt").write_text("40\n41\n")
    statements = []
    for number, session in enumerate(sessions):
        values = {"d": f"d{number}", "session": session, "file": beside.source.data.parent / "n.txt"}
        text = TABLES.format(**values) + COUNTED.format(**values) + ";" + RESTORED
        listed = [part for part in text.split(";\n") if part.strip()]
        if "sql_mode" in session or "collation_connection" in session:  # where the servers themselves fail
            listed = [part for part in listed if "LOAD DATA" not in part]
        statements += [*listed, "SET SESSION binlog_format=ROW", f"INSERT INTO d{number}.i (a, v) VALUES (9, 'ü')"]
    native = beside.run(statements)
    with beside.ours("server") as (instance, state):
        for batch in beside.batches(instance):
            instance.applier.apply(batch)
        reached = instance.reopen().info.exec_position  # what is stored
        assert (reached.log_name, reached.log_pos) == beside.source.master_status()
        assert differences(native, state()) == []
    assert [row[0] for row in beside.source.sql("SELECT a FROM d0.m ORDER BY id")] == [1011, 1005]


GROUP_TABLES = """
CREATE DATABASE {d};
USE {d};
CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB;
INSERT INTO t VALUES (1), (2);
CREATE TABLE s (a INT);
INSERT INTO s VALUES (1), (1);
CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM
"""
MIXED_GROUPS = [  # as the servers log them: DDL, rows and ROLLBACK or COMMIT in one group
    "CREATE TABLE u (a INT PRIMARY KEY) SELECT a FROM s",
    "CREATE TABLE u (a INT PRIMARY KEY) SELECT DISTINCT a FROM s",
    "BEGIN; INSERT INTO t VALUES (60); CREATE TEMPORARY TABLE x (a INT); INSERT INTO x VALUES (1);"
    "INSERT INTO t SELECT a+200 FROM x; DROP TEMPORARY TABLE x; ROLLBACK; BEGIN; CREATE TEMPORARY TABLE x (a INT);"
    "INSERT INTO t VALUES (63); DROP TEMPORARY TABLE x; COMMIT",
    "CREATE TEMPORARY TABLE x (a INT); CREATE TABLE y (a INT); DROP TABLE x, y",
    "XA START 'a'; INSERT INTO t VALUES (70); XA END 'a'; XA PREPARE 'a'; XA ROLLBACK 'a'; XA START 'b';"
    "INSERT INTO t VALUES (71); XA END 'b'; XA PREPARE 'b'; XA COMMIT 'b'; XA START 'e'; INSERT INTO t VALUES (73);"
    "XA END 'e'; XA COMMIT 'e' ONE PHASE",
]
MARIADB_GROUPS = [
    "CREATE OR REPLACE TABLE t (a INT PRIMARY KEY) SELECT a FROM s; CREATE TABLE t (b INT)",
    "CREATE OR REPLACE TABLE t SELECT 5 AS a",
    "CREATE OR REPLACE TABLE t SELECT * FROM nosuch",
    "CREATE OR REPLACE TABLE t (a TINYINT PRIMARY KEY) SELECT 1000 AS a; CREATE TABLE t (a INT PRIMARY KEY)",
    "CREATE OR REPLACE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM SELECT a FROM s; CREATE TABLE m (a INT)",
    "CREATE TEMPORARY TABLE x (a INT); CREATE OR REPLACE TEMPORARY TABLE x (a INT PRIMARY KEY) SELECT a FROM s",
    "BEGIN; INSERT INTO t VALUES (60); INSERT INTO m VALUES (1); SAVEPOINT x; INSERT INTO t VALUES (61);"
    "INSERT INTO m VALUES (2); ROLLBACK TO x; INSERT INTO t VALUES (62); ROLLBACK",
    "INSERT INTO m VALUES (1), (2), (1); BEGIN; INSERT INTO t VALUES (60); INSERT INTO m VALUES (3), (1); COMMIT",
    "XA START 'c'; INSERT INTO t VALUES (72); INSERT INTO m VALUES (72); XA END 'c'; XA PREPARE 'c'; XA ROLLBACK 'c'",
]


def each_in_a_database(begin: str, cases: list[str], end: str = "") -> list[str]:
    """Each case in tables of its own."""
    texts = [begin.format(d=f"d{number}") + ";" + case + ";" + end for number, case in enumerate(cases)]
    return [part for text in texts for part in text.split(";")]


@pytest.mark.long("A few groups beside MariaDB stay; MySQL's are of the same forms.", keeps=r"^few-mariadb$")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
@pytest.mark.parametrize("log_format", ["few", *(pytest.param(name, marks=TORTURE) for name in ("ROW", "MIXED"))])
def test_ddl_and_rows_and_rollback_in_one_group_leave_what_they_leave_on_a_native_replica(
    vendor: str, log_format: str, request: pytest.FixtureRequest
) -> None:
    """`few`: of ROW, a CREATE TABLE … SELECT, what failed with its table replaced, tables of both kinds, XA."""
    cases = [*MIXED_GROUPS, *(MARIADB_GROUPS if vendor == "mariadb" else [])]
    if log_format == "few":
        log_format, cases = "ROW", [cases[1], cases[4], *cases[5:6], *cases[11:12]]
    statements = each_in_a_database(GROUP_TABLES, cases, "INSERT INTO t VALUES (100)")
    fails = {1054, 1062, 1146, 1264, 1050, 1196, 1136}
    kinds = KINDS if log_format == "ROW" else ("server",)
    assert_alike(
        request.getfixturevalue(f"{vendor}_beside"), [f"SET binlog_format={log_format}", *statements], fails, kinds
    )


GENERATED_TABLES = (
    ("p", "id INT PRIMARY KEY, a INT, b VARCHAR(20), t TEXT, g INT AS (a+1) VIRTUAL, s INT AS (a+2) STORED,"
     " gs INT AS (g+s) STORED, gv INT AS (g*2) VIRTUAL, e INT DEFAULT (1+2), i INT INVISIBLE DEFAULT 7"),
    ("n", "a INT, b VARCHAR(20), g INT AS (a+1) VIRTUAL, s INT AS (a*2) STORED, gv INT AS (g*2) VIRTUAL"),
    ("u", "a INT, b INT NOT NULL UNIQUE, g INT AS (a+1) VIRTUAL, t BLOB"),
)  # fmt: skip
GENERATED_CHANGES = """
INSERT INTO p (id, a, b, t) VALUES (1, 2, 'x', 'long'), (2, 3, 'y', NULL), (3, 4, NULL, 'z'), (4, 4, 'q', 'w');
INSERT INTO n (a, b) VALUES (1, 'k'), (2, 'l'), (3, NULL);
INSERT INTO u (a, b, t) VALUES (1, 1, 't'), (2, 2, NULL);
{cut}
UPDATE p SET a=5 WHERE id=1; UPDATE p SET b='zz' WHERE id=2; UPDATE p SET a=a+1, t='changed' WHERE id>2;
UPDATE p SET i=9, e=8 WHERE id=1; UPDATE p SET id=11 WHERE id=1; DELETE FROM p WHERE id=3;
UPDATE p SET a=NULL WHERE id=4; UPDATE n SET a=5 WHERE a=1; UPDATE n SET b='m' WHERE a=2; DELETE FROM n WHERE a=3;
UPDATE u SET a=9 WHERE b=1; UPDATE u SET b=5, t='u' WHERE b=2;
BEGIN; UPDATE p SET a=100 WHERE id=2; UPDATE p SET a=a+1 WHERE id=2; INSERT INTO p (id, a) VALUES (50, 1);
UPDATE p SET a=9 WHERE id=50; COMMIT;
{cut}
INSERT INTO p (id, a) SELECT 1000+id, a FROM p; UPDATE p SET a=a+7; UPDATE p SET id=id+1, a=a-1 WHERE id=1011
"""


@pytest.mark.long("tests/applier/test_fidelity.py has such columns of both vendors.")
@pytest.mark.parametrize("vendor", ["mariadb_118", "mysql"])
@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=TORTURE)])
def test_generated_and_default_and_invisible_columns_are_the_sources_in_every_row_image(
    vendor: str, is_long: bool, request: pytest.FixtureRequest
) -> None:
    """`cut`: DDL, which ends a batch: the changes behind it meet rows of the target, not of their own batch."""
    images = ["FULL", "NOBLOB", "MINIMAL", *(["FULL_NODUP"] if vendor == "mariadb_118" else [])]
    statements: list[str] = []
    for image in images if is_long else images[-1:]:
        for cut in ("", "CREATE TABLE cut (a INT); DROP TABLE cut;")[not is_long :]:
            number = len(statements)
            tables = "; ".join(f"CREATE TABLE {name} ({columns})" for name, columns in GENERATED_TABLES)
            statements += f"SET binlog_row_image={image}; CREATE DATABASE d{number}; USE d{number}; {tables}".split(";")
            statements += GENERATED_CHANGES.format(cut=cut).split(";")
    assert_alike(request.getfixturevalue(f"{vendor}_beside"), statements)


DROPPED_LISTS = [
    *("DROP TABLE t, nosuch", "DROP TABLE nosuch, t, s", "DROP TABLE IF EXISTS nosuch, t", "DROP TABLE nosuch"),
    "CREATE TABLE p (a INT PRIMARY KEY); CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (a)); DROP TABLE s, p, m",
    "DROP VIEW t, nosuch",
    "RENAME TABLE s TO s2, nosuch TO x",
    "RENAME TABLE s TO s2, t TO m",
]
MARIADB_LISTS = [
    "CREATE SEQUENCE q1; CREATE SEQUENCE q2; DROP SEQUENCE q1, noq, q2",
    "RENAME TABLE s TO s2, t TO t2, nosuch TO x; INSERT INTO s VALUES (6)",
]


LISTS_FAIL = {1051, 1146, 1050, 1451, 3730, 1347, 4091, 4092}
VERSIONED = [
    "CREATE DATABASE v /*!40100 DEFAULT CHARACTER SET latin1 */ /*!80016 DEFAULT ENCRYPTION='N' */",
    "/*!40101 SET NAMES utf8mb4 */",
    "CREATE TABLE v.t (a INT PRIMARY KEY /*!50100 , b INT */ /*M!100000 , c INT */ /*!99999 , d INT */)"
    " COMMENT='/*! x */' /*!50100 PARTITION BY HASH (a) /* two */ PARTITIONS 2 */",
    "/*!40000 ALTER TABLE v.t DISABLE KEYS */",
    "INSERT /*!50000 INTO */ v.t (a) VALUES (1), (/*!50700 1+ */ /*M! 2+ */ 2)",
    "UPDATE v.t SET /*! b */ /*!99999 a */ = 5 -- /*!50000",
    "/*!50001 CREATE ALGORITHM=UNDEFINED */ /*!50013 SQL SECURITY INVOKER */ /*!50001 VIEW v.w AS SELECT a FROM v.t */",
    "CREATE PROCEDURE v.p() BEGIN /*!50000 SELECT 1; */ /* c */ SELECT 2; END",
    "/*!50003 CREATE */ /*!50003 TRIGGER v.g BEFORE INSERT ON v.t FOR EACH ROW SET NEW.b = 2 */",
    "/*!50106 CREATE EVENT v.e ON SCHEDULE EVERY 1 YEAR ENABLE DO SELECT 1 /* body */ */",
    "CREATE TABLE v.u (a INT)",
    "DROP TABLE IF EXISTS /*!50700 v.nosuch, */ v.u /*M!100000 , v.nosuch */",
]


@pytest.mark.long("MariaDB stays in make test.", keeps=r"^mariadb-ROW$")
@pytest.mark.parametrize("log_format", ["ROW", "STATEMENT"])
def test_comments_of_versions_mean_what_they_meant_on_the_source(beside: Beside, log_format: str) -> None:
    if beside.native.kind == "mysql" and log_format == "STATEMENT":
        pytest.skip("once is enough")
    assert_alike(beside, [f"SET binlog_format={log_format}", *VERSIONED], kinds=("server",))


LISTS_END = "CREATE TABLE IF NOT EXISTS t (a INT); INSERT INTO t VALUES (100)"


@pytest.mark.long("MariaDB stays, which drops lists in part more often.", keeps=r"^False-mariadb$")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
@pytest.mark.parametrize("is_long", [False, pytest.param(True, marks=TORTURE)])
def test_lists_that_were_dropped_in_part_are_dropped_in_that_part(
    vendor: str, is_long: bool, request: pytest.FixtureRequest
) -> None:
    """A MariaDB that dropped some tables of a list and failed logs the list as if it had not failed."""
    beside = request.getfixturevalue(f"{vendor}_beside")
    more = MARIADB_LISTS if vendor == "mariadb" else []
    cases = [*DROPPED_LISTS, *more] if is_long else [DROPPED_LISTS[1], DROPPED_LISTS[6], *more[:1]]
    assert_alike(beside, each_in_a_database(GROUP_TABLES, cases, LISTS_END), LISTS_FAIL)


@pytest.mark.long("test_lists_that_were_dropped_in_part_are_dropped_in_that_part stays in make test.")
def test_a_list_that_a_mariadb_dropped_in_part_is_dropped_in_that_part_on_a_mysql(
    mariadb_beside: Beside, mysql_beside: Beside
) -> None:
    """MySQL drops all of a list or nothing; without the tolerance it stops, and its hint loses nothing."""
    assert mysql_beside.server is not None
    with mariadb_beside.into(mysql_beside.server):
        statements = each_in_a_database(GROUP_TABLES, [DROPPED_LISTS[1], MARIADB_LISTS[1]], LISTS_END)
        native = rows_only(mariadb_beside.run(statements, LISTS_FAIL))
        ended = mariadb_beside.apply("server")
        assert (ended.errno, differences(native, rows_only(ended.state))) == (0, [])
        stopped = mariadb_beside.apply("server", replica_ddl_exec_mode="STRICT")
    assert stopped.error is not None and stopped.errno == 1051
    assert (
        "--replica-skip-errors 1051" in stopped.error.hint
        and "which then drops none of its tables" in stopped.error.hint
    )


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_drop_trigger_of_a_trigger_that_the_replica_lacks_does_not_stop(
    vendor: str, request: pytest.FixtureRequest
) -> None:
    """For example, a filter had excluded its CREATE TRIGGER."""
    lacking = "SET sql_log_bin=0; CREATE TRIGGER d.g BEFORE INSERT ON d.t FOR EACH ROW SET @x=1; SET sql_log_bin=1"
    statements = ["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", lacking, "DROP TRIGGER d.g"]
    assert_alike(request.getfixturevalue(f"{vendor}_beside"), [*statements, "INSERT INTO d.t VALUES (1)"])


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_generated_columns_that_the_log_lacks_have_the_sources_values_at_the_edges_of_types(
    vendor: str, request: pytest.FixtureRequest
) -> None:
    """A product of two INT fits only a BIGINT. Without strict mode, the source stores the nearest value of the type."""
    columns = "total BIGINT AS (price * qty), i TINYINT AS (qty * 100), u INT UNSIGNED AS (n - 5), t INT AS (n + 1)"
    statements = [
        "SET SESSION sql_mode='', binlog_row_image=MINIMAL; CREATE DATABASE d;"
        f"CREATE TABLE d.o (id INT PRIMARY KEY, price INT, qty INT, n TINYINT, {columns});"
        "INSERT INTO d.o (id, price, qty, n) VALUES (1, 100000, 1, 127), (2, 1, -2, -128), (3, 1, NULL, NULL);"
        "CREATE TABLE d.barrier (a INT);"
        "UPDATE d.o SET qty=100000 WHERE id=1; UPDATE d.o SET price=-2147483648, qty=2147483647 WHERE id=2"
    ]
    assert_alike(request.getfixturevalue(f"{vendor}_beside"), statements)


@pytest.mark.long("A DROP DATABASE that fails in the middle is rare.")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_database_that_could_not_be_dropped_whole_keeps_what_the_source_kept(
    vendor: str, request: pytest.FixtureRequest
) -> None:
    """A file of somebody else is in its folder: MariaDB has dropped the tables, MySQL nothing."""
    beside = request.getfixturevalue(f"{vendor}_beside")
    (folder := beside.source.data / "part").mkdir(exist_ok=True)
    shutil.rmtree(folder)

    def leave_a_file() -> None:
        (folder / "left.txt").write_text("a file")

    before = ["CREATE DATABASE part", "CREATE TABLE part.t (a INT)", "INSERT INTO part.t VALUES (1)"]
    after = ["DROP DATABASE part", "CREATE DATABASE other", "CREATE TABLE other.t (a INT)"]
    try:
        native = beside.run([*before, leave_a_file, *after], {1010})
        ended = {kind: beside.apply(kind) for kind in KINDS}
    finally:
        (folder / "left.txt").unlink()
    assert ("part.t" in native) is (vendor == "mysql")
    for kind, end in ended.items():
        assert (kind, end.errno, differences(rows_only(native), rows_only(end.state))) == (kind, 0, [])


@pytest.mark.long("test_lists_that_were_dropped_in_part_are_dropped_in_that_part stays; the strict option is rare.")
def test_a_strict_channel_stops_at_a_list_dropped_in_part_and_its_hint_loses_nothing(mariadb_beside: Beside) -> None:
    native = mariadb_beside.run(each_in_a_database(GROUP_TABLES, ["DROP TABLE t, nosuch"]), {1051})
    for kind in KINDS:
        stopped = mariadb_beside.apply(kind, replica_ddl_exec_mode="STRICT")
        assert stopped.error is not None and stopped.errno == 1051
        assert (
            "--replica-skip-errors 1051" in stopped.error.hint
            and "which then drops none of its tables" in stopped.error.hint
        )
        passed = mariadb_beside.apply(kind, replica_ddl_exec_mode="STRICT", replica_skip_errors="1051")
        assert passed.error is None
        assert differences(native if kind == "server" else rows_only(native), passed.state) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_statements_that_the_source_rolled_back_stop_and_the_hint_says_when_leaving_them_out_is_right(
    mariadb_beside: Beside, kind: str
) -> None:
    """The log has them because of a temporary table, which leaves nothing, or of a MyISAM table, which keeps its row:
    which one no text tells for sure (triggers, functions), so nothing is passed over unseen.
    """
    for work, kept in (
        ("CREATE TEMPORARY TABLE x (a INT); DROP TEMPORARY TABLE x", 0),
        ("INSERT INTO m VALUES (7)", 1),
    ):
        rolled_back = f"SET binlog_format=STATEMENT; BEGIN; INSERT INTO t VALUES (60); {work}; ROLLBACK"
        native = mariadb_beside.run(each_in_a_database(GROUP_TABLES, [rolled_back]), {1196})
        assert (len(native["d0.t"]), len(native["d0.m"])) == (2, kept)
        stopped = mariadb_beside.apply(kind)
        assert stopped.error is not None and stopped.errno in (1592, 1666)
        assert "which the source rolled back" in stopped.error.hint and "rplctl clone" in stopped.error.hint
        assert differences(rows_only(native), stopped.state)[kept:] == []  # with nothing of it: what skip would leave


STORED_VALUES = """
SET sql_mode='', binlog_row_image={image}; CREATE DATABASE {d}; USE {d};
CREATE TABLE g (id INT PRIMARY KEY, v VARCHAR(10), d DATE AS (v) STORED, n INT AS (v) STORED,
    i TINYINT AS (id*100) STORED);
INSERT INTO g (id, v) VALUES (1, 'abc'), (2, '2024-01-01'), (3, '9999999999'); UPDATE g SET v='zzz' WHERE id=2;
DELETE FROM g WHERE id=1;
CREATE TABLE f (id INT PRIMARY KEY, x FLOAT(5,2), y DOUBLE(6,3)); INSERT INTO f VALUES (1, 12345.678, 99999.9999);
CREATE SEQUENCE q CACHE 2; SELECT NEXTVAL(q); SELECT NEXTVAL(q); SELECT NEXTVAL(q); SELECT SETVAL(q, 100);
CREATE TABLE s (id INT DEFAULT NEXTVAL(q) PRIMARY KEY, a INT); INSERT INTO s (a) VALUES (1), (2)
"""


def test_stored_generated_columns_and_sequences_arrive_where_strict_sessions_would_refuse_them(
    mariadb_beside: Beside,
) -> None:
    texts = [STORED_VALUES.format(d=f"d{image}", image=image) for image in ("FULL", "MINIMAL")]
    assert_alike(mariadb_beside, [part for text in texts for part in text.split(";")], kinds=("server",))


# what sessions that are not strict have stored, column by column; each type's edges, and what strict ones refuse
STORED_COLUMNS = {
    "FLOAT(5,2)": ("999.995", "-0.0", "12345.678", "999.994", "-999.995", "1e-45"),
    "DOUBLE(6,3)": ("999.9999", "-0.0e0", "99999.9999", "-999.9995", "0.0005", "5e-324"),
    "FLOAT": ("1e-45", "-0.0e0", "3.402823466e38", "1e39", "16777217", "-1e-40"),
    "DOUBLE": ("5e-324", "-0.0e0", "1.7976931348623157e308", "-2.2250738585072014e-308", "0.1", "1e23"),
    "DECIMAL(5,2)": ("99999", "-1e10", "'x'", "'1.005'", "'-0.00'", "999.995"),
    "TINYINT UNSIGNED": ("-5", "300", "'7x'", "''", "256", "NULL"),
    "DATE NOT NULL": ("'0000-00-00'", "'2024-00-10'", "'junk'", "'2024-02-31'", "'2024-01-00'", "'9999-12-31'"),
    "DATETIME(3)": ("0", "'2024-01-00'", "'junk'", "'2024-02-31 01:02:03.9999'", "'0000-01-01'", "NULL"),
    "TIMESTAMP(6) NULL": ("0", "'2039-01-01'", "'1969-01-01'", "'2038-01-19 03:14:07.999999'", "'junk'", "NULL"),
    "TIME": ("'-900:00:00'", "'900:00:00'", "'junk'", "'-00:00:01'", "'838:59:59'", "NULL"),
    "YEAR": ("0", "1900", "70", "'0'", "2155", "'junk'"),
    "ENUM('a','b')": ("'zzz'", "'b'", "NULL", "3", "''", "0"),
    "ENUM('','x') NOT NULL": ("'zzz'", "''", "'x'", "7", "1", "0"),
    "SET('p','q')": ("'zzz'", "'p,q,zzz'", "''", "7", "NULL", "'q'"),
    "BIT(3)": ("99", "0", "7", "NULL", "1", "2"),
    "CHAR(5)": ("'ab   '", "'abcdefgh'", "'  '", "'q''\\\\'", "'\\0'", "'ü\"`'"),
    "CHAR(4) CHARACTER SET ucs2": ("'ab '", "'x'", "' '", "'\\0'", "'é'", "''"),
    "VARCHAR(5)": ("'ab   '", "'abcdefgh'", "'     '", "'\\\\'", "'a\\'\"'", "''"),
    "TEXT": ("'ab  '", "'   '", "'\\\\n'", "'\\n'", "''", "NULL"),
    "BINARY(5)": ("'ab'", "'abcdefgh'", "X'6100'", "X'00'", "X'ff00ff20'", "''"),
    "VARBINARY(5)": ("'ab '", "X'ff00ff2000ff'", "X'00'", "''", "X'5c27'", "NULL"),
}


def stored(form: str, images: Sequence[str]) -> list[str]:
    """Six rows in a table with a key and one without: inserted, changed, copied, deleted; DDL ends the batches between.
    `form`: each change alone, or in transactions with savepoints, which are applied in order.
    """
    names = [f"c{number}" for number in range(len(STORED_COLUMNS))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, STORED_COLUMNS, strict=True))
    inserts = [f"INSERT INTO {{t}} VALUES ({n}, 0, {', '.join(row)})"
               for n, row in enumerate(zip(*STORED_COLUMNS.values(), strict=True))]  # fmt: skip
    copy = f"INSERT INTO {{t}} SELECT id+100, n, {', '.join(names)} FROM {{t}}"
    parts = [inserts, ["UPDATE {t} SET n=n+1, id=id+10"], [copy], ["UPDATE {t} SET n=n+1 WHERE id<100"],
             ["DELETE FROM {t} WHERE id>100"]]  # fmt: skip
    statements = ["SET sql_mode='ALLOW_INVALID_DATES'"]
    for image in images:
        statements += [
            f"SET binlog_row_image={image}",
            f"CREATE DATABASE {image} CHARACTER SET utf8mb4",
            f"USE {image}",
        ]
        statements += [f"CREATE TABLE {t} (id INT{key}, n INT, {columns})" for t, key in KEYED]
        for number, part in enumerate(parts):
            changes = [text.format(t=t) for t, _ in KEYED for text in part]
            statements += ["BEGIN", "SAVEPOINT a", *changes, "COMMIT"] if form == "savepoint" else changes
            statements.append(f"CREATE TABLE cut{number} (a INT)")
    return statements


YEARS = """
SET sql_mode=''; CREATE DATABASE d; USE d; CREATE TABLE k (id INT PRIMARY KEY, a YEAR(2), b YEAR, c YEAR(2) DEFAULT 0);
CREATE TABLE u (a YEAR(2) DEFAULT 2000, b INT AS (a+1) VIRTUAL);
INSERT INTO k (id, a, b) VALUES (1, 0, 0), (2, 69, 69), (3, 70, 70), (4, 2000, 2000), (5, 99, 99), (6, NULL, NULL);
INSERT INTO u (a) VALUES (0), (69), (70), (99), (2055); INSERT INTO u () VALUES (); UPDATE k SET a=a+1 WHERE id=1;
CREATE TABLE cut (a INT); UPDATE u SET a=1 WHERE a=0; DELETE FROM u WHERE a=70; INSERT INTO k VALUES (7, 55, 2055, 77);
ALTER TABLE k ADD d YEAR(2) NOT NULL DEFAULT 7, ADD e INT, ADD f VARCHAR(4), ADD g YEAR(4), ADD h YEAR(2);
UPDATE k SET e=a, f=a, g=a, h=b; CREATE TABLE l AS SELECT * FROM k; ALTER TABLE l MODIFY a YEAR(4), MODIFY b YEAR(2);
ALTER TABLE l MODIFY h INT, MODIFY e YEAR(2), MODIFY c VARCHAR(4)
"""


@pytest.mark.long("A YEAR of two digits is a relic of old versions.")
def test_a_year_of_two_digits_is_what_the_sources_select_and_dump_give(mariadb_beside: Beside) -> None:
    """Its stored byte says 2000; SELECT, a dump, generated columns and later ALTERs see 0."""
    mariadb_beside.run(YEARS.split(";"))
    tables = {name: mariadb_beside.native.sql(f"SHOW COLUMNS FROM d.{name}") for name in ("k", "u", "l")}
    for kind in ("sqlite", "postgresql"):
        ended = mariadb_beside.apply(kind)
        assert ended.error is None
        for name, columns in tables.items():
            shown = ", ".join(f"{c[0]}+0" if c[1].startswith("year") else c[0] for c in columns)
            rows = mariadb_beside.native.sql(f"SELECT {shown} FROM d.{name}")
            printed = [tuple(None if value is None else str(value) for value in row) for row in rows]
            assert ended.state[f"d.{name}"] == sorted(printed, key=repr), (kind, name)
    native = server_state(mariadb_beside.native)
    ended = mariadb_beside.apply("server")
    assert (ended.errno, differences(native, ended.state)) == (0, [])


KEYED = (("k", " PRIMARY KEY"), ("u", ""))
WAYS: dict[str, dict[str, Any]] = {
    "statements": {},
    "bulk": {"bulk_rows": 1},
    "load data": {"bulk_rows": 1, "takes_length_prefixed": False},
    "idempotent": {"replica_exec_mode": "IDEMPOTENT"},
}


def stored_alike(
    beside: Beside, form: str, images: Sequence[str], ways: Iterable[str], patch: pytest.MonkeyPatch
) -> None:
    native = rows_only(beside.run(stored(form, images)))
    assert len(native[f"{images[0]}.k"]) == len(native[f"{images[0]}.u"]) == 6
    ways_alike(beside, native, ways, patch)


def ways_alike(beside: Beside, native: Tables, ways: Iterable[str], patch: pytest.MonkeyPatch) -> None:
    """The log of the last run into a strict server, each way that rows go."""
    found = {}
    for way in ways:
        options = dict(WAYS[way])
        with patch.context() as patched:
            patched.setattr("rplctl.target.mysql.target.BULK_ROWS", options.pop("bulk_rows", 200))
            if not options.pop("takes_length_prefixed", True):
                never = property(lambda _: False, lambda *_: None)
                patched.setattr("rplctl.target.mysql.connection.LoadingConnection.takes_length_prefixed", never)
            ended = beside.apply("server", strictest=True, **options)
        found[way] = (ended.errno, differences(native, rows_only(ended.state)))
    assert found == {way: (0, []) for way in ways}


@pytest.mark.long("MariaDB stays; both take the rows in the same session.", keeps=r"^mariadb-")
@pytest.mark.parametrize(("vendor", "form", "ways"), [
    ("mariadb", "alone", ["statements", "bulk"]), ("mysql", "alone", ["bulk"]),
    ("mysql", "savepoint", ["statements"]),
])  # fmt: skip
def test_stored_values_arrive_as_they_were_stored_on_a_server_that_would_refuse_them(
    vendor: str, form: str, ways: list[str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FLOAT(M,D) beyond its digits, zero and impossible dates, ENUM's '', trailing blanks: sql_mode judges none."""
    stored_alike(request.getfixturevalue(f"{vendor}_beside"), form, ["FULL"], ways, monkeypatch)


@TORTURE
@pytest.mark.parametrize("form", ["alone", "savepoint"])
def test_stored_values_arrive_as_they_were_stored_by_every_way_and_row_image(
    beside: Beside, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = ["FULL", "MINIMAL", "NOBLOB", *(["FULL_NODUP"] if isinstance(beside.source, Mariadb118Server) else [])]
    stored_alike(beside, form, images, WAYS, monkeypatch)


NO_TEXT = """
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, a {kind}, b INT, UNIQUE (b));
CREATE TABLE m (id INT PRIMARY KEY, a {kind}) ENGINE=MyISAM;
CREATE TABLE p (a {kind} PRIMARY KEY);
CREATE TABLE n (a {kind}, b INT);
CREATE TABLE e (id INT PRIMARY KEY, e ENUM('a', 'b'), a {kind});
SET sql_log_bin=0;
ALTER TABLE t MODIFY a {raw};
ALTER TABLE m MODIFY a {raw};
ALTER TABLE p MODIFY a {raw};
ALTER TABLE n MODIFY a {raw};
ALTER TABLE e MODIFY a {raw};
SET sql_log_bin=1;
INSERT INTO t VALUES (1, 'good', 1), (2, X'FF41', 2), (3, X'C3', 3), (4, X'EDA080', 4), (5, X'F8888080', 5);
UPDATE t SET a=X'41FF' WHERE id IN (1, 4);
UPDATE t SET b=b+10;
DELETE FROM t WHERE id=3;
BEGIN;
SAVEPOINT x;
INSERT INTO t VALUES (6, X'80', 6), (7, 'good', 7);
UPDATE t SET a='good' WHERE id=2;
COMMIT;
INSERT INTO m VALUES (1, X'FF41');
INSERT INTO m VALUES (2, 'good');
UPDATE m SET a=X'FE' WHERE id=2;
INSERT INTO p VALUES ('good'), (X'FF');
UPDATE p SET a=X'FFFF' WHERE a=X'FF';
INSERT INTO p VALUES (X'FE');
DELETE FROM p WHERE a=X'FE';
INSERT INTO n VALUES (X'FF', 1), (X'FF', 1), ('good', 2), (X'FF41', 3);
UPDATE n SET b=b+10 WHERE a=X'FF41' OR b=2;
DELETE FROM n WHERE a=X'FF' LIMIT 1;
SET sql_mode='';
INSERT INTO e VALUES (1, 'none', 'good'), (2, 'a', X'FF41');
INSERT INTO e VALUES (3, 'none', X'41FF');
UPDATE e SET a=X'FF' WHERE id=1;
SET binlog_format=STATEMENT;
CREATE TABLE printed (t CHAR(9), a VARCHAR(80));
INSERT INTO printed SELECT CONCAT('t', id, '.', b), HEX(a) FROM t UNION SELECT CONCAT('m', id), HEX(a) FROM m
    UNION SELECT 'p', HEX(a) FROM p UNION ALL SELECT b, HEX(a) FROM n
    UNION ALL SELECT CONCAT('e', id, e), HEX(a) FROM e;
DROP TABLE t, m, p, n, e
"""


@pytest.mark.long("Bytes that are no text of their column are rare.")
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
@pytest.mark.parametrize("charset", ["utf8mb4", "utf8mb3", "ascii"])
def test_bytes_that_are_no_text_are_stored_as_a_native_replica_stores_them(
    vendor: str, charset: str, image: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rows, as an older source may have them; the servers themselves refuse such text in statements."""
    octets = {"utf8mb4": 80, "utf8mb3": 60, "ascii": 20}[charset]
    text = NO_TEXT.format(
        kind=f"VARCHAR(20) CHARACTER SET {charset} COLLATE {charset}_general_ci", raw=f"VARBINARY({octets})"
    )
    beside = request.getfixturevalue(f"{vendor}_beside")
    native = rows_only(beside.run([f"SET binlog_row_image={image}", *text.split(";")]))
    ways_alike(beside, native, ["statements", "bulk", "load data"], monkeypatch)


MIXED = sorted((Path(__file__).parent.parent / "data" / "beside").glob("*.sql"))


@pytest.mark.long("One mixture beside MariaDB stays.", keeps=r"^savepoints_and_xa-mariadb-ROW$")
@pytest.mark.parametrize(
    "log_format", ["ROW", pytest.param("MIXED", marks=TORTURE), pytest.param("STATEMENT", marks=TORTURE)]
)
@pytest.mark.parametrize("vendor", ["mariadb", pytest.param("mariadb_118", marks=TORTURE), "mysql"])
@pytest.mark.parametrize("path", MIXED, ids=[path.stem for path in MIXED])
def test_features_mixed_leave_what_they_leave_on_a_native_replica(
    path: Path, vendor: str, log_format: str, request: pytest.FixtureRequest
) -> None:
    """A file says for which vendors and formats it is (else all), the errors that it wants, the kinds of target, and
    with which vendor these may stop: MariaDB 11.8.9 logs no generated column with an UPDATE, which 10.11 does.
    """
    head, text = re.findall(r"^-- (\w+): (.*)$", path.read_text(), re.MULTILINE), path.read_text()
    told = {name: words.split() for name, words in head}
    if vendor not in told.get("vendors", [vendor]) or log_format not in told.get("formats", [log_format]):
        pytest.skip("not this vendor's, or not in this format")
    beside = request.getfixturevalue(f"{vendor}_beside")
    outfile = beside.source.data.parent / "out.txt"
    outfile.unlink(missing_ok=True)
    statements = [line for line in re.sub("^--.*\n", "", text, flags=re.MULTILINE).split(";\n") if line.strip()]
    statements = [line.replace("{file}", str(outfile)) for line in statements]
    kinds = tuple(told["kinds"]) if log_format == "ROW" else ("server",)
    errors = [int(number) for number in told.get("errors", [])]
    release, *numbers = told.get("may_stop", [""])
    may_stop = [int(number) for number in numbers if vendor == release]
    assert_alike(beside, [f"SET binlog_format={log_format}", *statements], errors, kinds, may_stop)


NOT_JUDGED = """
SET sql_mode='', binlog_row_image={image}; CREATE DATABASE {d}; USE {d};
CREATE TABLE f (id INT {key}, x FLOAT(10,5), y DOUBLE(8,3), n INT);
INSERT INTO f VALUES (1, 100000, 99999.9999, 0), (2, 1.5, 1.5, 0); UPDATE f SET n=n+1;
INSERT INTO f SELECT id+10, x, y, n FROM f; UPDATE f SET y=7 WHERE id=1; DELETE FROM f WHERE id=11;
CREATE TABLE g (id INT {key}, v VARCHAR(30), n INT AS (v) VIRTUAL, d DATE AS (v) VIRTUAL, INDEX (n));
INSERT INTO g (id, v) VALUES (1, 'abc'), (2, '2024-01-01'), (3, '99999999999'); UPDATE g SET v='zzz' WHERE id=2;
UPDATE g SET id=id+10; DELETE FROM g WHERE id=11
"""
TWO_DIGITS = """
SET sql_mode=''; CREATE TABLE y (a YEAR(2), n INT, {unique}); INSERT INTO y VALUES ('0000', 1), ('2000', 2), (77, 3);
UPDATE y SET n=n+10 ORDER BY n DESC; INSERT INTO y VALUES (5, 6); DELETE FROM y WHERE n=11;
CREATE TABLE a{number} (a INT); INSERT INTO y VALUES ('0000', 8);
SET binlog_format=STATEMENT; CREATE TABLE index_order{number} (n INT);
INSERT INTO index_order{number} SELECT n FROM y FORCE INDEX (a) WHERE a='0000';
INSERT INTO index_order{number} SELECT n FROM y FORCE INDEX (a) WHERE a='2000'; DROP TABLE y;
SET binlog_format=ROW
"""


@pytest.mark.long("MariaDB stays; both take the rows in the same session.", keeps=r"^mariadb$")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_value_that_the_source_stored_is_not_judged_by_sql_mode_again(
    vendor: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FLOAT(10,5) holds 100000, a VIRTUAL column has no value in strict mode, YEAR(2) keeps '0000' and '2000' apart."""
    beside = request.getfixturevalue(f"{vendor}_beside")
    keys = (("k", "PRIMARY KEY"), ("u", "NOT NULL"))
    texts = [
        NOT_JUDGED.format(d=f"{name}{image}", key=key, image=image)
        for name, key in keys
        for image in ("FULL", "MINIMAL")
    ]
    if vendor == "mariadb":
        texts.append("SET binlog_row_image=FULL; CREATE DATABASE years; USE years")
        texts += [TWO_DIGITS.format(unique=key, number=n) for n, key in enumerate(("UNIQUE (a)", "INDEX (a)"))]
    native = rows_only(beside.run([part for text in texts for part in text.split(";")]))
    ways_alike(beside, native, ["statements", "bulk", "load data"], monkeypatch)


BOTH = "a BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, b BIGINT UNSIGNED GENERATED ALWAYS AS ROW END"
PERIOD = "PERIOD FOR SYSTEM_TIME (a, b)"
BY_TRANSACTIONS = f"""
CREATE DATABASE d; USE d; CREATE TABLE t (i INT PRIMARY KEY, x INT); INSERT INTO t VALUES (1, 1), (2, 2);
ALTER TABLE t ADD {BOTH.replace(", b", ", ADD b")}, ADD {PERIOD}, ADD SYSTEM VERSIONING; UPDATE t SET x=x+1;
SET binlog_format=STATEMENT; CREATE TABLE c (i INT, {BOTH}, {PERIOD}) WITH SYSTEM VERSIONING AS SELECT i FROM t;
CREATE OR REPLACE TABLE c (i INT, {BOTH}, {PERIOD}) WITH SYSTEM VERSIONING AS SELECT i+1 AS i FROM t;
SET binlog_format=ROW; UPDATE c SET i=i+10; DELETE FROM t WHERE i=1
"""


@pytest.mark.long(
    "Transaction precision is rare; test_features_mixed_leave_what_they_leave_on_a_native_replica stays.",
)
@pytest.mark.parametrize("version", ["mariadb", "mariadb_118"])
def test_system_versioning_by_transactions_is_carried_out_as_on_a_replica(
    version: str, request: pytest.FixtureRequest
) -> None:
    """With autocommit=0 these statements end with 1062 and 1292 in mysql.transaction_registry."""
    beside = request.getfixturevalue(f"{version}_beside")
    native = beside.run(BY_TRANSACTIONS.split(";"))
    ended = beside.apply("server")
    now = {"d.t": "SELECT i, x FROM d.t", "d.c": "SELECT i FROM d.c"}
    assert (ended.errno, ended.state["d.t: definition"]) == (0, native["d.t: definition"])
    found = [{name: sorted(server.sql(sql)) for name, sql in now.items()} for server in (beside.native, beside.server)]
    assert found[0] == found[1] == {"d.t": [(2, 3)], "d.c": [(12,), (13,)]}


GENERATED_KEY = """
SET sql_generate_invisible_primary_key=ON; CREATE DATABASE d; USE d; SET binlog_format=STATEMENT;
CREATE TABLE t (a INT, b VARCHAR(9)); INSERT INTO t VALUES (1, 'x'), (2, 'y'); UPDATE t SET b='z' WHERE a=1;
INSERT INTO t SELECT a+10, b FROM t; CREATE TABLE l LIKE t; INSERT INTO l VALUES (3, 'c');
SET binlog_format=MIXED; CREATE TABLE s AS SELECT a, b FROM t; INSERT INTO s VALUES (1, 'i');
ALTER TABLE t ADD c INT DEFAULT 4; INSERT INTO t (a) VALUES (9); SET binlog_format=ROW; INSERT INTO t VALUES (7, 'r', 1)
"""


@pytest.mark.long("A generated invisible key in statement format is rare.")
def test_a_generated_invisible_key_is_invisible_on_a_mariadb_too(mysql_beside: Beside, mariadb_beside: Beside) -> None:
    mysql_beside.run(GENERATED_KEY.split(";"))
    server = mariadb_beside.server
    assert server is not None
    with mysql_beside.into(server):
        ended = mysql_beside.apply("server")
    wanted, found = (
        {table: sorted(one.sql(f"SELECT *, my_row_id FROM d.{table}"), key=repr) for table in ("t", "l", "s")}
        for one in (mysql_beside.source, server)
    )
    assert (ended.errno, found) == (0, wanted)


BEFORE_IMAGES = """
SET binlog_row_image={image}; CREATE DATABASE d; USE d;
CREATE TABLE p (id INT PRIMARY KEY, b VARCHAR(9), n INT); CREATE TABLE u (id INT NOT NULL UNIQUE, b VARCHAR(9), n INT);
INSERT INTO p VALUES (1, 'old', 1), (2, 'old', 2), (3, 'old', 3), (4, 'old', 4); INSERT INTO u SELECT * FROM p;
SET sql_log_bin=0; UPDATE p SET b='unseen'; UPDATE u SET b='unseen'; SET sql_log_bin=1;
UPDATE p SET n=n+10 WHERE id < 3; DELETE FROM p WHERE id=2; UPDATE u SET n=n+10 WHERE id < 3; DELETE FROM u WHERE id=2;
UPDATE p SET id=30 WHERE id=3
"""


@pytest.mark.long("MariaDB with FULL images stays.", keeps=r"^FULL-mariadb$")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_an_update_finds_its_row_by_the_key_alone_as_on_a_native_replica(
    vendor: str, image: str, request: pytest.FixtureRequest
) -> None:
    """The other columns of the before image are compared by neither; the after image brings those that it holds."""
    beside = request.getfixturevalue(f"{vendor}_beside")
    assert_alike(beside, BEFORE_IMAGES.format(image=image).split(";"))
    p = ("unseen", "unseen", "old") if image == "FULL" else ("old", "old", "old")
    assert beside.native.sql("SELECT id, b, n FROM d.p ORDER BY id") == [(1, p[0], 11), (4, p[2], 4), (30, p[1], 3)]


@pytest.mark.long("MariaDB stays; MySQL's events hold the same images.", keeps=r"^mariadb$")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_row_without_a_key_is_found_by_its_whole_before_image_as_on_a_native_replica(
    vendor: str, request: pytest.FixtureRequest
) -> None:
    beside = request.getfixturevalue(f"{vendor}_beside")
    text = "CREATE DATABASE d; USE d; CREATE TABLE n (a INT, b VARCHAR(9)); INSERT INTO n VALUES (1, 'old')"
    unseen = "SET sql_log_bin=0; UPDATE n SET b='unseen'; SET sql_log_bin=1; UPDATE n SET a=2"
    with pytest.raises(AssertionError, match="the native replica stopped"):
        beside.run([*text.split(";"), *unseen.split(";")])
    assert beside.native_status()["Last_SQL_Errno"] == 1032
    for kind in KINDS:
        ended = beside.apply(kind)
        assert (ended.errno, ended.state["d.n"]) == (1032, [("1", "old")]), kind
