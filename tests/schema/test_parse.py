"""Statements as servers, applications and migration tools write them; what is not understood must stop (D10, D12)."""

from __future__ import annotations

import contextlib

import pytest
import sqlglot
from hypothesis import given, settings, strategies as st
from sqlglot import exp

from rplctl.errors import RplError
from rplctl.schema.alter_clause import parse_alter_table
from rplctl.schema.context import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ORACLE, DdlContext
from rplctl.schema.model import Column, KeyPart, TableModel
from rplctl.schema.parse import parse_create_table, parse_ddl
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.schema.statement import (
    AddColumn,
    AddKey,
    AlterDatabase,
    AlterTable,
    CreateTable,
    CreateTableLike,
    DropConstraint,
    DropTable,
    NoOperation,
    ObjectKind,
    RenameTable,
    TruncateTable,
    Unreplicated,
)
from rplctl.schema.token_stream import TokenStream
from tests.schema.recorded_ddl import recorded

MYSQL, MARIADB = DdlContext(server_version="9.7.4"), DdlContext(server_version="10.11.19-MariaDB")


def create(body: str, context: DdlContext = MYSQL) -> TableModel:
    return parse_create_table(f"CREATE TABLE t {body}", "d", context)


@pytest.mark.parametrize("name", ["ddl_mariadb.sql", "ddl_mysql.sql"])
def test_every_recorded_statement_is_understood(name: str) -> None:
    for sql, database, context in recorded(name):
        assert parse_ddl(sql, database, context), sql


@pytest.mark.parametrize("name", ["ddl_mariadb.sql", "ddl_mysql.sql"])
def test_a_second_parser_sees_the_same_columns(name: str) -> None:
    """sqlglot as an independent witness, where it understands the statement at all."""
    compared = 0
    for sql, database, context in recorded(name):
        if not sql.startswith("CREATE TABLE") or "PARTITION" in sql:
            continue
        try:
            tree = sqlglot.parse_one(sql, dialect="mysql")
        except sqlglot.errors.ParseError:
            continue
        if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
            seen = [item.name for item in tree.this.expressions if isinstance(item, exp.ColumnDef)]
            actions = parse_ddl(sql, database, context)
            assert isinstance(actions[0], CreateTable)
            assert [column.name for column in actions[0].model.columns] == seen
            compared += 1
    assert compared > 200


@pytest.mark.parametrize(
    ("declared", "kind", "length", "scale"),
    [
        ("INTEGER", "int", None, None),
        ("INT8(5)", "bigint", 5, None),
        ("BOOL", "tinyint", 1, None),
        ("DEC", "decimal", 10, 0),
        ("NUMERIC(5,2)", "decimal", 5, 2),
        ("DOUBLE PRECISION", "double", None, None),
        ("REAL", "double", None, None),
        ("FLOAT(24)", "float", None, None),
        ("FLOAT(25)", "double", None, None),
        ("FLOAT(7,3)", "float", 7, 3),
        ("YEAR(4)", "year", None, None),
        ("CHAR", "char", 1, None),
        ("NATIONAL VARCHAR(9)", "varchar", 9, None),
        ("NCHAR VARYING(9)", "varchar", 9, None),
        ("CHARACTER VARYING(9)", "varchar", 9, None),
        ("LONG", "mediumtext", None, None),
        ("LONG VARBINARY", "mediumblob", None, None),
        ("CHAR(3) BYTE", "binary", 3, None),
        ("VARCHAR(5) CHARACTER SET binary", "varbinary", 5, None),
        ("TEXT CHARACTER SET binary", "blob", None, None),
        ("BLOB(70000)", "mediumblob", None, None),
        ("BIT", "bit", 1, None),
        ("DATETIME(6)", "datetime", 6, None),
        ("TIME(0)", "time", None, None),
        ("GEOMCOLLECTION", "geometrycollection", None, None),
        ("POINT NOT NULL SRID 4326", "point", None, None),
        ("VECTOR(3)", "vector", 3, None),
    ],
)
def test_every_spelling_of_a_type_is_the_servers_own(
    declared: str, kind: str, length: int | None, scale: int | None
) -> None:
    column = create(f"(c {declared})").columns[0]
    assert (column.type, column.length, column.scale) == (kind, length, scale)


