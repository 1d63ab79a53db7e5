"""Rows events are found in raw bytes, and what does not fit its event stops."""

from __future__ import annotations

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.rows import parse_rows_events
from tests.event.row_events import Image, change_event, parse_rows_event, parsed, rows_event


def test_one_event_of_each_kind() -> None:
    row: Image = {0: b"k", 2: None}
    changes: list[tuple[Image | None, Image | None, str]] = [
        (None, row, "insert"),
        (row, {1: b"v"}, "update"),
        (row, None, "delete"),
    ]
    for before, after, kind in changes:
        event = change_event(3, before, after)
        rows = parse_rows_event(b"??" + event, 2, len(event), event[4], 4)
        assert (rows.kind, rows.table_id, rows.flags, rows.column_count) == (kind, 9, 1, 3)
        assert rows.before_columns == ((0, 2) if before else None)
        assert rows.after_columns == (tuple(after) if after else None)
        assert rows.data_end == 2 + len(event) - 4


def test_wide_tables_count_columns_in_three_bytes() -> None:
    event = rows_event(23, 252, (300).to_bytes(2, "little") + b"\1" + bytes(37), b"\0\1k")
    rows = parse_rows_event(event, 0, len(event), 23, 4)
    assert (rows.column_count, rows.after_columns, rows.data_end - rows.data_start) == (300, (0,), 3)


def test_v2_extra_data_is_stepped_over() -> None:
    plain = change_event(1, None, {0: b"k"})
    event = plain[:27] + b"\x07\x00NDB!!" + plain[29:]
    event = event[:9] + len(event).to_bytes(4, "little") + event[13:]
    rows = parse_rows_event(event, 0, len(event), 30, 4)
    assert event[rows.data_start : rows.data_end] == b"\0\1k"


def test_selected_events_keep_their_order() -> None:
    events = parsed([change_event(1, None, {0: bytes([i])}) for i in range(5)])
    assert events.select(np.array([3, 1])).data_start.tolist() == events.data_start[[3, 1]].tolist()
    assert len(events.select(events.kind == 2)) == 0


@pytest.mark.parametrize("code", [19, 20, 26, 40, 166])
def test_other_types_stop_with_offset_and_bytes(code: int) -> None:
    event = rows_event(code, 1, b"\1", b"\0\1k")
    with pytest.raises(BinlogFormatError, match=rf"event type {code} .*at offset 0: 00 00"):
        parse_rows_event(event, 0, len(event), code, 4)


def test_every_truncation_stops() -> None:
    event = change_event(9, {0: b"k"}, {0: b"k", 8: b"x"})
    body = 19 + 10 + 1 + 4
    for length in range(4, body + 4):
        with pytest.raises(BinlogFormatError):
            parse_rows_event(event, 0, length, event[4], 4)
    with pytest.raises(BinlogFormatError):
        parse_rows_events(event, np.array([0]), np.array([len(event) + 5]), np.array([event[4]], np.uint8), 4)
