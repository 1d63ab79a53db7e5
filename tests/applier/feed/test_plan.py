"""Batches: cut at every barrier, never inside a transaction, never past UNTIL or the delay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rplctl.applier.feed.plan import BatchKind, groups_due, plan_batches
from rplctl.errors import BinlogFormatError
from rplctl.event.format_description import build_format_description
from rplctl.event.header import BINLOG_MAGIC
from rplctl.event.scan import GroupKind, scan_events
from rplctl.info import RelayLogInfo
from rplctl.relay_log.reader import RelayGroups
from tests.applier.demo_log import demo_groups, groups_of
from tests.event.logs import positioned, query

GROUPS = demo_groups()
COUNT = len(GROUPS.scan)


def test_batches_tile_the_groups_and_ddl_stands_alone() -> None:
    batches = list(plan_batches(GROUPS, COUNT))
    assert batches[0].first == 0
    assert batches[-1].last == COUNT
    assert all(
        one.last == other.first and one.end == other.start for one, other in zip(batches, batches[1:], strict=False)
    )
    for batch in batches:
        kinds = set(GROUPS.scan.kind[batch.first : batch.last].tolist())
        if GroupKind.QUERY in kinds:
            assert batch.kind is BatchKind.SINGLE
            assert batch.last - batch.first == 1
        elif batch.kind is BatchKind.BULK:
            assert kinds <= {GroupKind.ROWS, GroupKind.CONTROL}
            assert GroupKind.ROWS in kinds
    assert sum(b.transaction_count for b in batches) == int((GROUPS.scan.kind != GroupKind.CONTROL).sum())


def test_the_position_after_a_batch_is_that_of_its_last_group() -> None:
    batch = list(plan_batches(GROUPS, COUNT))[-1]
    assert batch.source_position == GROUPS.end_source
    assert batch.relay_position == GROUPS.end


def test_one_by_one_gives_every_group_of_a_batch_once() -> None:
    bulk = next(b for b in plan_batches(GROUPS, COUNT) if b.kind is BatchKind.BULK)
    single = list(bulk.one_by_one())
    assert [s.first for s in single] == list(range(bulk.first, bulk.last))
    assert single[-1].source_position == bulk.source_position


@pytest.mark.parametrize("skip", [1, 3, 10_000])
def test_skipped_transactions_are_passed_over_whatever_they_hold(skip: int) -> None:
    first, *rest = plan_batches(GROUPS, COUNT, skip)
    assert first.kind is BatchKind.SKIP
    assert first.transaction_count == min(skip, int((GROUPS.scan.kind != GroupKind.CONTROL).sum()))
    assert all(a.last == b.first for a, b in zip([first, *rest], rest, strict=False))


def test_a_delay_lets_through_only_what_is_old_enough() -> None:
    newest = int(GROUPS.scan.timestamp.max())
    assert groups_due(GROUPS, COUNT, 0, newest) == (COUNT, 0.0)
    assert groups_due(GROUPS, COUNT, 10, newest + 10) == (COUNT, 0.0)
    count, wait = groups_due(GROUPS, COUNT, 3600, float(newest))
    assert count < COUNT
    assert 0 < wait <= 3600


def test_the_size_of_a_commit_is_asked_when_the_batch_is_cut() -> None:
    sizes, counts = [1], []
    for batch in plan_batches(GROUPS, COUNT, per_commit=lambda: sizes[-1]):
        if batch.kind is BatchKind.BULK:
            assert 1 <= batch.transaction_count <= sizes[-1]
            counts.append(batch.transaction_count == sizes[-1])
            sizes.append(sizes[-1] + 1)
    assert len(sizes) > 4 and sum(counts) >= 3


def test_what_is_left_of_a_batch_begins_behind_the_last_group_that_was_committed() -> None:
    """One group fewer would be applied again, one more never."""
    batch = next(b for b in plan_batches(GROUPS, COUNT) if b.kind is BatchKind.BULK and b.last - b.first > 2)
    begun = RelayLogInfo(channel_name="")
    assert batch.left(begun, begun) is batch
    for single in batch.one_by_one():
        committed = begun.at(single.relay_position, single.source_position)
        left = batch.left(begun, committed)
        assert (left.first, left.last) == (single.last, batch.last)


def rolled_back(folder: Path) -> RelayGroups:
    """Two transactions of statements that end in ROLLBACK, as MyISAM's changes are logged."""
    one = [query(sql) for sql in ("BEGIN", "INSERT INTO m VALUES (1)", "ROLLBACK")]
    description = build_format_description(1, 7, 1, "8.0.40", relay_log=False)
    path = folder / "binlog.000001"
    path.write_bytes(BINLOG_MAGIC + positioned([description, *one, *one]))
    return groups_of(path)


def test_statements_that_end_in_rollback_share_no_transaction_with_what_follows(tmp_path: Path) -> None:
    groups = rolled_back(tmp_path)
    planned = [batch for batch in plan_batches(groups, len(groups.scan), has_rollbacks=True) if batch.transaction_count]
    assert [(batch.kind, batch.transaction_count) for batch in planned] == [(BatchKind.SINGLE, 1)] * 2


def test_damage_met_by_the_plan_is_damage_of_the_log(tmp_path: Path) -> None:
    """A recovery cut the file behind the reader, and what comes behind the cut reads as zeros until it is written."""
    groups = rolled_back(tmp_path)
    offsets = scan_events(groups.data.tobytes(), 4).offsets.tolist()
    begin, insert, end = offsets[4], offsets[5], offsets[6]  # of the second transaction
    for first, last in ((begin, begin + 19), (insert, end), (insert + 9, insert + 13), (end - 10, end - 8)):
        data = groups.data.copy()
        data[first:last] = 0
        planned = plan_batches(replace(groups, data=data), len(groups.scan), has_rollbacks=True)
        with pytest.raises(BinlogFormatError) as caught:
            list(planned)
        assert caught.value.errno in (1594, 1743)
    for first in range(begin, offsets[7] - 12, 7):  # the whole tail, ROLLBACK with it
        data = groups.data.copy()
        data[first:] = 0
        *_, last_planned = plan_batches(replace(groups, data=data), len(groups.scan), has_rollbacks=True)
        assert last_planned.kind is BatchKind.SINGLE, "its turn comes, and it is met there"


def test_a_length_that_leads_past_the_group_is_damage(tmp_path: Path) -> None:
    groups = rolled_back(tmp_path)
    insert = int(scan_events(groups.data.tobytes(), 4).offsets[5])
    data = groups.data.copy()
    data[insert + 9 : insert + 13] = np.frombuffer((1 << 20).to_bytes(4, "little"), np.uint8)
    with pytest.raises(BinlogFormatError):
        list(plan_batches(replace(groups, data=data), len(groups.scan), has_rollbacks=True))
