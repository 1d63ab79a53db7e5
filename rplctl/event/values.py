"""Convert the cells of one column to Python values, which do not depend on the target.

    int      integers, YEAR, BIT
    float    FLOAT, DOUBLE
    str      CHAR, VARCHAR, TEXT, ENUM, SET, JSON, INET4, INET6, UUID
    str      DECIMAL and temporal types, as the server prints them
    bytes    BINARY, VARBINARY, BLOB, GEOMETRY, VECTOR
    None     NULL, or a column that is not in the image

Invariant: a value that cannot be represented exactly raises BinlogFormatError. Nothing is rounded, trimmed or replaced.
GEOMETRY has the server's own form: 4 bytes SRID, then WKB.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rplctl import mysql_errors as er
from rplctl.errors import OR_REFETCH, UNKNOWN_FORM, BinlogFormatError
from rplctl.event import temporal
from rplctl.event.cells import (
    Cells,
    cell_views,
    cells_of,
    gather,
    has_large_cell,
    raw_cells,
    signed_cells,
    unsigned_cells,
)
from rplctl.event.charset import decode_text, is_single_byte, is_utf8
from rplctl.event.column import ColumnFormat, char_length, fraction_digits
from rplctl.event.decimal import decimal_sheet
from rplctl.event.images import Images
from rplctl.event.inet_uuid import ADDRESS_BYTES, inet4_text, inet6_text, uuid_text
from rplctl.event.json import apply_diffs, json_text, parse_json, print_json
from rplctl.event.large_text import large_text
from rplctl.event.rows import Ints
from rplctl.event.table_map import ColumnType
from rplctl.event.temporal import Unsigned
from rplctl.event.text_matrix import TextSheet

INTEGER_WIDTH: Final = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.INT24: 3,
    ColumnType.LONG: 4,
    ColumnType.LONGLONG: 8,
}


def decode_column(images: Images, rows: Ints, column: int, fmt: ColumnFormat, *, views: bool = False) -> list[Any]:
    """Return the values of `column` in the images with the indexes `rows`. The index -1 gives None.

    With `views`, large binary values are views of `images.data`, and large text is LargeText. Raises BinlogFormatError
    in these cases:
    * The bytes are not a value of the column.
    * An ENUM or SET has no labels.
    * A JSON diff has no before image.
    """
    cells = cells_of(images, np.asarray(rows, np.int64), column)
    if fmt.real_type == ColumnType.JSON and images.is_diff.size and images.is_diff[cells.images, column].any():
        values = _documents(images, cells, column)
    elif views and _is_plain(fmt) and has_large_cell(cells):
        values = _views(cells, fmt.charset)
    else:
        values = _decode(cells, fmt)
    if len(values) == cells.total:
        return values
    out: list[Any] = [None] * cells.total
    for position, value in zip(cells.valid.tolist(), values, strict=True):
        out[position] = value
    return out


_LOAD_MEMBERS = f"to load the members from the source, run: rplctl load-schema --from-source; rplctl start{OR_REFETCH}"


def _decode(cells: Cells, fmt: ColumnFormat) -> list[Any]:
    kind = fmt.real_type
    if not len(cells):
        return []
    if kind in INTEGER_WIDTH:
        width = INTEGER_WIDTH[ColumnType(kind)]
        return _listed(unsigned_cells(cells) if fmt.unsigned else signed_cells(cells, width))
    if kind in SHEETS:
        return list(SHEETS[kind](cells, fmt).texts())
    decode = _DECODERS.get(kind)
    if decode is None:
        raise BinlogFormatError(
            f"unknown column type {kind} in a row of the log", errno=er.SLAVE_CORRUPT_EVENT, hint=UNKNOWN_FORM
        )
    return decode(cells, fmt)


def _is_plain(fmt: ColumnFormat) -> bool:
    """True if the stored bytes of a cell are its value, so not for padded or compressed cells, addresses and UUIDs."""
    is_string = _DECODERS.get(fmt.real_type) is _strings and fmt.real_type != ColumnType.STRING
    return is_string and fmt.sql_type not in TEXT_OF_BYTES


def _views(cells: Cells, charset: str | None) -> list[Any]:
    views = cell_views(cells)
    if charset is None or charset == "binary":
        return [*views]
    return [large_text(v, charset) if isinstance(v, memoryview) else decode_text(v, charset) for v in views]


def _listed(array: npt.NDArray[Any]) -> list[Any]:
    values: list[Any] = array.tolist()
    return values


def not_finite() -> BinlogFormatError:
    """Return the error for a FLOAT or DOUBLE value that no server stores."""
    return BinlogFormatError(
        "a FLOAT or DOUBLE value is NaN or infinite: MySQL and MariaDB cannot store it, so the log is damaged",
        errno=er.SLAVE_CORRUPT_EVENT,
    )


def _finite(values: npt.NDArray[Any]) -> list[Any]:
    """Return the values as a list. Raises BinlogFormatError for NaN and infinity.

    No server stores such a value, and in SQLite a NaN would become NULL.
    """
    if not np.isfinite(values).all():
        raise not_finite()
    return _listed(values.astype(np.float64))


def _years(cells: Cells, fmt: ColumnFormat) -> list[Any]:
    """Return the years as numbers. A YEAR(2) is 0 to 99, as in the source's SELECT and dump."""
    year = unsigned_cells(cells).astype(np.int64)
    full = np.where(year == 0, 0, year + 1900)
    return _listed(full % 100 if fmt.sql_type == "year(2)" else full)


