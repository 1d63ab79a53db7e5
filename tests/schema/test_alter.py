"""Where each column of an altered table comes from, and what becomes of keys, charsets and partitions."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.alter import Altered, alter, follow_renamed_columns, renamed_columns
from rplctl.schema.alter_clause import parse_alter_table
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.schema.token_stream import TokenStream

CONTEXT = DdlContext()


def table(definitions: str) -> TableModel:
    plan = plan_ddl(f"CREATE TABLE t {definitions}", "d", CONTEXT, Catalog())
    model = plan.model_changes["d", "t"]
    assert model is not None
    return model


def altered(model: TableModel, clauses: str) -> Altered:
    statement = parse_alter_table(TokenStream(f"t {clauses}", CONTEXT), "d")
    return alter(model, statement.operations, CONTEXT, "utf8mb4")


@pytest.mark.parametrize(
    ("clauses", "names", "origins"),
    [
        ("ADD d INT", "abcd", "abc-"),
        ("ADD d INT FIRST", "dabc", "-abc"),
        ("ADD d INT AFTER A, ADD e INT AFTER d", "adebc", "a--bc"),
        ("DROP b, ADD b INT", "acb", "ac-"),
        ("CHANGE a b INT, CHANGE b a INT", "bac", "abc"),
        ("RENAME COLUMN a TO c, RENAME COLUMN c TO a", "cba", "abc"),
        ("MODIFY c INT FIRST", "cab", "cab"),
        ("MODIFY a INT AFTER c, DROP b", "ca", "ca"),
        ("CHANGE a d INT AFTER b", "bdc", "bac"),
        ("ADD IF NOT EXISTS B INT, DROP COLUMN IF EXISTS x", "abc", "abc"),
        ("MODIFY a BIGINT AFTER c, MODIFY c INT FIRST", "cba", "cba"),
        ("ALTER COLUMN IF EXISTS x SET DEFAULT 1, DROP b, ADD IF NOT EXISTS b INT", "ac", "ac"),
    ],
)
def test_columns_and_where_their_values_come_from(clauses: str, names: str, origins: str) -> None:
    found = altered(table("(a INT, b INT, c INT)"), clauses)
    assert [column.name for column in found.model.columns] == list(names)
    assert found.origins == tuple(None if origin == "-" else origin for origin in origins)


@pytest.mark.parametrize("clauses", ["DROP x", "MODIFY x INT", "ADD d INT AFTER x", "ALTER x SET DEFAULT 1"])
def test_a_column_that_is_not_known_stops(clauses: str) -> None:
    with pytest.raises(RplError) as caught:
        altered(table("(a INT)"), clauses)
    assert caught.value.errno == 1054


def test_keys_follow_their_columns_and_lose_those_that_went() -> None:
    model = table("(a INT, b INT, c INT, PRIMARY KEY (a), KEY k (c, b), KEY gone (b), UNIQUE u (c))")
    found = altered(model, "CHANGE a x INT, DROP b, RENAME KEY u TO v").model
    assert [(key.name, key.columns) for key in found.keys] == [("PRIMARY", ("x",)), ("k", ("c",)), ("v", ("c",))]
    assert found.keys[2].stored_as == "d__t::u"
    assert not found.columns[0].nullable
    assert altered(model, "DROP PRIMARY KEY, DROP KEY K").model.primary_key is None


@pytest.mark.parametrize(
    ("clauses", "expressions"),
    [
        ("MODIFY a BIGINT, ADD c INT", ["a + 1", "CONCAT(a,'a',b)"]),
        ("CHANGE a `n``` INT", ["`n``` + 1", "CONCAT(`n```,'a',b)"]),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", ["`b` + 1", "CONCAT(`b`,'a',`a`)"]),
        ("RENAME COLUMN A TO concat", ["`concat` + 1", "CONCAT(`concat`,'a',b)"]),
    ],
)
def test_expressions_change_only_by_the_new_names_of_columns(clauses: str, expressions: list[str]) -> None:
    model = table("(a INT, b INT, g INT AS (a + 1), t VARCHAR(9) AS (CONCAT(a,'a',b)) STORED)")
    found = altered(model, clauses).model
    assert [column.generated for column in found.columns if column.generated] == expressions


def test_what_is_dropped_and_not_known_is_noted() -> None:
    found = altered(table("(a INT, KEY k (a))"), "DROP KEY x, DROP FOREIGN KEY y, DROP CHECK k")
    assert [note.split("'")[1] for note in found.notes] == ["x", "y", "k"]
    assert len(found.model.keys) == 1
    assert altered(table("(a INT, KEY k (a))"), "DROP CONSTRAINT k").model.keys == ()


def test_foreign_keys_follow_the_parents_columns() -> None:
    parent = table("(id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id))")
    found = altered(parent, "RENAME COLUMN id TO new, RENAME COLUMN up TO above")
    (own,) = found.model.foreign_keys
    assert (own.columns, own.ref_columns) == (("above",), ("new",))
    child = table("(p INT, FOREIGN KEY (p) REFERENCES t (id), FOREIGN KEY (p) REFERENCES other (id))")
    first, second = follow_renamed_columns(child, parent, renamed_columns(found)).foreign_keys
    assert (first.ref_columns, second.ref_columns) == (("new",), ("id",))


def test_converted_text_grows_so_that_no_character_is_lost() -> None:
    model = table("(a TINYTEXT, b TEXT, c VARCHAR(9), e CHAR(9) CHARACTER SET binary, n INT) CHARACTER SET latin1")
    found = altered(model, "CONVERT TO CHARACTER SET utf8mb4").model
    assert [column.type for column in found.columns] == ["text", "mediumtext", "varchar", "binary", "int"]
    assert [column.charset for column in found.columns] == ["utf8mb4", "utf8mb4", "utf8mb4", None, None]
    back = altered(found, "CONVERT TO CHARACTER SET latin1").model
    assert [column.type for column in back.columns[:2]] == ["text", "mediumtext"]  # a quarter of the bytes is too long


def test_a_new_default_charset_is_for_columns_that_are_added() -> None:
    found = altered(table("(a CHAR(1)) CHARACTER SET latin1"), "ADD b CHAR(1), DEFAULT CHARACTER SET utf8mb4").model
    assert [column.charset for column in found.columns] == ["latin1", "utf8mb4"]


def test_partitions() -> None:
    model = table(
        "(a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (1), PARTITION q VALUES LESS THAN (2),"
        " PARTITION r VALUES LESS THAN (3))"
    )

    def names(clauses: str) -> list[str]:
        partitioning = altered(model, clauses).model.partitioning
        return [partition.name for partition in partitioning.partitions] if partitioning else []

    assert names("DROP PARTITION Q") == ["p", "r"]
    assert names("TRUNCATE PARTITION q") == ["p", "q", "r"]
    assert names("ADD PARTITION (PARTITION s VALUES LESS THAN (4))") == ["p", "q", "r", "s"]
    two = "(PARTITION x VALUES LESS THAN (1), PARTITION y VALUES LESS THAN (3))"
    assert names(f"REORGANIZE PARTITION q, r INTO {two}") == ["p", "x", "y"]
    assert names("REMOVE PARTITIONING") == []
