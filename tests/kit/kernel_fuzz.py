"""Every kernel over damaged bytes, with each index checked: run by `tests/event/test_kernel_bounds.py`.

`NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=… python -m tests.kit.kernel_fuzz TURNS SEED FAMILY …` prints a failure as a line
of JSON and ends with 1 if there is one. Readers of bytes return values or raise an RplError; any other exception is a
failure, and so is an index that lies outside of its array. Rows, definitions and packets are built from random columns
of every type, and then damaged; logs are recorded ones. All choices follow from the seed.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

import rplctl
from rplctl.decode.row_stream import EventRun, read_run
from rplctl.errors import RplError
from rplctl.event.checksum import verify_events
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.column import ColumnFormat, cell_layout, column_formats
from rplctl.event.distinct_ranges import distinct_ranges
from rplctl.event.events import build_rotate, parse_event
from rplctl.event.fields import LONGEST_LENGTH_PREFIXED, EncodedText, TextForm, field_spans, fields_of, row_ends
from rplctl.event.format_description import FormatDescription, build_format_description, parse_format_description
from rplctl.event.gtid_arrays import gtids_at, numbers_by_source
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.images import Images, first_columns, walk_images
from rplctl.event.inflate import plain_sizes
from rplctl.event.jit import byte_view
from rplctl.event.json import json_text
from rplctl.event.maps_in_force import maps_in_force
from rplctl.event.multiset import multiset_changes, with_old_cells
from rplctl.event.net_change import net_changes
from rplctl.event.open_group import OpenGroup
from rplctl.event.packets import as_packets, deframe
from rplctl.event.payload import expand_event
from rplctl.event.relocate import relocated
from rplctl.event.scan import event_offsets, scan_events, scan_groups, split_rows
from rplctl.event.table_map import ColumnType, TableMap, parse_table_map
from rplctl.event.types import COMPRESSED, EventType
from rplctl.event.values import decode_column
from rplctl.position import BinlogPosition
from rplctl.receiver.event_runs import EventFilter, follow, next_run
from rplctl.relay_log.log_file import intact_end
from rplctl.result_set.columns import SelectedColumn, selected_columns
from rplctl.result_set.rows import read_images
from rplctl.result_set.stream import RowStream
from rplctl.schema.model import GEOMETRY_TYPES, Column
from rplctl.source.base import EventBatch
from rplctl.verify import pair
from rplctl.verify.hashes import RAW, SIGNED, Buckets, hash_images
from tests.event.logs import DUMPS, SMALL, event, log

START: Final = BinlogPosition("bin.000001", 4)
EXTREMES: Final = (0, 1, 2, 18, 19, 20, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)
WIDE: Final = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 62, (1 << 64) - 1, 1 << 63)
DESCRIPTION: Final = parse_format_description(build_format_description(1, 0, 0, "9.1.0", relay_log=False))
MARIADB: Final = parse_format_description(build_format_description(1, 0, 0, "11.4.2-MariaDB", relay_log=False))
FORMS: Final = tuple(TextForm(lambda value: str(value).encode(), takes_bytes=b) for b in (True, False))


def damaged(data: bytes, dice: random.Random) -> bytes:
    """A few bytes changed, doubled, cut out or off, or a number of 2, 4 or 8 bytes set to an extreme."""
    out = bytearray(data)
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        if not out:
            break
        at, what = dice.randrange(len(out)), dice.randrange(7)
        if what == 0:
            out[at] ^= 1 << dice.randrange(8)
        elif what == 1:
            out[at] = dice.choice(EXTREMES)
        elif what == 2:
            width = dice.choice([2, 4, 8])
            out[at : at + width] = (dice.choice((*WIDE, len(out))) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        elif what == 3:
            del out[at : at + dice.randrange(1, 20)]
        elif what == 4:
            out[at:at] = out[at : at + dice.randrange(1, 20)]
        elif what == 5:
            del out[at:]
        else:
            out[at:at] = bytes([dice.choice(EXTREMES)])
    return bytes(out)


# Logs and streams: boundaries, groups, checksums, positions.


def fuzz_log(dice: random.Random) -> None:
    whole = log(dice.choice(SMALL))
    at = dice.randrange(4, max(5, len(whole) - 3000))
    starts = scan_events(whole, 4).offsets.tolist()
    first = next(start for start in starts if start >= at) if at > 200 else 4
    data = whole[:4] + whole[4 : starts[1]] + whole[first : first + dice.randrange(100, 6000)]
    data = damaged(data, dice) if dice.random() < 0.9 else data[: dice.randrange(len(data))]
    _look_at_log(data, dice)


def fuzz_short_event(dice: random.Random) -> None:
    """The last event of a log is of any type and of any length, down to its header."""
    whole = log(dice.choice(SMALL))
    starts = scan_events(whole, 4).offsets.tolist()
    number = dice.choice([0, *(dice.randrange(len(starts) - 1) for _ in range(4))])
    raw = whole[starts[number] : starts[number + 1]]
    length = dice.randrange(HEADER_LENGTH, min(len(raw), 130))
    kind = raw[4] if dice.random() < 0.7 else dice.randrange(256)
    last = raw[:4] + bytes([kind]) + raw[5:9] + length.to_bytes(4, "little") + raw[13:length]
    _look_at_log(dice.choice([whole[: starts[1]], whole[:4]]) + last, dice)


def _look_at_log(data: bytes, dice: random.Random) -> None:
    for look in (_scan, _split, _runs, _sums, _gtids):
        _allowed(partial(look, data, dice))


def _scan(data: bytes, dice: random.Random) -> None:
    scan = scan_groups(data, 4, START, dice.choice([100, 1 << 40]))
    for number in range(len(scan)):
        scan.source_position(number)
    for at in scan.start.tolist():
        if scan.description_at(at) is not None:
            _allowed(partial(read_run, byte_view(data), at, len(data), scan.description_at(at)))  # type: ignore[arg-type]


def _split(data: bytes, dice: random.Random) -> None:
    split_rows(data, 4, dice.choice([len(data), event_offsets(data, 4)[0][-1]]), dice.choice([1, 300, 1 << 20]))


def _batch(data: bytes) -> EventBatch:
    offsets, _ = event_offsets(data, 4)
    return EventBatch(byte_view(data), offsets)


def _runs(data: bytes, dice: random.Random) -> None:
    batch, at = _batch(data), 0
    events = EventFilter([1], [0], [1]) if dice.random() < 0.5 else EventFilter([])
    while at < len(batch):
        at = max(at + 1, next_run(batch, at, 4, events).stop)
    group, cut = OpenGroup(), dice.randrange(len(batch) + 1)
    for part in (batch.offsets[: cut + 1], batch.offsets[cut:]):
        if len(part):
            group.follow(batch.data, part, dice.choice([0, 4]))
    follow(dice.choice(WIDE[:6]), dice.choice(WIDE[:5]), 20, artificial=False)


def _sums(data: bytes, dice: random.Random) -> None:
    intact_end(byte_view(data), 4, 1)
    offsets, types = event_offsets(data, 4)
    verify_events(data, offsets, dice.choice([0, 1]))
    plain_sizes(data, offsets, types)
    distinct_ranges(byte_view(data), offsets[:-1] + HEADER_LENGTH, np.diff(offsets) - HEADER_LENGTH)
    for has_checksum in (False, True):
        long = np.flatnonzero(np.diff(offsets) >= HEADER_LENGTH + 4)
        relocated(
            byte_view(data), offsets[long], np.diff(offsets)[long], dice.choice(WIDE[:4]), has_checksum=has_checksum
        )
        as_packets(byte_view(data), offsets[long], np.diff(offsets)[long], dice.randrange(256), strips=has_checksum)


def _gtids(data: bytes, dice: random.Random) -> None:
    offsets, types = event_offsets(data, 4)
    which = offsets[:-1][np.isin(types, [EventType.GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID])]
    for read in (gtids_at, numbers_by_source):
        _allowed(partial(read, byte_view(data), which, lambda at: DESCRIPTION))


def fuzz_stream(dice: random.Random) -> None:
    whole = log(dice.choice(DUMPS))
    begin = dice.choice([0, dice.randrange(len(whole))])
    data = damaged(whole[begin : begin + dice.randrange(4, 4000)], dice)
    for in_place in (False, True):
        _allowed(partial(deframe, bytearray(data), len(data), data[3] if len(data) > 3 else 1, in_place=in_place))


def fuzz_event(dice: random.Random) -> None:
    """One event, its length and checksum right again."""
    whole = log(dice.choice(SMALL))
    starts = scan_events(whole, 4).offsets.tolist()
    number = dice.randrange(len(starts) - 1)
    raw = whole[starts[number] : starts[number + 1]]
    body = damaged(raw[HEADER_LENGTH:-4], dice)
    kind = raw[4] if dice.random() < 0.9 else dice.randrange(256)
    raw = raw[:4] + bytes([kind]) + raw[5:9] + (HEADER_LENGTH + len(body) + 4).to_bytes(4, "little") + raw[13:19] + body
    raw = append_checksum(raw)
    description = parse_format_description(whole[starts[0] : starts[1]])
    if raw[4] in COMPRESSED:
        _allowed(lambda: _walk_run(expand_event(raw, description, 1 << 20)))
    else:
        parsed = parse_event(raw, description)
        getattr(parsed, "sql", None)
        build_rotate(1, "bin.000002", 4, 1)


def _walk_run(data: bytes) -> None:
    offsets, types = event_offsets(data)
    EventRun(
        data=byte_view(data),
        starts=offsets[:-1],
        lengths=np.diff(offsets),
        types=types,
        description=replace(DESCRIPTION, checksum_algorithm=0),
    ).rows_events()


# Table maps and rows: every type of column.


def _random_metadata(kind: int, dice: random.Random) -> int:
    if dice.random() < 0.03:
        return dice.choice([0, 1, 7, 0xFF, 0x100, 0x3FF, 0xFFFF, dice.randrange(1 << 16)])
    if kind == ColumnType.NEWDECIMAL:
        precision = dice.randint(1, 65)
        return precision << 8 | dice.randint(0, min(precision, 38))
    if kind == ColumnType.BIT:
        bits = dice.randint(1, 64)
        return bits & 7 | bits >> 3 << 8
    if kind in (ColumnType.ENUM, ColumnType.SET):
        return kind << 8 | dice.choice([1, 2] if kind == ColumnType.ENUM else [1, 2, 3, 4, 8])
    if kind in (ColumnType.STRING, ColumnType.VAR_STRING):
        most = dice.choice([1, 16, 255, 256, 1020])
        return (ColumnType.STRING ^ (most & 0x300) >> 4) << 8 | most & 0xFF
    if kind in (ColumnType.TIMESTAMP2, ColumnType.DATETIME2, ColumnType.TIME2):
        return dice.randint(0, 6)
    if kind in (ColumnType.FLOAT, ColumnType.DOUBLE):
        return 4 if kind == ColumnType.FLOAT else 8
    size = abs(ColumnType(kind).metadata)
    return dice.randint(1, 4) if size == 1 else dice.choice([1, 20, 255, 256, 65535])


def _random_columns(dice: random.Random) -> list[ColumnFormat]:
    kinds = [kind for kind in ColumnType if kind not in (ColumnType.TYPED_ARRAY, ColumnType.DECIMAL)]
    columns = []
    for _ in range(dice.choice([1, 2, 3, 5, 9, 17])):
        kind = dice.choice(kinds)
        code = ColumnType.STRING if kind in (ColumnType.ENUM, ColumnType.SET) else kind
        charset = dice.choice([None, "binary", "utf8mb4", "latin1", "utf16", "sjis"])
        labels = dice.choice([None, ("a", "b", "é"), tuple("abcdefgh")])
        word = dice.choice(["", "", "inet4", "inet6", "uuid", "year(2)", "time(3)", "datetime(6)", "timestamp(2)"])
        unsigned = dice.random() < 0.5
        columns.append(
            ColumnFormat(
                type_code=code,
                metadata=_random_metadata(kind, dice),
                unsigned=unsigned,
                charset=charset,
                labels=labels,
                sql_type=word,
            )
        )
    return columns


def _map_event(columns: list[ColumnFormat], dice: random.Random) -> bytes:
    metadata = b""
    for column in columns:
        size = ColumnType(column.type_code).metadata
        value = column.metadata & ((1 << 8 * abs(size)) - 1)
        metadata += value.to_bytes(abs(size), "big" if size < 0 else "little")
    count = len(columns)
    body = (9).to_bytes(6, "little") + b"\1\0\1d\0\1t\0" + bytes([count]) + bytes(c.type_code for c in columns)
    body += bytes([len(metadata)]) + metadata + bytes(-(-count // 8))
    if dice.random() < 0.5:
        names = b"".join(b"\2c%d" % (number % 10) for number in range(count))
        body += b"\4" + bytes([len(names)]) + names
    if dice.random() < 0.3:
        body += b"\1" + bytes([-(-count // 8)]) + bytes(dice.randrange(256) for _ in range(-(-count // 8)))
    return event(EventType.TABLE_MAP, body, checksum=False)


def _cell(column: ColumnFormat, dice: random.Random) -> bytes:
    prefix, width = cell_layout(column)
    if not prefix:
        return dice.choice([bytes(width), b"\xff" * width, dice.randbytes(width)])
    if column.type_code == ColumnType.JSON:
        raw = dice.choice([b"", b"\x04\x01", b"\x0c\x01a", b"\0\1\0\x0d\0\x0b\0\1\0\5\1\0a\0", dice.randbytes(9)])
    else:
        raw = dice.choice([b"", b"a", b"2024", dice.randbytes(dice.randrange(12)), b"\\\t\n\r\0", b"x" * 252])
    return min(len(raw), (1 << 8 * prefix) - 1).to_bytes(prefix, "little") + raw[: (1 << 8 * prefix) - 1]


def _bitmap(bits: list[bool]) -> bytes:
    return sum(1 << at for at, bit in enumerate(bits) if bit).to_bytes(-(-len(bits) // 8), "little")


def _image(columns: list[ColumnFormat], present: list[bool], dice: random.Random) -> bytes:
    held = [column for column, is_there in zip(columns, present, strict=True) if is_there]
    nulls = [dice.random() < 0.2 for _ in held]
    cells = b"".join(_cell(column, dice) for column, null in zip(held, nulls, strict=True) if not null)
    return (_bitmap(nulls) if held else b"") + cells


def _rows_event(columns: list[ColumnFormat], dice: random.Random) -> bytes:
    code = dice.choice([23, 24, 25, 30, 31, 32, 30, 31, 39])
    sides = 2 if code in (24, 31, 39) else 1
    present = [[dice.random() < dice.choice([0.5, 1, 1]) for _ in columns] for _ in range(sides)]
    body = (9).to_bytes(6, "little") + b"\1\0" + (b"\2\0" if code >= 30 else b"") + bytes([len(columns)])
    body += b"".join(map(_bitmap, present))
    for _ in range(dice.choice([1, 2, 3, 8])):
        for side, held in enumerate(present):
            if code == 39 and side:
                jsons = sum(column.type_code == ColumnType.JSON for column in columns)
                body += dice.choice([b"\0", b"\1" + dice.randbytes(-(-jsons // 8))])
            body += _image(columns, held, dice)
    return event(code, body, checksum=False)


def _with_body(raw: bytes, body: bytes) -> bytes:
    return raw[:9] + (HEADER_LENGTH + len(body)).to_bytes(4, "little") + raw[13:HEADER_LENGTH] + body


def fuzz_rows(dice: random.Random) -> None:
    columns = _random_columns(dice)
    try:
        parts = [_map_event(columns, dice), *(_rows_event(columns, dice) for _ in range(dice.choice([1, 1, 3])))]
    except RplError:
        return  # a column that no server has
    which = dice.randrange(len(parts))
    if dice.random() < 0.8:
        parts[which] = _with_body(parts[which], damaged(parts[which][HEADER_LENGTH:], dice))
    description = dice.choice([DESCRIPTION, MARIADB])
    table_map = parse_table_map(parts[0], description)
    known = columns if len(columns) == table_map.column_count else None
    formats = column_formats(table_map, known)
    look_at_rows(b"".join(parts), description, table_map, formats, dice)


def look_at_rows(
    data: bytes, description: FormatDescription, table_map: TableMap, formats: list[ColumnFormat], dice: random.Random
) -> None:
    offsets, types = event_offsets(data)
    run = EventRun(
        data=byte_view(data), starts=offsets[:-1], lengths=np.diff(offsets), types=types, description=description
    )
    events = run.rows_events()
    is_map = types == EventType.TABLE_MAP
    kinds = np.zeros(int(is_map.sum()), np.int64)
    maps_in_force(offsets[:-1][is_map], kinds, np.array([table_map.table_id]), events.event_start, events.table_id)
    images = walk_images(events, formats)
    assert (images.cell_start + images.cell_length <= len(images.data)).all()
    look_at_images(images, formats, dice)


def look_at_images(images: Images, formats: list[ColumnFormat], dice: random.Random) -> None:
    """All that is made of images: values, texts, net changes, hashes."""
    rows = np.arange(len(images.cell_start))
    few = np.where(rows % 3 == 1, -1, rows)
    form = dice.choice(FORMS)
    fields = []
    for column, fmt in enumerate(formats):
        _allowed(partial(decode_column, images, rows, column, fmt, views=dice.random() < 0.5))
        _allowed(partial(decode_column, images, few, column, fmt))
        _allowed(lambda c=column, f=fmt: fields.append(fields_of(images, few, c, f, form)))  # type: ignore[misc]
    if fields and len(rows):
        text = byte_view(b"".join(EncodedText(fields)))
        assert len(row_ends(text, len(fields), length_prefixed=False)) == len(rows)
        if sum(int(f.lengths.max()) for f in fields) <= LONGEST_LENGTH_PREFIXED:
            text = byte_view(b"".join(EncodedText(fields, length_prefixed=True)))
            assert len(row_ends(text, len(fields), length_prefixed=True)) == len(rows)
            field_spans(text, len(fields) * len(rows))
    if len(images.ops):
        keys = sorted({dice.randrange(len(formats)) for _ in range(2)})
        net = net_changes(images, keys)
        for key in keys:
            net.key_rows_for(images, key)
        filled = with_old_cells(images)
        if filled.are_full():
            multiset_changes(filled)
    hashed = hash_images(images, range(len(formats)), [dice.choice([RAW, SIGNED]) for _ in formats])
    Buckets().add(hashed, hashed)
    first_columns(images, max(1, len(formats) - 1))


def fuzz_json(dice: random.Random) -> None:
    documents = [
        b"\0\1\0\x0d\0\x0b\0\1\0\5\1\0a\0", b"\x02\2\0\x14\0\x0b\x0a\0\x0c\x12\0" + struct.pack("<d", 1.5) + b"\1x",
        b"\x0f\xf6\x04\x0a\x02\x80\0\0", b"\x0f\x0c\x08" + bytes(8), b"\x0b" + bytes(8), b"\x0c\3abc",
    ]  # fmt: skip
    json_text(damaged(dice.choice(documents), dice))


# Result sets: definitions, types on the wire, packets.


def _random_model(dice: random.Random) -> Column:
    kinds = (
        *("tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "decimal", "bit", "year", "date"),
        *("time", "datetime", "timestamp", "char", "varchar", "binary", "varbinary", "tinyblob", "blob", "mediumtext"),
        *("longtext", "enum", "set", "json", "vector", "inet4", "inet6", "uuid", *sorted(GEOMETRY_TYPES)[:1]),
    )  # fmt: skip
    kind = dice.choice(kinds)
    odd = dice.random() < 0.15
    length: int | None = None
    scale: int | None = None
    if odd:
        length, scale = (dice.choice([None, -1, *WIDE, dice.randrange(400)]) for _ in range(2))
    elif kind == "decimal":
        length = dice.randint(1, 65)
        scale = dice.randint(0, min(length, 38))
    elif kind in ("time", "datetime", "timestamp"):
        length = dice.randint(0, 6)
    elif kind in ("char", "varchar", "binary", "varbinary", "bit"):
        length = dice.randint(1, 64)
    count = dice.choice([0, 1, 64, 65, 255, 300]) if odd else dice.choice([1, 3, 9])
    labels = tuple(f"l{number}" for number in range(count)) if kind in ("enum", "set") else ()
    charset = dice.choice([None, "utf8mb4", "latin1", "binary"])
    return Column(
        name="c", type=kind, length=length, scale=scale, unsigned=dice.random() < 0.5, charset=charset, labels=labels
    )


_WIRE: Final = {
    "tinyint": 1,
    "smallint": 2,
    "mediumint": 9,
    "int": 3,
    "bigint": 8,
    "float": 4,
    "double": 5,
    "year": 13,
    "decimal": 246,
    "date": 10,
    "time": 11,
    "datetime": 12,
    "timestamp": 7,
    "enum": 8,
    "set": 8,
}
_WIDTH: Final = {1: 1, 2: 2, 13: 2, 3: 4, 9: 4, 8: 8, 4: 4, 5: 8}


def _wire_cell(wire: int, kind: str, dice: random.Random) -> bytes:
    if wire in _WIDTH:
        return dice.choice([bytes(_WIDTH[wire]), dice.randbytes(_WIDTH[wire]), b"\1" + bytes(_WIDTH[wire] - 1)])
    if wire in (7, 10, 11, 12):
        length = dice.choice([0, 4, 7, 8, 11, 12])
        return bytes([length]) + dice.choice([b"\xe8\x07\1\1\1\1\1\1\0\0\0\0"[:length], dice.randbytes(length)])
    if kind == "decimal":
        raw = dice.choice([b"1", b"-1.5", b"0", b"", b"-", b".", b"9" * 65, b"1.2.3", b"0." + b"9" * 38, b"000012"])
    else:
        raw = dice.choice([b"", b"a", bytes(16), dice.randbytes(16), dice.randbytes(dice.randrange(40)), b"x" * 300])
    return bytes([len(raw)]) + raw if len(raw) < 251 else b"\xfc" + len(raw).to_bytes(2, "little") + raw


def fuzz_result_set(dice: random.Random) -> None:
    model = [_random_model(dice) for _ in range(dice.choice([1, 2, 3, 8]))]
    columns = selected_columns(model, takes_numbers=dice.random() < 0.5)
    wire = [_WIRE.get(column.type, 253) for column in model]
    right = list(wire)
    if dice.random() < 0.3:
        wire[dice.randrange(len(wire))] = dice.choice([*map(int, ColumnType), 99])
    packets = b""
    for number in range(dice.choice([0, 1, 3, 20])):
        nulls = [dice.random() < 0.2 for _ in model]
        cells = [_wire_cell(w, c.type, dice) for w, c, null in zip(right, model, nulls, strict=True) if not null]
        bits = sum(1 << (at + 2) for at, null in enumerate(nulls) if null)
        row = b"\0" + bits.to_bytes((len(model) + 9) // 8, "little") + b"".join(cells)
        packets += len(row).to_bytes(3, "little") + bytes([number & 0xFF]) + row
    if packets and dice.random() < 0.6:
        packets = damaged(packets, dice)
    look_at_result_set(packets, columns, wire, dice)
    stream = RowStream(0)
    cut = dice.randrange(len(packets) + 1)
    for piece in (packets[:cut], packets[cut:]):
        if stream.end is None:
            _allowed(partial(stream.take, byte_view(piece)))
    pair.end_of_rows(byte_view(packets))


def look_at_result_set(packets: bytes, columns: list[SelectedColumn], wire: list[int], dice: random.Random) -> None:
    formats = [column.format for column in columns]
    for images in read_images(packets, columns, wire, batch_bytes=dice.choice([1, 100, 1 << 20])):
        assert (images.cell_start + images.cell_length <= len(images.data)).all()
        look_at_images(images, formats, dice)


@cache
def _large_row() -> bytes:
    """A row of two packets."""
    size = 0xFFFFFF + 10
    row = b"\0\0\xfe" + (size - 11).to_bytes(8, "little") + bytes(size - 11)
    return framed_payload(row)


def framed_payload(payload: bytes) -> bytes:
    full = 0xFFFFFF
    parts = [payload[at : at + full] for at in range(0, len(payload) + 1, full)]
    return b"".join(len(part).to_bytes(3, "little") + bytes([number]) + part for number, part in enumerate(parts))


def fuzz_large_row(dice: random.Random, *, whole: bool) -> None:
    packets = bytearray(_large_row())
    for at in (*range(8), 0xFFFFFF + 4, 0xFFFFFF + 5, 0xFFFFFF + 6):
        if dice.random() < 0.1 and not whole:
            packets[at] = dice.choice(EXTREMES)
    if dice.random() < 0.3 and not whole:
        del packets[dice.randrange(len(packets) - 40, len(packets)) :]
    for _ in read_images(bytes(packets), selected_columns([Column(name="t", type="longblob")]), [252]):
        pass


FAMILIES: Final[dict[str, tuple[Callable[[random.Random], None], int]]] = {  # and how often, of all turns
    "log": (fuzz_log, 3),
    "short_event": (fuzz_short_event, 6),
    "stream": (fuzz_stream, 1),
    "event": (fuzz_event, 3),
    "rows": (fuzz_rows, 12),
    "json": (fuzz_json, 4),
    "result_set": (fuzz_result_set, 12),
}
_failures: list[str] = []


def _allowed(read: Callable[[], object]) -> None:
    try:
        read()
    except RplError:
        pass


def kernels() -> dict[str, Any]:
    """Every compiled function of the program, by module and name."""
    found = {}
    for path in sorted(Path(rplctl.__file__).parent.rglob("*.py")):
        if "kernel\n" in (text := path.read_text()) and "@" in text:
            name = ".".join(("rplctl", *path.relative_to(Path(rplctl.__file__).parent).with_suffix("").parts))
            for key, value in vars(import_module(name)).items():
                if hasattr(value, "py_func") and value.py_func.__module__ == name:
                    found[f"{name}.{key}"] = value
    return found


def unused_kernels() -> set[str]:
    """Those that nothing called, neither Python nor a kernel that was called."""
    everything = kernels()
    names = {id(value): name for name, value in everything.items()}
    seen: set[str] = set()
    ways = [name for name, value in everything.items() if value.signatures]
    while ways:
        name = ways.pop()
        if name in seen:
            continue
        seen.add(name)
        function = everything[name].py_func
        spaces = [function.__globals__, *(vars(v) for v in function.__globals__.values() if hasattr(v, "__spec__"))]
        for word in function.__code__.co_names:
            ways += [names[id(space[word])] for space in spaces if id(space.get(word)) in names]
    return set(everything) - seen


def turns(seed: str, count: int, table_groups: Sequence[str]) -> Iterator[tuple[int, str]]:
    order = [name for name in table_groups for _ in range(FAMILIES[name][1])]
    random.Random(seed).shuffle(order)
    return ((number, order[number % len(order)]) for number in range(count))


def main() -> int:
    count, seed, table_groups = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    failures: dict[str, str] = {}
    for turn in range(3 if "result_set" in table_groups else 0):
        _allowed(partial(fuzz_large_row, random.Random(f"{seed} {turn}"), whole=not turn))
    begin = time.process_time()
    for number, family in turns(seed, count, table_groups):
        try:
            FAMILIES[family][0](random.Random(f"{seed} {family} {number}"))
        except RplError:
            pass
        except Exception:  # noqa: BLE001 - that is what is looked for
            text = traceback.format_exc()
            where = traceback.extract_tb(sys.exc_info()[2])[-1]
            failures.setdefault(f"{where.filename}:{where.lineno}", f"{family} {number}\n{text}")
    for text in failures.values():
        print(json.dumps({"failure": text}))  # noqa: T201
    left_out = unused_kernels()
    print(json.dumps({"turns": count, "seconds": time.process_time() - begin, "unused": sorted(left_out)}))  # noqa: T201
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
