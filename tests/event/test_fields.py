"""Cells become the text that LOAD DATA and COPY read, and nothing is lost on the way."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from rplctl.event import fields
from rplctl.event.column import ColumnFormat
from rplctl.event.distinct_ranges import distinct_ranges
from rplctl.event.fields import EncodedText, TextForm, field_spans, fields_of, row_ends, text_fields
from rplctl.event.images import Images
from rplctl.event.jit import byte_view
from rplctl.event.table_map import ColumnType
from rplctl.event.values import decode_column
from tests.event.test_values import column

UNESCAPED = {b"0": b"\0", b"t": b"\t", b"n": b"\n", b"r": b"\r", b"\\": b"\\"}


def read_back(text: bytes) -> list[list[bytes | None]]:
    """As the servers read it."""
    return [
        [
            None if field == b"\\N" else re.sub(rb"\\(.)", lambda m: UNESCAPED[m[1]], field)
            for field in line.split(b"\t")
        ]
        for line in text.split(b"\n")[:-1]
    ]


def shown(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def test_every_byte_comes_back_and_a_null_is_no_text() -> None:
    everything = bytes(range(256))
    columns = [text_fields([everything, None, b"", b"\\N"]), text_fields([b"a\tb", b"c\nd", None, everything * 3])]
    assert read_back(b"".join(EncodedText(columns))) == [
        [everything, b"a\tb"],
        [None, b"c\nd"],
        [b"", None],
        [b"\\N", everything * 3],
    ]


def test_framed_rows_hold_every_byte_and_their_ends_are_found() -> None:
    long = [b"x" * length for length in (249, 250, 251, 252, 65535, 65536)]
    columns = [[bytes(range(256)), None, b"", *long], [None, b"\1", b"\0", *reversed(long)]]
    text = b"".join(EncodedText([text_fields(column) for column in columns], length_prefixed=True))
    read, at, ends = [], 0, []
    for _ in columns[0]:
        row: list[bytes | None] = []
        for _ in columns:
            if text[at]:
                row.append(None)
                at += 1
                continue
            width = {252: 2, 253: 3}.get(text[at + 1], 0)
            length = int.from_bytes(text[at + 2 : at + 2 + width], "little") if width else text[at + 1]
            at += 2 + width
            row.append(text[at : at + length])
            at += length
        read.append(row)
        ends.append(at)
    assert read == [list(row) for row in zip(*columns, strict=True)]
    assert row_ends(byte_view(text), len(columns), length_prefixed=True).tolist() == ends
    starts, stops = field_spans(byte_view(text), len(columns) * len(columns[0]))
    spans = zip(starts.tolist(), stops.tolist(), strict=True)
    assert [None if start < 0 else text[start:stop] for start, stop in spans] == [
        value for row in read for value in row
    ]


@pytest.mark.parametrize("takes_bytes", [True, False])
@pytest.mark.parametrize(
    ("cells", "fmt"),
    [
        ([b"\x80", None, b"\x7f", b"\x00"], ColumnFormat(type_code=ColumnType.TINY)),
        ([b"\xff\xff\xff", b"\x01\0\0"], ColumnFormat(type_code=ColumnType.INT24)),
        ([b"\0" * 7 + b"\x80", b"\xff" * 8, b"\0" * 8], ColumnFormat(type_code=ColumnType.LONGLONG)),
        ([b"\0" * 7 + b"\x80", b"\xff" * 8], ColumnFormat(type_code=ColumnType.LONGLONG, unsigned=True)),
        ([b"\x80\x00\x63", None, b"\x7f\xff\x9c"], ColumnFormat(type_code=ColumnType.NEWDECIMAL, metadata=5 << 8 | 2)),
        ([b"\x99\xb4\x5c\xf2\xc3", None], ColumnFormat(type_code=ColumnType.DATETIME2)),
        ([b"\x80\x00\x01", b"\x7f\xff\xff"], ColumnFormat(type_code=ColumnType.TIME2)),
        ([None, None], ColumnFormat(type_code=ColumnType.DATE)),
        ([b"plain", b"tab\tnul\0", None], ColumnFormat(type_code=ColumnType.VARCHAR, metadata=40)),
        ([b"a", b""], ColumnFormat(type_code=ColumnType.STRING, metadata=0xFE04, charset="binary")),
        (["\u00e9".encode("latin1")], ColumnFormat(type_code=ColumnType.VARCHAR, metadata=40, charset="latin1")),
        ([b"all ascii\t", b""], ColumnFormat(type_code=ColumnType.VARCHAR, metadata=40, charset="latin1")),
        (["\u20ac".encode(), None], ColumnFormat(type_code=ColumnType.STRING, metadata=0xFE28, charset="utf8mb4")),
        ([b"\0\0\0\0\0", b"\x99\xb4\x5c\xf2\xc3"], ColumnFormat(type_code=ColumnType.DATETIME2)),
        ([b"\x02"], ColumnFormat(type_code=ColumnType.ENUM, metadata=1, labels=("a", "b"))),
    ],
)
def test_fields_are_the_values_as_text(cells: list[bytes | None], fmt: ColumnFormat, takes_bytes: bool) -> None:
    images: Images = column(cells)
    rows = np.arange(len(cells))
    found = fields_of(images, rows, 0, fmt, TextForm(shown, takes_bytes))
    expected = [[None if value is None else shown(value)] for value in decode_column(images, rows, 0, fmt)]
    assert read_back(b"".join(EncodedText([found]))) == expected


def test_equal_ranges_are_found_and_different_ones_kept_apart() -> None:
    data = byte_view(b"abcabdabcab")
    firsts, kinds = distinct_ranges(data, np.array([0, 3, 6, 9, 0]), np.array([3, 3, 3, 2, 3]))
    assert firsts.tolist() == [0, 1, 3]
    assert kinds.tolist() == [0, 1, 0, 2, 0]


def test_rows_larger_than_a_piece_are_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "PIECE_BYTES", 16)
    large = [bytes(range(256)), None, b"", b"\t" * 8, b"exactly 16 bytes", b"x" * 17]
    small = [b"1", b"2", b"3", None, b"5", b"a much longer key"]
    for columns in ([large, small], [small, large], [large]):
        text = EncodedText([text_fields(column) for column in columns])
        pieces = [bytes(piece) for piece in text]
        assert max(map(len, pieces)) <= 2 * 8 + 3
        assert sum(map(len, pieces)) == len(text)
        assert read_back(b"".join(pieces)) == [list(row) for row in zip(*columns, strict=True)]