def test_labels_keep_quotes_commas_and_escapes() -> None:
    assert create(r"(c ENUM('it''s','a,b','\\','x ', 'q\'r', '😀'))").columns[0].labels == (
        "it's",
        "a,b",
        "\\",
        "x",
        "q'r",
        "😀",
    )
    plain = DdlContext(sql_mode=NO_BACKSLASH_ESCAPES)
    assert create(r"(c ENUM('a\','b'))", plain).columns[0].labels == ("a\\", "b")


def test_names_may_be_quoted_qualified_and_in_any_script() -> None:
    (action,) = parse_ddl(
        "CREATE TABLE `d b`.`we``ird na.me ✓` (`se lect` INT, `ключ` INT, 1st INT, $x INT, key2 INT)", "", MYSQL
    )
    assert isinstance(action, CreateTable)
    assert (action.model.database, action.model.name) == ("d b", "we`ird na.me ✓")
    assert [c.name for c in action.model.columns] == ["se lect", "ключ", "1st", "$x", "key2"]
    ansi = DdlContext(sql_mode=ANSI_QUOTES)
    assert parse_create_table('CREATE TABLE "a""b" ("c" INT DEFAULT 5)', "d", ansi).name == 'a"b'
    assert parse_ddl('CREATE TABLE t (c VARCHAR(9) DEFAULT "x")', "d", MYSQL) != []
    folded = DdlContext(lower_case_table_names=1)
    assert parse_ddl("DROP TABLE Db.T", "", folded) == [DropTable((("db", "t"),))]


def test_versioned_comments_are_what_the_source_executed() -> None:
    gipk = (
        "(`my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */, `a` int, "
        "PRIMARY KEY (`my_row_id`))"
    )
    assert create(gipk).columns[0].invisible
    assert not create(gipk, MARIADB).columns[0].invisible
    assert create("(a INT) /*M!100100 WITH SYSTEM VERSIONING */", MARIADB).system_versioned
    assert not create("(a INT) /*M!100100 WITH SYSTEM VERSIONING */").system_versioned
    assert parse_ddl("/*!50000 CREATE TABLE c (a INT) */ -- end", "d", MYSQL)
    assert parse_ddl("/* only */ -- comments\n", "d", MYSQL) == []
    assert create("(a VARCHAR(9) DEFAULT '/*!80000 x */')").columns[0].default == "'/*!80000 x */'"


def test_keys_of_every_kind_keep_their_parts() -> None:
    model = create(
        "(a INT, b TEXT, j JSON, p POINT NOT NULL, PRIMARY KEY USING BTREE (a DESC), "
        "UNIQUE u (b(10)) COMMENT 'x', KEY (a), KEY (a), FULLTEXT ft (b) WITH PARSER ngram, SPATIAL INDEX (p), "
        " KEY f ((CAST(j->'$.a' AS UNSIGNED ARRAY))))"
    )
    found = [(key.name, key.kind) for key in model.keys]
    assert found == [
        ("PRIMARY", "primary"),
        ("u", "unique"),
        ("a", "index"),
        ("a_2", "index"),
        ("ft", "fulltext"),
        ("p", "spatial"),
        ("f", "index"),
    ]
    assert model.keys[0].parts == (KeyPart("a", descending=True),)
    assert model.keys[1].parts == (KeyPart("b", 10),)
    assert model.keys[6].has_expression
    assert not model.columns[0].nullable


def test_mariadb_json_is_longtext_with_a_check() -> None:
    model = create("(j JSON)", MARIADB)
    assert model.columns[0] == Column(name="j", type="longtext", charset="utf8mb4", collation="utf8mb4_bin")
    assert model.checks[0].expression == "json_valid(`j`)"
    assert create("(j JSON)").columns[0].type == "json"


def test_sysbench_and_dump_options_are_read_over() -> None:
    model = create(
        "(id INT) /*! ENGINE = innodb */ AUTO_INCREMENT=5 DEFAULT CHARSET=latin1 "
        "ROW_FORMAT=DYNAMIC, STATS_PERSISTENT=1 "
        "DATA DIRECTORY='/x' UNION=(a,b) `page_compressed`=1 COMMENT='c'"
    )
    assert (model.engine, model.charset, model.comment) == ("innodb", "latin1", "c")


