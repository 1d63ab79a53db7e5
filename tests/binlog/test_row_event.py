"""Rows events made anew hold the same images as the source's, and are events like any other."""

from __future__ import annotations

import numpy as np
import pytest

from rplctl.binlog import row_event
from rplctl.binlog.column import ColumnFormat
from rplctl.binlog.header import EventType
from rplctl.binlog.images import NOT_IN_IMAGE, Images, walk_images
from rplctl.binlog.row_event import row_events, row_images
from rplctl.binlog.rows import NO_FOREIGN_KEY_CHECKS, Ints, parse_rows_events
from rplctl.binlog.scan import scan_events
from rplctl.binlog.table_map import ColumnType
from tests.binlog.logs import event

NOTHING: Ints = np.empty(0, np.int64)


def bare(kind: int, body: bytes) -> bytes:
    raw = event(kind, body)
    return raw[:9] + (19 + len(body)).to_bytes(4, "little") + raw[13 : 19 + len(body)]


# table 7, d.t: INT, VARCHAR(300), SMALLINT; the key is (SMALLINT, VARCHAR)
TABLE_MAP = bare(19, (7).to_bytes(6, "little") + b"\1\0\1d\0\1t\0\3" + bytes([3, 15, 2]) + b"\2" + b"\x2c\1" + b"\7")
FORMATS = [ColumnFormat(ColumnType.LONG), ColumnFormat(ColumnType.VARCHAR, 300), ColumnFormat(ColumnType.SHORT)]
KEY, WIDTHS = (2, 1), np.array([2, 0], np.int64)


def row(number: int | None, text: bytes, small: int) -> bytes:
    head = b"\xf9" if number is None else b"\xf8" + number.to_bytes(4, "little")  # MySQL sets the bits that are left
    return head + len(text).to_bytes(2, "little") + text + small.to_bytes(2, "little")


ROWS = [row(1, b"one", 10), row(None, b"", 20), row(3, b"x" * 299, 30)]


def images_of(*parts: bytes) -> Images:
    """Of events without checksums."""
    data = np.frombuffer(b"".join(parts), np.uint8)
    index = scan_events(data)
    is_rows = index.type_codes != EventType.TABLE_MAP
    starts, lengths = index.offsets[:-1], np.diff(index.offsets)
    found = parse_rows_events(data, starts[is_rows], lengths[is_rows], index.type_codes[is_rows], 0)
    return walk_images(found, FORMATS)


def inserted(rows: list[bytes]) -> Images:
    return images_of(bare(23, (7).to_bytes(6, "little") + b"\1\0\3\7" + b"".join(rows)))


@pytest.mark.parametrize("event_bytes", [1, 100, 1 << 20])
def test_inserts_updates_and_deletes_keep_every_byte(event_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_event, "_EVENT_BYTES", event_bytes)
    images = inserted(ROWS)
    everything = np.arange(len(ROWS))
    for keys, whole, kind in ((NOTHING, everything, 1), (everything, everything, 2), (everything, NOTHING, 3)):
        text, lengths = row_images(images, keys, WIDTHS, KEY, whole)
        made = list(
            row_events(
                TABLE_MAP, 3, KEY, text, lengths,
                has_before=bool(len(keys)), has_after=bool(len(whole)), foreign_keys=kind != 3,
            )
        )  # fmt: skip
        assert all(raw.startswith(TABLE_MAP) for raw in made)
        assert (len(made) == 1) is (event_bytes > 1000)
        again = images_of(*made)
        assert again.ops.tolist() == [kind] * len(ROWS)
        assert (made[0][len(TABLE_MAP) + 25] & NO_FOREIGN_KEY_CHECKS != 0) is (kind == 3)
        if len(whole):
            spans = again.spans[again.after].tolist()
            assert [again.data[a:b].tobytes() for a, b in spans] == ROWS
        if len(keys):
            texts = [(again.cell_start[i, 1], again.cell_length[i, 1]) for i in again.before]
            assert [again.data[a : a + n].tobytes() for a, n in texts] == [b"one", b"", b"x" * 299]
            assert (again.cell_start[again.before, 0] == NOT_IN_IMAGE).all()


def test_no_rows_are_no_events() -> None:
    assert list(row_events(TABLE_MAP, 3, KEY, b"", b"", has_before=True, has_after=True, foreign_keys=True)) == []


def test_a_table_of_many_columns_counts_them_in_three_bytes() -> None:
    (made,) = row_events(TABLE_MAP, 300, (299,), b"x", np.int32(1).tobytes(), has_before=True, has_after=False,
                         foreign_keys=True)  # fmt: skip
    body = made[len(TABLE_MAP) + 19 + 8 :]
    assert body == b"\xfc" + (300).to_bytes(2, "little") + bytes(37) + b"\x08" + b"x"
