"""Every rule of MySQL's filters as a row: what the filters say to rows, statements and whole databases."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rplctl.config import Config
from rplctl.decode.filter_rules import OWN_DATABASE, ReplicationFilter, filtered_catalog
from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.dump import load_catalog
from rplctl.target.dialect import OWN_SCHEMA as SCHEMA

CONTEXT = DdlContext(server_version="10.11.19-MariaDB")


def rules(text: str) -> ReplicationFilter:
    """`do_db=a,b ignore_table=a.t` → the filter of a channel with these options."""
    given = dict(word.split("=", 1) for word in text.split())
    return ReplicationFilter.from_config(Config(Path("/x"), **{f"replicate_{k}": v for k, v in given.items()}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "database", "table", "accepted"),
    [
        ("", "d", "t", True),
        ("do_db=d", "d", "t", True),
        ("do_db=d", "e", "t", False),
        ("do_db=d", "D", "t", False),  # lower_case_table_names=0
        ("ignore_table=d.T", "d", "t", True),
        ("do_db=d,e ignore_db=d", "d", "t", True),  # ignore_db is not even looked at
        ("ignore_db=d", "d", "t", False),
        ("ignore_db=d", "e", "t", True),
        ("do_table=d.t", "d", "t", True),
        ("do_table=d.t", "d", "u", False),
        ("do_table=d.t", "d", "T", False),
        ("ignore_table=d.t", "d", "t", False),
        ("ignore_table=d.t", "d", "u", True),
        ("do_table=d.t ignore_table=d.t", "d", "t", True),
        ("do_table=d.t ignore_table=d.u", "d", "v", False),
        ("wild_do_table=d.%", "d", "t", True),
        ("wild_do_table=d.%", "dd", "t", False),
        ("wild_do_table=d%.%", "dd", "t", True),
        ("wild_do_table=%.t_", "x", "t1", True),
        ("wild_do_table=%.t_", "x", "t12", False),
        ("wild_do_table=%.t_", "x", "té", False),  # one byte, as in the server's binary comparison
        (r"wild_do_table=d.t\_%", "d", "t_1", True),
        (r"wild_do_table=d.t\_%", "d", "tx1", False),
        (r"wild_do_table=d.t\%", "d", "t%", True),
        (r"wild_do_table=d.t\%", "d", "t1", False),
        ("wild_do_table=d.\\", "d", "\\", True),
        ("wild_do_table=%.%", "d", "a\nb", True),
        ("wild_do_table=d.%", "d.e", "t", True),  # patterns see one name: database, dot, table
        ("wild_do_table=d.T%", "d", "t1", False),
        ("wild_ignore_table=d.%", "d", "t", False),
        ("wild_ignore_table=d.%", "e", "t", True),
        ("wild_do_table=d.a% wild_ignore_table=d.%", "d", "ab", True),
        ("wild_do_table=d.a% wild_ignore_table=d.%", "d", "b", False),
        ("do_table=d.t wild_ignore_table=d.%", "d", "t", True),
        ("ignore_table=d.t wild_do_table=d.%", "d", "t", False),
        ("do_table=d.t wild_do_table=e.%", "e", "x", True),
        ("ignore_table=d.t wild_do_table=e.%", "f", "x", False),
        ("do_db=d ignore_table=d.t", "d", "t", False),
        ("do_db=d do_table=e.t", "e", "t", False),  # the database is asked first
        ("ignore_db=d do_table=d.t", "d", "t", False),
    ],
)
def test_rows_are_asked_for_their_database_then_their_table(
    text: str, database: str, table: str, accepted: bool
) -> None:
    assert rules(text).accepts_rows(database, table) is accepted


@pytest.mark.parametrize(
    ("text", "current", "accepted"),
    [
        ("do_db=d", "", True),  # no current database: the tables decide
        ("ignore_db=d", "", True),
        ("do_db=d", "e", False),
        ("ignore_db=d", "d", False),
        ("do_table=x.y", "d", True),  # table rules are not for databases
    ],
)
def test_statements_are_asked_for_their_current_database(text: str, current: str, accepted: bool) -> None:
    assert rules(text).accepts_database(current) is accepted


@pytest.mark.parametrize(
    ("text", "sql", "accepted"),
    [
        ("do_table=d.t", "CREATE TABLE t (a INT)", True),
        ("do_table=d.t", "CREATE TABLE e.t (a INT)", False),
        ("do_table=d.t", "CREATE TABLE u LIKE t", False),  # t is only read
        ("ignore_table=d.t", "ALTER TABLE t ADD b INT", False),
        ("ignore_table=d.t", "ALTER TABLE t EXCHANGE nonsense that nobody understands", False),
        ("ignore_table=d.t", "CREATE INDEX i ON t (a)", False),
        ("ignore_table=d.t", "DROP TABLE t, u", False),  # the first table with a rule decides
        ("ignore_table=d.t", "DROP TABLE u, t", False),  # u has no rule
        ("do_table=d.u ignore_table=d.t", "DROP TABLE u, t", True),
        ("do_table=d.u ignore_table=d.t", "DROP TABLE t, u", False),
        ("do_table=d.u", "DROP TABLE x, u", True),
        ("do_table=d.u", "RENAME TABLE x TO y, y TO u", True),
        ("ignore_table=d.u", "RENAME TABLE x TO u", False),
        ("wild_do_table=d.%", "TRUNCATE TABLE e.t", False),
        ("wild_ignore_table=d.v%", "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`r`@`%` VIEW v1 AS SELECT 1", False),
        ("wild_ignore_table=d.v%", "DROP VIEW IF EXISTS v1", False),
        ("ignore_table=d.t", "CREATE DEFINER=`r`@`%` TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a=1", False),
        ("do_table=d.t", "CREATE PROCEDURE p() SELECT 1", True),  # names no table: the table rules are not asked
        ("do_table=d.t", "CREATE USER u", True),
        ("do_table=d.t", "GRANT SELECT ON d.* TO u", True),
        ("do_table=d.t", "GRANT SELECT (a, b) ON d.u TO u", False),
        ("do_table=d.t", "FLUSH PRIVILEGES", True),
        ("ignore_table=d.t", "INSERT INTO t VALUES (1)", False),
        ("ignore_table=d.t", "DELETE FROM t", False),
        ("ignore_table=d.t", "UPDATE LOW_PRIORITY t SET a=1", False),
        ("ignore_table=d.t", "LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE t", False),
        ("ignore_table=d.t", "UPDATE u, v SET u.a=1", True),
        ("wild_do_table=d.%", "DELETE FROM e.t USING e.t JOIN e.u", False),
        ("ignore_table=d.t", "DROP TEMPORARY TABLE IF EXISTS t", True),
    ],
)
def test_a_statement_is_accepted_by_the_tables_it_updates(text: str, sql: str, accepted: bool) -> None:
    assert rules(text).accepts_statement(sql, "d", CONTEXT) is accepted


@pytest.mark.parametrize(
    ("sql", "accepted"),
    [
        ("CREATE TABLE d.t (a INT)", True),
        ("CREATE TABLE e.t (a INT)", False),
        ("DROP TABLE d.t, e.t", False),
        ("RENAME TABLE d.t TO d.u", True),
        ("UPDATE d.t, e.t SET d.t.a=1", False),
        ("CREATE DATABASE d", True),
        ("CREATE DATABASE e", False),
        ("CREATE USER u", False),
    ],
)
def test_without_a_current_database_the_changed_tables_decide(sql: str, accepted: bool) -> None:
    assert rules("do_db=d").accepts_statement(sql, "", CONTEXT) is accepted
    assert rules("ignore_db=d").accepts_statement("CREATE TABLE e.t (a INT)", "", CONTEXT)


@pytest.mark.parametrize(("version", "accepted"), [("9.7.0", True), ("10.11.19-MariaDB", False)])
def test_a_mysql_database_is_judged_by_its_rewritten_name(version: str, accepted: bool) -> None:
    """MySQL 9.7 with these rules makes the database xx; MariaDB does not."""
    context = DdlContext(server_version=version)
    found = rules("rewrite_db=xx->yy do_db=yy")
    assert found.accepts_statement("CREATE DATABASE xx", "yy", context) is accepted


@pytest.mark.parametrize("text", ["ignore_table=d.t", "wild_do_table=d.%", "do_db=d", "ignore_db=e"])
@pytest.mark.parametrize(
    "sql",
    ["'a string that does not end", "EXECUTE IMMEDIATE 'DROP DATABASE e'", "BEGIN NOT ATOMIC DROP TABLE e.t; END"],
)
def test_what_no_rule_can_judge_stops(text: str, sql: str) -> None:
    with pytest.raises(RplError) as caught:
        rules(text).accepts_statement(sql, "d", CONTEXT)
    assert caught.value.errno == 1064


@pytest.mark.parametrize("sql", ["UPDATE t, u SET t.a=1", "DELETE u FROM d.u JOIN t", "UPDATE u, rplctl.x SET x.a=1"])
def test_a_join_of_tables_that_the_rules_tell_apart_stops(sql: str) -> None:
    with pytest.raises(RplError, match="tell apart"):
        rules("ignore_table=d.t").accepts_statement(sql, "d", CONTEXT)


@pytest.mark.parametrize(
    ("text", "sql", "accepted"),
    [
        ("do_db=d", "CREATE DATABASE d", True),
        ("do_db=d", "CREATE DATABASE e", False),
        ("ignore_db=e", "DROP DATABASE IF EXISTS e", False),
        ("ignore_db=e", "ALTER DATABASE CHARACTER SET utf8mb4", True),  # the current one
        ("wild_do_table=d.%", "CREATE DATABASE d", True),
        ("wild_do_table=d.%", "CREATE DATABASE e", False),
        ("wild_do_table=d.t%", "CREATE DATABASE d", False),  # some tables of d are not all of d
        ("wild_ignore_table=e.%", "DROP DATABASE e", False),
        ("wild_ignore_table=e.t%", "DROP DATABASE e", True),
        ("do_table=d.t", "CREATE DATABASE e", True),
    ],
)
def test_a_database_is_made_and_dropped_by_name(text: str, sql: str, accepted: bool) -> None:
    assert rules(text).accepts_statement(sql, "d", CONTEXT) is accepted


@pytest.mark.parametrize(("version", "accepted"), [("9.7.0", True), ("10.11.19-MariaDB", False)])
def test_a_database_needs_both_kinds_of_rules_in_mariadb_only(version: str, accepted: bool) -> None:
    """MySQL asks the database rules alone, when there are any (tests/stories/test_rows_beside_native.py)."""
    context = DdlContext(server_version=version)
    for text in ("do_db=d wild_do_table=e.%", "ignore_db=e wild_do_table=e.%"):
        assert rules(text).accepts_statement("CREATE DATABASE d", "d", context) is accepted


def test_the_first_rewrite_counts_and_comes_before_the_rules() -> None:
    found = rules("rewrite_db=a->b,a->c,b->d do_db=b")
    assert [found.rewritten(name) for name in ("a", "b", "A", "")] == ["b", "d", "A", ""]
    assert found.accepts_rows(found.rewritten("a"), "t") and not found.accepts_rows(found.rewritten("b"), "t")


def test_a_filter_travels_to_tasks() -> None:
    found = rules("do_db=d wild_do_table=%.t_ rewrite_db=a->b")
    assert pickle.loads(pickle.dumps(found)) == found != ReplicationFilter()
    assert rules("") == ReplicationFilter()


def test_definitions_are_loaded_as_the_rows_will_arrive() -> None:
    dump = """CREATE DATABASE a CHARACTER SET latin1; USE a; CREATE TABLE p (id INT PRIMARY KEY);
        CREATE TABLE c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES p (id)); CREATE TABLE x (id INT);
        CREATE DATABASE z; USE z; CREATE TABLE p (id INT PRIMARY KEY);"""
    catalog = load_catalog(dump)
    assert filtered_catalog(catalog, ReplicationFilter()) == catalog
    found = filtered_catalog(catalog, rules("rewrite_db=a->b ignore_db=z ignore_table=b.x"))
    assert set(found.tables) == {("b", "p"), ("b", "c")}
    (key,) = found.tables["b", "c"].foreign_keys
    assert (key.ref_database, key.ref_table) == ("b", "p")
    assert (found.databases["b"].name, found.databases["b"].charset) == ("b", "latin1")


@pytest.mark.parametrize(
    "options", ["", "do_db=rplctl", "do_table=rplctl.slave_relay_log_info", "wild_do_table=rplctl.%"]
)
@pytest.mark.parametrize(
    ("sql", "database"),
    [
        ("CREATE DATABASE IF NOT EXISTS rplctl CHARACTER SET utf8mb4", ""),
        ("DROP DATABASE `rplctl`", "d"),
        ("CREATE TABLE rplctl.rplctl_version (version_num VARCHAR(32))", "d"),
        ("UPDATE rplctl.slave_relay_log_info SET Relay_log_pos=4", ""),
        ("UPDATE slave_relay_log_info SET Relay_log_pos=4", "rplctl"),
        ("RENAME TABLE rplctl.a TO rplctl.b", "d"),
        ("DROP TABLE IF EXISTS `RPLCTL`.`a` /* generated by server */", "d"),
        ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `rplctl`.`rplctl_stage`", "d"),
        ("DROP TEMPORARY TABLE IF EXISTS `rplctl`.`rplctl_stage` /* generated by server */", "d"),
    ],
)
def test_what_another_rplctl_keeps_on_the_source_is_left_out_whatever_the_rules(
    sql: str, database: str, options: str
) -> None:
    assert not rules(options).accepts_statement(sql, database, CONTEXT)
    assert not rules(options).accepts_rows("rplctl", "slave_relay_log_info")
    assert OWN_DATABASE == SCHEMA


def test_a_database_that_is_only_called_rplctl_goes_under_another_name() -> None:
    renamed = rules("rewrite_db=rplctl->app")
    assert renamed.accepts_rows(renamed.rewritten("rplctl"), "t")
    assert renamed.accepts_statement("INSERT INTO t VALUES (1)", renamed.rewritten("rplctl"), CONTEXT)
    assert rules("").accepts_statement("INSERT INTO d.t VALUES ('rplctl')", "d", CONTEXT)
    assert rules("").accepts_statement("DROP TEMPORARY TABLE IF EXISTS d.rplctl", "d", CONTEXT)
