"""Row images: every cell is found where it lies, nothing is read outside of an event."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.column import ColumnFormat
from rplctl.event.images import IS_NULL, NOT_IN_IMAGE, Images, walk_images
from rplctl.event.table_map import ColumnType
from tests.event.row_events import Image, bitmap, change_event, image_bytes, parsed, rows_event, walked


def cell(images: Images, image: int, column: int) -> bytes | int:
    start = int(images.cell_start[image, column])
    return images.data[start : start + int(images.cell_length[image, column])].tobytes() if start >= 0 else start


def test_partial_images_tell_null_from_missing() -> None:
    images = walked([change_event(10, {0: b"key", 9: None}, {1: b"", 9: b"z"})], 10)
    assert [cell(images, 0, c) for c in (0, 1, 9)] == [b"key", NOT_IN_IMAGE, IS_NULL]
    assert [cell(images, 1, c) for c in (0, 1, 9)] == [NOT_IN_IMAGE, b"", b"z"]
    assert (images.before.tolist(), images.after.tolist(), images.ops.tolist()) == ([0], [1], [2])
    assert images.before_of_image.tolist() == [-1, 0]
    assert not images.are_full()


def test_many_rows_of_many_events_keep_their_order_past_the_first_room() -> None:
    random.seed(1)
    events, expected = [], []
    for number in range(60):
        rows: list[Image] = [{0: bytes([number, i]), 1: None} for i in range(random.randrange(1, 40))]
        events.append(rows_event(30, 2, b"\3", b"".join(map(image_bytes, rows))))
        expected += [(row[0], number) for row in rows]
    images = walked(events, 2)
    found = [cell(images, int(image), 0) for image in images.after]
    assert list(zip(found, images.event_of_change.tolist(), strict=True)) == expected
    assert images.are_full()


def test_room_grows_when_all_columns_are_null() -> None:
    columns = 24
    rows: list[Image] = [dict.fromkeys(range(columns)) for _ in range(1000)]
    body = b"".join(map(image_bytes, rows))
    images = walked([rows_event(30, columns, bitmap(range(columns), columns), body)], columns)
    assert images.cell_start.shape == (1000, columns)
    assert (images.cell_start == IS_NULL).all()


def test_an_insert_of_defaults_under_minimal_images_is_one_row_without_bytes() -> None:
    images = walked([rows_event(30, 3, b"\0", b""), change_event(3, None, {0: b"k"})], 3)
    assert images.cell_start[0].tolist() == [NOT_IN_IMAGE] * 3
    assert images.event_of_change.tolist() == [0, 1]


def test_a_json_diff_is_marked_and_bits_count_columns_that_are_not_in_the_image() -> None:
    formats = [
        ColumnFormat(type_code=ColumnType.TINY),
        ColumnFormat(type_code=ColumnType.JSON, metadata=4),
        ColumnFormat(type_code=ColumnType.JSON, metadata=4),
    ]
    diff = b"\2\3$.a"
    after = b"\1" + b"\2" + b"\0" + b"\7" + len(diff).to_bytes(4, "little") + diff
    events = [rows_event(39, 3, b"\1\5", b"\0\7" + after), rows_event(39, 3, b"\1\5", b"\0\7" + b"\0\2\7")]
    images = walk_images(parsed(events), formats)
    assert images.is_diff.tolist() == [[False] * 3, [False, False, True], [False] * 3, [False] * 3]
    assert cell(images, 1, 2) == diff
    assert images.cell_start[3, 2] == IS_NULL


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_row_that_runs_past_its_event_stops(cut: int) -> None:
    body = image_bytes({0: b"abc", 1: None}) + image_bytes({0: b"key", 1: b"v"})
    events = [change_event(2, None, {0: b"a", 1: b"b"}), rows_event(30, 2, b"\3", body[:cut])]
    if cut == 5:  # one whole row
        walked(events, 2)
    else:
        with pytest.raises(BinlogFormatError, match="does not fit into its event"):
            walked(events, 2)


def test_another_number_of_columns_stops() -> None:
    with pytest.raises(BinlogFormatError, match="has 2 columns, but its table has 3"):
        walked([change_event(2, None, {0: b"a"})], 3)


def test_unknown_value_options_stop() -> None:
    event = rows_event(39, 1, b"\1\1", b"\0\1k" + b"\2\0\1k")
    with pytest.raises(BinlogFormatError):
        walked([event], 1)


def test_random_bytes_never_reach_outside_of_their_event() -> None:
    random.seed(7)
    event = bytearray(change_event(5, {0: b"k" * 9, 1: None}, {2: b"v" * 20, 4: b"w"}))
    for _ in range(3000):
        broken = bytearray(event)
        for _ in range(random.randrange(1, 4)):
            broken[random.randrange(19, len(broken) - 4)] = random.randrange(256)
        try:
            images = walked([bytes(broken)], 5)
        except BinlogFormatError:
            continue
        present = images.cell_start >= 0
        assert (images.cell_start[present] + images.cell_length[present] <= len(event) - 4).all()
        assert (images.cell_start[present] >= 19).all()


def test_no_event_gives_no_image() -> None:
    one = parsed([change_event(1, None, {0: b"k"})])
    assert walk_images(
        one.select(np.array([], np.int64)), [ColumnFormat(type_code=ColumnType.TINY)]
    ).cell_start.shape == (0, 1)
