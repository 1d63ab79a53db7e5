"""DDL over stored rows: after it a table is equal to the source's, or the applier stops with error 1846 before it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.target.duckdb.connection import driver_of
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.duckdb_state import differences as duckdb_differences
from tests.kit.neutral_state import differences as sqlite_differences, state_of
from tests.kit.postgresql_state import connect, differences as postgresql_differences, new_database
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import Mariadb105Server, MariadbServer, Mysql57Server

pytestmark = pytest.mark.slow

KINDS = pytest.mark.parametrize("kind", ["sqlite", "postgresql", "duckdb"])
LONG = pytest.mark.long(
    "The case of SQLite holds the promise; other kinds and MySQL repeat it.", keeps="sqlite-mariadb"
)
VENDORS = pytest.mark.parametrize("vendor", ["mariadb", "mysql"])


class Outcome:
    """The outcome of statements on a real source whose log was applied to a new target of one kind."""

    def __init__(self, source: MariadbServer, target: str, folder: Path) -> None:
        self.source, self.target, self.folder, self.number = source, target, folder, 0

    def of(self, *statements: str) -> str:
        """Return 'equal', 'stopped', or the differences of the tables."""
        self.number += 1
        self.source.sql("DROP DATABASE IF EXISTS rows_of_ddl; CREATE DATABASE rows_of_ddl; FLUSH BINARY LOGS")
        path = self.source.binlog_files[-1]
        for statement in statements:
            self.source.sql(statement.replace("\0", "; "), "rows_of_ddl")
        state = "".join(state_of(self.source, ["rows_of_ddl"]))
        folder, log = self.folder / str(self.number), groups_of(path)
        instance = Instance(folder, log, **self.options(folder))
        try:
            instance.apply(log)
            return str(self.differences(instance, state) or "equal")
        except RplError as error:
            assert error.errno == er.ALTER_OPERATION_NOT_SUPPORTED_REASON, error
            return "stopped"
        finally:
            instance.target.close()

    def options(self, folder: Path) -> dict[str, Any]:
        """The options of an instance on a new target of the kind."""
        folder.mkdir()
        if self.target.startswith("duckdb"):
            return {"target": f"duckdb:///{folder}/target.duckdb"}
        return {"target": self.target} if self.target else {}

    def differences(self, instance: Instance, state: str) -> Sequence[str]:
        """The tables of the target that differ from the source's state."""
        if self.target.startswith("postgresql"):
            with connect(self.target) as there:
                return postgresql_differences(there, state)
        if self.target.startswith("duckdb"):
            driver = driver_of(instance.target.connection)
            return duckdb_differences(driver, instance.applier.catalog.tables, state)
        with closing(sqlite3.connect(instance.config.datadir / "target.db")) as file:
            return sqlite_differences(file, state)


@pytest.fixture
def source(request: pytest.FixtureRequest, vendor: str) -> MariadbServer:
    server: MariadbServer = request.getfixturevalue(vendor)
    return server


@pytest.fixture
def ddl(request: pytest.FixtureRequest, source: MariadbServer, kind: str, tmp_path: Path) -> Outcome:
    url = "" if kind == "sqlite" else kind
    return Outcome(source, url, tmp_path)


def outcomes(ddl: Outcome, request: pytest.FixtureRequest, cases: dict[str, str]) -> dict[str, str]:
    """Return each case's outcome: statements, one a line, by their last line."""
    found = {}
    for name, statements in cases.items():
        if ddl.target.startswith("postgresql"):
            ddl.target = new_database(request.getfixturevalue("postgresql"))
        found[name] = ddl.of(*statements.split(";"))
    return found


