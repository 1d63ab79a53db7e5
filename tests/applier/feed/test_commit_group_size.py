"""WL#3970's commit groups: as many transactions as the options allow, by count and by time."""

from __future__ import annotations

import pytest

from rplctl.applier.feed.commit_group_size import CommitGroupSize


@pytest.mark.parametrize("most", [0, 1, 10])
def test_without_a_time_the_count_is_the_option(most: int) -> None:
    group = CommitGroupSize(most, 0)
    group.took(1_000_000, 100.0)
    assert group.transactions() == most


@pytest.mark.parametrize("most", [0, 50])
@pytest.mark.parametrize(("overhead", "each"), [(0.0, 0.001), (0.1, 0.001), (0.0, 0.2), (0.3, 0.01)])
def test_groups_come_to_take_their_time_and_no_more(most: int, overhead: float, each: float) -> None:
    group = CommitGroupSize(most, 250)
    for _ in range(40):
        took = overhead + group.transactions() * each
        group.took(group.transactions(), took)
    wanted = (0.25 - overhead) / each
    assert 1 <= group.transactions() <= max(1, wanted) and (not most or group.transactions() <= most)
    if wanted > 1:
        assert group.transactions() >= min(0.7 * wanted, most or wanted)


def test_a_slow_group_makes_the_next_one_small_at_once_and_quick_ones_let_it_grow_again() -> None:
    group = CommitGroupSize(0, 100)
    for _ in range(8):
        group.took(group.transactions(), group.transactions() * 0.0001)
    assert group.transactions() > 500
    group.took(100, 10.0)
    assert group.transactions() == 1
    sizes = []
    for _ in range(4):
        group.took(group.transactions(), 0.001)
        sizes.append(group.transactions())
    assert sizes == [4, 16, 64, 256]


def test_a_group_that_was_small_for_want_of_more_says_nothing_about_larger_ones() -> None:
    group = CommitGroupSize(0, 100)
    group.took(1, 0.005)
    assert group.transactions() == 10
    group.took(0, 5.0)
    assert group.transactions() == 10
