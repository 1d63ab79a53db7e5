"""Net changes of a table without a key fit exactly the bags that its changes fit one by one, and leave the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, strategies as st

from rplctl.event.images import Images
from rplctl.event.multiset import multiset_changes, with_old_cells
from tests.event.row_events import Cell, change_event, walked

Row = tuple[Cell, ...]
Change = tuple[Row | None, Row | None]

ROWS = st.tuples(st.sampled_from([b"a", b"A", b"", None]), st.sampled_from([b"1", None]))
CHANGES = st.one_of(st.tuples(st.none(), ROWS), st.tuples(ROWS, st.none()), st.tuples(ROWS, ROWS))


def row_of(images: Images, image: int) -> Row:
    places = zip(images.cell_start[image].tolist(), images.cell_length[image].tolist(), strict=True)
    return tuple(None if at < 0 else images.data[at : at + length].tobytes() for at, length in places)


def images_of(changes: list[Change]) -> Images:
    events = [change_event(2, *(None if row is None else dict(enumerate(row)) for row in change)) for change in changes]
    return walked(events, 2)


def in_order(multiset: Counter[Row], changes: list[Change]) -> Counter[Row] | None:
    """What one change after another leaves; None when one does not fit."""
    left = multiset.copy()
    for before, after in changes:
        if before is not None:
            if not left[before]:
                return None
            left[before] -= 1
        if after is not None:
            left[after] += 1
    return +left


def by_number(multiset: Counter[Row], changes: list[Change]) -> Counter[Row] | None:
    images = images_of(changes)
    net = multiset_changes(images)
    rows = [row_of(images, image) for image in net.image.tolist()]
    left = multiset.copy()
    for row, gone in zip(rows, net.gone.tolist(), strict=True):
        left[row] -= gone
    if min(left.values(), default=0) < 0:
        return None
    for row, come in zip(rows, net.come.tolist(), strict=True):
        left[row] += come
    return +left


@given(st.lists(ROWS, max_size=12), st.lists(CHANGES, min_size=1, max_size=12))
def test_they_fit_the_same_bags_and_leave_the_same(held: list[Row], changes: list[Change]) -> None:
    multiset = Counter(held)
    assert by_number(multiset, changes) == in_order(multiset, changes)


@given(st.lists(CHANGES, min_size=1, max_size=20))
def test_a_row_is_told_once_and_what_comes_and_goes_within_is_not(changes: list[Change]) -> None:
    images = images_of(changes)
    net = multiset_changes(images)
    if any(before is not None for before, _ in changes):
        rows = [row_of(images, image) for image in net.image.tolist()]
        assert len(rows) == len(set(rows))
    totals = (sum(before is not None for before, _ in changes), sum(after is not None for _, after in changes))
    assert int(net.gone.sum()) <= totals[0] and int(net.come.sum()) <= totals[1]
    assert int((net.come - net.gone).sum()) == totals[1] - totals[0]


def test_a_partial_after_image_is_filled_from_its_before_image_and_no_other() -> None:
    events = [
        change_event(2, {0: b"a", 1: b"1"}, {1: b"2"}),
        change_event(2, None, {0: b"b"}),
        change_event(2, {0: b"a", 1: None}, {0: b"c"}),
    ]
    images = with_old_cells(walked(events, 2))
    assert row_of(images, 1) == (b"a", b"2") and row_of(images, 4) == (b"c", None)
    assert not images.are_full()  # the insert
    assert np.array_equal(with_old_cells(images).cell_start, images.cell_start)