NUMBERED = {
    "decimal": "CREATE TABLE t (k DECIMAL(5,0) PRIMARY KEY, v INT);INSERT INTO t VALUES (10,2),(9,1),(100,3);"
    "ALTER TABLE t DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST",
    "enum": "CREATE TABLE t (k ENUM('b','a') PRIMARY KEY);INSERT INTO t VALUES ('a'),('b');"
    "ALTER TABLE t DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST",
    "letters of two cases": "CREATE TABLE t "
    "(k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY);"
    "INSERT INTO t VALUES ('B'),('a'),('C');"
    "ALTER TABLE t DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST",
    "small letters": "CREATE TABLE t (k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY);"
    "INSERT INTO t VALUES ('b'),('a1'),('10');"
    "ALTER TABLE t DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST",
    "start": "CREATE TABLE t (k INT PRIMARY KEY);INSERT INTO t VALUES (7),(3);"
    "ALTER TABLE t DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST, AUTO_INCREMENT=500",
    "counter": "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY);INSERT INTO t VALUES (1),(2),(3);"
    "ALTER TABLE t DROP PRIMARY KEY, MODIFY id INT NOT NULL, ADD pk BIGINT AUTO_INCREMENT PRIMARY KEY FIRST",
    "prefix": "CREATE TABLE t (k VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin, PRIMARY KEY (k(1)));"
    "INSERT INTO t VALUES ('b'),('a');"
    "ALTER TABLE t DROP PRIMARY KEY, ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST",
    "step": "CREATE TABLE t (k INT PRIMARY KEY);INSERT INTO t VALUES (7),(3);SET SESSION auto_increment_increment=3, "
    "auto_increment_offset=2\0ALTER TABLE t ADD id INT AUTO_INCREMENT UNIQUE",
    "plain": "CREATE TABLE t (k INT PRIMARY KEY);INSERT INTO t VALUES (10),(9),(100);"
    "ALTER TABLE t ADD id INT AUTO_INCREMENT UNIQUE",
}


