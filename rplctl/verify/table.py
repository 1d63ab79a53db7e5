"""Compares the rows of one table on both sides, and returns the numbers of equal and differing rows.

First, hashes or checksums of the rows are compared. Rows are grouped in buckets by their key, so only the rows of
unequal buckets are read again. Invariant: hashes only select the rows to examine. A row is reported as different only
after `resolve` has compared both sides of the row at known positions of the source's log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from rplctl.schema.bounds import row_bytes
from rplctl.verify.hashes import BUCKETS, Buckets
from rplctl.verify.key_values import Key
from rplctl.verify.pair import Pair, RowHashes
from rplctl.verify.progress import PiecesDone
from rplctl.verify.report_file import Difference, Totals
from rplctl.verify.resolve import Resolver
from rplctl.verify.server_sums import RowSum, unequal_rows
from rplctl.verify.source_side import scan_source
from rplctl.verify.spool import Spool, spools, suspects, uneven
from rplctl.verify.target_side import ServerSide

_BYTES_AT_ONCE: Final = 8 << 20  # the size of the rows that are resolved together
_MOST_AT_ONCE: Final = 2000
_FEW: Final = 20_000  # fewer rows than this are resolved in a few steps, without waiting for the target first
_MOST_UNEVEN: Final = 200_000


def verify_table(  # noqa: PLR0913 - all things that the comparison of a table needs
    resolver: Resolver,
    pair: Pair,
    max_load: int,
    spool: Path,
    write: Callable[[Iterable[Difference]], None],
    moved: Callable[[int], None],
    done: PiecesDone,
) -> Totals:
    """Compare one table, and return its totals. Raises the errors of `Resolver.resolve`.

    `max_load`: the number of running threads on the source above which verify waits; 0 means no limit. `spool`: a
    folder for temporary files. `write` stores differences. `moved` is called with the number of rows that were read.
    `done`: the part of the table that an earlier verify has finished.
    """
    source, side = resolver.source, resolver.side

    def seen(batches: Iterable[RowHashes]) -> Iterable[RowHashes]:
        for batch in batches:
            moved(len(batch.rows))
            yield batch

    if isinstance(side, ServerSide) and (by := RowSum.of(pair)):
        with side.asked() as ask:
            count, unlike = unequal_rows(source, ask, by, max_load, moved, done)
        wheres = [by.where(unequal) for unequal in unlike]
        scans = partial(scan_source, source, pair, max_load, wheres), partial(side.scan, pair, wheres)
        expected, unequal = sum(unequal.rows for unequal in unlike), np.ones(BUCKETS, np.bool_)
    else:
        ours, theirs = Buckets(), Buckets()
        scans = partial(scan_source, source, pair, max_load), partial(side.scan, pair)
        _together(lambda: _sum(ours, seen(scans[0]())), lambda: _sum(theirs, seen(scans[1]())))
        unequal, count = ours.unequal(theirs), ours.rows
        expected = int((ours.counts + theirs.counts)[unequal].sum())
    totals = Totals(database=pair.target.database, table=pair.target.name, rows=count)
    if not expected:
        return replace(totals, equal=count)
    with spools(spool, expected, unequal) as (one, other, parts):
        if expected < _FEW:
            _together(lambda: one.add_all(scans[0]()), lambda: other.add_all(scans[1]()))
        else:  # first let the applier catch up, so that rows which the target has not received are no suspects
            one.add_all(scans[0]())
            resolver.catch_up()
            other.add_all(scans[1]())
        if not pair.key:
            return _keyless(resolver, pair, totals, one, other, parts)
        for part in range(parts):
            totals = resolved_totals(resolver, pair, suspects(one, other, part), totals, write)
    return replace(totals, equal=max(0, totals.rows - totals.missing - totals.different - totals.in_motion))


def _together(one: Callable[[], None], other: Callable[[], None]) -> None:
    """Run both functions at the same time, and wait for both."""
    with ThreadPoolExecutor(1, "rplctl-verify") as thread:
        begun = thread.submit(other)
        one()
        begun.result()


def _sum(buckets: Buckets, batches: Iterable[RowHashes]) -> None:
    for batch in batches:
        buckets.add(batch.keys, batch.rows)


def resolved_totals(
    resolver: Resolver, pair: Pair, keys: list[Key], totals: Totals, write: Callable[[Iterable[Difference]], None]
) -> Totals:
    count = at_once(resolver, pair)
    for at in range(0, len(keys), count):
        found = resolver.resolve(pair, keys[at : at + count])
        write(found.differences)
        kinds = [difference.kind for difference in found.differences]
        totals = replace(
            totals,
            missing=totals.missing + kinds.count("missing"),
            extra=totals.extra + kinds.count("extra"),
            different=totals.different + kinds.count("different"),
            in_motion=totals.in_motion + len(found.again),
        )
    return totals


def at_once(resolver: Resolver, pair: Pair) -> int:
    return min(_MOST_AT_ONCE, max(10, _BYTES_AT_ONCE // row_bytes(resolver.source.about, pair.source)[0]))


def _keyless(  # noqa: PLR0913 - all things that the comparison of a table needs
    resolver: Resolver, pair: Pair, totals: Totals, one: Spool, other: Spool, parts: int
) -> Totals:
    hashes: set[int] = set()
    for part in range(parts):
        hashes |= uneven(one, other, part)
        if len(hashes) > _MOST_UNEVEN:
            why = f"{pair.why_keyless or 'it has no key'}, and more than {_MOST_UNEVEN} rows differ"
            return replace(totals, not_comparable=why)
    if not hashes:
        return replace(totals, equal=totals.rows)
    missing, extra, is_moving = resolver.resolve_hashes(pair, hashes)
    if is_moving:
        why = f"{pair.why_keyless or 'it has no key'}, and it was changed during each attempt"
        return replace(totals, not_comparable=why)
    return replace(totals, missing=missing, extra=extra, equal=max(0, totals.rows - missing))
