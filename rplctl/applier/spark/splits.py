"""Divides a batch into jobs, which are decoded one at a time, and each job into splits, one for each Spark task.

Invariant: the jobs cover the batch without gaps, in the order of the log. BatchSize sets the size of each job just
before the job begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rplctl.applier.feed.batch_size import BatchSize
from rplctl.applier.feed.event_range import EventRange
from rplctl.applier.spark.pipeline import NO_LIMIT
from rplctl.applier.spark.split_task import Split
from rplctl.event.split import RowSplit, refuse_short_table_ids, split_rows

SMALLEST_SPLIT = 4 << 20  # bytes of the relay log that are worth a separate task
LARGEST_SPLIT = 64 << 20  # most bytes that one task decodes


def jobs(
    events: EventRange, batch_size: BatchSize, cores: int, task: Callable[..., Split], most: int = NO_LIMIT
) -> Iterator[list[Split]]:
    """Yield the jobs of a batch, each as a list of splits. `most`: the largest number of bytes of a job.

    A job has one split per core, or more if the splits would be too large. `cores`: the number of cores. `task`:
    creates a Split from keyword arguments (path, start, end, table maps, description, source).
    """
    pieces = list(_pieces(events))
    while pieces:
        start = pieces[0].start
        size = min(most, batch_size.job_bytes(events.end - start, is_first=start == events.start))
        count = sum(piece.start < start + size for piece in pieces)
        taken, pieces = pieces[:count], pieces[count:]
        each = -(-count // max(cores, -(-size // LARGEST_SPLIT)))
        shares: list[Sequence[RowSplit]] = [taken[at : at + each] for at in range(0, count, each)]
        yield [_split(events, share, task) for share in shares]


def _split(events: EventRange, share: Sequence[RowSplit], task: Callable[..., Split]) -> Split:
    first, end = share[0], share[-1].end
    source = replace(events.source, log_pos=events.source.log_pos + first.start - events.start)
    return task(
        path=str(events.path),
        start=first.start,
        end=end,
        table_maps=first.table_map_offsets,
        description=events.description,
        source=source,
    )


def _pieces(events: EventRange) -> Iterator[RowSplit]:
    """Yield the groups (transactions) of the batch in pieces of about SMALLEST_SPLIT bytes.

    A large transaction may be a piece of at least twice this size. Only such a piece is read, and cut into smaller
    pieces.
    """
    refuse_short_table_ids(events.description)
    wanted = np.arange(events.start, events.end, SMALLEST_SPLIT)
    bounds = np.append(events.groups, events.end)
    cuts = np.unique(bounds[np.searchsorted(bounds, np.append(wanted, events.end))]).tolist()
    for start, end in itertools.pairwise(cuts):
        if end - start < 2 * SMALLEST_SPLIT:
            yield RowSplit(start=start, end=end, table_map_offsets=())
        else:
            yield from split_rows(events.data, start, end, SMALLEST_SPLIT, events.description)