@LONG
@VENDORS
@KINDS
def test_rows_get_the_sources_numbers_or_the_applier_stops(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    found = outcomes(ddl, request, NUMBERED)
    stops = {"decimal", "enum", "letters of two cases", "counter", "prefix", "step"}
    assert found == {name: "stopped" if name in stops else "equal" for name in NUMBERED}


MODIFIED = {
    "year to text": ("YEAR", "NULL),(2024", "VARCHAR(9)", "equal"),
    "year to bit": ("YEAR", "2024),(1901", "BIT(16)", "equal"),
    "bytes to latin1": ("VARBINARY(9)", "X'FF'),('a'", "VARCHAR(9) CHARACTER SET latin1", "equal"),
    "ASCII bytes to latin1": ("VARBINARY(9)", "'b'),('a'", "VARCHAR(9) CHARACTER SET latin1", "equal"),
    "double to (M,D)": ("DOUBLE", "-0.05),(7.77", "DOUBLE(7,1)", "stopped"),
    "whole double to (M,D)": ("DOUBLE", "-5),(NULL),(999999", "DOUBLE(7,1)", "equal"),
    "integer to (M,D)": ("INT", "2147483647),(1", "DOUBLE(7,1)", "equal"),
    "small integer to (M,D)": ("INT", "-999999),(1", "FLOAT(7,1)", "equal"),
    "decimal to (M,D)": ("DECIMAL(7,2)", "7.77),(1", "DOUBLE(7,1)", "equal"),
    "narrower (M,D)": ("DOUBLE(7,1)", "123456.1),(1", "DOUBLE(5,1)", "stopped"),
    "FLOAT(M,D) to DOUBLE(M,D)": ("FLOAT(7,2)", "1.1),(1", "DOUBLE(7,2)", "equal"),
    "float to integer": ("FLOAT", "16777216),(-1234567),(NULL", "INT", "equal"),
    "narrower decimal": ("DECIMAL(6,3)", "9.994),(-0.004),(-9.985),(0.125),(NULL),(99.994", "DECIMAL(4,2)", "equal"),
    "decimal to whole numbers": ("DECIMAL(18,3)", "2.5),(-0.5),(123456789012345.499),(-99.5", "DECIMAL(16,0)", "equal"),
    "decimal past its range": ("DECIMAL(6,3)", "9.995),(1", "DECIMAL(3,2)", "equal"),
    "decimal below zero": ("DECIMAL(6,3)", "-0.6),(1", "DECIMAL(4,0) UNSIGNED", "equal"),
    "double to bigint": ("DOUBLE", "9007199254740992),(-1234567890123", "BIGINT", "equal"),
}


@LONG
@VENDORS
@KINDS
def test_modified_values_are_the_sources_or_the_applier_stops(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    cases = {
        name: f"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v {old});INSERT INTO t (v) VALUES ({rows});"
        f"SET SESSION sql_mode=''\0ALTER TABLE t MODIFY v {new}"
        for name, (old, rows, new, _) in MODIFIED.items()
    }
    found = outcomes(ddl, request, cases)
    assert found == {name: outcome for name, (_, _, _, outcome) in MODIFIED.items()}


@LONG
@VENDORS
@KINDS
def test_a_moment_past_the_last_timestamp_is_the_sources_or_stops(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    cases = {
        zone: "CREATE TABLE t (a INT PRIMARY KEY, b DATETIME(6));"
        "INSERT INTO t VALUES (1, '9999-12-31 23:59:59'), (2, NULL);"
        f"SET SESSION sql_mode='', time_zone='{zone}'\0ALTER TABLE t MODIFY b TIMESTAMP(6) NULL"
        for zone in ("-05:30", "+02:00")
    }
    # in UTC, the moment of the first zone is after the year 9999
    assert outcomes(ddl, request, cases) == {"-05:30": "stopped", "+02:00": "equal"}


MOMENTS = {
    "moments": "'2024-12-31 23:59:59.5', '2024-02-28 23:59:59.9995', '2024-01-01 00:00:00.4999999', "
    "'2024-01-01 09:08:07.995'),(NULL, '1969-12-31 23:59:59.0004999', '2024-01-01 09:59:59.95', '2030-01-01 00:00:00'",
    "the last moment": "'9999-12-31 23:59:59.7', NULL, NULL, NULL",
}


@LONG
@VENDORS
@KINDS
def test_surplus_digits_of_a_second_are_rounded_or_cut_as_on_the_source(
    ddl: Outcome, vendor: str, request: pytest.FixtureRequest
) -> None:
    rounds = {"mariadb": "TIME_ROUND_FRACTIONAL", "mysql": ""}[vendor]
    cuts = {"mariadb": "", "mysql": "TIME_TRUNCATE_FRACTIONAL"}[vendor]
    cases = {
        f"{name} {mode}": "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a DATETIME(6), b DATETIME(6), "
        f"c TIMESTAMP(6) NULL, d TIMESTAMP(6) NULL);INSERT INTO t (a, b, c, d) VALUES ({rows});"
        f"SET SESSION time_zone='+02:00', sql_mode='{mode}'\0ALTER TABLE t MODIFY a DATETIME, MODIFY b DATETIME(3), "
        "MODIFY c DATETIME(1), MODIFY d TIMESTAMP(2) NULL"
        for name, rows in MOMENTS.items()
        for mode in (rounds, cuts)
    }
    found = outcomes(ddl, request, cases)
    assert found == {name: "stopped" if name == f"the last moment {rounds}" else "equal" for name in cases}


ADDED = [
    "INT DEFAULT X'31'", "INT DEFAULT 0x31", "VARCHAR(10) DEFAULT 1e3", "VARCHAR(10) DEFAULT 1.50",
    "VARCHAR(10) DEFAULT 007", "VARCHAR(10) DEFAULT -1.50", "DOUBLE(5,2) DEFAULT 1.005", "DOUBLE(5,2) DEFAULT 1.25",
    "VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT _utf16 'abcd'", "BIGINT DEFAULT X'3132'", "INT DEFAULT b'101'",
    "VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT _latin1 'ab'", "FLOAT DEFAULT 1e3", "INT DEFAULT 1e3",
    "DECIMAL(9,2) DEFAULT 1.005", "DECIMAL(9,2) DEFAULT 1e3", "BIT(9) DEFAULT X'31'", "BIT(9) DEFAULT '1'",
    "VARBINARY(9) DEFAULT 1e3", "VARBINARY(9) DEFAULT X'6162'", "BINARY(4) DEFAULT X'61'", "YEAR DEFAULT '5'",
    "YEAR DEFAULT 0", "YEAR DEFAULT X'31'", "DOUBLE DEFAULT X'31'", "INT DEFAULT 2.5", "INT DEFAULT -2.5",
    "INT DEFAULT '2.5'",
    "BIT(9) DEFAULT 2.5", "INT DEFAULT TRUE", "VARCHAR(9) DEFAULT TRUE", "VARCHAR(9) DEFAULT .5",
]  # fmt: skip


@LONG
@VENDORS
@KINDS
def test_defaults_of_old_rows_are_the_sources_or_the_applier_stops(
    ddl: Outcome, request: pytest.FixtureRequest
) -> None:
    cases = {a: f"CREATE TABLE t (id INT PRIMARY KEY);INSERT INTO t VALUES (1);ALTER TABLE t ADD v {a}" for a in ADDED}
    found = outcomes(ddl, request, cases)
    assert set(found.values()) <= {"equal", "stopped"}, found


TABLE = (
    "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20), c CHAR(5), n INT, d DATETIME(2), m DECIMAL(5,2)) CHARSET {};"
)
TEXT_ROWS = (
    "INSERT INTO t VALUES (1,'{}','x ',-5,'2024-01-02 03:04:05.6',1.5),(2,NULL,NULL,NULL,NULL,NULL),"
    "(3,'','',0,'2024-01-02',0)"
)
FUNCTIONS = (
    "CONCAT_WS(', ', s, n, c)", "CONCAT_WS('', d, m)", "LENGTH(s)", "CHAR_LENGTH(s)", "LENGTH(n)", "UPPER(m)",
    "LOWER(s)", "LEFT(s, 2)", "SUBSTRING(s, 2)", "SUBSTRING(s, 2, 3)", "TRIM(s)", "LTRIM(s)",
    "IFNULL(s, 'none')", "COALESCE(n, 7)", "UPPER(d)", "COALESCE(n, s, 'x')", "n IS NULL",
)  # fmt: skip
COMPUTED = {
    f"{charset}: {text}": f"SET SESSION sql_mode=''\0{TABLE.format(charset)}SET SESSION sql_mode=''\0"
    f"{TEXT_ROWS.format(text)};"
    + ";".join(
        f"ALTER TABLE t ADD g{number} {'INT' if 'LENGTH' in one else 'VARCHAR(99)'} AS ({one}) "
        f"{'STORED' if number % 2 else 'VIRTUAL'}"
        for number, one in enumerate(FUNCTIONS)
        if text.isascii() or "LOWER" not in one
    )
    for charset, text in [("utf8mb4", " aB1 "), ("latin1", "é€ß"), ("utf8mb4", "日本 é")]
}


@LONG
@VENDORS
@KINDS
def test_functions_of_texts_are_computed_as_on_the_source(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    assert outcomes(ddl, request, COMPUTED) == dict.fromkeys(COMPUTED, "equal")


# values for which no target has SQL: the applier replaces each of them by a constant
SINGLE_VALUES = {
    "numbers that are clipped": "CREATE TABLE t (id INT PRIMARY KEY, a INT, b DECIMAL(10,2), c DOUBLE, e BIGINT, "
    "f TIME);"
    "INSERT INTO t VALUES (1,300,1234.55,2.5,-1,'10:11:12'),(2,-300,-0.05,-1e30,255,'-00:00:01'),"
    "(3,NULL,NULL,NULL,NULL,NULL);"
    "ALTER TABLE t MODIFY a TINYINT, CHANGE b x DECIMAL(3,1), MODIFY e TINYINT UNSIGNED FIRST, MODIFY f INT",
    "texts as numbers and dates": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(30), b VARCHAR(30), c VARCHAR(30), "
    "e VARCHAR(30)) CHARSET utf8mb4;"
    "INSERT INTO t VALUES (1,'12abc','1.5','2024-1-5','x'),(2,'','-7','nothing','ä'),(3,NULL,NULL,NULL,NULL);"
    "ALTER TABLE t MODIFY a INT, MODIFY b DECIMAL(5,1) UNSIGNED, MODIFY c DATE, "
    "MODIFY e VARCHAR(30) CHARACTER SET ascii",
    "labels": "CREATE TABLE t (id INT PRIMARY KEY, a ENUM('a','b','c'), b SET('a','b','c'), c ENUM('1','2'));"
    "INSERT INTO t VALUES (1,'a','a,c','2'),(2,'c','','1');"
    "ALTER TABLE t MODIFY a ENUM('c','b'), MODIFY b SET('c','b'), MODIFY c SET('2','1')",
    "columns that are computed": "CREATE TABLE t (id INT PRIMARY KEY, a DOUBLE, b DATETIME, c VARCHAR(9), "
    "e DECIMAL(9,3));"
    "INSERT INTO t VALUES (1,2.5,'2024-01-02 03:04:05','ab',1.005),(2,NULL,NULL,NULL,NULL),(3,-0.5,'2024-02-29','',2);"
    "ALTER TABLE t ADD g1 INT AS (a + 1) STORED, ADD g2 INT AS (YEAR(b)) STORED, ADD g3 CHAR(9) AS (UPPER(c)) STORED, "
    "ADD g4 INT AS (COALESCE(e, 0)) STORED, ADD g5 INT AS (a IS NULL) STORED, ADD g6 DATE AS (DATE(b)) STORED",
    "columns that are computed from added columns": "CREATE TABLE t (id INT PRIMARY KEY, b BIT(9));"
    "INSERT INTO t VALUES (1,b'101'),(2,NULL);ALTER TABLE t ADD n1 VARCHAR(9) DEFAULT 'ab', ADD n2 TIME(3), "
    "ADD n3 DOUBLE NOT NULL DEFAULT 9.995, ADD g1 VARCHAR(99) AS (CONCAT_WS(',', n1, n3)) STORED, "
    "ADD g2 INT AS (n2 IS NULL) VIRTUAL, ADD g3 INT AS (CHAR_LENGTH(b)) STORED",
    "moments in the time zone of the session": "CREATE TABLE t (id INT PRIMARY KEY, a TIMESTAMP NULL, "
    "b TIMESTAMP(3) NULL);INSERT INTO t VALUES (1,'2024-05-05 03:00:00','2024-12-31 23:30:00.5'),(2,NULL,NULL);"
    "SET SESSION time_zone='+09:00'\0ALTER TABLE t ADD g1 VARCHAR(60) AS (CONCAT(a, '-', b)) STORED, "
    "ADD g2 DATE AS (DATE(b)) STORED, ADD g3 VARCHAR(30) AS (LOWER(b)) VIRTUAL, ADD g4 INT AS (YEAR(b)) VIRTUAL;"
    "SET SESSION time_zone='-05:30'\0ALTER TABLE t MODIFY id BIGINT",
    "zeros in front of a number": "CREATE TABLE t (id INT PRIMARY KEY, a DECIMAL(9,2) ZEROFILL, "
    "b DECIMAL(5,0) ZEROFILL);"
    "INSERT INTO t VALUES (1,1.5,7),(2,NULL,NULL);ALTER TABLE t MODIFY a TEXT, MODIFY b VARBINARY(20)",
}


@LONG
@VENDORS
@KINDS
def test_single_values_without_sql_are_the_sources(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    loose = {name: f"SET SESSION sql_mode=''\0{statements}" for name, statements in SINGLE_VALUES.items()}
    cases = {name: text.replace(";", ";SET SESSION sql_mode=''\0") for name, text in loose.items()}
    assert outcomes(ddl, request, cases) == dict.fromkeys(cases, "equal")


# what random pairs (test_random_ddl.py) once found to differ
FOUND = {
    "a converted value next to a NULL that stops": "CREATE TABLE t (id INT PRIMARY KEY, a DECIMAL(6,3) DEFAULT 5);"
    "INSERT INTO t VALUES (1,-999.999),(2,69);SET SESSION sql_mode=''\0ALTER TABLE t MODIFY a BINARY(4) NOT NULL",
    "NULL that becomes a required label": "CREATE TABLE t (id INT PRIMARY KEY, a ENUM('x','y'), b VARCHAR(5));"
    "INSERT INTO t (id) VALUES (1);SET SESSION sql_mode=''\0ALTER TABLE t MODIFY a ENUM('x','y','z') NOT NULL, "
    "MODIFY b ENUM('x') NOT NULL, ADD c ENUM('x','y') NOT NULL",
    "columns that are changed and converted in one statement": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9), "
    "b VARCHAR(9)) CHARSET utf8mb4;INSERT INTO t VALUES (1, 'ä', 'b');ALTER TABLE t MODIFY b VARCHAR(20) CHARACTER SET "
    "latin1, ADD c VARCHAR(9) CHARACTER SET latin1 DEFAULT 'x', CONVERT TO CHARACTER SET binary",
    "clipped columns that expressions read": "CREATE TABLE t (id INT PRIMARY KEY, a INT, b DECIMAL(10,2), "
    "c VARBINARY(9), e VARCHAR(9), g1 INT AS (a + 1) STORED, g2 VARCHAR(30) AS (CONCAT(b, 'x')) STORED, "
    "g3 INT AS (LENGTH(c)) STORED, g4 VARCHAR(30) AS (CONCAT(e, 'x')) STORED) CHARSET utf8mb4;"
    "INSERT INTO t (id, a, b, c, e) VALUES (1,5,1.5,'ab','é'),(2,NULL,NULL,NULL,NULL),(3,-300,-1e6,'abcdefgh','日本');"
    "SET SESSION sql_mode=''\0ALTER TABLE t MODIFY a TINYINT UNSIGNED, MODIFY b DECIMAL(4,2), MODIFY c VARBINARY(3), "
    "MODIFY e VARCHAR(9) CHARACTER SET latin1",
    "a year of zeros as text": "CREATE TABLE t (id INT PRIMARY KEY, y YEAR);"
    "INSERT INTO t VALUES (1,0),(2,NULL),(3,2024);"
    "ALTER TABLE t ADD g INT AS (LENGTH(y)) STORED, ADD h VARCHAR(9) AS (CONCAT(y, '-')) STORED",
    "a column of a dropped key that may be NULL": "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT);"
    "ALTER TABLE t DROP PRIMARY KEY, MODIFY id INT, ADD pk INT AUTO_INCREMENT PRIMARY KEY;"
    "INSERT INTO t (a) VALUES (1)",
    "labels with a letter that the character set lacks": "SET SESSION sql_mode=''\0"
    "CREATE TABLE t (id INT PRIMARY KEY, a ENUM('','x','ä') CHARACTER SET gbk, b ENUM('x','ä') CHARACTER SET ascii, "
    "c SET('x','ä','日') CHARACTER SET latin1);"
    "SET SESSION sql_mode=''\0INSERT INTO t VALUES (1,3,2,7),(2,2,1,1),(3,1,NULL,4);"
    "SET SESSION sql_mode=''\0ALTER TABLE t MODIFY a ENUM('c','b') CHARACTER SET cp1251, MODIFY b INT, "
    "MODIFY c SET('x','ä','日','?') CHARACTER SET utf8mb4",
}
# rplctl does not know which letters the new or the old character set lacks
UNSURE_LABELS = {
    "sjis to utf8mb4": ("ENUM('x','ä','日') CHARACTER SET sjis", "ENUM('x','ä','日') CHARACTER SET utf8mb4"),
    "ENUM of sjis to a number": ("ENUM('x','ä','日') CHARACTER SET sjis", "INT"),
    "SET of sjis to a number": ("SET('x','ä','日') CHARACTER SET sjis", "INT"),
    "utf8mb4 to ascii": ("ENUM('x','ä') CHARACTER SET utf8mb4", "ENUM('x','ä') CHARACTER SET ascii"),
}
FOUND_IN_MARIADB = {
    "a column that is added and modified in one statement": "CREATE TABLE t (id INT PRIMARY KEY);"
    "INSERT INTO t VALUES (1);ALTER TABLE t ADD a INT DEFAULT 1, ADD b INT DEFAULT 2, MODIFY a VARCHAR(9) DEFAULT 'x';"
    "ALTER TABLE t ADD d INT, CHANGE d d BIGINT DEFAULT 9 FIRST",
    "literals of moments": "CREATE TABLE t (id INT PRIMARY KEY, a DATE DEFAULT DATE'2024-01-02');"
    "INSERT INTO t (id) VALUES (1);ALTER TABLE t ADD b DATETIME NOT NULL DEFAULT TIMESTAMP'2024-01-02 03:04:05', "
    "ADD c TIME DEFAULT TIME'10:11:12' COMMENT 'x', ADD d INT DEFAULT DATE'2024-01-02'",
}


@LONG
@VENDORS
@KINDS
def test_what_random_pairs_found_stays_equal(ddl: Outcome, vendor: str, request: pytest.FixtureRequest) -> None:
    cases = FOUND | FOUND_IN_MARIADB if vendor == "mariadb" else FOUND
    assert outcomes(ddl, request, cases) == dict.fromkeys(cases, "equal")


@LONG
@VENDORS
@KINDS
def test_labels_whose_letters_may_be_lost_stop(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    loose = "SET SESSION sql_mode=''\0"
    cases = {
        name: f"{loose}CREATE TABLE t (id INT PRIMARY KEY, e {old});{loose}INSERT INTO t VALUES (1,2);"
        f"{loose}ALTER TABLE t MODIFY e {new}"
        for name, (old, new) in UNSURE_LABELS.items()
    }
    assert outcomes(ddl, request, cases) == dict.fromkeys(cases, "stopped")


# NULL in a column that becomes NOT NULL: MariaDB stores the old default if it changes the table in place, else a zero
REQUIRED = {
    "an old default": ("INT DEFAULT 7", "INT NOT NULL DEFAULT 6", "stopped"),
    "another type of number": ("INT DEFAULT 7", "BIGINT NOT NULL", "equal"),
    "a decimal": ("INT DEFAULT 7", "DECIMAL(9,2) NOT NULL", "equal"),
    "a date": ("DATETIME DEFAULT '2000-01-01'", "DATETIME NOT NULL", "stopped"),
    "a longer text": ("VARCHAR(5) DEFAULT 'a'", "VARCHAR(7) NOT NULL", "stopped"),
    "a label": ("ENUM('x','y') DEFAULT 'y'", "ENUM('x','y','z') NOT NULL", "stopped"),
    "no old default": ("INT", "INT NOT NULL DEFAULT 6", "equal"),
    "zero as the old default": ("INT DEFAULT 0", "INT NOT NULL DEFAULT 6", "equal"),
}


@LONG
@VENDORS
@KINDS
def test_null_that_becomes_a_default_is_the_sources_or_stops(
    ddl: Outcome, vendor: str, request: pytest.FixtureRequest
) -> None:
    cases = {
        name: f"CREATE TABLE t (id INT PRIMARY KEY, v {old});INSERT INTO t VALUES (1, NULL), (2, DEFAULT);"
        f"SET SESSION sql_mode=''\0ALTER TABLE t MODIFY v {new}"
        for name, (old, new, _) in REQUIRED.items()
    }
    expected = {name: outcome if vendor == "mariadb" else "equal" for name, (_, _, outcome) in REQUIRED.items()}
    assert outcomes(ddl, request, cases) == expected


READ = {
    "a shorter BIT, by a new column": "CREATE TABLE t (id INT PRIMARY KEY, b BIT(64));INSERT INTO t VALUES (1, 5);"
    "ALTER TABLE t MODIFY b BIT(33), ADD g INT AS (LENGTH(b)) STORED",
    "a shorter BIT, by an old column": "CREATE TABLE t (id INT PRIMARY KEY, b BIT(64), g INT AS (LENGTH(b)) STORED);"
    "INSERT INTO t (id, b) VALUES (1, 5);ALTER TABLE t MODIFY b BIT(33)",
    "a computed column": "CREATE TABLE t (id INT PRIMARY KEY, g INT AS (id + 1) STORED, h INT AS (g * 2) STORED);"
    "INSERT INTO t (id) VALUES (1);ALTER TABLE t MODIFY g INT AS (id + 2) STORED",
}


@LONG
@VENDORS
@KINDS
def test_columns_that_read_changed_columns_are_equal_or_stop(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    assert outcomes(ddl, request, READ) == dict(zip(READ, ("stopped", "equal", "stopped"), strict=True))


TOO_LARGE = (
    "TINYINT DEFAULT (300)", "INT UNSIGNED DEFAULT (-1)", "DECIMAL(3,1) DEFAULT (1000)", "DOUBLE UNSIGNED DEFAULT (-1)",
    "VARCHAR(2) DEFAULT ('a   ')", "VARBINARY(1) DEFAULT ('ab')", "BINARY(1) DEFAULT (X'6162')", "BIT(3) DEFAULT (9)",
)  # fmt: skip


@pytest.mark.long("MySQL alone cuts such values; tests/schema has each of them without a server.")
@pytest.mark.parametrize("vendor", ["mysql"])
@KINDS
def test_defaults_that_do_not_fit_stop(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    cases = {
        one: "CREATE TABLE t (id INT PRIMARY KEY);INSERT INTO t VALUES (1);"
        f"SET SESSION sql_mode=''\0ALTER TABLE t ADD v {one}"
        for one in TOO_LARGE
    }
    assert outcomes(ddl, request, cases) == dict.fromkeys(cases, "stopped")


BINARY = {
    "names and text": "CREATE TABLE `té` (`ä` INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'é');"
    "INSERT INTO `té` VALUES (1, 'ö');ALTER TABLE `té` ADD `ö` VARCHAR(9) CHARACTER SET utf8mb4 NOT NULL DEFAULT 'ü'",
    "labels of latin1": "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('é','b') CHARACTER SET latin1);"
    "INSERT INTO t VALUES (1, 'é'), (2, 2), (3, 1);ALTER TABLE t ADD f SET('ß') CHARACTER SET latin1",
    "default of latin1": "CREATE TABLE t (id INT PRIMARY KEY);INSERT INTO t VALUES (1);"
    "ALTER TABLE t ADD v VARCHAR(9) CHARACTER SET latin1 NOT NULL DEFAULT 'é'",
}


@LONG
@VENDORS
@KINDS
def test_ddl_after_set_names_binary_gives_the_sources_tables(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    cases = {
        name: ";".join(f"SET NAMES binary\0{statement}" for statement in statements.split(";"))
        for name, statements in BINARY.items()
    }
    assert outcomes(ddl, request, cases) == dict.fromkeys(BINARY, "equal")


TIMESTAMPS = {
    "added": "CREATE TABLE t (id INT PRIMARY KEY);INSERT INTO t VALUES (1);ALTER TABLE t ADD a TIMESTAMP",
    "second": "CREATE TABLE t (id INT PRIMARY KEY, a TIMESTAMP);INSERT INTO t VALUES (1, '2024-01-02 03:04:05');"
    "ALTER TABLE t ADD b TIMESTAMP(2) FIRST, ADD c TIMESTAMP",
    "nullable": "CREATE TABLE t (id INT PRIMARY KEY);INSERT INTO t VALUES (1);ALTER TABLE t ADD a TIMESTAMP NULL",
    "modified": "CREATE TABLE t (id INT PRIMARY KEY, a TIMESTAMP NULL);INSERT INTO t VALUES (1, NULL);"
    "ALTER TABLE t MODIFY a TIMESTAMP",
    "required": "CREATE TABLE t (id INT PRIMARY KEY, a TIMESTAMP NULL);INSERT INTO t VALUES (1, NULL);"
    "ALTER TABLE t MODIFY a TIMESTAMP NOT NULL",
    "changed": "CREATE TABLE t (id INT PRIMARY KEY, a DATETIME);INSERT INTO t VALUES (1, NULL);"
    "ALTER TABLE t CHANGE a b TIMESTAMP(2)",
}


@pytest.mark.long("Such a source is old; tests/schema has the rule without a server.")
@LONG
@VENDORS
@KINDS
def test_timestamps_without_explicit_defaults_are_the_sources(ddl: Outcome, request: pytest.FixtureRequest) -> None:
    session = "SET SESSION sql_mode='{}', explicit_defaults_for_timestamp={}, timestamp=1700000000.25\0"
    cases = {
        f"{name} {mode} {setting}": ";".join(session.format(mode, setting) + one for one in statements.split(";"))
        for name, statements in TIMESTAMPS.items()
        for mode, setting in [("", "OFF"), ("STRICT_ALL_TABLES", "OFF"), ("", "ON"), ("STRICT_ALL_TABLES", "ON")]
        if not mode or ddl.source.kind == "mariadb" or name == "nullable"  # MySQL refuses the others
    }
    assert outcomes(ddl, request, cases) == dict.fromkeys(cases, "equal")


@pytest.mark.long("Two older servers are started; the flag of a newer one holds the same promise.")
@pytest.mark.parametrize("server", [Mariadb105Server, Mysql57Server], ids=lambda server: server.__name__)
def test_timestamps_of_a_source_that_does_not_log_the_setting_are_the_sources(
    request: pytest.FixtureRequest, server: type[MariadbServer], tmp_path: Path
) -> None:
    try:
        source = server()
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    with source:
        ddl = Outcome(source, "", tmp_path)
        assert outcomes(ddl, request, {"added": TIMESTAMPS["added"]}) == {"added": "equal"}
