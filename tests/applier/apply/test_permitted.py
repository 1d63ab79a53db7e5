"""REQUIRE_ROW_FORMAT and REQUIRE_TABLE_PRIMARY_KEY_CHECK: what is not permitted stops before anything is executed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rplctl.applier.apply.permitted import check_permitted, refuse_generated_keys
from rplctl.config import Config
from rplctl.decode.row_stream import read_run
from rplctl.errors import RplError
from rplctl.event.format_description import build_format_description, parse_format_description
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, plan_ddl
from tests.conftest import Factory
from tests.event.logs import event, query
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, MysqlServer

SCHEMA = "DROP DATABASE IF EXISTS d; CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b INT) ENGINE=InnoDB"

PERMITTED = [
    "BEGIN", "COMMIT", "START TRANSACTION", "ROLLBACK WORK", "SAVEPOINT `a`", "ROLLBACK TO `a`",
    "XA COMMIT X'31',X'',1",
    "CREATE TABLE t (a INT)", "create or replace table t like u", "CREATE TABLE t (a ENUM('SELECT', 'x'))",
    "CREATE TABLE `select` (a INT) -- SELECT", "ALTER TABLE t ADD b INT", "DROP TABLE t", "TRUNCATE t",
    "RENAME TABLE a TO b", "CREATE VIEW v AS SELECT 1", "/* INSERT */ CREATE DATABASE d", "# x\nGRANT ALL ON *.* TO u",
    "SET STATEMENT max_statement_time=1 FOR CREATE TABLE t (a INT)", "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW "
    "SET @x = (SELECT 1)", "SET PASSWORD FOR u = 'x'", "ANALYZE TABLE t", "/*!50003 CREATE */ TABLE t (a INT)",
    "CREATE TABLE t (a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1))", "CREATE TABLE t (a INT) WITH "
    "SYSTEM VERSIONING", "CREATE TABLE t (a INT) /*!50100 PARTITION BY LIST (a) (PARTITION p VALUES IN (1, 2)) */",
    "CREATE TABLE t (a TEXT, FULLTEXT KEY k (a) WITH PARSER ngram)",
]  # fmt: skip
REFUSED = [
    "INSERT INTO t VALUES (1)", " update t SET a=1", "DELETE FROM t", "REPLACE t VALUES (1)", "SELECT f()", "DO f()",
    "CALL p()", "LOAD DATA INFILE 'x' INTO TABLE t", "/* BEGIN */ INSERT INTO t VALUES (1)",
    "WITH c AS (SELECT 1) DELETE FROM t", "/*!50000 INSERT INTO t VALUES (1) */",
    "/*M!100000 INSERT INTO t VALUES (1) */", "-- x\nINSERT t VALUES (1)",
    "SET STATEMENT max_statement_time=1 FOR INSERT INTO t VALUES (1)", "SET GLOBAL x=1",
    "BEGIN NOT ATOMIC "
    "INSERT INTO t VALUES (1); END", "CREATE TABLE t SELECT 1",
    "CREATE TABLE t (a INT) AS WITH c AS (SELECT 1) SELECT 1",
    "CREATE TEMPORARY TABLE t (a INT)", "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", "DROP TEMPORARY TABLE t",
    "CREATE OR REPLACE TEMPORARY TABLE t (a INT)", "COMMIT; INSERT INTO t VALUES (1)", " ", "HANDLER t OPEN",
]  # fmt: skip


@pytest.mark.parametrize("sql", PERMITTED)
def test_row_format_permits_what_a_source_in_row_format_logs(tmp_path: Path, sql: str) -> None:
    assert check(tmp_path, RelayLogInfo(require_row_format=True), query(sql, end_log_pos=77)) == 0


@pytest.mark.parametrize("sql", REFUSED)
def test_row_format_refuses_everything_else_however_it_is_dressed(tmp_path: Path, sql: str) -> None:
    assert check(tmp_path, RelayLogInfo(require_row_format=True), query(sql, end_log_pos=77)) == 13508


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("/*M!999999 CREATE */ INSERT INTO t VALUES (1)", 0),
        (r"INSERT INTO t VALUES ('\', ' CREATE TABLE t (a INT)')", 1 << 20),
        ('/*!50000 */ INSERT INTO t VALUES (1) -- "', 4),
    ],
)
def test_row_format_reads_a_statement_as_its_source_did(tmp_path: Path, sql: str, mode: int) -> None:
    logged = query(sql, end_log_pos=77, sql_mode=mode)
    assert check(tmp_path, RelayLogInfo(require_row_format=True), logged) == 13508


DESCRIPTION = parse_format_description(build_format_description(1, 0, 1, "10.11.19-MariaDB", relay_log=False))
SESSION = DdlContext(server_version="10.11.19-MariaDB")
KEYED = ["CREATE TABLE k (a INT PRIMARY KEY, b INT)", "CREATE TABLE keyless (a INT)"]
DDL = [
    ("CREATE TABLE n (a INT)", False), ("CREATE TABLE n (a INT UNIQUE NOT NULL)", False),
    ("CREATE TABLE n LIKE keyless", False), ("ALTER TABLE k DROP PRIMARY KEY", False),
    ("CREATE OR REPLACE TABLE k (a INT)", False), ("/*!50003 ALTER */ TABLE k DROP PRIMARY KEY", False),
    ("CREATE TABLE n (a INT PRIMARY KEY)", True), ("CREATE TABLE n LIKE k", True), ("ALTER TABLE k ADD c INT", True),
    ("ALTER TABLE k DROP PRIMARY KEY, ADD PRIMARY KEY (b)", True), ("ALTER TABLE keyless ADD c INT", True),
    ("CREATE TABLE IF NOT EXISTS keyless (a INT)", True), ("CREATE INDEX i ON keyless (a)", True),
    ("DROP TABLE k", True), ("CREATE VIEW v AS SELECT 1", True), ("ALTER TABLE unknown ADD c INT", True),
    ("CREATE SEQUENCE s", True), ("RENAME TABLE keyless TO n", True), ("CREATE TEMPORARY TABLE n (a INT)", True),
]  # fmt: skip


def check(tmp_path: Path, info: RelayLogInfo, *events: bytes) -> int:
    """The error's number; 0 = permitted."""
    catalog = Catalog()
    for sql in KEYED:
        catalog = catalog.after(plan_ddl(sql, "d", SESSION, catalog))
    data = np.frombuffer(b"".join(events), np.uint8)
    run = read_run(data, 0, len(data), DESCRIPTION)
    try:
        check_permitted(run, info, Config(tmp_path), lambda names: catalog)
    except RplError as error:
        assert error.position == "77", "where it stands"
        return error.errno
    return 0


