"""Every form that differs between a result set and a row event, converted and read back."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.inet_uuid import uuid_text
from rplctl.event.jit import byte_view
from rplctl.event.values import decode_column
from rplctl.result_set import conversion
from rplctl.result_set.columns import selected_columns
from rplctl.result_set.rows import read_images
from rplctl.schema.model import Column
from tests.result_set.packets import DATE, DATETIME, DECIMAL, TEXT, TIME, TIMESTAMP, counted, length_prefixed, row


def one_cell(column: Column, wire: int, cell: bytes) -> object:
    columns = selected_columns([column])
    (images,) = read_images(length_prefixed([row(cell)]), columns, [wire])
    return decode_column(images, np.array([0]), 0, columns[0].format)[0]


@pytest.mark.parametrize(
    ("precision", "scale", "text"),
    [
        (10, 3, "-1234.567"),
        (65, 30, "-" + "9" * 35 + "." + "9" * 30),
        (65, 30, "0." + "0" * 29 + "1"),
        (10, 0, "9999999999"),
        (5, 5, "0.00001"),
        (18, 9, "-0.000000001"),
        (17, 8, "123456789.12345678"),
        (1, 0, "0"),
    ],
)
def test_a_decimal_is_packed_as_it_is_logged(precision: int, scale: int, text: str) -> None:
    column = Column(name="d", type="decimal", length=precision, scale=scale)
    assert one_cell(column, DECIMAL, counted(text.encode())) == text


@pytest.mark.parametrize("text", ["12345678901", "1.2345", "1e5", ""])
def test_a_decimal_that_does_not_fit_is_refused(text: str) -> None:
    if text:
        with pytest.raises(BinlogFormatError):
            one_cell(Column(name="d", type="decimal", length=10, scale=3), DECIMAL, counted(text.encode()))


@pytest.mark.parametrize(
    ("kind", "digits", "wire", "cell", "text"),
    [
        ("date", None, DATE, b"", "0000-00-00"),
        ("date", None, DATE, b"\xe8\x07\x00\x07", "2024-00-07"),
        ("datetime", 6, DATETIME, b"\xe8\x07\x02\x1d\x0c\x22\x38\x3a\xe2\x01\x00", "2024-02-29 12:34:56.123450"),
        ("datetime", 3, DATETIME, b"", "0000-00-00 00:00:00.000"),
        ("datetime", None, DATETIME, b"\x0f\x27\x0c\x1f\x17\x3b\x3b", "9999-12-31 23:59:59"),
        ("timestamp", 6, TIMESTAMP, b"\xb2\x07\x01\x01\0\0\1\1\0\0\0", "1970-01-01 00:00:01.000001"),
        ("timestamp", None, TIMESTAMP, b"", "0000-00-00 00:00:00"),
        ("timestamp", None, TIMESTAMP, b"\xe8\x07\x03\x01\x00\x00\x00", "2024-03-01 00:00:00"),
        ("time", 6, TIME, b"\x01" + bytes(7) + struct.pack("<I", 1), "-00:00:00.000001"),
        ("time", None, TIME, b"\x01" + struct.pack("<I", 34) + b"\x16\x3b\x3b", "-838:59:59"),
        ("time", 1, TIME, b"\x00" + bytes(7) + struct.pack("<I", 500_000), "00:00:00.5"),
        ("time", 1, TIME, b"", "00:00:00.0"),
    ],
)  # fmt: skip
def test_dates_and_times_are_those_that_are_logged(
    kind: str, digits: int | None, wire: int, cell: bytes, text: str
) -> None:
    assert one_cell(Column(name="v", type=kind, length=digits), wire, bytes([len(cell)]) + cell) == text


@pytest.mark.parametrize(
    "text",
    [
        "123e4567-e89b-12d3-a456-426655440000",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
    ],
)
def test_a_uuid_comes_in_the_order_in_which_it_is_logged(text: str) -> None:
    column = Column(name="u", type="uuid")
    assert one_cell(column, TEXT, counted(bytes.fromhex(text.replace("-", "")))) == text
    assert uuid_text(bytes(16)) == "00000000-0000-0000-0000-000000000000"


def test_a_number_is_written_with_its_first_byte_first() -> None:
    out = np.zeros(4, np.uint8)
    conversion.put_big_endian(out, 1, 0x010203, 3)
    assert out.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("precision", "scale"), [(10, 2), (8388618, 0), (65, 30), (10, 200), (0, 0)])
@pytest.mark.parametrize("size", [0, 1, 4, 5])
def test_a_decimal_is_never_written_beyond_its_room(precision: int, scale: int, size: int) -> None:
    out = np.full(64, 7, np.uint8)
    conversion.put_decimal(byte_view(b"-12345678.25"), 0, 12, precision, scale, out, 8, size)
    assert out[:8].tolist() == [7] * 8 and out[8 + size :].tolist() == [7] * (56 - size)


@pytest.mark.parametrize("text", ["", "-", ".", "1.2.3", "--1", "1-", ".5"])
def test_a_decimal_that_no_server_prints_is_refused(text: str) -> None:
    with pytest.raises(BinlogFormatError):
        one_cell(Column(name="d", type="decimal", length=10, scale=3), DECIMAL, counted(text.encode()))


@pytest.mark.parametrize(("kind", "length"), [("bit", 9), ("inet6", None), ("inet4", None)])
def test_a_counted_cell_of_another_length_than_its_column_is_refused(kind: str, length: int | None) -> None:
    for cell in (b"", b"a", b"a" * 3, b"a" * 17):
        with pytest.raises(BinlogFormatError):
            one_cell(Column(name="c", type=kind, length=length), TEXT, counted(cell))
