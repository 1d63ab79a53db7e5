"""What a model says of its cells goes where a table map is silent."""

from __future__ import annotations

from rplctl.event.column import ColumnFormat
from rplctl.schema.cell_format import known_formats
from rplctl.schema.model import Column


def test_a_model_tells_charsets_labels_signs_and_words() -> None:
    columns = (
        Column("a", "bigint", unsigned=True),
        Column("b", "varchar", length=9, charset="latin1"),
        Column("c", "binary", length=3),
        Column("d", "enum", charset="utf8mb4", labels=("x", "y")),
        Column("e", "time", length=3),
        Column("f", "year", length=2),
    )
    assert known_formats(columns) == (
        ColumnFormat(0, unsigned=True, sql_type="bigint"),
        ColumnFormat(0, charset="latin1", sql_type="varchar"),
        ColumnFormat(0, charset="binary", sql_type="binary"),
        ColumnFormat(0, charset="utf8mb4", labels=("x", "y"), sql_type="enum"),
        ColumnFormat(0, sql_type="time(3)"),
        ColumnFormat(0, sql_type="year(2)"),
    )
