"""What a server is sent of a source's statement, and which answers are the ones the source had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.errors import DifferentErrors, RplError, TargetError
from rplctl.event.query import Query, QueryContext
from rplctl.schema.context import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, DdlContext
from rplctl.sql_text import Sql
from rplctl.target.mysql.session import ServerKind
from rplctl.target.mysql.statement import (
    as_executed,
    changes_only_rows,
    drop_with_if_exists,
    judge,
    needs_autocommit,
    text_executed,
    text_of,
    with_near_collation,
)

MYSQL, MARIADB = DdlContext(server_version="9.1.0"), DdlContext(server_version="10.11.19-MariaDB")
KINDS = {MYSQL: ServerKind(False, 90100), MARIADB: ServerKind(True, 101119)}


def query(sql: bytes, error: int = 0, mode: int = 0, collation: int | None = None) -> Query:
    session = QueryContext(flags2=0, sql_mode=mode, client_collation=collation)
    return Query(
        timestamp=1_700_000_000,
        thread_id=7,
        execution_time=0,
        error_code=error,
        database="shop",
        sql_bytes=sql,
        context=session,
        uses_temporary_tables=False,
        suppress_use=False,
    )


@pytest.mark.parametrize(
    ("source", "target", "sql", "sent"),
    [
        (MYSQL, MARIADB, b"SELECT 1 /* a */ -- b", b"SELECT 1 /* a */ -- b"),
        (MYSQL, MARIADB, b"SELECT 1 /*!80000 +1 */", b"SELECT 1          +1   "),
        (MYSQL, MARIADB, b"SELECT 1 /*M!100000 +1 */", b"SELECT 1                 "),
        (MARIADB, MYSQL, b"SELECT 1 /*M!100000 +1 */", b"SELECT 1            +1   "),
        (MARIADB, MYSQL, b"SELECT 1 /*!80000 +1 */+2", b"SELECT 1               +2"),
        (MARIADB, MYSQL, b"SELECT /*+ x */ /* y */ 1", b"SELECT          /* y */ 1"),
        (MYSQL, MYSQL, b"SELECT /*+ x */ '/*!' /*!*/", b"SELECT /*+ x */ '/*!'      "),
        (MYSQL, MYSQL, b"SELECT 1 /*M!100000 +1 */", b"SELECT 1                 "),
        (MARIADB, MARIADB, b"SELECT 1 /*! +1 /* +1 */ */", b"SELECT 1     +1 /* +1 */   "),
    ],
)
def test_nothing_is_left_for_the_target_to_judge(
    source: DdlContext, target: DdlContext, sql: bytes, sent: bytes
) -> None:
    assert as_executed(query(sql), source, KINDS[target]).sql_bytes.rstrip() == sent.rstrip()


def test_bytes_are_read_in_the_charset_and_the_mode_of_the_event() -> None:
    gbk = b"SELECT '\x81\x5c' /*M!1 '*/ + 1"
    assert as_executed(query(gbk, collation=28), MYSQL, KINDS[MARIADB]).sql_bytes.split() == gbk.split()[:2] + [
        b"+",
        b"1",
    ]
    with pytest.raises(RplError) as caught:
        as_executed(query("SELECT 'ü\\' /*M! x */".encode()), MYSQL, KINDS[MARIADB])
    assert caught.value.errno == 1064 and "'ü\\' /*M!" in caught.value.message
    modes = replace(MYSQL, sql_mode=NO_BACKSLASH_ESCAPES)
    found = as_executed(query(b"SELECT '\\' /*M! x */", mode=NO_BACKSLASH_ESCAPES), modes, KINDS[MARIADB])
    assert found.sql_bytes.rstrip() == b"SELECT '\\'"


def test_a_hint_that_sets_variables_is_no_comment() -> None:
    sql = b"INSERT /*+ SET_VAR(sql_mode='') */ INTO t VALUES ('too long')"
    assert as_executed(query(sql), MYSQL, KINDS[MYSQL]).sql_bytes == sql
    with pytest.raises(RplError, match="SET_VAR") as caught:
        as_executed(query(sql), MYSQL, KINDS[MARIADB])
    assert caught.value.errno == 1235


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        (b"ALTER EVENT `e` ON SCHEDULE AT '2030\\' ENABLE DO SELECT 'DO'", NO_BACKSLASH_ESCAPES),
        (b'ALTER DEFINER="a"@"EVENT" EVENT "e" ENABLE', ANSI_QUOTES),
        (b"/**/ALTER EVENT e ENABLE /* */", 0),
        (b"/*M*/ALTER EVENT e ENABLE", 0),
        (b"# c\nALTER EVENT d.e RENAME TO enable.f ENABLE", 0),
        (b"ALTER EVENT do ENABLE", 0),
        (b"ALTER DEFINER=TABLE@localhost EVENT e/*'*/ENABLE/*'*/", 0),
        (b"--\tx\nALTER EVENT e DISABLE ON REPLICA ENABLE COMMENT 'x'", 0),
    ],
)
def test_no_event_stays_enabled_however_it_is_written(sql: bytes, mode: int) -> None:
    sent: bytes = text_of(query(sql, mode=mode))
    head, _, rest = sent.partition(b"\nDISABLE ON SLAVE ")
    assert rest == b"" or rest.startswith((b"DO", b"COMMENT")), sent
    assert b"ENABLE" not in head.replace(b"enable.f", b"") and b"DISABLE ON SLAVE" in sent


@pytest.mark.parametrize(
    "sql", [b"CREATE DEFINER=", b"CREATE DEFINER=a@", b"ALTER EVENT", b"CREATE TABLE event (a INT)"]
)
def test_what_only_begins_like_an_event_is_sent_as_it_is(sql: bytes) -> None:
    assert text_of(query(sql + b" -- EVENT")) == sql + b" -- EVENT"


@pytest.mark.parametrize(
    ("sql", "only_rows"),
    [
        (b"insert t values (1)", True),
        (b" /* a */ -- b\n#c\nUPDATE t SET a=1", True),
        (b"SET STATEMENT x=1 FOR ALTER TABLE t ADD b INT", False),
        (b"SET STATEMENT x=' FOR ALTER ' FOR INSERT t VALUES (1)", True),
        (b"SET PASSWORD FOR a = 'x'", False),
        (b"SET @a = 1", True),
        (b"/*!50000 INSERT t VALUES (1)*/", False),
        (b"CREATE TABLE t (a INT)", False),
        (b"INSERTED", False),
        (b"TRUNCATE t", False),
    ],
)
def test_statements_that_leave_every_definition_as_it_is(sql: bytes, only_rows: bool) -> None:
    assert changes_only_rows(sql) is only_rows


@pytest.mark.parametrize("sql", [b"/*!50000 INSERT t VALUES (1)*/", b"/*!99999 ALTER */ UPDATE t SET a = 1"])
def test_a_statement_in_an_executable_comment_is_judged_as_the_source_executed_it(sql: bytes) -> None:
    assert changes_only_rows(text_executed(query(sql), MARIADB))


def test_statements_that_need_autocommit() -> None:
    assert needs_autocommit(b"ALTER ONLINE TABLE t\nEXCHANGE PARTITION p WITH TABLE u")
    assert needs_autocommit(b"ALTER TABLE t ADD a INT,\nADD SYSTEM VERSIONING")
    assert not needs_autocommit(b"ALTER TABLE t COMMENT 'WITH SYSTEM VERSIONING, EXCHANGE'")
    assert not needs_autocommit(b"ALTER TABLE t ADD exchanged INT") and not needs_autocommit(b"DROP TABLE exchange")


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        (b"CREATE TABLE t (a INT) START TRANSACTION", b"CREATE TABLE t (a INT)"),
        (
            b"CREATE EVENT e ON SCHEDULE EVERY 1 DAY ENABLE DO DELETE FROM t",
            b"CREATE EVENT e ON SCHEDULE EVERY 1 DAY\nDISABLE ON SLAVE DO DELETE FROM t",
        ),
        (
            b"CREATE DEFINER=`a`@`b` EVENT IF NOT EXISTS `d`.`e` ON SCHEDULE AT '2030 DO' COMMENT 'ENABLE' DO SET @a=1",
            b"CREATE DEFINER=`a`@`b` EVENT IF NOT EXISTS `d`.`e` ON SCHEDULE AT '2030 DO'"
            b"\nDISABLE ON SLAVE COMMENT 'ENABLE' DO SET @a=1",
        ),
        (b"ALTER EVENT e ENABLE", b"ALTER EVENT e\nDISABLE ON SLAVE "),
        (b"DROP EVENT e", b"DROP EVENT e"),
        (b"INSERT t VALUES ('CREATE EVENT e DO x')", b"INSERT t VALUES ('CREATE EVENT e DO x')"),
    ],
)
def test_what_is_sent(sql: bytes, sent: bytes) -> None:
    assert text_of(query(sql)) == sent


@pytest.mark.parametrize(
    ("sql", "error", "wanted", "sent"),
    [
        (b"DROP TABLE a, b", 1051, False, b"DROP TABLE IF EXISTS a, b"),
        (b"/* x */DROP TEMPORARY TABLES a", 0, True, b"/* x */DROP TEMPORARY TABLES IF EXISTS a"),
        (b"DROP VIEW v", 4092, False, b"DROP VIEW IF EXISTS v"),
        (b"DROP VIEW v", 0, True, None),
        (b"DROP TEMPORARY TABLE a", 0, False, b"DROP TEMPORARY TABLE IF EXISTS a"),
        (b"DROP TABLE a", 0, False, None),
        (b"DROP TABLE IF EXISTS a", 1051, True, None),
        (b"DROP DATABASE d", 1051, True, None),
    ],
)
def test_a_list_of_which_a_part_is_gone(sql: bytes, error: int, wanted: bool, sent: bytes | None) -> None:
    assert drop_with_if_exists(query(sql, error), wanted=wanted) == sent


def test_an_error_that_the_source_had_too_is_none() -> None:
    failed = query(b"DROP TABLE a", 1051)
    judge(failed, TargetError("Unknown table", errno=1051))
    judge(replace(failed, error_code=0), None)
    with pytest.raises(RplError, match=r"different errors.*source: 1051; on the replica: no error") as different:
        judge(failed, None)
    assert different.value.errno == 3002
    assert isinstance(different.value, DifferentErrors) and different.value.numbers == {1051}
    with pytest.raises(RplError, match=r"source: 1051; on the replica: 'gone' \(2013\)"):
        judge(failed, TargetError("gone", errno=2013))
    with pytest.raises(TargetError, match="Error 'gone' on query") as alone:
        judge(query(b"DROP TABLE a"), TargetError("gone", errno=2013, transient=True))
    assert (alone.value.errno, alone.value.transient) == (2013, True)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("utf8mb4_0900_ai_ci", "utf8mb4_uca1400_nopad_ai_ci"),
        ("utf8mb4_0900_bin", "utf8mb4_nopad_bin"),
        ("utf8mb4_uca1400_as_cs", "utf8mb4_0900_as_cs"),
        ("utf8mb4_nopad_bin", "utf8mb4_0900_bin"),
        ("utf8mb4_ja_0900_as_cs_ks", "utf8mb4_uca1400_nopad_as_cs"),
        ("latin1_spanish_ci", "latin1_spanish_ci"),
    ],
)
def test_a_collation_of_the_other_vendor_becomes_the_one_of_the_same_rules(name: str, near: str) -> None:
    text = Sql(f"CREATE TABLE t (a TEXT COLLATE {name} COMMENT '{name}') COLLATE={name}")
    wanted = f"CREATE TABLE t (a TEXT COLLATE {near} COMMENT '{name}') COLLATE={near}"
    assert with_near_collation(text, f"(1273, \"Unknown collation: '{name}'\")") == wanted
    assert with_near_collation(text, "(1064, 'syntax')") == text


@pytest.mark.parametrize("errno", [1064, 1115, 1128, 1235, 1273, 1286, 1305])
def test_a_text_that_the_target_refuses_is_not_tried_again(errno: int) -> None:
    with pytest.raises(TargetError) as caught:
        judge(query(b"CREATE TABLE t (g POINT SRID 4326)"), TargetError("no", errno=errno))
    assert "by hand" in caught.value.hint and "rplctl skip --yes; rplctl start" in caught.value.hint
    assert "whole transaction" in caught.value.hint