@pytest.mark.parametrize(("ddl", "is_permitted"), DDL)
def test_where_keys_are_required_no_table_is_left_without_one(tmp_path: Path, ddl: str, is_permitted: bool) -> None:
    event = query(ddl, end_log_pos=77)
    assert check(tmp_path, RelayLogInfo(require_table_primary_key_check="ON"), event) == (0 if is_permitted else 3750)
    for policy in ("STREAM", "OFF", "GENERATE"):
        assert check(tmp_path, RelayLogInfo(require_table_primary_key_check=policy), event) == 0


def test_ddl_that_is_not_understood_stops_where_keys_are_required(tmp_path: Path) -> None:
    event = query("CREATE TABLE n (a SOMETHING)", end_log_pos=77)
    assert check(tmp_path, RelayLogInfo(require_table_primary_key_check="ON"), event) == 1064


def test_keys_are_not_generated_where_tables_are_made_of_models() -> None:
    for policy in ("STREAM", "OFF", "ON"):
        refuse_generated_keys(RelayLogInfo(require_table_primary_key_check=policy), "sqlite")
    with pytest.raises(RplError, match="requires a MySQL target") as refused:
        refuse_generated_keys(RelayLogInfo(require_table_primary_key_check="GENERATE"), "sqlite")
    assert refused.value.errno == 1235


@pytest.mark.parametrize("code", [5, 13, 14, 17, 9, 18, 11])
def test_events_of_statements_are_refused_by_their_type(tmp_path: Path, code: int) -> None:
    events = (query("BEGIN"), event(EventType(code), bytes(30), end_log_pos=77))
    assert check(tmp_path, RelayLogInfo(require_row_format=True), *events) == 13508
    assert check(tmp_path, RelayLogInfo(), *events) == 0


