"""Parts of DDL that every kind writes alike: keys, defaults, columns that follow a rename."""

from __future__ import annotations

from functools import partial

import pytest

from rplctl.schema.model import Column, ForeignKey, Key, KeyKind, KeyPart, TableModel
from rplctl.schema.plan import Catalog
from rplctl.sql_text import NOTHING, number, proven_statement as as_sql, written
from rplctl.target.ddl_parts import (
    actions,
    clustered_key,
    column_line,
    computed_values,
    constant_default,
    is_enforceable,
    is_in_order,
    is_indexed,
    is_required,
    quote,
    rename_column,
    text_literal,
    with_renamed_columns,
)

COLUMNS = (
    Column(name="a", type="int", nullable=False),
    Column(name="b", type="int"),
    Column(name="c", type="int", nullable=False),
)


def key(name: str, kind: KeyKind, columns: str) -> Key:
    return Key(name=name, kind=kind, parts=tuple(map(KeyPart, columns)))


def test_names_and_texts_end_at_no_quote_of_their_own() -> None:
    assert quote('a"b') == '"a""b"'
    assert text_literal("it's") == "'it''s'"
    assert rename_column(as_sql('"t"'), "a", 'b"') == 'ALTER TABLE "t" RENAME COLUMN "a" TO "b"""'


def test_the_line_of_a_column() -> None:
    assert column_line(COLUMNS[0], as_sql("INT"), as_sql("5")) == '"a" INT NOT NULL DEFAULT 5'
    assert column_line(COLUMNS[1], NOTHING, NOTHING) == '"b"'
    made = Column(name="g", type="int", nullable=False, generated="1")
    assert not is_required(made) and column_line(made, as_sql("INT"), NOTHING) == '"g" INT'


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (Column(name="c", type="int", default="5"), 5),
        (Column(name="c", type="int", default="(2 + 3)"), 5),
        (Column(name="c", type="int", default="(d + 3)"), None),
        (Column(name="c", type="varchar", length=36, default="(uuid())"), None),
        (Column(name="c", type="int", default="NULL"), None),
        (Column(name="c", type="int", nullable=False), None),
        (Column(name="c", type="datetime", default="current_timestamp()"), None),
        (Column(name="c", type="timestamp", default="'2024-01-01 00:00:00'"), None),
        (Column(name="c", type="date", default="'2024-01-01'"), "2024-01-01"),
        (Column(name="c", type="int", default="5", generated="1"), None),
    ],
)
def test_a_default_that_hangs_on_nothing_else(column: Column, value: object) -> None:
    assert constant_default(column) == value


def test_rows_lie_in_the_order_of_the_primary_key_or_of_the_first_without_nulls() -> None:
    keys = (key("u", "unique", "ab"), key("v", "unique", "ca"), key("w", "unique", "a"))
    table = TableModel(database="d", name="t", columns=COLUMNS, keys=keys)
    assert clustered_key(table) is keys[1]
    assert clustered_key(
        TableModel(database="d", name="t", columns=COLUMNS, keys=(*keys, key("PRIMARY", "primary", "b")))
    ) == key("PRIMARY", "primary", "b")
    assert (
        clustered_key(TableModel(database="d", name="t", columns=COLUMNS, keys=(keys[0], key("i", "index", "a"))))
        is None
    )


def test_a_foreign_key_needs_a_key_over_the_same_columns_of_a_parent_that_is_there() -> None:
    parent = TableModel(
        database="d", name="p", columns=COLUMNS, keys=(key("u", "unique", "ba"), key("i", "index", "c"))
    )
    child = TableModel(database="d", name="t", columns=COLUMNS, keys=(key("PRIMARY", "primary", "a"),))
    catalog = Catalog({("d", "p"): parent})

    def possible(table: str, *columns: str) -> bool:
        return is_enforceable(
            ForeignKey(name="f", columns=columns, ref_database="d", ref_table=table, ref_columns=columns),
            child,
            catalog,
        )

    assert possible("p", "A", "b") and not possible("p", "c") and not possible("p", "a") and not possible("p")
    assert possible("t", "a") and not possible("t", "b")
    assert possible("later", "c")


def test_restrict_is_no_action() -> None:
    assert (
        actions(
            ForeignKey(
                name="f",
                columns=(),
                ref_database="d",
                ref_table="t",
                ref_columns=(),
                on_delete="CASCADE",
                on_update="SET NULL",
            )
        )
        == " ON DELETE CASCADE ON UPDATE SET NULL"
    )
    assert (
        actions(
            ForeignKey(
                name="f",
                columns=(),
                ref_database="d",
                ref_table="t",
                ref_columns=(),
                on_delete="RESTRICT",
                on_update="SET DEFAULT",
            )
        )
        == ""
    )


def test_what_is_indexed_and_what_every_target_orders_alike() -> None:
    assert is_indexed(key("k", "unique", "a")) and is_indexed(key("k", "index", "a"))
    assert not is_indexed(key("k", "fulltext", "a")) and not is_indexed(key("k", "primary", "a"))
    assert not is_indexed(Key(name="k", kind="index", parts=(KeyPart("", expression="a + 1"),)))
    assert is_in_order(Column(name="c", type="varbinary")) and not is_in_order(Column(name="c", type="varchar"))


def test_a_generated_column_is_computed_of_given_ones() -> None:
    columns = (
        *COLUMNS,
        Column(name="g", type="int", generated="`a` * (b + 1)"),
        Column(name="h", type="int", generated="`c` - 1"),
    )
    table = TableModel(database="d", name="t", columns=columns)
    value, cast = "(<0>! * ( <1>! + 1 ))", partial(written, "{}!")
    low, high = -2147483648, 2147483647
    assert computed_values(table, {0: written("?1")}, lambda c: as_sql(f"<{c}>"), cast) == {
        3: f"CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END"
    }
    assert computed_values(table, {0: written("?1"), 3: written("?2")}, number, cast) == {}
    assert computed_values(table, {2: written("?1"), 1: written("?2")}, number, cast).keys() == {3, 4}


def test_a_rename_takes_keys_along_and_indexes_keep_their_names() -> None:
    keys = (key("PRIMARY", "primary", "a"), key("k", "index", "ba"))
    table = TableModel(
        database="d",
        name="t",
        columns=COLUMNS,
        keys=keys,
        foreign_keys=(
            ForeignKey(name="f", columns=("b", "c"), ref_database="d", ref_table="p", ref_columns=("b", "x")),
        ),
    )
    renamed = with_renamed_columns(table, {"a": "b", "b": "a"})
    assert [column.name for column in renamed.columns] == ["b", "a", "c"]
    assert [key.columns for key in renamed.keys] == [("b",), ("a", "b")]
    assert renamed.keys[1].stored_as == "d__t::k"
    assert (renamed.foreign_keys[0].columns, renamed.foreign_keys[0].ref_columns) == (("a", "c"), ("b", "x"))