@pytest.mark.parametrize(
    "clause",
    [
        "ADD COLUMN IF NOT EXISTS a INT FIRST",
        "DROP COLUMN IF EXISTS a CASCADE",
        "CHANGE COLUMN a b INT AFTER c",
        "MODIFY a VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'x' COMMENT 'y'",
        "RENAME COLUMN a TO b",
        "ADD (a INT, b INT UNIQUE, KEY (a))",
        "ADD CONSTRAINT PRIMARY KEY (a)",
        "ADD CONSTRAINT u UNIQUE KEY (a)",
        "ADD CONSTRAINT c CHECK (a > (1+2)) NOT ENFORCED",
        "ADD CHECK (a > 0)",
        "ADD CONSTRAINT f FOREIGN KEY (a, b) REFERENCES x.y (c, d) MATCH FULL ON UPDATE SET NULL ON DELETE NO ACTION",
        "DROP PRIMARY KEY, DROP FOREIGN KEY f, DROP CHECK c, DROP CONSTRAINT d, DROP INDEX i, DROP KEY k",
        "ALTER a SET DEFAULT (UUID()), ALTER COLUMN b DROP DEFAULT, ALTER c SET INVISIBLE, ALTER INDEX i INVISIBLE",
        "RENAME INDEX a TO b, RENAME TO x.y",
        "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "ENGINE=InnoDB, COMMENT='x' AUTO_INCREMENT=9, ROW_FORMAT COMPRESSED, DEFAULT CHARACTER SET = utf8mb3",
        "ADD a INT, ALGORITHM=INSTANT, LOCK=NONE",
        "WAIT 5 ADD a INT",
        "NOWAIT ADD KEY (a)",
        "FORCE",
        "DISABLE KEYS",
        "ADD PARTITION (PARTITION p VALUES LESS THAN (10) ENGINE = InnoDB)",
        "DROP PARTITION p, q",
        "ORDER BY a, b DESC",
        "REORGANIZE PARTITION p INTO (PARTITION a VALUES IN (1), PARTITION b VALUES IN (2))",
        "REMOVE PARTITIONING",
        "PARTITION BY LINEAR KEY ALGORITHM=2 (a) PARTITIONS 4",
        "ADD SYSTEM VERSIONING",
        "ANALYZE PARTITION ALL",
        "PARTITION BY RANGE (a) SUBPARTITION BY HASH (b) SUBPARTITIONS 2 (PARTITION p VALUES LESS THAN MAXVALUE)",
        "ADD FULLTEXT INDEX f (a) WITH PARSER ngram",
        "ADD VECTOR INDEX v (a) M=6 DISTANCE=cosine",
        "ADD INDEX ((lower(a)))",
        "ADD a TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6) AFTER b",
        "ADD a INT GENERATED ALWAYS AS (b * (2 + 1)) STORED NOT NULL",
        "ADD a VARCHAR(9) AS (x) PERSISTENT UNIQUE KEY",
    ],
)
def test_clauses_of_alter_table_are_read_to_their_end(clause: str) -> None:
    tokens = TokenStream(f"t {clause}", MYSQL)
    assert parse_alter_table(tokens, "d").name == ("d", "t")
    assert tokens.at_end