def stopped(replica: Replica, errno: int) -> str:
    done = replica.run("start", "--until-synced", expect=None)
    status = replica.status()
    assert status["Last_SQL_Errno"] == errno, f"{done}{status}{replica.logs()}"
    replica.run("stop", expect=None)
    return f"{status['Last_SQL_Error']}\n{status['Last_SQL_Hint']}"


def goes_on(replica: Replica, *change: str) -> None:
    replica.run("change-master", *change)
    replica.run("start", "--until-synced")


@pytest.mark.long("The same stop is tested without a server in this file.")
@pytest.mark.slow
def test_a_statement_stops_a_channel_that_requires_row_format(
    source: MariadbServer, mariadb_factory: Factory[MariadbServer], replica: Replica
) -> None:
    target = mariadb_factory()
    replica.set_up(source, *replica.into(target), change=["--require-row-format", "1"])
    source.sql("INSERT INTO d.t VALUES (1, 1); ALTER TABLE d.t ADD c INT")
    source.sql("SET SESSION binlog_format=STATEMENT; SET @a = 5; INSERT INTO d.t (a) VALUES (@a)")
    assert "REQUIRE_ROW_FORMAT was found: USER_VAR" in stopped(replica, 13508)
    assert target.rows("d", "t") == [(1, 1, None)], "all before it, nothing of it"
    goes_on(replica, "--require-row-format", "0")
    assert target.rows("d", "t") == source.rows("d", "t")


@pytest.mark.long("test_where_keys_are_required_no_table_is_left_without_one holds the rule without a server.")
@pytest.mark.slow
def test_ddl_without_a_key_stops_where_keys_are_required(source: MariadbServer, replica: Replica) -> None:
    replica.set_up(source, change=["--require-table-primary-key-check", "on"])
    source.sql("INSERT INTO d.t VALUES (1, 1); CREATE TABLE d.n (a INT)")
    assert "without a primary key: d.n" in stopped(replica, 3750)
    assert replica.query("SELECT a, b FROM d__t") == [(1, 1)]
    replica.run("change-master", "--require-table-primary-key-check", "generate")
    assert "requires a MySQL target" in stopped(replica, 1235)
    goes_on(replica, "--require-table-primary-key-check", "off")
    assert replica.query("SELECT a FROM d__n") == []


@pytest.mark.long("GENERATE is rare; test_where_keys_are_required_no_table_is_left_without_one holds the rule.")
@pytest.mark.slow
def test_keys_are_generated_on_a_mysql_target_that_demands_them(
    mariadb: MariadbServer, mysql_factory: Factory[MysqlServer], replica: Replica
) -> None:
    target = mysql_factory("--sql-require-primary-key=1")
    mariadb.sql("RESET MASTER")
    mariadb.sql("DROP DATABASE IF EXISTS d; CREATE DATABASE d")
    mariadb.sql(
        "CREATE TABLE d.k (a INT PRIMARY KEY, b INT UNIQUE) ENGINE=InnoDB; INSERT INTO d.k VALUES (1, 1), (2, 2)"
    )
    mariadb.sql("UPDATE d.k SET b=b+10; DELETE FROM d.k WHERE a=2")  # in bulk, by temporary tables without a key
    mariadb.sql("CREATE TABLE d.n (a INT, b TEXT) ENGINE=InnoDB")
    replica.set_up(mariadb, *replica.into(target))
    stopped(replica, 3750)  # MariaDB's events do not say what is required: the target's own variable does
    assert target.rows("d", "k") == mariadb.rows("d", "k")
    mariadb.sql("INSERT INTO d.n VALUES (1, 'x'), (1, 'x'), (2, 'y'), (3, NULL)")
    mariadb.sql("UPDATE d.n SET b='z' WHERE a=2; DELETE FROM d.n WHERE a=3; DELETE FROM d.n WHERE a=1 LIMIT 1")
    goes_on(replica, "--require-table-primary-key-check", "generate")
    assert target.sql("SELECT a, b FROM d.n ORDER BY a") == mariadb.sql("SELECT a, b FROM d.n ORDER BY a")
    assert target.sql("SELECT COUNT(my_row_id) FROM d.n") == [(2,)]
