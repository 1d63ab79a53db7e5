"""One table: hashes of both sides, rows of unequal buckets, suspects settled; its totals.

Invariant: what is told as different was settled by position; hashes only say where to look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

from rplctl.verify.hashes import Buckets
from rplctl.verify.key_values import Key
from rplctl.verify.pair import Batch, Pair
from rplctl.verify.report_file import Difference, Totals
from rplctl.verify.settle import Settler
from rplctl.verify.source_side import scan_source
from rplctl.verify.spool import Spool, spools, suspects, uneven
from rplctl.verify.target_side import TargetSide

_BYTES_AT_ONCE: Final = 8 << 20  # of rows that are settled together
_MOST_AT_ONCE: Final = 2000
_MOST_UNEVEN: Final = 200_000


def verify_table(  # noqa: PLR0913 - what one table takes
    settler: Settler,
    pair: Pair,
    max_load: int,
    spool: Path,
    write: Callable[[Iterable[Difference]], None],
    moved: Callable[[int], None],
) -> Totals:
    """`write`: takes the differences. `moved`: is told of rows that were read. Raises as Settler."""
    source, side = settler.source, settler.side

    def seen(batches: Iterable[Batch]) -> Iterable[Batch]:
        for batch in batches:
            moved(len(batch.rows))
            yield batch

    ours, theirs = Buckets(), Buckets()
    _together(
        side,
        lambda: _sum(ours, seen(scan_source(source, pair, max_load))),
        lambda: _sum(theirs, side.scan(pair)),
    )
    unequal, totals = ours.unequal(theirs), Totals(pair.target.database, pair.target.name, ours.rows)
    if not unequal.any():
        return replace(totals, equal=ours.rows)
    rows = int((ours.counts + theirs.counts)[unequal].sum())
    with spools(spool, rows, unequal) as (one, other, parts):
        _together(
            side,
            lambda: one.add_all(scan_source(source, pair, max_load)),
            lambda: other.add_all(side.scan(pair)),
        )
        if not pair.key:
            return _keyless(settler, pair, totals, one, other, parts)
        for part in range(parts):
            totals = _settled(settler, pair, suspects(one, other, part), totals, write)
    return replace(totals, equal=max(0, totals.rows - totals.missing - totals.different - totals.in_motion))


def _together(side: TargetSide, one: Callable[[], None], other: Callable[[], None]) -> None:
    """Both sides at once."""
    with ThreadPoolExecutor(1, "rplctl-verify") as thread:
        begun = thread.submit(other)
        one()
        begun.result()


def _sum(buckets: Buckets, batches: Iterable[Batch]) -> None:
    for batch in batches:
        buckets.add(batch.keys, batch.rows)


def _settled(
    settler: Settler, pair: Pair, keys: list[Key], totals: Totals, write: Callable[[Iterable[Difference]], None]
) -> Totals:
    at_once = _at_once(settler, pair)
    for at in range(0, len(keys), at_once):
        found = settler.settle(pair, keys[at : at + at_once])
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


def _at_once(settler: Settler, pair: Pair) -> int:
    names = ", ".join(f"x'{name.encode().hex()}'" for name in (pair.source.database, pair.source.name))
    found = settler.source.about(
        f"SELECT avg_row_length FROM information_schema.tables WHERE (table_schema, table_name) = ({names})"
    )
    return min(_MOST_AT_ONCE, max(10, _BYTES_AT_ONCE // max(1, int((found and found[0][0]) or 1))))


def _keyless(  # noqa: PLR0913 - what one table takes
    settler: Settler, pair: Pair, totals: Totals, one: Spool, other: Spool, parts: int
) -> Totals:
    hashes: set[int] = set()
    for part in range(parts):
        hashes |= uneven(one, other, part)
        if len(hashes) > _MOST_UNEVEN:
            why = f"{pair.why_keyless or 'it has no key'}, and more than {_MOST_UNEVEN} rows are not alike"
            return replace(totals, not_comparable=why)
    if not hashes:
        return replace(totals, equal=totals.rows)
    missing, extra, is_moving = settler.settle_hashes(pair, hashes)
    if is_moving:
        why = f"{pair.why_keyless or 'it has no key'}, and was written to each time that it was looked at"
        return replace(totals, not_comparable=why)
    return replace(totals, missing=missing, extra=extra, equal=max(0, totals.rows - missing))