def _decimals(cells: Cells, fmt: ColumnFormat) -> TextSheet:
    buffer, _ = gather(cells)
    return decimal_sheet(buffer.reshape(len(cells), -1), fmt.metadata >> 8, fmt.metadata & 0xFF)


def _dates(cells: Cells, _: ColumnFormat) -> TextSheet:
    return temporal.date_sheet(unsigned_cells(cells))


def _moments(cells: Cells, fmt: ColumnFormat) -> TextSheet:
    digits = fraction_digits(fmt)
    plain, with_digits = _MOMENTS[fmt.type_code]
    if plain is not None and not digits:
        return plain(unsigned_cells(cells))
    return with_digits(unsigned_cells(cells, big_endian=True), digits)


def _labels(fmt: ColumnFormat) -> tuple[str, ...]:
    if fmt.labels is None:
        raise BinlogFormatError(
            "the members of an ENUM or SET column are neither in the binary log nor in the stored definition",
            errno=er.SLAVE_CORRUPT_EVENT,
            hint=_LOAD_MEMBERS,
        )
    return fmt.labels


def _enums(cells: Cells, fmt: ColumnFormat) -> list[Any]:
    texts = ("", *_labels(fmt))  # 0 is the server's number for an invalid value
    numbers = unsigned_cells(cells).tolist()
    if max(numbers) >= len(texts):
        raise BinlogFormatError(
            f"ENUM value {max(numbers)} is too large: the column has {len(texts) - 1} members",
            errno=er.SLAVE_CORRUPT_EVENT,
            hint=_LOAD_MEMBERS,
        )
    return [texts[number] for number in numbers]


def _sets(cells: Cells, fmt: ColumnFormat) -> list[Any]:
    labels = _labels(fmt)
    numbers = unsigned_cells(cells).tolist()
    if max(numbers) >> len(labels):
        raise BinlogFormatError(
            f"SET value {max(numbers):#x} is too large: the column has {len(labels)} members",
            errno=er.SLAVE_CORRUPT_EVENT,
            hint=_LOAD_MEMBERS,
        )
    texts = {
        number: ",".join(label for bit, label in enumerate(labels) if number >> bit & 1) for number in set(numbers)
    }
    return [texts[number] for number in numbers]


def _strings(cells: Cells, fmt: ColumnFormat) -> list[Any]:
    """Return the values of CHAR, VARCHAR, TEXT, BLOB and their binary variants."""
    if fmt.sql_type in TEXT_OF_BYTES:
        length = ADDRESS_BYTES[fmt.sql_type]
        padded = [raw.ljust(length, b"\0") for raw in raw_cells(cells)]  # the log omits zeros at the end
        if any(len(raw) != length for raw in padded):
            raise BinlogFormatError(f"a value is not of type {fmt.sql_type}", errno=er.SLAVE_CORRUPT_EVENT)
        return [TEXT_OF_BYTES[fmt.sql_type](raw) for raw in padded]
    if fmt.charset is None or fmt.charset == "binary":
        if fmt.type_code == ColumnType.STRING:
            length = char_length(fmt.metadata)
            return [raw.ljust(length, b"\0") for raw in raw_cells(cells)]
        return raw_cells(cells)
    return _texts(cells, fmt.charset)


def _texts(cells: Cells, charset: str) -> list[Any]:
    """Return the texts of the cells.

    All cells are decoded at once if each byte is one character. Otherwise, each cell is decoded separately.
    """
    if has_large_cell(cells):
        return [decode_text(bytes(view), charset) for view in cell_views(cells)]
    if is_utf8(charset) or is_single_byte(charset):
        buffer, offsets = gather(cells)
        raw = buffer.tobytes()
        if raw.isascii() or is_single_byte(charset):
            text = decode_text(raw, charset)
            assert len(text) == len(raw)
            ends = offsets.tolist()
            return [text[start:end] for start, end in zip(ends, ends[1:], strict=False)]
    return [decode_text(raw, charset) for raw in raw_cells(cells)]


def _compressed(cells: Cells, fmt: ColumnFormat) -> list[Any]:
    plain = [expand_column(raw) for raw in raw_cells(cells)]
    if fmt.charset is None or fmt.charset == "binary":
        return plain
    return [decode_text(raw, fmt.charset) for raw in plain]


