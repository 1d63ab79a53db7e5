"""Batches grow while the applier is behind, and never past what memory holds; commits take their time and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rplctl.applier.feed.batch_size import JOB_BYTES, BatchSize, CommitGroupSize
from rplctl.config import Config

FIRST_BYTES = 1 << 20
MOST = 16 * FIRST_BYTES


def test_a_full_batch_is_followed_by_the_largest() -> None:
    pace = BatchSize(FIRST_BYTES, MOST, 1 << 40)
    sizes = []
    for _ in range(3):
        sizes.append(pace.batch_bytes // FIRST_BYTES)
        pace.decoded(pace.batch_bytes, 10)
    assert sizes == [1, 16, 16]


def test_a_trickle_changes_nothing() -> None:
    pace = BatchSize(FIRST_BYTES, MOST, 1000)
    pace.decoded(500, 900)
    assert pace.batch_bytes == FIRST_BYTES


@pytest.mark.parametrize("bytes_per_change", [1000, 100])
def test_many_small_rows_keep_a_batch_small(bytes_per_change: int) -> None:
    pace = BatchSize(FIRST_BYTES, MOST, 4 * FIRST_BYTES // 1000)
    for _ in range(9):
        pace.decoded(pace.batch_bytes, pace.batch_bytes // bytes_per_change)
    assert pace.batch_bytes == pytest.approx(4 * FIRST_BYTES if bytes_per_change == 1000 else FIRST_BYTES, rel=0.01)


def test_a_huge_transaction_is_decoded_in_pieces_and_a_batch_slightly_too_large_at_once() -> None:
    pace = BatchSize(FIRST_BYTES, MOST, 1000)
    assert pace.job_bytes(100 * MOST, is_first=True) == FIRST_BYTES
    assert pace.job_bytes(FIRST_BYTES + 5, is_first=True) == FIRST_BYTES + 5


def test_rows_that_change_again_and_again_are_decoded_together_and_new_rows_in_small_jobs() -> None:
    pace = BatchSize(1 << 30, 1 << 30, 1 << 40, 3 * JOB_BYTES)

    def sizes() -> list[int]:
        return [pace.job_bytes(1 << 30, is_first=is_first) for is_first in (True, False)]

    assert sizes() == [JOB_BYTES, 3 * JOB_BYTES], "nothing is known yet; the target waits for the first"
    pace.job_decoded(1000, 400)
    assert sizes() == [1 << 30, 1 << 30]
    pace.job_decoded(1000, 1000)
    assert sizes() == [JOB_BYTES, 3 * JOB_BYTES]


def test_the_operators_limit_holds_below_the_first_batch() -> None:
    pace = BatchSize(FIRST_BYTES, 1 << 16, 1000)
    pace.decoded(1 << 16, 1)
    assert pace.batch_bytes == 1 << 16


# commit groups (WL#3970): as many transactions as the options allow, by count and by time


@pytest.mark.parametrize("most", [0, 1, 10])
def test_without_a_time_the_count_is_the_option(most: int) -> None:
    group = CommitGroupSize(most, 0)
    group.took(1_000_000, 100.0)
    assert group.transactions() == most


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({}, 0),
        ({"sync_relay_log_info": 10}, 0),
        ({"commit_mode": "xa", "sync_relay_log_info": 10}, 10),
        ({"commit_mode": "xa", "sync_relay_log_info": 10, "commit_group_transactions": 3}, 3),
        ({"commit_mode": "xa", "sync_relay_log_info": 0, "commit_group_transactions": 3}, 3),
        ({"commit_mode": "xa", "sync_relay_log_info": 0}, 0),
    ],
)
def test_in_two_phase_commit_the_position_is_synced_once_for_so_many_transactions(
    options: dict[str, Any], most: int
) -> None:
    """WL#3970: SYNC_RLI_PERIOD=10 syncs at every 10th transaction; here those ten share the commit, so none is lost."""
    assert CommitGroupSize.from_config(Config(Path(), **options)).transactions() == most


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