def test_ghost_table_swaps_and_other_forms() -> None:
    assert parse_ddl("rename table `s`.`t` to `s`.`_t_del`, `s`.`_t_gho` to `s`.`t`", "", MYSQL) == [
        RenameTable(((("s", "t"), ("s", "_t_del")), (("s", "_t_gho"), ("s", "t"))))
    ]
    assert parse_ddl("CREATE TABLE a LIKE b.c", "d", MYSQL) == [CreateTableLike(name=("d", "a"), like=("b", "c"))]
    assert parse_ddl("CREATE TABLE IF NOT EXISTS a (LIKE c)", "d", MYSQL) == [
        CreateTableLike(name=("d", "a"), like=("d", "c"), if_not_exists=True)
    ]
    assert parse_ddl("TRUNCATE t", "d", MYSQL) == [TruncateTable(("d", "t"))]
    assert parse_ddl("DROP TABLE IF EXISTS `a`,`b` /* generated by server */", "d", MYSQL) == [
        DropTable((("d", "a"), ("d", "b")), True)
    ]
    assert parse_ddl("ALTER DATABASE CHARACTER SET latin1", "d", MYSQL) == [
        AlterDatabase(name="d", charset="latin1", collation=None)
    ]
    assert parse_ddl("DROP INDEX `i` ON t ALGORITHM=INPLACE LOCK=NONE", "d", MYSQL) == [
        AlterTable(name=("d", "t"), operations=(DropConstraint("i"),))
    ]
    (action,) = parse_ddl(
        "SET STATEMENT max_statement_time=10, lock_wait_timeout=1 FOR CREATE UNIQUE INDEX u USING BTREE ON t (a)",
        "d",
        MARIADB,
    )
    assert isinstance(action, AlterTable)
    assert isinstance(action.operations[0], AddKey)
    (action,) = parse_ddl("ALTER ONLINE IGNORE TABLE IF EXISTS t ADD a SERIAL", "d", MARIADB)
    assert isinstance(action, AlterTable)
    assert [type(operation) for operation in action.operations] == [AddColumn, AddKey]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW v AS SELECT 1", "view"),
        ("CREATE DEFINER=a TRIGGER x AFTER INSERT ON t FOR EACH ROW SET @a=1", "trigger"),
        ("CREATE PROCEDURE p() BEGIN DROP TABLE x; END", "procedure"),
        ("CREATE AGGREGATE FUNCTION f RETURNS INT SONAME 'x'", "function"),
        ("CREATE OR REPLACE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t", "event"),
        ("DROP VIEW v", "view"),
        ("CREATE USER IF NOT EXISTS u IDENTIFIED BY 'x'", "user"),
        ("GRANT ALL ON *.* TO u", "user"),
        ("REVOKE ALL ON *.* FROM u", "user"),
        ("RENAME USER a TO b", "user"),
        ("ALTER USER u ACCOUNT LOCK", "user"),
        ("CREATE ROLE r", "user"),
        ("DROP TRIGGER IF EXISTS x", "trigger"),
        ("ALTER VIEW v AS SELECT 1", "view"),
        ("CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')", "server"),
        ("ALTER EVENT e DISABLE", "event"),
        ("ALTER INSTANCE ROTATE INNODB MASTER KEY", "server"),
        ("INSTALL PLUGIN p SONAME 'x'", "plugin"),
    ],
)
def test_what_a_replica_of_tables_has_no_place_for_is_named(sql: str, kind: str) -> None:
    (found,) = parse_ddl(sql, "d", MARIADB)
    assert isinstance(found, Unreplicated)
    assert (found.kind, found.text, found.is_drop) == (ObjectKind(kind), sql, sql.startswith("DROP"))


@pytest.mark.parametrize(
    ("sql", "title", "names"),
    [
        ("DROP VIEW IF EXISTS `a b`, other.v", "DROP VIEW", (("d", "a b"), ("other", "v"))),
        ("CREATE DEFINER=`event x`@`%` TRIGGER t AFTER INSERT ON x FOR EACH ROW SET @a=1", "CREATE TRIGGER",
         (("d", "t"),)),
        ("CREATE OR REPLACE PACKAGE BODY p AS PROCEDURE q AS BEGIN NULL; END; END", "CREATE PACKAGE", (("d", "p"),)),
        ("CREATE FUNCTION IF NOT EXISTS f() RETURNS INT RETURN 1", "CREATE FUNCTION", (("d", "f"),)),
        ("CREATE LIBRARY other.l LANGUAGE JAVASCRIPT AS $$ 1 $$", "CREATE LIBRARY", (("other", "l"),)),
        ("GRANT ALL ON *.* TO u", "GRANT", ()),
    ],
)  # fmt: skip
def test_objects_of_a_database_are_named(sql: str, title: str, names: tuple[tuple[str, str], ...]) -> None:
    (found,) = parse_ddl(sql, "d", MARIADB)
    assert isinstance(found, Unreplicated) and (found.title, found.names) == (title, names)


def test_a_loadable_function_needs_no_database() -> None:
    (found,) = parse_ddl("CREATE FUNCTION f RETURNS STRING SONAME 'f.so'", "", MARIADB)
    assert isinstance(found, Unreplicated) and found.names == (("", "f"),)


