"""The width of a column's cells and what a column is, from the table map and from the table's model."""

from __future__ import annotations

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.column import ColumnFormat, cell_layout, column_formats
from rplctl.event.table_map import ColumnType, TableMap


def table_map(**logged: object) -> TableMap:
    codes = (ColumnType.LONG, ColumnType.STRING, ColumnType.VARCHAR)
    return TableMap(
        table_id=1,
        flags=0,
        database="db",
        table="t",
        type_codes=tuple(map(int, codes)),
        metadata=(0, 0xF701, 40),
        nullable=(True,) * 3,
        **logged,  # type: ignore[arg-type]
    )


KNOWN = [
    ColumnFormat(type_code=0, unsigned=True),
    ColumnFormat(type_code=0, charset="latin1", labels=("a", "é")),
    ColumnFormat(type_code=0, charset="utf8mb4", sql_type="varchar"),
]


@pytest.mark.parametrize(
    ("fmt", "layout"),
    [
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xFE00 | 200), (1, 0)),
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xEEFC), (2, 0)),  # CHAR(255) of utf8mb4: 1020 bytes
        (ColumnFormat(type_code=ColumnType.VARCHAR, metadata=255), (1, 0)),
        (ColumnFormat(type_code=ColumnType.VARCHAR, metadata=256), (2, 0)),
        (ColumnFormat(type_code=ColumnType.BIT, metadata=1 << 8 | 1), (0, 2)),
        (ColumnFormat(type_code=ColumnType.NEWDECIMAL, metadata=10 << 8 | 2), (0, 5)),
        (ColumnFormat(type_code=ColumnType.DATETIME2, metadata=3), (0, 7)),
        (ColumnFormat(type_code=ColumnType.DATETIME), (0, 8)),
        (ColumnFormat(type_code=ColumnType.DATETIME, sql_type="datetime(3)"), (0, 7)),
        (ColumnFormat(type_code=ColumnType.STRING, metadata=0xF802), (0, 2)),
        (ColumnFormat(type_code=ColumnType.JSON, metadata=4), (4, 0)),
    ],
)
def test_cell_layout(fmt: ColumnFormat, layout: tuple[int, int]) -> None:
    assert cell_layout(fmt) == layout


@pytest.mark.parametrize(
    ("code", "metadata"),
    [(ColumnType.DECIMAL, 0), (99, 0), (ColumnType.BLOB, 5), (ColumnType.NEWDECIMAL, 5 << 8 | 6)]
    + [(ColumnType.TIME2, 7), (ColumnType.BIT, 9 << 8), (ColumnType.STRING, 0xF709), (ColumnType.TYPED_ARRAY, 0)]
    + [(ColumnType.BIT, 255), (ColumnType.BIT, 8 << 8 | 1), (ColumnType.BIT, 0), (ColumnType.STRING, 0xF703)],
)
def test_metadata_that_no_server_writes_stops(code: int, metadata: int) -> None:
    with pytest.raises(BinlogFormatError, match="unknown column type"):
        cell_layout(ColumnFormat(type_code=code, metadata=metadata))


def test_the_table_model_fills_in_what_the_source_did_not_log() -> None:
    number, enum, text = column_formats(table_map(), KNOWN)
    assert (number.unsigned, enum.labels, text.charset, text.metadata) == (True, ("a", "é"), "utf8mb4", 40)


def test_what_the_source_logged_wins() -> None:
    logged = table_map(unsigned=(False,) * 3, charsets=(0, 8, 63), labels=(None, (b"\xe9",), None))
    number, enum, text = column_formats(logged, KNOWN)
    assert (number.unsigned, enum.labels, enum.charset, text.charset) == (False, ("é",), "latin1", "binary")


@pytest.mark.parametrize("known", [("ä", "ö"), ("x", "y", "z"), None])
def test_members_that_a_change_of_charset_left_in_the_old_one_are_the_known_ones(known: tuple[str, ...] | None) -> None:
    """ALTER TABLE … CONVERT TO CHARACTER SET: MySQL 9 and MariaDB 10.11 go on logging the members of before."""
    model = [*KNOWN[:1], ColumnFormat(type_code=0, charset="utf8mb4", labels=known), *KNOWN[2:]]
    for collation, charset in ((45, "utf8mb4"), (7, "koi8r")):  # koi8r has other letters for the same bytes
        logged = table_map(charsets=(0, collation, 45), labels=(None, (b"\xe4", b"\xf6"), None))
        if known == ("ä", "ö"):
            assert column_formats(logged, model)[1].labels == known
        elif charset == "koi8r":  # not the known ones in any charset: what was logged
            assert column_formats(logged, model)[1].labels == ("Д", "Ж")
        else:
            assert column_formats(logged, model)[1].labels is None


def test_a_model_of_another_shape_stops() -> None:
    with pytest.raises(BinlogFormatError, match="db.t has 2 columns, but its table map has 3"):
        column_formats(table_map(), KNOWN[:2])
