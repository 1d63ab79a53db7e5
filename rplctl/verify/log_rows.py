"""Computes the source's rows at a later position than the one at which they were read, from the relay log's changes.

A row was read at an unknown position between L and H. Apply all changes after L to the row, up to a position P, which
is H or later. The result is the source's row at P. The row may already include some of the changes, but the last change
of a column sets its value, and all other columns are unchanged. Invariant: if the source's row at P is uncertain,
NOT_KNOWN is returned in place of the row. A partial image makes the row uncertain if the values of the missing columns
are unknown, or if the row got another key. A default value that only a server knows also makes the row uncertain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from rplctl.decode.net_changes import Inconsistent, row_changes
from rplctl.decode.row_stream import TableRows
from rplctl.errors import RplError
from rplctl.event.images import first_columns
from rplctl.target.base import Row, RowSet
from rplctl.verify.key_values import Key
from rplctl.verify.pair import Pair

NOT_KNOWN = ()  # used as the row if it is uncertain
Rows = dict[Key, Row | None]  # key → the source's row; None: there is no row


def moved_rows(
    kept: Iterable[tuple[TableRows, list[Key]]], pair: Pair, rows: Mapping[Key, Row], wanted: Collection[Key]
) -> Rows:
    """Return the new row for each of the `wanted` keys that the transactions in `kept` changed.

    The row has the values that the target stores. It is None if the row was deleted, and NOT_KNOWN if it is uncertain.
    `kept`: the changes of each transaction, with the key of each row image. `rows`: the rows before the transactions.
    """
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
    """Yield each change as three values: the key before the change, the key after the change, and the new values.

    A key is () if the row does not exist before or after the change. The values are None for a DELETE.
    """
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
