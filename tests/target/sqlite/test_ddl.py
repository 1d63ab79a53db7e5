"""What SQLite holds after a statement: shapes, indexes, foreign keys, rows; nothing half done."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError, TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.dump import load_catalog
from rplctl.schema.model import Column
from rplctl.schema.naming import fold, physical_name
from rplctl.schema.plan import AlterStep, Catalog, plan_ddl
from rplctl.target.ddl_parts import quote
from rplctl.target.sqlite import ddl
from rplctl.target.sqlite.ddl_type import literal, stored_value
from tests.schema.recorded_ddl import recorded
from tests.target.sqlite.replica_tables import ReplicaTables

MARIADB = DdlContext(server_version="10.11.19-MariaDB")


@pytest.fixture
def replica() -> ReplicaTables:
    return ReplicaTables()


def sql_of(replica: ReplicaTables, name: str) -> str:
    (sql,) = replica.connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    assert isinstance(sql, str)
    return sql


@pytest.mark.parametrize("name", ["ddl_mariadb.sql", "ddl_mysql.sql"])
def test_every_recorded_statement_runs_and_leaves_the_tables_of_the_models(name: str) -> None:
    replica, collisions = ReplicaTables(), 0
    for sql, database, context in recorded(name):
        try:
            replica.run(sql, database, context)
        except TargetError:
            collisions += 1
    assert collisions == 1  # `db-with-dash`.T1 and .t1: one name in SQLite (design D10)
    tables = {name for (name,) in replica.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    models = [model for model in replica.catalog.tables.values() if not model.is_sequence]
    assert tables == {physical_name(model.database, model.name) for model in models}
    for model in models:
        rows = replica.connection.execute(f"PRAGMA table_xinfo({ddl.table(model)})").fetchall()
        assert [row[1] for row in rows] == [column.name for column in model.columns]


def test_values_at_the_edges_come_back_as_they_went_in(replica: ReplicaTables) -> None:
    replica.run(
        "CREATE TABLE t (a BIGINT UNSIGNED PRIMARY KEY, b DECIMAL(65,30), c BIT(64), d VARBINARY(9), e CHAR(9),"
        " f DOUBLE, g BIGINT, h VARCHAR(9) CHARACTER SET latin1, i YEAR, j DECIMAL(5,2))"
    )
    u64 = Column(name="a", type="bigint", unsigned=True)
    row = (
        stored_value(u64, 2**64 - 1),
        "-1." + "0" * 30,
        "18446744073709551615",
        b"\0\xff1",
        "12",
        1e308,
        -(2**63),
        "007",
        2155,
        "1.50",
    )
    replica.insert("t", [row, (stored_value(u64, 2**63 - 1), *[None] * 9)])
    found = {str(r[0]): r for r in replica.rows("t")}
    assert found[str(2**64 - 1)] == row
    assert found[str(2**63 - 1)][0] == 2**63 - 1
    assert [type(value) for value in found[str(2**64 - 1)]] == [type(value) for value in row]


def test_a_primary_key_is_no_alias_of_the_rowid(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (id INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT)")
    replica.insert("t", [(5, 1)])
    (rowid,) = replica.connection.execute('SELECT rowid FROM "sd__t"').fetchone()
    assert rowid == 1


def test_changes_that_do_not_change_the_shape_cost_nothing(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10), KEY k (v))")
    assert replica.run("ALTER TABLE t MODIFY v VARCHAR(300), COMMENT='x', ENGINE=InnoDB") == []
    assert replica.run("ALTER TABLE t MODIFY v LONGTEXT, ADD CHECK (id > 0)") == []
    assert replica.run("ALTER TABLE t ALTER v SET DEFAULT 'x', RENAME INDEX k TO kk") == []
    assert len(replica.run("ALTER TABLE t DROP INDEX kk")) == 1
    assert replica.indexes() == []


def test_columns_at_the_end_are_added_in_place(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY)")
    replica.insert("t", [(1,)])
    statements = replica.run("ALTER TABLE t ADD a INT NOT NULL, ADD b VARCHAR(9) DEFAULT 'it''s', ADD UNIQUE (b)")
    assert [statement.split()[0:2] for statement in statements] == [
        ["ALTER", "TABLE"],
        ["ALTER", "TABLE"],
        ["CREATE", "UNIQUE"],
    ]
    assert replica.rows("t") == [(1, 0, "it's")]


def test_a_rebuild_keeps_rows_indexes_and_the_foreign_keys_of_others(replica: ReplicaTables) -> None:
    replica.run(
        "CREATE TABLE p (id INT PRIMARY KEY, v INT, self INT, UNIQUE (v), FOREIGN KEY (self) REFERENCES p (id))"
    )
    replica.run(
        "CREATE TABLE c (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE SET NULL)"
    )
    replica.insert("p", [(1, 10, None), (2, 20, 1)])
    replica.insert("c", [(1, 1), (2, 2)])
    replica.connection.execute('CREATE VIEW operators_own AS SELECT * FROM "sd__p"')
    replica.run("ALTER TABLE p MODIFY v VARCHAR(20) FIRST")
    assert replica.rows("p") == [("10", 1, None), ("20", 2, 1)]
    assert replica.indexes() == ["sd__c::p", "sd__p::self", "sd__p::v"]
    assert 'REFERENCES "sd__p" ("id") ON DELETE CASCADE ON UPDATE SET NULL' in sql_of(replica, "sd__c")
    assert 'REFERENCES "sd__p" ("id")' in sql_of(replica, "sd__p")
    replica.connection.execute("PRAGMA foreign_keys=ON")
    assert replica.connection.execute("PRAGMA foreign_key_check").fetchall() == []
    replica.connection.execute('DELETE FROM "sd__p" WHERE id = 2')
    assert replica.rows("c") == [(1, 1)]


def test_foreign_keys_follow_renamed_tables_and_columns(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE p (id INT PRIMARY KEY)")
    replica.run("CREATE TABLE c (p INT, CONSTRAINT f FOREIGN KEY (p) REFERENCES p (id))")
    replica.run("ALTER TABLE p CHANGE id number BIGINT")
    replica.run("RENAME TABLE p TO other.q")
    replica.run("ALTER TABLE c RENAME COLUMN p TO q")
    assert 'FOREIGN KEY ("q") REFERENCES "other__q" ("number")' in sql_of(replica, "sd__c")
    (key,) = replica.catalog.tables["sd", "c"].foreign_keys
    assert (key.columns, key.ref_database, key.ref_table, key.ref_columns) == (("q",), "other", "q", ("number",))


def test_a_foreign_key_without_a_unique_parent_is_left_out(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE p (id INT, KEY (id))")
    plan = plan_ddl("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))", "sd", DdlContext(), replica.catalog)
    assert "FOREIGN" not in ddl.DDL.emit(plan, replica.catalog)[0]


def test_keys_that_sqlite_has_no_index_for_are_left_out(replica: ReplicaTables) -> None:
    sql = (
        "CREATE TABLE t (a TEXT, p POINT NOT NULL, FULLTEXT f (a), SPATIAL s (p), KEY e ((lower(a))), UNIQUE u (a(3)))"
    )
    replica.run(sql)
    assert replica.indexes() == ["sd__t::u"]


def test_ghost_table_swaps_never_collide_in_index_names(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, v INT, KEY v (v))")
    for number in range(3):
        replica.run("CREATE TABLE _t_gho LIKE t")
        replica.run(f"ALTER TABLE _t_gho ADD c{number} INT, ADD KEY k{number} (c{number})")
        replica.insert("_t_gho", [(number, *[None] * (number + 2))])
        replica.run("RENAME TABLE t TO _t_del, _t_gho TO t")
        replica.run("DROP TABLE _t_del")
    assert replica.rows("t") == [(2, None, None, None, None)]
    assert len(replica.indexes()) == 4
    replica.run("ALTER TABLE t DROP KEY v, DROP KEY k0, DROP KEY k1, DROP KEY k2")
    assert replica.indexes() == []


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", [("id", 1), ("b", 10), ("a", "x")]),
        ("ALTER TABLE t CHANGE a b BIGINT, CHANGE b a VARCHAR(99)", [("id", 1), ("b", 10), ("a", "x")]),
        ("ALTER TABLE t DROP a, CHANGE b a VARCHAR(9)", [("id", 1), ("a", "x")]),
        ("ALTER TABLE t DROP a, ADD a INT DEFAULT 7", [("id", 1), ("b", "x"), ("a", 7)]),
        ("ALTER TABLE t DROP b, ADD b VARCHAR(9)", [("id", 1), ("a", 10), ("b", None)]),
        (
            "ALTER TABLE t RENAME COLUMN a TO z, ADD a INT NOT NULL AFTER id",
            [("id", 1), ("a", 0), ("z", 10), ("b", "x")],
        ),
        ("ALTER TABLE t MODIFY b VARCHAR(9) FIRST, ADD c INT AFTER b", [("b", "x"), ("c", None), ("id", 1), ("a", 10)]),
        ("ALTER TABLE t CHANGE a A INT", [("id", 1), ("A", 10), ("b", "x")]),
        ("ALTER TABLE t ADD c INT AFTER z, CHANGE a z INT", [("id", 1), ("z", 10), ("c", None), ("b", "x")]),
    ],
)
def test_columns_trade_names_and_places(replica: ReplicaTables, sql: str, expected: list[tuple[str, object]]) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), KEY ka (a), KEY kb (b))")
    replica.insert("t", [(1, 10, "x")])
    replica.run(sql)
    names = [column.name for column in replica.catalog.tables["sd", "t"].columns]
    assert list(zip(names, replica.rows("t")[0], strict=True)) == expected
    stored = [row[1] for row in replica.connection.execute('PRAGMA table_info("sd__t")')]
    assert stored == names


def test_a_name_that_changes_only_its_case_is_renamed(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (a INT, KEY (a))")
    replica.run("RENAME TABLE t TO T")
    assert sql_of(replica, "sd__T")


def test_rows_are_numbered_in_the_order_of_the_old_key(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (x VARCHAR(5) PRIMARY KEY)")
    replica.insert("t", [("two",), ("one",), ("p0",)])
    numbered = "ALTER TABLE t DROP PRIMARY KEY, ADD COLUMN id INT AUTO_INCREMENT PRIMARY KEY"
    with pytest.raises(RplError, match="numbers that only the source knows"):
        replica.run(numbered, context=DdlContext(auto_increment_increment=10, auto_increment_offset=3))
    replica.run(numbered)
    assert replica.rows("t") == [("one", 1), ("p0", 2), ("two", 3)]


def test_rows_without_a_known_order_are_not_numbered(replica: ReplicaTables) -> None:
    for key, rows in (("", [("a",), ("b",)]), ("PRIMARY KEY", [("a",), ("B",), ("_",)])):
        replica.run(f"CREATE OR REPLACE TABLE t (x VARCHAR(5) {key})")
        replica.insert("t", rows)
        with pytest.raises(RplError, match="only the source knows"):
            replica.run("ALTER TABLE t ADD id INT AUTO_INCREMENT UNIQUE")
        assert replica.connection.execute('SELECT count(*) FROM "sd__t"').fetchone() == (len(rows),)


def test_a_guard_runs_before_anything_is_changed(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (a INT, b VARCHAR(9))")
    replica.insert("t", [(1, "12x")])
    with pytest.raises(RplError, match="varchar → int of column 'b' would change a value") as caught:
        replica.run("ALTER TABLE t CHANGE b c INT, ADD d INT FIRST")
    assert "skip" in caught.value.hint
    assert replica.rows("t") == [(1, "12x")]


def test_added_generated_columns_that_only_the_source_can_compute_need_an_empty_table(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (a INT)")
    replica.run("ALTER TABLE t ADD b INT AS (a + 1) STORED NOT NULL")
    replica.insert("t", [(1, 2)])
    with pytest.raises(RplError, match="column 'c' is generated from other columns"):
        replica.run("ALTER TABLE t ADD c INT AS (a / 2) VIRTUAL")


def test_system_versioned_tables_hold_current_and_historical_rows() -> None:
    replica = ReplicaTables(MARIADB)
    replica.run("CREATE TABLE t (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING")
    model = replica.catalog.tables["sd", "t"]
    assert [column.name for column in model.columns] == ["id", "v", "row_start", "row_end"]
    end = "2038-01-19 03:14:07.999999"
    replica.insert(
        "t",
        [(1, 1, "2026-01-01 00:00:00.000000", "2026-01-02 00:00:00.000000"), (1, 2, "2026-01-02 00:00:00.000000", end)],
    )
    replica.run("ALTER TABLE t DROP SYSTEM VERSIONING")
    assert replica.rows("t") == [(1, 2)]
    with pytest.raises(RplError, match="existing rows get values that only the source knows"):
        replica.run("ALTER TABLE t ADD SYSTEM VERSIONING")


@pytest.mark.parametrize("end", ["2038-01-19 03:14:07.999999", "2106-02-07 06:28:15.999999"])
def test_columns_of_a_system_period_have_any_name_and_current_rows_either_end(end: str) -> None:
    """MariaDB 11.5 and later let time end in 2106."""
    replica = ReplicaTables(MARIADB)
    replica.run(
        "CREATE TABLE t (id INT PRIMARY KEY, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START INVISIBLE, e TIMESTAMP(6)"
        " GENERATED ALWAYS AS ROW END INVISIBLE, v INT, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING"
    )
    model = replica.catalog.tables["sd", "t"]
    assert [column.name for column in model.columns] == ["id", "s", "e", "v"]
    assert model.keys[0].columns == ("id", "e")
    replica.insert(
        "t",
        [(1, "2026-01-01 00:00:00.000000", "2026-01-02 00:00:00.000000", 1), (1, "2026-01-02 00:00:00.000000", end, 2)],
    )
    replica.run("ALTER TABLE t DROP COLUMN s, DROP COLUMN e, DROP PERIOD FOR SYSTEM_TIME, DROP SYSTEM VERSIONING")
    assert replica.rows("t") == [(1, 2)]


def test_sequences_have_a_model_but_no_table() -> None:
    replica = ReplicaTables(MARIADB)
    assert replica.run("CREATE SEQUENCE sq START WITH 10 INCREMENT BY 5") == []
    model = replica.catalog.tables["sd", "sq"]
    assert model.is_sequence
    assert len(model.columns) == 8
    assert replica.run("RENAME TABLE sq TO sr") == []
    assert replica.run("DROP SEQUENCE sr") == []
    assert replica.catalog.tables == {}


def test_dropping_a_database_drops_its_tables_only(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE a.t (x INT)")
    replica.run("CREATE TABLE b.t (x INT)")
    replica.run("DROP DATABASE a")
    assert list(replica.catalog.tables) == [("b", "t")]
    assert sql_of(replica, "b__t")


@pytest.mark.parametrize(("first", "second"), [("d.T", "d.t"), ("a.b__c", "a__b.c")])
def test_two_tables_with_one_name_in_the_target_are_an_error(replica: ReplicaTables, first: str, second: str) -> None:
    replica.run(f"CREATE TABLE {first} (x INT)")
    with pytest.raises(TargetError, match="would share the name"):
        replica.run(f"CREATE TABLE {second} (x INT)")
    with pytest.raises(TargetError, match="reserved"):
        replica.run("CREATE TABLE sqlite.x (x INT)")
    assert fold("ÄB") == "Äb"


def test_values_of_columns_that_are_added_are_told_apart() -> None:
    context = DdlContext(timestamp=1767225600, microseconds=123456)
    catalog = Catalog().after(plan_ddl("CREATE TABLE t (id INT)", "d", context, Catalog()))
    sql = "ALTER TABLE t ADD a TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), ADD b INT DEFAULT 5"
    sql += ", ADD c INT DEFAULT (rand())"
    (step,) = plan_ddl(sql, "d", context, catalog).steps
    assert isinstance(step, AlterStep)
    kept, now, constant, unknown = ddl.DDL.filled_columns(step, context, original_names=True)
    assert (kept.expression, kept.is_unchanged) == (quote("id"), True)
    assert (now.expression, now.constant) == (literal("2026-01-01 00:00:00.123"), None)
    assert (constant.expression, constant.constant) == ("5", "5")
    assert (unknown.impossible, unknown.expression) == ("1", "NULL")


def test_a_loaded_catalog_is_created_at_once_children_before_parents_too() -> None:
    catalog = load_catalog(
        "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id)); CREATE TABLE p (id INT PRIMARY KEY);", "d"
    )
    connection = ReplicaTables().connection
    for model in catalog.tables.values():
        for statement in ddl.create_table(model, catalog):
            connection.execute(statement)
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute('INSERT INTO "d__p" VALUES (1)')
    connection.execute('INSERT INTO "d__c" VALUES (1)')


def test_a_table_that_gets_an_engine_whose_rows_lie_elsewhere_is_dropped(replica: ReplicaTables) -> None:
    replica.run("CREATE TABLE t (id INT PRIMARY KEY)")
    assert replica.run("CREATE TABLE f (id INT) ENGINE=FEDERATED CONNECTION='mysql://u@h/d/t'") == []
    assert replica.run("TRUNCATE f") == []
    assert replica.run("ALTER TABLE t ENGINE=SPIDER") == [f"DROP TABLE {quote('sd__t')}"]
    assert replica.run("ALTER TABLE t ADD v INT DEFAULT 1") == []
    assert replica.run("DROP TABLE t, f") == []
