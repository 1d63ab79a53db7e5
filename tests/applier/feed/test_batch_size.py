"""Batches grow while the applier is behind, and never past what memory holds."""

from __future__ import annotations

import pytest

from rplctl.applier.feed.batch_size import JOB_BYTES, BatchSize

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