def expand_column(raw: bytes) -> bytes:
    """Return the plain bytes of a cell in a MariaDB COMPRESSED column.

    A compressed cell has one byte with the method and the width of the length, the big-endian length, and deflated
    bytes. An uncompressed cell has a zero byte before the plain bytes. Raises BinlogFormatError for an unknown method
    or a wrong length.
    """
    if not raw or raw[0] == 0:
        return raw[1:]
    method, raw_deflate, width = raw[0] >> 4, raw[0] & 8, raw[0] & 7
    length = int.from_bytes(raw[1 : 1 + width], "big")
    if method == 8 and 1 <= width <= 4:
        stream = zlib.decompressobj(-zlib.MAX_WBITS if raw_deflate else zlib.MAX_WBITS)
        try:
            plain = stream.decompress(raw[1 + width :], length + 1)
        except zlib.error as error:
            raise BinlogFormatError(
                f"a compressed column is damaged: {error}: {raw[:64].hex(' ')}", errno=er.SLAVE_CORRUPT_EVENT
            ) from error
        if len(plain) == length:
            return plain
    raise BinlogFormatError(
        f"the log contains a compressed column in an unknown form: {raw[:64].hex(' ')}",
        errno=er.SLAVE_CORRUPT_EVENT,
        hint=UNKNOWN_FORM,
    )


def _documents(images: Images, cells: Cells, column: int) -> list[Any]:
    """Return the texts of JSON cells, some of which are diffs against their before image."""
    is_diff = images.is_diff[cells.images, column]
    bases = images.before_of_image[cells.images]
    base_cells = cells_of(images, np.where(is_diff, bases, -1), column)
    if len(base_cells) < int(is_diff.sum()):
        raise BinlogFormatError(
            "a partial JSON update has no before image of its column",
            errno=er.INVALID_JSON_VALUE_FOR_FUNC_INDEX,
        )
    old = dict(zip(base_cells.valid.tolist(), raw_cells(base_cells), strict=True))
    return [
        print_json(apply_diffs(parse_json(old[i]), raw)) if i in old else json_text(raw)
        for i, raw in enumerate(raw_cells(cells))
    ]


TEXT_OF_BYTES: Final[dict[str, Callable[[bytes], str]]] = {"inet4": inet4_text, "inet6": inet6_text, "uuid": uuid_text}
# type → (function without digits, if that format differs, function with digits)
_MOMENTS: Final[dict[int, tuple[Callable[[Unsigned], TextSheet] | None, Callable[[Unsigned, int], TextSheet]]]] = {
    ColumnType.TIME: (temporal.old_time_sheet, temporal.mariadb_time_sheet),
    ColumnType.TIME2: (None, temporal.time2_sheet),
    ColumnType.DATETIME: (temporal.old_datetime_sheet, temporal.mariadb_datetime_sheet),
    ColumnType.DATETIME2: (None, temporal.datetime2_sheet),
    ColumnType.TIMESTAMP: (temporal.old_timestamp_sheet, temporal.mariadb_timestamp_sheet),
    ColumnType.TIMESTAMP2: (None, temporal.timestamp2_sheet),
}
SHEETS: Final[dict[int, Callable[[Cells, ColumnFormat], TextSheet]]] = {
    ColumnType.NEWDECIMAL: _decimals,
    ColumnType.DATE: _dates,
    ColumnType.NEWDATE: _dates,
    **dict.fromkeys(_MOMENTS, _moments),
}
_DECODERS: Final[dict[int, Callable[[Cells, ColumnFormat], list[Any]]]] = {
    ColumnType.NULL: lambda cells, _: [None] * len(cells),
    ColumnType.FLOAT: lambda cells, _: _finite(unsigned_cells(cells).astype(np.uint32).view(np.float32)),
    ColumnType.DOUBLE: lambda cells, _: _finite(unsigned_cells(cells).view(np.float64)),
    ColumnType.YEAR: _years,
    ColumnType.BIT: lambda cells, _: _listed(unsigned_cells(cells, big_endian=True)),
    ColumnType.ENUM: _enums,
    ColumnType.SET: _sets,
    ColumnType.STRING: _strings,
    ColumnType.VARCHAR: _strings,
    ColumnType.VAR_STRING: _strings,
    ColumnType.VARCHAR_COMPRESSED: _compressed,
    ColumnType.BLOB_COMPRESSED: _compressed,
    ColumnType.BLOB: _strings,
    ColumnType.TINY_BLOB: _strings,
    ColumnType.MEDIUM_BLOB: _strings,
    ColumnType.LONG_BLOB: _strings,
    ColumnType.JSON: lambda cells, _: [json_text(raw) for raw in raw_cells(cells)],
    ColumnType.GEOMETRY: lambda cells, _: raw_cells(cells),
    ColumnType.VECTOR: lambda cells, _: raw_cells(cells),
}
