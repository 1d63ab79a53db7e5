"""Text stays the bytes of the column's own charset; labels go as numbers."""

from __future__ import annotations

import pytest

from rplctl.event.column import ColumnFormat
from rplctl.event.table_map import ColumnType
from rplctl.schema.model import Column, TableModel
from rplctl.target.base import Value
from rplctl.target.mysql.form import FORM

LATIN = Column(name="c", type="varchar", length=9, charset="latin1")


def test_text_of_the_columns_charset_is_not_decoded() -> None:
    fmt = ColumnFormat(type_code=ColumnType.VARCHAR, metadata=9, charset="latin1", sql_type="varchar")
    assert FORM.format_for(fmt, LATIN).charset is None
    other = Column(name="c", type="varchar", length=9, charset="utf8mb4")
    assert FORM.format_for(fmt, other) is fmt
    assert FORM.format_for(fmt, Column(name="c", type="varbinary", length=9)) is fmt


def test_a_char_is_not_padded_as_a_binary_is() -> None:
    fmt = ColumnFormat(type_code=ColumnType.STRING, metadata=0xFE << 8 | 9, charset="latin1", sql_type="char")
    found = FORM.format_for(fmt, Column(name="c", type="char", length=9, charset="latin1"))
    assert (found.type_code, found.metadata, found.charset) == (ColumnType.VARCHAR, 0, None)


def test_labels_are_numbers_and_a_short_year_is_whole() -> None:
    fmt = ColumnFormat(
        type_code=ColumnType.STRING, metadata=ColumnType.ENUM << 8 | 1, charset="latin1", labels=("a",), sql_type="enum"
    )
    found = FORM.format_for(fmt, Column(name="c", type="enum", charset="latin1", labels=("a",)))
    assert (found.type_code, found.unsigned) == (ColumnType.LONGLONG, True)
    year = ColumnFormat(type_code=ColumnType.YEAR, sql_type="year(2)")
    assert FORM.format_for(year, Column(name="c", type="year", length=2)).sql_type == "year"


def test_only_text_of_the_columns_own_charset_is_loaded_in_bulk() -> None:
    model = TableModel(
        database="d",
        name="t",
        columns=(Column(name="id", type="int"), LATIN, Column(name="own", type="varchar", length=9, charset="utf8mb4")),
    )
    number = ColumnFormat(type_code=ColumnType.LONG)
    assert FORM.encodes([number, ColumnFormat(type_code=ColumnType.VARCHAR, metadata=9, charset="latin1")], model)
    assert not FORM.encodes([number, ColumnFormat(type_code=ColumnType.VARCHAR, metadata=9, charset="utf8mb4")], model)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (LATIN, b"\xe9\\", b"\xe9\\"),
        (LATIN, "é", "é".encode()),
        (Column(name="c", type="double"), 0.5, b"0.5e0"),
        (Column(name="c", type="int"), -3, b"-3"),
        (Column(name="c", type="year"), 0, b"0000"),
        (Column(name="c", type="year"), 2024, b"2024"),
    ],
)
def test_fields_of_a_bulk_load(column: Column, value: Value, expected: bytes) -> None:
    assert FORM.field_text(column, value) == expected
