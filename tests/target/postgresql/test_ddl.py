"""What a real PostgreSQL holds after a statement: shapes, keys, foreign keys, comments, rows; nothing half done."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from rplctl.errors import RplError, TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import Column, TableModel
from rplctl.target.postgresql.connection import target_error
from rplctl.target.postgresql.ddl_table import has_prefix, indexes
from rplctl.target.postgresql.ddl_type import declared, index_of, literal, short_name, table
from tests.kit.servers import PostgresqlServer
from tests.schema.recorded_ddl import recorded
from tests.target.postgresql.replica_tables import PostgresqlTables

MARIADB = DdlContext(server_version="10.11.19-MariaDB")
pytestmark = pytest.mark.postgresql


@pytest.fixture
def replica(postgresql: PostgresqlServer) -> Iterator[PostgresqlTables]:
    made = PostgresqlTables(postgresql)
    made.run("CREATE DATABASE sd")
    yield made
    made.close()


def columns_of(replica: PostgresqlTables, model: TableModel) -> dict[str, tuple[str, bool]]:
    """Name → (type as PostgreSQL prints it, NOT NULL)."""
    rows = replica.query(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid ="
        f" '{table(model)}'::regclass AND attnum > 0 AND NOT attisdropped"
    )
    return {name: (kind, required) for name, kind, required in rows}


def printed(replica: PostgresqlTables, column: Column) -> str:
    """The declared type as PostgreSQL prints it."""
    kind = declared(column)
    with replica.connection.transaction():
        replica.connection.execute(f"CREATE TEMP TABLE one (c {kind})".encode())
        found = replica.query("SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid ="
                              " 'one'::regclass AND attnum = 1")  # fmt: skip
        replica.connection.execute(b"DROP TABLE one")
    return str(found[0][0])


def definitions(replica: PostgresqlTables, kind: str, name: str = "t") -> list[str]:
    """Constraints of a kind (p, f) of a table of ours."""
    rows = replica.query(
        f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = '{kind}'"
        f' AND conrelid = \'"sd"."{name}"\'::regclass ORDER BY conname'
    )
    return [row[0] for row in rows]


def index_names(replica: PostgresqlTables) -> list[str]:
    rows = replica.query(
        "SELECT indexname FROM pg_indexes WHERE schemaname = 'sd' AND indexname LIKE '%::%' ORDER BY 1"
    )
    return [row[0] for row in rows]


@pytest.mark.long("MariaDB's statements stay; those of MySQL are made from the same models.", keeps=r"mariadb")
@pytest.mark.parametrize("name", ["ddl_mariadb.sql", "ddl_mysql.sql"])
def test_every_recorded_statement_runs_and_leaves_the_tables_of_the_models(
    replica: PostgresqlTables, name: str
) -> None:
    for sql, database, context in recorded(name):
        replica.run(sql, database, context)
    models = [model for model in replica.catalog.tables.values() if not model.is_sequence]
    schemas = ", ".join(f"'{model.database}'" for model in models)
    there = replica.query(f"SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ({schemas})")
    assert set(there) == {(model.database, model.name) for model in models}
    kinds = {declared(column): column for model in models for column in model.columns}
    names = {kind: printed(replica, column) for kind, column in kinds.items()}
    for model in models:
        in_key = set(model.primary_key.columns) if model.primary_key else set()
        assert columns_of(replica, model) == {
            c.name: (names[declared(c)], (not c.nullable and c.generated is None) or c.name in in_key)
            for c in model.columns
        }
        found = {
            row[0] for row in replica.query(f"SELECT indexname FROM pg_indexes WHERE tablename = '{model.name}'"
                                            f" AND schemaname = '{model.database}'")
        }  # fmt: skip
        assert set(indexes(model)) <= found
        has_constraint = model.primary_key is not None and not has_prefix(model.primary_key)
        assert len(found) - len(indexes(model)) == int(has_constraint)


def test_values_at_the_edges_come_back_as_they_went_in(replica: PostgresqlTables) -> None:
    replica.run(
        "CREATE TABLE t (a BIGINT UNSIGNED PRIMARY KEY, b DECIMAL(65,30), c BIT(64), d VARBINARY(9), e CHAR(9),"
        " f DOUBLE, g BIGINT, h VARCHAR(9) CHARACTER SET latin1, i YEAR, j TIME(6), k TIMESTAMP(6) NULL, l DATE)"
    )
    row = (2**64 - 1, "-" + "9" * 35 + "." + "9" * 30, 2**64 - 1, b"\0\xff1", "12", -0.0, -(2**63), "007", 2155,
           "-838:59:58.000001", "1970-01-01 00:00:01.100000", "9999-12-31")  # fmt: skip
    zero = (0, None, 0, b"", "", 5e-324, 0, "", 0, "-00:00:00.500000", "0000-00-00 00:00:00.000000", "0000-00-00")
    replica.insert("t", [row, zero])
    found = {r[0]: r for r in replica.rows("t")}
    assert found[2**64 - 1][:8] == row[:8]
    assert str(found[2**64 - 1][5]) == "-0.0"
    assert found[2**64 - 1][9:] == row[9:]
    assert found[0][9:] == zero[9:]


def test_changes_that_do_not_change_the_shape_cost_nothing(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, v TEXT, KEY k (v(9)))")
    assert replica.run("ALTER TABLE t MODIFY v LONGTEXT, ADD CHECK (id > 0), ENGINE=InnoDB") == []
    assert replica.run("ALTER TABLE t RENAME INDEX k TO kk") == []
    assert len(replica.run("ALTER TABLE t DROP INDEX kk")) == 1
    assert index_names(replica) == []


def test_a_longer_varchar_is_no_rewrite_of_the_table(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10) NOT NULL DEFAULT 'x', KEY (v))")
    before = replica.query("SELECT relfilenode FROM pg_class WHERE oid = 'sd.t'::regclass")
    replica.run("ALTER TABLE t MODIFY v VARCHAR(300), ADD c INT NOT NULL DEFAULT 5")
    assert replica.query("SELECT relfilenode FROM pg_class WHERE oid = 'sd.t'::regclass") == before
    assert columns_of(replica, replica.catalog.tables["sd", "t"])["v"] == ("character varying(300)", False)


def test_rows_that_are_there_get_the_values_mysql_gives_them(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY)")
    replica.insert("t", [(1,)])
    replica.run(
        "ALTER TABLE t ADD a INT NOT NULL, ADD b VARCHAR(9) DEFAULT 'it''s', ADD d DATETIME(3) NOT NULL FIRST,"
        " ADD UNIQUE (b), ADD g BINARY(2) NOT NULL, ADD e ENUM('p','q') NOT NULL, ADD f BIT(4) NOT NULL DEFAULT b'101'"
    )
    assert replica.rows("t") == [("0000-00-00 00:00:00.000", 1, 0, "it's", b"\0\0", "p", 5)]
    (left,) = replica.query("SELECT string_agg(column_name, ',') FROM information_schema.columns"
                            " WHERE table_schema = 'sd' AND column_default IS NOT NULL")  # fmt: skip
    assert sorted(left[0].split(",")) == ["b", "f"]


def test_keys_of_a_table_come_and_go(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (a INT, b VARCHAR(20), c BLOB, PRIMARY KEY (a), UNIQUE u (b), KEY p (b(3), c(4) DESC))")
    assert index_names(replica) == ["sd__t::p", "sd__t::u"]
    replica.run("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (b, a), DROP KEY u, ADD KEY k (a DESC)")
    assert definitions(replica, "p") == ["PRIMARY KEY (b, a)"]
    assert index_names(replica) == ["sd__t::k", "sd__t::p"]
    replica.run("ALTER TABLE t DROP PRIMARY KEY, MODIFY b VARCHAR(50)")
    assert definitions(replica, "p") == []
    replica.insert("t", [(1, "x" * 50, None), (1, "x" * 50, b"1")])


def test_a_prefix_key_takes_texts_that_are_too_long_for_an_index(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, a LONGTEXT, UNIQUE u (a(10)))")
    text = "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(20000))
    replica.insert("t", [(1, text)])
    with pytest.raises(psycopg.errors.UniqueViolation):
        replica.insert("t", [(2, text[:10] + "different")])


def test_foreign_keys_wait_for_their_parents_and_come_back_with_them(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT f FOREIGN KEY (p) REFERENCES p (id)"
                " ON DELETE CASCADE ON UPDATE SET NULL)")  # fmt: skip
    assert definitions(replica, "f", "c") == []
    replica.run("CREATE TABLE p (id INT PRIMARY KEY, v INT, UNIQUE (v))")
    action = "FOREIGN KEY (p) REFERENCES sd.p(id) ON UPDATE SET NULL ON DELETE CASCADE DEFERRABLE"
    assert definitions(replica, "f", "c") == [f"{action} NOT VALID"]
    replica.run("ALTER TABLE p MODIFY id BIGINT")
    replica.run("ALTER TABLE c CHANGE p parent BIGINT")
    (left,) = definitions(replica, "f", "c")
    assert left.startswith("FOREIGN KEY (parent) REFERENCES sd.p(id)")
    replica.run("TRUNCATE TABLE p")
    replica.run("RENAME TABLE p TO other.q")
    replica.run("DROP TABLE other.q")
    assert definitions(replica, "f", "c") == []


def test_a_parents_key_may_change_under_its_children(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE p (id INT PRIMARY KEY, self INT, FOREIGN KEY (self) REFERENCES p (id))")
    replica.run("CREATE TABLE t (p INT, FOREIGN KEY (p) REFERENCES p (id))")
    replica.run("ALTER TABLE p ADD UNIQUE u (id), DROP PRIMARY KEY")
    assert len(definitions(replica, "f")) == len(definitions(replica, "f", "p")) == 1
    replica.run("ALTER TABLE t DROP FOREIGN KEY t_ibfk_1")
    assert definitions(replica, "f") == []


def test_what_an_operator_hung_on_a_table_is_not_dropped_with_it(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (a INT)")
    replica.connection.execute(b"CREATE VIEW sd.own AS SELECT a FROM sd.t")
    for sql in ("DROP TABLE t", "ALTER TABLE t MODIFY a BIGINT", "DROP DATABASE sd"):
        with pytest.raises(psycopg.Error):
            replica.run(sql)
    assert replica.query("SELECT count(*) FROM sd.own") == [(0,)]


def test_keys_that_postgresql_has_no_index_for_are_left_out(replica: PostgresqlTables) -> None:
    sql = (
        "CREATE TABLE t (a TEXT, p POINT NOT NULL, FULLTEXT f (a), SPATIAL s (p), KEY e ((lower(a))), CHECK (a <> ''))"
    )
    replica.run(sql)
    assert index_names(replica) == []


def test_comments_come_along(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (a INT COMMENT 'it''s', b INT) COMMENT='all'")
    replica.run("ALTER TABLE t MODIFY a INT COMMENT '', MODIFY b INT COMMENT 'new', ADD c INT COMMENT 'third'")
    found = replica.query("SELECT objsubid, description FROM pg_description WHERE objoid = 'sd.t'::regclass ORDER BY 1")
    assert found == [(0, "all"), (2, "new"), (3, "third")]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", {"id": 1, "b": 10, "a": "x"}),
        ("ALTER TABLE t CHANGE a b BIGINT, CHANGE b a VARCHAR(99)", {"id": 1, "b": 10, "a": "x"}),
        ("ALTER TABLE t DROP a, CHANGE b a VARCHAR(9)", {"id": 1, "a": "x"}),
        ("ALTER TABLE t DROP a, ADD a INT DEFAULT 7", {"id": 1, "b": "x", "a": 7}),
        ("ALTER TABLE t DROP b, ADD b VARCHAR(9)", {"id": 1, "a": 10, "b": None}),
        ("ALTER TABLE t RENAME COLUMN a TO z, ADD a INT NOT NULL AFTER id", {"id": 1, "a": 0, "z": 10, "b": "x"}),
        ("ALTER TABLE t MODIFY b VARCHAR(9) FIRST, ADD c INT AFTER b", {"b": "x", "c": None, "id": 1, "a": 10}),
        ("ALTER TABLE t CHANGE a A INT", {"id": 1, "A": 10, "b": "x"}),
        ("ALTER TABLE t ADD c INT AFTER z, CHANGE a z INT", {"id": 1, "z": 10, "c": None, "b": "x"}),
    ],
)
def test_columns_trade_names(replica: PostgresqlTables, sql: str, expected: dict[str, object]) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), KEY ka (a), KEY kb (b))")
    replica.insert("t", [(1, 10, "x")])
    replica.run(sql)
    model = replica.catalog.tables["sd", "t"]
    assert dict(zip((c.name for c in model.columns), replica.rows("t")[0], strict=True)) == expected
    assert set(columns_of(replica, model)) == set(expected)
    assert index_names(replica) == sorted(index_of(model, key) for key in model.keys if key.kind == "index")


def test_a_table_moves_between_databases_whose_names_are_half_taken(replica: PostgresqlTables) -> None:
    for name in ("a.t", "a.u", "b.t"):
        replica.run(f"CREATE TABLE {name} (n INT PRIMARY KEY, KEY k (n))")
    replica.run("RENAME TABLE a.t TO b.u")
    assert {key for key in replica.catalog.tables if key[0] in "ab"} == {("a", "u"), ("b", "t"), ("b", "u")}
    replica.run("CREATE TABLE a.t (n INT PRIMARY KEY, KEY k (n))")
    replica.run("CREATE TABLE a.p (n TEXT, PRIMARY KEY (n(9)))")
    replica.run("RENAME TABLE a.p TO a.q")
    replica.run("CREATE TABLE a.p (n TEXT, PRIMARY KEY (n(9)))")
    replica.run("ALTER TABLE a.q DROP PRIMARY KEY")
    assert replica.query("SELECT indexname FROM pg_indexes WHERE tablename = 'q'") == []


@pytest.mark.parametrize(
    "swap", ["RENAME TABLE sd.t TO sd.n, se.t TO sd.t", "DROP TABLE sd.t; RENAME TABLE se.t TO sd.t"]
)
def test_a_table_that_was_in_another_database_comes_back(replica: PostgresqlTables, swap: str) -> None:
    """The key of its first move has a name that is nobody else's, and keeps it."""
    table = "CREATE TABLE sd.t (id INT PRIMARY KEY, u INT, v VARCHAR(300), UNIQUE KEY u (u), KEY k (v))"
    back = "RENAME TABLE sd.t TO sd.away"
    for sql in ("CREATE DATABASE se", table, "RENAME TABLE sd.t TO se.t", table, *swap.split("; "), back):
        replica.run(sql)
    assert definitions(replica, "p", "away") == ["PRIMARY KEY (id)"]


