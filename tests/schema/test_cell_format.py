"""What a model says of its cells goes where a table map is silent."""

from __future__ import annotations

from rplctl.event.column import ColumnFormat
from rplctl.schema.cell_format import known_formats
from rplctl.schema.model import Column


def test_a_model_tells_charsets_labels_signs_and_words() -> None:
    columns = (
        Column(name="a", type="bigint", unsigned=True),
        Column(name="b", type="varchar", length=9, charset="latin1"),
        Column(name="c", type="binary", length=3),
        Column(name="d", type="enum", charset="utf8mb4", labels=("x", "y")),
        Column(name="e", type="time", length=3),
        Column(name="f", type="year", length=2),
    )
    assert known_formats(columns) == (
        ColumnFormat(type_code=0, unsigned=True, sql_type="bigint"),
        ColumnFormat(type_code=0, charset="latin1", sql_type="varchar"),
        ColumnFormat(type_code=0, charset="binary", sql_type="binary"),
        ColumnFormat(type_code=0, charset="utf8mb4", labels=("x", "y"), sql_type="enum"),
        ColumnFormat(type_code=0, sql_type="time(3)"),
        ColumnFormat(type_code=0, sql_type="year(2)"),
    )
