"""Rows of the source at a later place of its log than they were read at: the relay log's changes are made to them.

A row that was read somewhere between L and H and gets all changes from L on is the source's row at any place from H on:
what they set last counts, and what none of them sets is as it was. Invariant: of a row for which that cannot be told (a
partial image of a row that moved to another key, or that is not known; a default that only a server knows) nothing is
told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from rplctl.applier.decode.net_changes import Inconsistent, row_changes
from rplctl.applier.decode.row_stream import TableRows
from rplctl.errors import RplError
from rplctl.event.images import first_columns
from rplctl.target.base import Row, RowSet
from rplctl.verify.key_values import Key
from rplctl.verify.pair import Pair

NOT_KNOWN = ()  # in place of a row
Rows = dict[Key, Row | None]  # None: there is none


def moved_rows(
    kept: Iterable[tuple[TableRows, list[Key]]], pair: Pair, rows: Mapping[Key, Row], wanted: Collection[Key]
) -> Rows:
    """Those of the `wanted` keys that the changes touch, as the target takes them; or NOT_KNOWN."""
    found: Rows = {}
    for changes, keys in kept:
        try:
            for old, new, after in _changes(changes, keys, pair):
                base = found.get(old, rows.get(old)) if old == new else None
                if old and old in wanted:
                    found[old] = None
                if new and new in wanted:
                    found[new] = _with(base, after, pair)
        except (RplError, Inconsistent):
            found.update((key, NOT_KNOWN) for key in keys if key in wanted)
    return found


def _changes(rows: TableRows, keys: list[Key], pair: Pair) -> Iterator[tuple[Key, Key, RowSet | None]]:
    """Yield for each change its key before and after it (() if there is no row), and the values that it sets."""
    images = rows.images
    ours = replace(
        rows,
        model=pair.target,
        formats=rows.formats[: pair.width],
        images=first_columns(images, pair.width),
        target_kind=pair.kind,
    )
    old, new = images.before.tolist(), images.after.tolist()
    for change, before, after in zip(row_changes(ours), old, new, strict=True):
        yield keys[before] if before >= 0 else (), keys[after] if after >= 0 else (), change.after


def _with(base: Row | None, after: RowSet | None, pair: Pair) -> Row:
    assert after is not None
    values = dict(zip(after.columns, after.rows[0], strict=True))
    if len(values) == pair.width:
        return tuple(values[c] for c in range(pair.width))
    return tuple(values.get(c, cell) for c, cell in enumerate(base)) if base else NOT_KNOWN
