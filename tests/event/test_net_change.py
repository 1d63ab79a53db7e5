"""Net changes leave what the changes one after another leave: compared with a dictionary, also under partial images."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rplctl.event.column import ColumnFormat
from rplctl.event.images import Images, walk_images
from rplctl.event.net_change import NetChanges, exact_key_hashes, net_changes
from rplctl.event.table_map import ColumnType
from tests.event.row_events import VARCHAR, Cell, Image, change_event, parsed, rows_event, walked

Row = tuple[Cell, ...]
Change = tuple[Image | None, Image | None]


def cell(images: Images, image: int, column: int) -> Cell:
    start = int(images.cell_start[image, column])
    return None if start < 0 else images.data[start : start + int(images.cell_length[image, column])].tobytes()


def net_of(changes: list[Change], columns: int, key: list[int]) -> tuple[NetChanges, Images]:
    images = walked([change_event(columns, before, after) for before, after in changes], columns)
    return net_changes(images, key), images


def key_of(net: NetChanges, images: Images, entry: int, key: list[int]) -> Row:
    return tuple(cell(images, int(net.key_rows_for(images, column)[entry]), column) for column in key)


def applied(net: NetChanges, images: Images, key: list[int], table: dict[Row, Row]) -> dict[Row, Row]:
    """The target after deletes, then the rest: what the committer does."""
    columns = images.column_count
    after = dict(table)
    keys = [key_of(net, images, entry, key) for entry in range(len(net))]
    for entry in range(len(net)):
        assert (keys[entry] in table) == bool(net.expect_present[entry])
        after.pop(keys[entry], None)
    supply = [net.rows_for(column) for column in range(columns)]
    for entry in np.flatnonzero(net.final_image >= 0).tolist():
        origin = int(net.origin[entry])
        old = table[keys[origin]] if origin >= 0 else (None,) * columns
        row = [cell(images, int(supply[c][entry]), c) if supply[c][entry] >= 0 else old[c] for c in range(columns)]
        after[keys[entry]] = tuple(row)
    return after


def random_changes(
    rng: random.Random, table: dict[Row, Row], key: list[int], columns: int, *, full: bool
) -> list[Change]:
    """Consistent changes of `table`, which is changed along."""
    changes: list[Change] = []
    for _ in range(rng.randrange(1, 40)):
        row: Row = tuple(
            rng.choice([b"a", b"b", b"cc", b"", None] if c not in key else [b"1", b"2", b"33"]) for c in range(columns)
        )
        new_key = tuple(row[c] for c in key)
        if not table or (rng.random() < 0.4 and new_key not in table):
            if new_key not in table:
                table[new_key] = row
                changes.append((None, dict(enumerate(row))))
            continue
        old = rng.choice(list(table.values()))
        old_key = tuple(old[c] for c in key)
        seen: Image = {c: old[c] for c in range(columns) if full or c in key}
        if rng.random() < 0.3:
            del table[old_key]
            changes.append((seen, None))
        elif new_key == old_key or new_key not in table:
            changed = [c for c in range(columns) if full or row[c] != old[c]]
            del table[old_key]
            table[new_key] = row
            if changed:
                changes.append((seen, {c: row[c] for c in changed}))
    return changes


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("key", [[0], [1, 0]])
def test_net_changes_leave_what_the_changes_leave(full: bool, key: list[int]) -> None:
    rng = random.Random(3)
    for _ in range(150):
        table: dict[Row, Row] = {}
        random_changes(rng, table, key, 4, full=True)
        before = dict(table)
        changes = random_changes(rng, table, key, 4, full=full)
        if changes:
            net, images = net_of(changes, 4, key)
            assert net.conflict == -1
            assert applied(net, images, key, before) == table


def test_entries_come_in_the_order_of_first_touch() -> None:
    changes: list[Change] = [(None, {0: b"b"}), (None, {0: b"a"}), ({0: b"b"}, {0: b"c"})]
    net, images = net_of(changes, 1, [0])
    assert [key_of(net, images, entry, [0]) for entry in range(3)] == [(b"b",), (b"a",), (b"c",)]
    assert net.first_change.tolist() == [0, 1, 2]
    assert (net.final_image >= 0).tolist() == [False, True, True]


def test_a_key_that_moves_takes_unknown_columns_with_it() -> None:
    net, images = net_of([({0: b"1"}, {0: b"2"}), ({0: b"2"}, {1: b"x"})], 3, [0])
    assert net.expect_present.tolist() == [True, False]
    assert net.origin.tolist() == [-1, 0]
    assert [int(net.rows_for(c)[1]) for c in range(3)] == [1, 3, -1]


@pytest.mark.parametrize(
    ("changes", "conflict"),
    [
        ([(None, {0: b"1"}), (None, {0: b"1"})], 1),
        ([({0: b"1"}, None), ({0: b"1"}, None)], 1),
        ([({0: b"1"}, None), ({0: b"1"}, {0: b"1"})], 1),
        ([(None, {0: b"1"}), (None, {0: b"2"}), ({0: b"2"}, {0: b"1"})], 2),
        ([({0: b"1"}, {0: b"2"}), (None, {0: b"1"}), ({0: b"2"}, None)], -1),
    ],
)
def test_changes_that_contradict_each_other_are_found(changes: list[Change], conflict: int) -> None:
    assert net_of(changes, 1, [0])[0].conflict == conflict


def test_null_and_empty_keys_differ_and_long_keys_are_compared_to_their_end() -> None:
    long = b"x" * 200
    changes: list[Change] = [(None, {0: key}) for key in (None, b"", b"\0", long + b"a", long + b"b")]
    net, _ = net_of(changes, 1, [0])
    assert (len(net), net.conflict) == (5, -1)


def test_many_keys_of_the_same_shape_stay_apart() -> None:
    changes: list[Change] = [(None, {0: i.to_bytes(2, "big")}) for i in range(5000)]
    net, _ = net_of(changes, 1, [0])
    assert (len(net), net.conflict) == (5000, -1)


@pytest.mark.long("Two widths stay; each has a kernel of the same form.", keeps=r"^[18]$")
@pytest.mark.parametrize("width", range(1, 9))
def test_keys_of_one_width_are_told_by_their_hashes_alone(width: int) -> None:
    """None has another's, or two rows would become one."""
    rng = random.Random(width)
    single = {1 << bit for bit in range(8 * width)}
    numbers = sorted({0, (1 << 8 * width) - 1, *single, *(rng.getrandbits(8 * width) for _ in range(20_000))})
    _, images = net_of([(None, {0: number.to_bytes(width, "little")}) for number in numbers], 1, [0])
    hashes = exact_key_hashes(images, [0])
    assert len(set(hashes.tolist())) == len(numbers)


@pytest.mark.parametrize("keys", [[b"1", b"22"], [b"1", None], [b"123456789", b"123456780"]])
def test_keys_of_several_lengths_null_and_long_ones_are_compared(keys: list[bytes | None]) -> None:
    _, images = net_of([(None, {0: key}) for key in keys], 1, [0])
    assert not len(exact_key_hashes(images, [0]))


def test_a_json_diff_without_its_before_image_is_reported() -> None:
    formats = [VARCHAR, ColumnFormat(type_code=ColumnType.JSON, metadata=4)]
    after = b"\1\1" + b"\0" + b"\0\0\0\0"
    without = rows_event(39, 2, b"\1\2", b"\0\1k" + after)
    with_base = rows_event(39, 2, b"\3\2", b"\0\1k\0\0\0\0" + after)
    assert net_changes(walk_images(parsed([with_base, without]), formats), [0]).diff_without_base == 1
    assert net_changes(walk_images(parsed([with_base]), formats), [0]).diff_without_base == -1


def test_a_table_without_a_key_has_no_net_changes() -> None:
    with pytest.raises(ValueError, match="one by one"):
        net_of([(None, {0: b"1"})], 1, [])
