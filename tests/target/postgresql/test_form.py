"""Fields of a bulk load are texts that PostgreSQL reads as the value; rows with computed columns go otherwise."""

from __future__ import annotations

import pytest

from rplctl.errors import TargetError
from rplctl.event.column import ColumnFormat
from rplctl.event.table_map import ColumnType
from rplctl.schema.model import Column, TableModel
from rplctl.target.base import Value
from rplctl.target.postgresql.form import FORM


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (Column(name="c", type="bit", length=4), 5, b"0101"),
        (Column(name="c", type="double"), 0.1, b"0.1"),
        (Column(name="c", type="datetime"), "0000-00-00 00:00:00", b"-infinity"),
        (Column(name="c", type="varchar", length=10), "0000-00-00", b"0000-00-00"),
        (Column(name="c", type="blob"), memoryview(b"\x00\xff"), b"\\x00ff"),
        (Column(name="c", type="text"), "é\t", "é\t".encode()),
        (Column(name="c", type="int"), None, b""),
    ],
)
def test_a_field_is_the_value(column: Column, value: Value, expected: bytes) -> None:
    assert FORM.field_text(column, value) == expected


def test_text_that_postgresql_has_not_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        FORM.field_text(Column(name="c", type="text"), "\ud800")
    assert caught.value.errno == 1366
    assert FORM.field_text(Column(name="c", type="text"), "a\0") == b"a\0"  # decided where the option is known


def test_only_tables_without_computed_columns_are_encoded() -> None:
    plain = (Column(name="a", type="int"),)
    assert FORM.encodes([], TableModel(database="d", name="t", columns=plain))
    assert not FORM.encodes(
        [], TableModel(database="d", name="t", columns=(*plain, Column(name="g", type="int", generated="1")))
    )
    fmt = ColumnFormat(type_code=ColumnType.LONG)
    assert FORM.format_for(fmt, plain[0]) is fmt