def test_ghost_table_swaps_never_collide_in_index_names(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY v (v))")
    for number in range(3):
        replica.run("CREATE TABLE _t_gho LIKE t")
        replica.run(f"ALTER TABLE _t_gho ADD c{number} INT, ADD KEY k{number} (c{number})")
        replica.run("RENAME TABLE t TO _t_del, _t_gho TO t")
        replica.run("DROP TABLE _t_del")
    assert len(index_names(replica)) == 4
    replica.run("ALTER TABLE t DROP KEY v, DROP KEY k0, DROP KEY k1, DROP KEY k2")
    assert index_names(replica) == []


def test_rows_are_numbered_in_the_order_of_the_old_key(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (x VARCHAR(5) PRIMARY KEY)")
    replica.insert("t", [("two",), ("one",), ("p0",)])
    numbered = "ALTER TABLE t DROP PRIMARY KEY, ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY"
    with pytest.raises(RplError, match="numbers that only the source knows"):
        replica.run(numbered, context=DdlContext(auto_increment_increment=10, auto_increment_offset=3))
    replica.run(numbered)
    assert replica.rows("t") == [("one", 1), ("p0", 2), ("two", 3)]


@pytest.mark.parametrize("key", ["", "PRIMARY KEY"])
def test_rows_without_a_known_order_are_not_numbered(replica: PostgresqlTables, key: str) -> None:
    replica.run(f"CREATE TABLE t (x VARCHAR(5) {key})")
    replica.insert("t", [("a",), ("B",), ("_",)])
    with pytest.raises(RplError, match="only the source knows"):
        replica.run("ALTER TABLE t ADD id INT AUTO_INCREMENT UNIQUE")
    assert replica.query("SELECT count(*) FROM sd.t") == [(3,)]


@pytest.mark.parametrize("value", ["1969-12-31 23:59:59", "2038-01-19 04:14:08"])
def test_a_time_that_no_timestamp_holds_stops(replica: PostgresqlTables, value: str) -> None:
    context = DdlContext(time_zone="+01:00")
    replica.run("CREATE TABLE t (v DATETIME)")
    replica.insert("t", [("-infinity",), ("2024-01-01 12:00:00",), (None,)])
    replica.run("ALTER TABLE t MODIFY v TIMESTAMP NULL", context=context)
    replica.run("ALTER TABLE t MODIFY v DATETIME", context=context)
    replica.insert("t", [(value,)])
    with pytest.raises(RplError, match="datetime → timestamp of column 'v' would change a value"):
        replica.run("ALTER TABLE t MODIFY v TIMESTAMP NULL", context=context)


def test_a_guard_runs_before_anything_is_changed(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (a INT, b VARCHAR(9))")
    replica.insert("t", [(1, "12x")])
    with pytest.raises(RplError, match="varchar → int of column 'b' would change a value") as caught:
        replica.run("ALTER TABLE t CHANGE b c INT, ADD d INT FIRST")
    assert "skip" in caught.value.hint
    assert replica.rows("t") == [(1, "12x")]


@pytest.mark.parametrize(
    ("by", "partitions", "column", "rows", "left"),
    [
        ("RANGE (n)", "p0 VALUES LESS THAN (5), p1 VALUES LESS THAN MAXVALUE", "n INT", [1, 5, None], [5]),
        ("LIST (n)", "p0 VALUES IN (1,NULL), p1 VALUES IN (2)", "n INT", [1, 2, None], [2]),
        ("RANGE (YEAR(n))", "p0 VALUES LESS THAN (2020), p1 VALUES LESS THAN MAXVALUE", "n DATE",
         ["2019-12-31", "2020-01-01", "0000-00-00"], ["2020-01-01"]),
        ("RANGE (TO_DAYS(n))", "p0 VALUES LESS THAN (TO_DAYS('2024-03-01')), p1 VALUES LESS THAN MAXVALUE",
         "n DATETIME",
         ["2024-02-29 23:59:59", "2024-03-01 00:00:00"], ["2024-03-01 00:00:00"]),
        ("RANGE COLUMNS (n)", "p0 VALUES LESS THAN ('2024-03-01'), p1 VALUES LESS THAN (MAXVALUE)", "n DATE",
         ["2024-02-29", "2024-03-01"], ["2024-03-01"]),
        ("RANGE (UNIX_TIMESTAMP(n))", "p0 VALUES LESS THAN (1700000000), p1 VALUES LESS THAN MAXVALUE",
         "n TIMESTAMP NULL", ["2023-11-14 22:13:19", "2023-11-14 22:13:20"], ["2023-11-14 22:13:20"]),
    ],
)  # fmt: skip
def test_a_dropped_partition_takes_its_rows(
    replica: PostgresqlTables, by: str, partitions: str, column: str, rows: list[object], left: list[object]
) -> None:
    replica.run(
        f"CREATE TABLE t ({column}) PARTITION BY {by} ({'PARTITION ' + partitions.replace(', p', ', PARTITION p')})"
    )
    replica.insert("t", [(row,) for row in rows])
    replica.run("ALTER TABLE t DROP PARTITION p0")
    assert replica.rows("t") == [(row,) for row in left]


def test_system_versioned_tables_hold_current_and_historical_rows(replica: PostgresqlTables) -> None:
    replica.context = MARIADB
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING")
    end = "2038-01-19 03:14:07.999999"
    replica.insert("t", [(1, 1, "2026-01-01 00:00:00.000000", "2026-01-02 00:00:00.000000"),
                         (1, 2, "2026-01-02 00:00:00.000000", end)])  # fmt: skip
    replica.run("ALTER TABLE t DROP SYSTEM VERSIONING")
    assert replica.rows("t") == [(1, 2)]


def test_names_of_postgresqls_own_columns_are_refused_with_the_way_out(replica: PostgresqlTables) -> None:
    for name in ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"):
        with pytest.raises(TargetError, match=f"'{name}'.*sd.t") as caught:
            replica.run(f"CREATE TABLE t (id INT PRIMARY KEY, {name} DOUBLE)")
        assert caught.value.errno == 1166 and "renamed the column on the source" in caught.value.hint
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, XMIN DOUBLE, oid INT)")
    with pytest.raises(TargetError, match="'xmax'"):
        replica.run("ALTER TABLE t ADD xmax DOUBLE")


def test_names_that_postgresql_would_cut_off_are_refused(replica: PostgresqlTables) -> None:
    for sql in (f"CREATE TABLE {'ü' * 32} (a INT)", f"CREATE TABLE t ({'c' * 64} INT)"):
        with pytest.raises(TargetError, match="too long") as caught:
            replica.run(sql)
        assert caught.value.errno == 1059
    replica.run(f"CREATE TABLE {'t' * 63} (a INT, b INT, KEY {'k' * 64} (a), KEY {'k' * 63}l (b))")
    assert len(replica.query("SELECT indexname FROM pg_indexes WHERE schemaname = 'sd'")) == 2
    assert len(short_name("é" * 60).encode()) <= 63


@pytest.mark.parametrize("name", ["rplctl", "pg_shop"])
def test_a_database_with_a_name_that_is_taken_is_refused(replica: PostgresqlTables, name: str) -> None:
    with pytest.raises(TargetError, match="reserved") as caught:
        replica.run(f"CREATE DATABASE {name}")
    assert "--replicate-rewrite-db" in caught.value.hint


def test_tables_with_more_columns_than_postgresql_takes_are_refused(replica: PostgresqlTables) -> None:
    with pytest.raises(TargetError) as caught:
        replica.run(f"CREATE TABLE t ({', '.join(f'c{n} INT' for n in range(1601))})")
    assert caught.value.errno == 1117


def test_databases_and_their_tables_go_together(replica: PostgresqlTables) -> None:
    replica.run("CREATE DATABASE `Shop%s`")
    replica.run('CREATE TABLE `Shop%s`.`it"s` (`a%b` INT PRIMARY KEY)')
    replica.run("DROP DATABASE `Shop%s`")
    assert replica.query("SELECT to_regnamespace('\"Shop%s\"')") == [(None,)]


def test_a_default_that_postgresql_has_not_is_left_out(replica: PostgresqlTables) -> None:
    replica.run("CREATE TABLE t (a DATE DEFAULT '2024-00-07', b DATE DEFAULT '0000-00-00', c TEXT DEFAULT ('x'),"
                " d TIMESTAMP(3) NULL DEFAULT CURRENT_TIMESTAMP(3), e DATETIME DEFAULT NOW())")  # fmt: skip
    found = dict(
        replica.query("SELECT column_name, column_default FROM information_schema.columns WHERE table_schema = 'sd'")
    )
    assert found == {"a": None, "b": "'-infinity'::date", "c": "'x'::text", "d": "CURRENT_TIMESTAMP(3)",
                     "e": "LOCALTIMESTAMP(0)"}  # fmt: skip


def test_text_with_a_nul_has_no_literal() -> None:
    with pytest.raises(TargetError, match="NUL"):
        literal("a\0b", Column(name="c", type="text"))


def test_a_row_that_no_page_holds_is_told_from_an_index_that_is_too_long(postgresql: PostgresqlServer) -> None:
    """PostgreSQL has one SQLSTATE for both."""
    found = []
    with postgresql.connect() as connection:
        connection.execute("CREATE TEMP TABLE wide (c TEXT, i TEXT)")
        connection.execute("ALTER TABLE wide ALTER c SET STORAGE PLAIN")
        connection.execute("CREATE INDEX ON wide (i)")
        long = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) n)"
        for row in (f"{long}, ''", f"'', {long}"):
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(f"INSERT INTO wide VALUES ({row})")
            found.append(target_error(caught.value).errno)
    assert found == [1118, 1071]
