"""Models after statements: inherited charsets, implicit keys, errors with MySQL's numbers; nothing of the target."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.alter import alter
from rplctl.schema.column_definition import parse_column
from rplctl.schema.context import DdlContext
from rplctl.schema.data_type import charset_of, normalize, parse_data_type
from rplctl.schema.lexer import expand, tokenize
from rplctl.schema.model import Column, TableModel
from rplctl.schema.plan import Catalog, DatabaseModel, plan_ddl
from rplctl.schema.statement import AddColumn, DropColumn
from rplctl.schema.structure import END_OF_TIME, add_versioning, resolve_charsets
from rplctl.schema.table_definition import parse_definitions, parse_partitioning
from rplctl.schema.token_stream import TokenStream


def after(*statements: str, context: DdlContext | None = None) -> Catalog:
    catalog = Catalog()
    for sql in statements:
        catalog = catalog.after(plan_ddl(sql, "d", context or DdlContext(), catalog))
    return catalog


def model(*statements: str, context: DdlContext | None = None) -> TableModel:
    return after(*statements, context=context).tables["d", "t"]


def charsets(table: TableModel) -> list[tuple[str | None, str | None]]:
    return [(column.charset, column.collation) for column in table.columns]


def test_columns_inherit_from_table_table_from_database_database_from_server() -> None:
    context = DdlContext(charset="latin1", collation="latin1_swedish_ci")
    assert charsets(model("CREATE DATABASE d", "CREATE TABLE t (a CHAR)", context=context)) == [
        ("latin1", "latin1_swedish_ci")
    ]
    create = "CREATE DATABASE d COLLATE utf8mb4_bin"
    assert charsets(model(create, "CREATE TABLE t (a CHAR, b INT)", context=context)) == [
        ("utf8mb4", "utf8mb4_bin"),
        (None, None),
    ]
    table = "CREATE TABLE t (a CHAR, b CHAR COLLATE greek_bin, c CHAR CHARSET latin2, e CHAR BINARY) CHARSET=ascii"
    assert charsets(model(create, table)) == [
        ("ascii", None),
        ("greek", "greek_bin"),
        ("latin2", None),
        ("ascii", "ascii_bin"),
    ]
    assert charsets(model("ALTER DATABASE d CHARACTER SET utf8", "CREATE TABLE t (a TEXT)")) == [("utf8mb3", None)]
    mariadb = DdlContext(server_version="11.8.2-MariaDB")
    table = "CREATE TABLE t (a CHAR) COLLATE=uca1400_ai_ci"
    assert charsets(model("CREATE DATABASE d CHARSET utf8mb4", table, context=mariadb)) == [
        ("utf8mb4", "uca1400_ai_ci")
    ]


def test_converting_a_table_grows_its_texts_as_the_server_does() -> None:
    table = model(
        "CREATE TABLE t (a TINYTEXT, b TEXT, c VARCHAR(9), e ENUM('x')) CHARSET latin1",
        "ALTER TABLE t CONVERT TO CHARSET utf8mb4",
    )
    assert [column.type for column in table.columns] == ["text", "mediumtext", "varchar", "enum"]
    assert charsets(table) == [("utf8mb4", None)] * 4
    assert table.charset == "utf8mb4"


def test_a_new_table_default_counts_for_added_columns_only() -> None:
    table = model(
        "CREATE TABLE t (a CHAR) CHARSET latin1", "ALTER TABLE t ADD b CHAR, DEFAULT CHARSET utf8mb4, ADD c TEXT(100)"
    )
    assert [(c.type, c.charset) for c in table.columns] == [
        ("char", "latin1"),
        ("char", "utf8mb4"),
        ("text", "utf8mb4"),
    ]


def test_foreign_keys_bring_a_key_until_another_serves() -> None:
    table = model(
        "CREATE TABLE t (a INT, b INT, FOREIGN KEY (a) REFERENCES p (x), CONSTRAINT f FOREIGN KEY (b) REFERENCES p (x))"
    )
    assert [(key.name, key.implicit) for key in table.keys] == [("a", True), ("f", True)]
    assert [key.name for key in table.foreign_keys] == ["t_ibfk_1", "f"]
    table = model(
        "CREATE TABLE t (a INT, b INT, FOREIGN KEY (a) REFERENCES p (x))",
        "ALTER TABLE t ADD KEY ab (a, b)",
        "ALTER TABLE t ADD FOREIGN KEY (b) REFERENCES q (x)",
    )
    assert [key.name for key in table.keys] == ["ab", "b"]
    assert [key.name for key in table.foreign_keys] == ["t_ibfk_1", "t_ibfk_2"]


def test_references_without_columns_mean_the_parents_primary_key() -> None:
    table = model(
        "CREATE TABLE p (x INT, y INT, PRIMARY KEY (y))", "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p)"
    )
    assert table.foreign_keys[0].ref_columns == ("y",)


def test_dropped_columns_leave_their_keys() -> None:
    table = model(
        "CREATE TABLE t (a INT, b INT, c INT, KEY k (a, b), KEY l (a))", "ALTER TABLE t DROP a, CHANGE b z INT NOT NULL"
    )
    assert [(key.name, key.columns) for key in table.keys] == [("k", ("z",))]


def test_adding_a_primary_key_makes_its_columns_not_null() -> None:
    table = model("CREATE TABLE t (a INT, b INT)", "ALTER TABLE t ADD PRIMARY KEY (b)")
    assert [column.nullable for column in table.columns] == [True, False]
    assert not model("CREATE TABLE t (a INT PRIMARY KEY)", "ALTER TABLE t MODIFY a BIGINT").columns[0].nullable


def test_what_only_the_source_knows_of_indexes_is_noted_not_fatal() -> None:
    catalog = after("CREATE TABLE t (a INT)")
    plan = plan_ddl(
        "ALTER TABLE t DROP INDEX gone, DROP FOREIGN KEY f, DROP CHECK c, RENAME INDEX x TO y",
        "d",
        DdlContext(),
        catalog,
    )
    assert len(plan.notes) == 4
    assert plan.model_changes["d", "t"] == catalog.tables["d", "t"]


@pytest.mark.parametrize(
    ("sql", "errno"),
    [
        ("CREATE TABLE t (a INT)", 1050),
        ("DROP TABLE gone", 1051),
        ("ALTER TABLE gone ADD a INT", 1146),
        ("TRUNCATE gone", 1146),
        ("RENAME TABLE gone TO x", 1146),
        ("RENAME TABLE t TO u", 1050),
        ("CREATE TABLE x LIKE gone", 1146),
        ("ALTER TABLE t DROP z", 1054),
        ("ALTER TABLE t MODIFY z INT", 1054),
        ("ALTER TABLE t ADD z INT AFTER y", 1054),
        ("ALTER TABLE t ALTER z SET DEFAULT 1", 1054),
        ("ALTER TABLE t ADD a INT", 1060),
        ("CREATE TABLE x (a INT, A INT)", 1060),
        ("ALTER TABLE t ADD KEY k (a)", 1061),
        ("ALTER TABLE t ADD KEY (z)", 1072),
    ],
)
def test_what_does_not_fit_the_models_has_mysqls_number(sql: str, errno: int) -> None:
    catalog = after("CREATE TABLE t (a INT, KEY k (a))", "CREATE TABLE u (a INT)")
    with pytest.raises(RplError) as caught:
        plan_ddl(sql, "d", DdlContext(), catalog)
    assert caught.value.errno == errno


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE IF NOT EXISTS t (b INT)",
        "DROP TABLE IF EXISTS gone",
        "ALTER TABLE IF EXISTS gone ADD a INT",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT, DROP COLUMN IF EXISTS z, MODIFY COLUMN IF EXISTS z INT",
        "ALTER TABLE t ADD INDEX IF NOT EXISTS k (a)",
        "CREATE INDEX IF NOT EXISTS k ON t (a)",
        "RENAME TABLE IF EXISTS gone TO x",
        "CREATE DATABASE IF NOT EXISTS d CHARSET latin1",
        "CREATE VIEW v AS SELECT 1",
        "FLUSH TABLES",
    ],
)
def test_conditional_statements_change_nothing_when_the_condition_fails(sql: str) -> None:
    catalog = after("CREATE DATABASE d", "CREATE TABLE t (a INT, KEY k (a))")
    assert catalog.after(plan_ddl(sql, "d", DdlContext(), catalog)) == catalog


def test_a_drop_that_failed_in_part_on_the_source_drops_the_rest() -> None:
    catalog = after("CREATE TABLE t (a INT)")
    plan = plan_ddl("DROP TABLE t, gone", "d", DdlContext(error_code=1051), catalog)
    assert plan.model_changes == {("d", "t"): None}


def test_create_or_replace_and_repeated_changes_end_in_the_last_model() -> None:
    table = model(
        "CREATE TABLE t (a INT)",
        "CREATE OR REPLACE TABLE t (b INT)",
        context=DdlContext(server_version="10.5.1-MariaDB"),
    )
    assert [column.name for column in table.columns] == ["b"]
    assert after("CREATE TABLE t (a INT)", "RENAME TABLE t TO u, u TO v, v TO t").tables.keys() == {("d", "t")}


def test_unreplicated_statements_are_handed_to_the_operators_policy() -> None:
    plan = plan_ddl("CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a=1", "d", DdlContext(), Catalog())
    assert [item.kind for item in plan.unreplicated] == ["trigger"]
    assert plan.steps == ()


def test_create_like_copies_all_but_foreign_keys() -> None:
    table = model(
        "CREATE TABLE s (a INT NOT NULL, b CHAR CHARSET latin1, UNIQUE u (b), FOREIGN KEY (a) REFERENCES p (x))",
        "CREATE TABLE t LIKE s",
    )
    assert (len(table.columns), [key.name for key in table.keys], table.foreign_keys) == (2, ["u", "a"], ())


def test_alter_is_pure_and_tells_where_columns_come_from() -> None:
    old = model("CREATE TABLE t (a INT, b INT)")
    altered = alter(old, (DropColumn("A"), AddColumn(Column(name="c", type="int"), "")), DdlContext(), "utf8mb4")
    assert altered.origins == (None, "b")
    assert [column.name for column in old.columns] == ["a", "b"]


def test_parts_of_the_grammar_stand_alone() -> None:
    context = DdlContext()
    kinds = [token.kind for token in tokenize(expand("a /*!1*/ `b` 'c' x'41' 1.5e3 ->> -- d", context), context)]
    assert kinds == ["word", "number", "quoted", "string", "bits", "number", "symbol", "end"]
    column, constraints = parse_column(TokenStream("INT UNIQUE CHECK (a > 1)", context), "d", "a")
    assert (column.type, len(constraints)) == ("int", 2)
    assert parse_data_type(TokenStream("ENUM('a')", context), "e").column.labels == ("a",)
    assert len(parse_definitions(TokenStream("(a INT, KEY (a))", context), "d").constraints) == 1
    assert parse_partitioning(TokenStream("HASH (a) PARTITIONS 4", context)).method == "HASH"
    assert normalize(Column(name="a", type="char")).length == 1
    assert (charset_of("utf8mb3_bin"), charset_of("uca1400_ai_ci")) == ("utf8mb3", None)
    table = resolve_charsets(
        TableModel(database="d", name="t", columns=(Column(name="a", type="char", length=1),)), "latin1", None
    )
    assert table.columns[0].charset == "latin1"
    assert add_versioning(table).columns[-1].name == "row_end"
    assert END_OF_TIME.startswith("2038")


def test_a_database_can_be_forgotten_and_known_again() -> None:
    catalog = after("CREATE DATABASE d CHARSET latin1", "DROP DATABASE d")
    assert catalog.databases == {}
    assert after("CREATE DATABASE x CHARSET latin1 COLLATE latin1_bin").databases == {
        "x": DatabaseModel(name="x", charset="latin1", collation="latin1_bin")
    }


def test_the_changes_between_two_catalogs_make_the_later_of_the_earlier() -> None:
    earlier = after("CREATE DATABASE x", "CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", "CREATE TABLE v (a INT)")
    later = earlier
    for sql in ("ALTER TABLE t ADD b INT", "DROP TABLE u", "CREATE TABLE w (a INT)", "DROP DATABASE x"):
        later = later.after(plan_ddl(sql, "d", DdlContext(), later))
    tables, databases = earlier.changes_to(later)
    assert {name: model is None for (_, name), model in tables.items()} == {"t": False, "u": True, "w": False}
    assert databases == {"x": None}
    assert earlier.changed(tables, databases) == later
    assert earlier.changes_to(earlier) == ({}, {})


def test_a_created_table_replaces_a_model_that_was_read_from_the_source_of_today() -> None:
    """A lake of changes that begins in the middle of the log: the log is only about to create the table."""
    today = after("CREATE TABLE t (a INT, b INT)", "CREATE TABLE other (a INT)")
    plan = plan_ddl("CREATE TABLE t (a INT)", "d", DdlContext(), today, may_replace=True)
    assert [type(step).__name__ for step in plan.steps] == ["CreateStep"]
    assert [column.name for column in today.after(plan).tables["d", "t"].columns] == ["a"]
    kept = plan_ddl("CREATE TABLE IF NOT EXISTS t (a INT)", "d", DdlContext(), today, may_replace=True)
    assert today.after(kept).tables.keys() == {("d", "t"), ("d", "other")} and not kept.steps


def test_a_key_without_overlaps_is_one_of_the_periods_columns() -> None:
    create = "CREATE TABLE t (id INT, b DATE, e DATE, PERIOD FOR p (b, e), PRIMARY KEY (id, P WITHOUT OVERLAPS))"
    mariadb = DdlContext(server_version="10.11.6-MariaDB")
    keys = model("CREATE DATABASE d", create, context=mariadb).keys
    assert [(key.kind, key.columns) for key in keys] == [("primary", ("id", "e", "b"))]


def test_a_foreign_key_that_a_target_would_judge_otherwise_is_noted() -> None:
    catalog = after("CREATE DATABASE d", "CREATE TABLE p (c CHAR(3) PRIMARY KEY)")
    child = "CREATE TABLE t (c CHAR(3) {}, CONSTRAINT f FOREIGN KEY (c) REFERENCES p (c) {})"
    left_out = "Foreign key 'f' of 'd.t' is omitted: a collation compares its text"
    assert plan_ddl(child.format("", ""), "d", DdlContext(), catalog).notes == (left_out,)
    assert plan_ddl(child.format("", "ON DELETE CASCADE"), "d", DdlContext(), catalog).notes == ()
    exact = child.format("COLLATE utf8mb4_0900_bin", "")
    assert plan_ddl(exact, "d", DdlContext(server_version="9.0.0"), catalog).notes == ()


def test_null_after_auto_increment_holds_as_on_both_servers() -> None:
    nullable = [model("CREATE DATABASE d", f"CREATE TABLE t (id {words} UNIQUE)").columns[0].nullable
                for words in ("INT AUTO_INCREMENT NULL", "INT NULL AUTO_INCREMENT", "INT NULL NOT NULL")]  # fmt: skip
    assert nullable == [True, False, False]
    assert model("CREATE DATABASE d", "CREATE TABLE t (id SERIAL NULL)").columns[0].nullable
