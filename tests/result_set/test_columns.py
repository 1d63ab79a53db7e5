"""What is selected of each type, and the layout of its cells."""

from __future__ import annotations

import pytest

from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.column import ColumnFormat, cell_layout, char_length
from rplctl.event.table_map import ColumnType
from rplctl.result_set.columns import CellAction, SelectedColumn, selected_columns
from rplctl.schema.model import Column
from rplctl.sql_text import backticked


@pytest.mark.parametrize(
    ("column", "expression", "layout"),
    [
        (Column(name="a`b", type="mediumint"), "`a``b`", (0, 3)),
        (Column(name="e", type="enum", labels=("x",) * 300), "CAST(`e` AS UNSIGNED)", (0, 2)),
        (Column(name="e", type="enum"), "CONVERT(`e` USING utf8mb4)", (2, 0)),
        (Column(name="s", type="set", labels=("x",) * 40), "CAST(`s` AS UNSIGNED)", (0, 8)),
        (Column(name="t", type="mediumtext", charset="latin1"), "`t`", (3, 0)),
        (Column(name="c", type="char", length=255, charset="utf8mb4"), "`c`", (2, 0)),
        (Column(name="b", type="bit", length=9), "`b`", (0, 2)),
        (Column(name="d", type="decimal", length=65, scale=30), "`d`", (0, 30)),
        (Column(name="t", type="timestamp", length=3), "`t`", (0, 6)),
        (Column(name="u", type="inet6"), "CAST(`u` AS BINARY(16))", (1, 0)),
    ],
)
def test_a_column_has_the_layout_that_a_table_map_gives_it(
    column: Column, expression: str, layout: tuple[int, int]
) -> None:
    (found,) = selected_columns([column])
    assert (found.expression, cell_layout(found.format)) == (expression, layout)


def test_binary_columns_lose_the_zeros_that_are_not_logged_and_keep_their_length() -> None:
    (found,) = selected_columns([Column(name="b", type="binary", length=255)])
    assert found.action is CellAction.TRIM and char_length(found.format.metadata) == 255


def test_labels_that_nobody_knows_are_numbers_where_the_target_takes_numbers() -> None:
    (found,) = selected_columns([Column(name="e", type="enum")], takes_numbers=True)
    assert found.expression == "CAST(`e` AS UNSIGNED)" and cell_layout(found.format) == (0, 2)


def test_a_type_that_is_not_known_is_refused() -> None:
    with pytest.raises(RplError) as caught:
        selected_columns([Column(name="x", type="xmltype")])
    assert caught.value.errno == 1235


@pytest.mark.parametrize(
    "column",
    [
        Column(name="d", type="decimal", length=10, scale=1 << 31),
        Column(name="d", type="decimal", length=10, scale=256),
        Column(name="d", type="decimal", length=10, scale=-1),
        Column(name="d", type="decimal", length=66, scale=0),
        Column(name="d", type="decimal", length=0, scale=0),
        Column(name="d", type="decimal", length=65, scale=39),
        Column(name="d", type="decimal", length=1 << 62, scale=2),
        Column(name="t", type="datetime", length=7),
        Column(name="t", type="time", length=1 << 40),
        Column(name="b", type="bit", length=65),
        Column(name="b", type="bit", length=-8),
        Column(name="c", type="char", length=1 << 31),
        Column(name="c", type="binary", length=1024),
        Column(name="c", type="varchar", length=-1),
        Column(name="s", type="set", labels=("x",) * 65),
        Column(name="e", type="enum", labels=("x",) * 65536),
    ],
    ids=lambda column: f"{column.type} {column.length} {column.scale} {len(column.labels)}",
)
def test_a_definition_that_no_table_map_could_have_is_refused(column: Column) -> None:
    for takes_numbers in (False, True):
        with pytest.raises(BinlogFormatError):
            selected_columns([column], takes_numbers=takes_numbers)


def test_a_decimal_beyond_the_limits_of_servers_is_refused_with_those() -> None:
    with pytest.raises(BinlogFormatError, match=r"`n` .*decimal\(9,200\), which has at most 65 digits, 38 of them"):
        selected_columns([Column(name="n", type="decimal", length=9, scale=200)])


def test_a_selected_column_cannot_have_cells_of_another_size_than_its_format() -> None:
    with pytest.raises(BinlogFormatError, match="cells of 4 bytes, not 5"):
        SelectedColumn(
            backticked("d"), ColumnFormat(type_code=ColumnType.NEWDECIMAL, metadata=10 << 8 | 2), CellAction.DECIMAL, 4
        )