@pytest.mark.parametrize(
    "sql",
    [
        "ANALYZE TABLE t",
        "FLUSH TABLES",
        "OPTIMIZE TABLE t",
        "CREATE TEMPORARY TABLE x (a INT)",
        "DROP TEMPORARY TABLE IF EXISTS x",
        "SET PASSWORD FOR u='x'",
        "DROP /*!40005 TEMPORARY */ TABLE x",
    ],
)
def test_what_changes_no_rows_is_no_operation(sql: str) -> None:
    assert isinstance(parse_ddl(sql, "d", MYSQL)[0], NoOperation)


@pytest.mark.parametrize(
    "sql",
    [
        "FROBNICATE TABLE t",
        "CREATE TABLE t (a FANCY)",
        "CREATE TABLE t (a INT) nonsense",
        "ALTER TABLE t FROBNICATE a",
        "CREATE TABLE t (a INT",
        "CREATE TABLE t (a VARCHAR(9) DEFAULT 'x)",
        "ALTER TABLE t IMPORT PARTITION p TABLESPACE",
        "ALTER TABLE t DISCARD TABLESPACE",
        "CREATE TABLE t (a INT) /*!80000 ",
        "DROP TABLE",
        "CREATE TABLE t (,)",
        "(",
        "CREATE",
    ],
)
def test_what_is_not_understood_stops_with_the_statement_and_a_way_out(sql: str) -> None:
    with pytest.raises(RplError) as caught:
        parse_ddl(sql, "d", MYSQL)
    assert caught.value.errno == 1064
    assert "skip" in caught.value.hint


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "SET STATEMENT a=1 FOR INSERT INTO t VALUES (1)",
        "LOAD DATA INFILE 'x' INTO TABLE t",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TABLE t (a INT) SELECT 1 AS a",
        "CREATE TABLE t SELECT 1",
    ],
)
def test_statement_based_changes_of_rows_name_row_format(sql: str) -> None:
    with pytest.raises(RplError) as caught:
        parse_ddl(sql, "d", MYSQL)
    assert "binlog_format=ROW" in caught.value.hint


def test_row_format_create_select_of_mysql_8_is_a_plain_create() -> None:
    (action,) = parse_ddl("CREATE TABLE `c` (\n  `a` bigint NOT NULL DEFAULT '0'\n) START TRANSACTION", "d", MYSQL)
    assert isinstance(action, CreateTable)


def test_oracle_mode_is_refused() -> None:
    with pytest.raises(RplError, match="sql_mode=ORACLE"):
        parse_ddl("CREATE TABLE t (a DATE)", "d", DdlContext(sql_mode=ORACLE, server_version="10.11.1-MariaDB"))


def test_implicit_timestamps_follow_the_sources_setting() -> None:
    old = DdlContext(explicit_defaults_for_timestamp=False)
    first, second = create("(a TIMESTAMP, b TIMESTAMP)", old).columns
    assert (first.nullable, first.default, second.nullable, second.default) == (False, "CURRENT_TIMESTAMP", False, None)
    assert create("(a TIMESTAMP NULL)", old).columns[0].nullable
    assert create("(a TIMESTAMP)").columns[0].nullable


STATEMENTS = [sql for name in ("ddl_mariadb.sql", "ddl_mysql.sql") for sql, _, _ in recorded(name)]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(STATEMENTS), st.integers(0, 400), st.integers(0, 40), st.text("()',`;*/! a1=", max_size=3))
def test_broken_statements_are_never_more_than_an_error_of_ours(sql: str, at: int, cut: int, put: str) -> None:
    broken = sql[:at] + put + sql[at + cut :]
    with contextlib.suppress(RplError):
        plan_ddl(broken, "d", MARIADB, Catalog())


def test_a_compressed_column_of_mariadb_is_one_like_others() -> None:
    body = "(v VARCHAR(9) COMPRESSED, x TEXT COMPRESSED=zlib CHARACTER SET latin1, w TEXT CHARSET utf8mb4 COMPRESSED)"
    columns = create(body, MARIADB).columns
    assert [(column.type, column.charset) for column in columns[1:]] == [("text", "latin1"), ("text", "utf8mb4")]
