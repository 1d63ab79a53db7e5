"""Statements of one vendor on a server of the other compare texts as they did on their source."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rplctl.errors import TargetError
from rplctl.event.query import Query, QueryContext
from rplctl.schema.context import DdlContext
from rplctl.target.mysql.collations import collation_of_other_vendor, near_collation
from rplctl.target.mysql.session import ServerKind
from rplctl.target.mysql.translation import translated
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.servers import MariadbServer, MysqlServer

UCA, BYTES = "utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_nopad_bin"
MYSQL, MARIADB = DdlContext(server_version="9.7.0"), DdlContext(server_version="10.11.19-MariaDB")
LETTERS = [chr(code) for code in (*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x370, 0x530))]
WORDS = [*LETTERS, "a ", "A ", "ae", "ss", "SS", "ch", "\U0001f600", "\U0001f601"]


def end_of(folder: Path, source: MariadbServer, target: MariadbServer, *statements: str) -> Instance:
    """What the statements of one session make of empty servers."""
    for server in (source, target):
        server.sql("DROP DATABASE IF EXISTS w; DROP DATABASE IF EXISTS v; DROP DATABASE IF EXISTS rplctl")
    target.sql("CREATE DATABASE rplctl")
    source.sql("FLUSH BINARY LOGS; " + "; ".join(statements))
    log = groups_of(source.binlog_files[-1])
    instance = Instance(folder, log, target=target.url())
    try:
        instance.apply(log)
    finally:
        instance.applier.close()
        instance.target.close()
    return instance


def collations(server: MariadbServer) -> dict[str, str]:
    """The collation of each column `s` of the database w, by table."""
    where = "table_schema='w' AND column_name LIKE 's%'"
    sql = f"SELECT table_name, column_name, collation_name FROM information_schema.columns WHERE {where}"
    return {f"{table}.{column}": name for table, column, name in server.sql(sql)}


@pytest.mark.slow
def test_tables_of_mysql_compare_alike_on_mariadb(mysql: MysqlServer, mariadb: MariadbServer, tmp_path: Path) -> None:
    end_of(
        tmp_path,
        mysql,
        mariadb,
        "CREATE DATABASE w",
        "CREATE TABLE w.plain (s VARCHAR(10) PRIMARY KEY)",
        "CREATE TABLE w.named (s VARCHAR(10), s2 VARCHAR(10) COLLATE utf8mb4_0900_bin) CHARSET=utf8mb4",
        "INSERT INTO w.plain VALUES ('a'), ('a '), ('\U0001f600'), ('\U0001f601')",
        "SET collation_server=utf8mb4_bin; CREATE DATABASE v; CREATE TABLE v.t (s VARCHAR(10) PRIMARY KEY)",
        "INSERT INTO v.t VALUES ('a'), ('A')",
        "CREATE TABLE w.said (s INT); SET binlog_format=STATEMENT",
        "SET collation_connection=utf8mb4_bin; INSERT INTO w.said SELECT 'A'='a'",
        "SET @a='a', @b='A'; INSERT INTO w.said SELECT @a=@b",
        "SET collation_connection=utf8mb4_0900_ai_ci; INSERT INTO w.said SELECT 'a'='a '",
    )
    expected = {"plain.s": UCA, "named.s": UCA, "named.s2": BYTES, "said.s": None}
    assert collations(mariadb) == expected
    for table in ("w.plain", "v.t"):
        assert sorted(mariadb.sql(f"SELECT s FROM {table}")) == sorted(mysql.sql(f"SELECT s FROM {table}"))
    assert mariadb.sql("SELECT s FROM w.said") == mysql.sql("SELECT s FROM w.said") == [(0,), (0,), (0,)]


@pytest.mark.slow
def test_tables_of_mariadb_compare_alike_on_mysql(mysql: MysqlServer, mariadb: MariadbServer, tmp_path: Path) -> None:
    end_of(
        tmp_path,
        mariadb,
        mysql,
        "SET collation_server=utf8mb4_unicode_ci; CREATE DATABASE w",
        "CREATE TABLE w.plain (s VARCHAR(10)); CREATE TABLE w.named (s VARCHAR(10)) CHARSET=utf8mb4",
        "SET NAMES utf8mb4 COLLATE utf8mb4_bin, binlog_format=STATEMENT; CREATE TABLE w.said (s INT)",
        "INSERT INTO w.said SELECT 'A'='a'",
    )
    assert collations(mysql) == collations(mariadb)
    assert collations(mysql)["named.s"] == "utf8mb4_general_ci"
    assert mysql.sql("SELECT s FROM w.said") == mariadb.sql("SELECT s FROM w.said") == [(0,)]


@pytest.mark.slow
def test_a_collation_that_the_target_lacks_stops(mysql: MysqlServer, mariadb: MariadbServer, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="does not have: #303") as caught:
        end_of(tmp_path, mysql, mariadb, "SET collation_server=utf8mb4_ja_0900_as_cs; CREATE DATABASE w")
    assert caught.value.errno == 1273 and "rplctl skip" in (caught.value.hint or "")
    assert mariadb.sql("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name='w'") == [(0,)]


def test_a_number_of_both_vendors_names_the_same_rules() -> None:
    names = {45: "utf8mb4_general_ci", 245: "utf8mb4_croatian_mysql561_ci"}
    assert collation_of_other_vendor(245, lambda number: names.get(number, "")) == "utf8mb4_croatian_mysql561_ci"
    assert collation_of_other_vendor(255, lambda number: names.get(number, "")) == UCA
    every_letter = "utf8mb4_uca1400_nopad_as_cs"  # MariaDB's icelandic treats Ǽ in another way
    assert near_collation("utf8mb4_is_0900_ai_ci") == every_letter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (s CHAR(1)) CHARSET=utf8mb4", f"CREATE TABLE t (s CHAR(1)) CHARSET=utf8mb4 COLLATE {UCA}"),
        ("CREATE DATABASE d CHARACTER SET 'utf8mb4'", f"CREATE DATABASE d CHARACTER SET 'utf8mb4' COLLATE {UCA}"),
        (
            "CREATE TABLE t (s TEXT CHARACTER SET utf8mb4 NOT NULL, u TEXT CHARSET utf8mb4 COLLATE utf8mb4_bin)",
            f"CREATE TABLE t (s TEXT CHARACTER SET utf8mb4 COLLATE {UCA} NOT NULL, u TEXT CHARSET utf8mb4 "
            "COLLATE utf8mb4_bin)",
        ),
        (
            "CREATE TABLE t (s TEXT) CHARSET utf8mb4, COLLATE=utf8mb4_0900_ai_ci",
            f"CREATE TABLE t (s TEXT) CHARSET utf8mb4, COLLATE={UCA}",
        ),
        (
            "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4, ADD s TEXT COLLATE `utf8mb4_0900_as_cs`",
            f"ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE {UCA}, ADD s TEXT COLLATE "
            "utf8mb4_uca1400_nopad_as_cs",
        ),
        ("CREATE TABLE t (s TEXT CHARSET latin1 DEFAULT 'CHARSET utf8mb4')", ""),
        ("CREATE TABLE t (s TEXT, g TEXT AS (CONVERT(s, CHAR CHARACTER SET utf8mb4)))", ""),
        ("CREATE VIEW v AS SELECT 'a' COLLATE utf8mb4_0900_ai_ci", ""),
        (
            "CREATE TABLE t (s TEXT COLLATE utf8mb4_ja_0900_as_cs)",
            "CREATE TABLE t (s TEXT COLLATE utf8mb4_uca1400_nopad_as_cs)",
        ),
    ],
)
def test_definitions_name_what_the_source_left_to_its_default(text: str, expected: str) -> None:
    assert on_mariadb(text, MYSQL) == (expected or text)
    assert on_mariadb("CREATE DATABASE d CHARSET utf8mb4", MARIADB).endswith("utf8mb4")


def on_mariadb(text: str, source: DdlContext) -> str:
    """The text that a MariaDB 11.8 gets of a statement whose session has MySQL's default of utf8mb4."""
    session = QueryContext(flags2=0, sql_mode=0, default_collation_for_utf8mb4=255)
    query = Query(
        timestamp=1_700_000_000,
        thread_id=7,
        execution_time=0,
        error_code=0,
        database="d",
        sql_bytes=text.encode(),
        context=session,
        uses_temporary_tables=False,
        suppress_use=False,
    )
    names = dict(enumerate((UCA, "utf8mb4_uca1400_nopad_as_cs", "utf8mb4_bin")))
    (made,) = translated(query, source, ServerKind(True, 110800), lambda *_: None, lambda: names).queries
    return made.sql_bytes.decode()


