"""A batch is cut into jobs and those into tasks; together they are the batch, in the log's order."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rplctl.applier.feed.batch_size import BatchSize
from rplctl.applier.feed.event_range import EventRange
from rplctl.applier.spark import splits as module
from rplctl.applier.spark.split_task import Split
from rplctl.applier.spark.splits import jobs
from rplctl.event.format_description import parse_format_description
from rplctl.event.rows import Ints
from rplctl.event.scan import scan_groups
from rplctl.position import BinlogPosition
from tests.event.logs import events, log

DATA = log("my97-torture-rowsquery")
GROUPS = scan_groups(DATA, 4, BinlogPosition("binlog.000001", 4), len(DATA)).start
RANGE = EventRange(
    path=Path("relay-bin.000002"),
    data=np.frombuffer(DATA, np.uint8),
    start=4,
    end=len(DATA),
    description=parse_format_description(next(events(DATA))),
    groups=GROUPS,
    source=BinlogPosition("binlog.000001", 1004),
)


@pytest.mark.parametrize("job_bytes", [1, 1000, 4000, 1 << 30])
@pytest.mark.parametrize("largest", [500, 1 << 20])
@pytest.mark.parametrize("groups", [GROUPS, GROUPS[:1]], ids=["groups", "one group"])
def test_jobs_cover_the_batch_in_order_and_no_task_gets_too_much(
    job_bytes: int, largest: int, groups: Ints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMALLEST_SPLIT", 100)
    monkeypatch.setattr(module, "LARGEST_SPLIT", largest)
    found = list(
        jobs(replace(RANGE, groups=groups), BatchSize(job_bytes, job_bytes, 1000), 2, partial(Split, spool_folder=""))
    )
    splits = [split for job in found for split in job]
    assert [RANGE.start, *(s.end for s in splits)] == [*(s.start for s in splits), RANGE.end]
    assert [s.source for s in splits] == [BinlogPosition("binlog.000001", 1000 + s.start) for s in splits]
    longest = max(b - a for a, b in zip([s.start for s in splits], [s.end for s in splits], strict=True))
    largest_event = max(len(event) for event in events(DATA))
    assert longest < largest + 100 + 25 + 3 * largest_event
    if job_bytes > len(DATA):
        assert len(found) == 1
        assert len(found[0]) >= 2, "one for each core"
    if job_bytes == 1000:
        assert len(found) > 3
    task = partial(Split, spool_folder="")
    small = list(jobs(replace(RANGE, groups=groups), BatchSize(job_bytes, job_bytes, 1000), 2, task, 1000))
    assert len(small) > 3, "the limit of a job whose bytes travel"


def test_the_next_job_is_as_large_as_the_pace_says_when_its_turn_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALLEST_SPLIT", 100)
    monkeypatch.setattr("rplctl.applier.feed.batch_size.JOB_BYTES", 500)
    pace = BatchSize(1 << 30, 1 << 30, 1 << 40)
    found = jobs(RANGE, pace, 2, partial(Split, spool_folder=""))
    first = next(found)
    pace.job_decoded(changes=100, net=50)
    rest = next(found)
    assert first[-1].end - first[0].start < 1500
    assert rest[-1].end == RANGE.end
    assert next(found, None) is None


def test_a_task_begins_with_a_group_or_with_the_table_maps_of_the_one_that_it_cuts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SMALLEST_SPLIT", 100)
    monkeypatch.setattr(module, "LARGEST_SPLIT", 100)
    everything = BatchSize(1 << 30, 1 << 30, 1 << 40)
    monkeypatch.setattr("rplctl.applier.feed.batch_size.JOB_BYTES", 1 << 30)
    (by_groups,) = jobs(RANGE, everything, 2, partial(Split, spool_folder=""))
    (read,) = jobs(replace(RANGE, groups=GROUPS[:1]), everything, 2, partial(Split, spool_folder=""))
    maps = {split.start: split.table_maps for split in read}
    inside = [split for split in by_groups if split.start not in set(GROUPS.tolist())]
    assert inside and any(split.table_maps for split in inside)
    assert all(split.table_maps == maps[split.start] for split in by_groups if split.start in maps)
