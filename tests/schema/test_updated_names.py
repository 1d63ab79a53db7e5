"""Which tables a statement updates, read without understanding the rest of it."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import ANSI_QUOTES, DdlContext
from rplctl.schema.parse import parse_ddl
from rplctl.schema.statement import AlterTable, CreateTable, CreateTableLike, DropTable, RenameTable, TruncateTable
from rplctl.schema.updated_names import UpdatedNames, named_tables, updated_names
from tests.schema.recorded_ddl import recorded


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("", []),
        ("/* all */ CREATE /*!50100 TEMPORARY */ TABLE IF NOT EXISTS `a``b`.`t` (x INT)", [("a`b", "t")]),
        ("CREATE TABLE t SELECT * FROM u", [("d", "t")]),
        ("CREATE SEQUENCE s START WITH 3", [("d", "s")]),
        ("CREATE UNIQUE INDEX IF NOT EXISTS i USING BTREE ON e.t (a)", [("e", "t")]),
        ("DROP INDEX i ON t", [("d", "t")]),
        ("DROP TABLES IF EXISTS a, e.b , .c RESTRICT", [("d", "a"), ("e", "b"), ("d", "c")]),
        ("ALTER ONLINE IGNORE TABLE t WAIT 3 ADD x INT", [("d", "t")]),
        ("ALTER TABLE t ADD x INT, EXCHANGE PARTITION `p``0` WITH TABLE e.u", [("d", "t"), ("e", "u")]),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (9)", [("d", "t")]),
        ("RENAME TABLE IF EXISTS a NOWAIT TO e.b, c TO d", [("d", "a"), ("e", "b"), ("d", "c"), ("d", "d")]),
        ("RENAME USER a TO b", []),
        ("SET STATEMENT max_statement_time=1 FOR TRUNCATE t", [("d", "t")]),
        ("REPLACE DELAYED INTO t VALUES (1)", [("d", "t")]),
        ("DELETE QUICK FROM t WHERE a", [("d", "t")]),
        ("UPDATE t AS x SET a = 1", [("d", "t")]),
        ("UPDATE t x SET a = 1", [("d", "t")]),
        ("OPTIMIZE LOCAL TABLE a, b", [("d", "a"), ("d", "b")]),
        ("ANALYZE FORMAT=JSON SELECT 1", []),
        ("REVOKE SELECT (a), UPDATE ON TABLE t FROM u", [("d", "t")]),
        ("GRANT EXECUTE ON PROCEDURE p TO u", []),
        ("GRANT ALL ON *.* TO u", []),
        ("GRANT r TO u", []),
        ("GRANT PROXY ON 'dev'@'%' TO 'alice'@'%'", []),
        ("REVOKE PROXY ON dev FROM alice", []),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DROP TABLE t", []),
        ("XA COMMIT 'x'", []),
        ("WITH x AS (SELECT 1), y (a) AS (SELECT 2) DELETE FROM t", [("d", "t")]),
        ("ANALYZE FORMAT=JSON INSERT INTO t VALUES (1)", [("d", "t")]),
        ("DROP TABLE /*M!999999 a, */ b", [("d", "b")]),
        ("/*M!100000 DROP TABLE a; */ DROP TABLE b -- */", [("d", "a")]),
    ],
)
def test_the_names_of_a_statement(sql: str, tables: list[tuple[str, str]]) -> None:
    assert updated_names(sql, "d", DdlContext(server_version="10.11.19-MariaDB")) == UpdatedNames(tuple(tables))


@pytest.mark.parametrize(
    ("sql", "some_of"),
    [
        ("DELETE a FROM a JOIN b", "ab"),
        ("DELETE a.*, b FROM a AS x, b", "ab"),
        ("DELETE FROM a USING a JOIN b", "ab"),
        ("UPDATE a JOIN b SET x = 1", "ab"),
        ("UPDATE a, (b LEFT JOIN c USING (x)), (SELECT 1 FROM z) AS q SET x = 1", "abc"),
        ("WITH x AS (SELECT 1) UPDATE a, x SET a.b = 1", "ax"),
        ("SELECT f()", ""),
        ("DROP TRIGGER x", ""),
    ],
)
def test_what_only_the_server_could_tell_is_not_guessed(sql: str, some_of: str) -> None:
    assert updated_names(sql, "d", DdlContext()) == UpdatedNames(None, some_of=tuple(("d", name) for name in some_of))


@pytest.mark.parametrize(
    "sql",
    [
        "BEGIN NOT ATOMIC DROP DATABASE other; END",
        "IF 1 THEN DROP DATABASE other; END IF",
        "EXECUTE IMMEDIATE 'DROP DATABASE other'",
        "PREPARE s FROM 'DROP DATABASE other'",
        "SET STATEMENT x=1 FOR EXECUTE IMMEDIATE 'DROP DATABASE other'",
        "l: BEGIN NOT ATOMIC DROP DATABASE other; END",
        "`DROP` DATABASE other",
        "CALL other.p()",
        "BINLOG 'x'",
        "(SELECT 1)",
    ],
)
def test_what_may_hide_a_statement_has_no_names(sql: str) -> None:
    with pytest.raises(RplError, match="are unknown") as caught:
        updated_names(sql, "d", DdlContext(server_version="10.11.19-MariaDB"))
    assert caught.value.errno == 1064


def test_names_are_read_in_the_charset_of_the_statement() -> None:
    text = "DROP TABLE `表a` /* ' */, t".encode("cp932") + b" COMMENT '\xff'"  # a literal that is no text in it
    found = updated_names(text.decode("latin-1"), "d", DdlContext(sql_mode=ANSI_QUOTES), "sjis")
    assert found.tables == (("d", "表a"), ("d", "t"))


def test_quotes_are_names_under_ansi_quotes() -> None:
    assert updated_names('DROP TABLE "t"', "d", DdlContext(sql_mode=ANSI_QUOTES)).tables == (("d", "t"),)


@pytest.mark.parametrize("sql", ["DROP TABLE", "CREATE INDEX i", "ALTER TABLE 'x", "RENAME TABLE a"])
def test_half_a_statement_is_refused(sql: str) -> None:
    with pytest.raises(RplError):
        updated_names(sql, "d", DdlContext())


@pytest.mark.parametrize("name", ["ddl_mariadb.sql", "ddl_mysql.sql"])
def test_recorded_statements_have_the_names_that_the_parser_finds(name: str) -> None:
    compared = 0
    for sql, database, context in recorded(name):
        for action in parse_ddl(sql, database, context):
            match action:
                case CreateTable():
                    expected = [(action.model.database, action.model.name)]
                case CreateTableLike() | TruncateTable() | AlterTable():
                    expected = [action.name]
                case DropTable():
                    expected = list(action.names)
                case RenameTable():
                    expected = [table for pair in action.pairs for table in pair]
                case _:
                    continue
            assert updated_names(sql, database, context).tables == tuple(expected), sql
            compared += 1
    assert compared > 50


@pytest.mark.parametrize(
    ("sql", "updated", "referred"),
    [
        ("CREATE TABLE a LIKE e.t", ["d.a"], ["e.t"]),
        ("CREATE TABLE a (LIKE t)", ["d.a"], ["d.t"]),
        ("CREATE TABLE a (b INT REFERENCES t (id), CHECK (c LIKE '%'))", ["d.a"], ["d.t"]),
        ("ALTER TABLE a ADD FOREIGN KEY (b) REFERENCES `e`.t (id), RENAME COLUMN b TO c", ["d.a"], ["e.t"]),
        ("ALTER TABLE a ADD b INT, RENAME TO e.c", ["d.a", "e.c"], []),
        ("ALTER TABLE a RENAME c", ["d.a", "d.c"], []),
        ("RENAME TABLE t TO _t_del, _t_gho TO t", ["d.t", "d._t_del", "d._t_gho", "d.t"], []),
        ("DROP TABLE a, t", ["d.a", "d.t"], []),
        ("INSERT INTO a SELECT * FROM t WHERE b LIKE c", [], []),
        ("", [], []),
    ],
)
def test_what_ddl_refers_to(sql: str, updated: list[str], referred: list[str]) -> None:
    assert named_tables(sql, "d", DdlContext()) == tuple(
        tuple(tuple(name.split(".")) for name in names) for names in (updated, referred)
    )