def equal_words(server: MariadbServer, collation: str) -> set[tuple[str, ...]]:
    """The words that the server takes for the same ones."""
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET group_concat_max_len=1000000")
        cursor.execute("CREATE TEMPORARY TABLE v.words (id INT, s VARCHAR(10) CHARSET utf8mb4)")
        cursor.executemany("INSERT INTO v.words VALUES (%s, %s)", list(enumerate(WORDS)))
        cursor.execute(f"SELECT GROUP_CONCAT(id ORDER BY id) FROM v.words GROUP BY s COLLATE {collation}")
        return {tuple(WORDS[int(number)] for number in row[0].split(",")) for row in cursor.fetchall()}


@pytest.mark.long("It shows that the pairs of collations are right, which no change of ours alters.")
def test_near_collations_find_the_same_words_equal(mysql: MysqlServer, mariadb: MariadbServer) -> None:
    for server in (mysql, mariadb):
        server.sql("CREATE DATABASE IF NOT EXISTS v")
    for name in ("0900_ai_ci", "0900_as_ci", "0900_as_cs", "0900_bin"):
        ours = near_collation(f"utf8mb4_{name}")
        assert equal_words(mysql, f"utf8mb4_{name}") == equal_words(mariadb, ours)


@pytest.mark.long("It shows that numbers mean the same, which no change of ours alters.")
def test_numbers_that_both_vendors_have_name_the_same_collation(mysql: MysqlServer, mariadb: MariadbServer) -> None:
    ids = "SELECT id, full_collation_name FROM information_schema.collation_character_set_applicability"
    theirs: dict[int, str] = dict(mariadb.sql(ids))
    for number, name in mysql.sql("SELECT id, collation_name FROM information_schema.collations"):
        if number in theirs:
            is_renamed = name.endswith("_croatian_ci") and name.startswith(("utf", "ucs"))
            assert theirs[number] == (name.replace("_ci", "_mysql561_ci") if is_renamed else name)
