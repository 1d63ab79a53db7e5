"""Find row changes of one piece of a batch that a later piece overwrites, so that they are not sent to the target.

Each task keeps only the last image per key of its own piece, but a row may change in several pieces. Only updates are
dropped, and only if a later piece updates or deletes the row. This later change still detects a missing row (design
D2).

Invariant: no change is dropped in a table with a foreign key or a second unique key (`can_be_overwritten`). In such a
table, a change of another row may be possible only while the dropped values are on the target. A change is also kept if
the key has several columns or is text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rplctl.event.fields import row_ends
from rplctl.event.jit import byte_view
from rplctl.schema.model import TableModel
from rplctl.target.base import EncodedRows, TableChunk, has_one_unique_key

Keys = npt.NDArray[np.int64]
Kept = npt.NDArray[np.bool_]  # one value per row


def can_be_overwritten(model: TableModel) -> bool:
    return not model.foreign_keys and has_one_unique_key(model)


def without_overwritten(pieces: Sequence[list[TableChunk]]) -> Iterator[list[TableChunk]]:
    """Yield the chunks of each piece without the updates that later pieces overwrite. Pieces are in log order.

    Only one piece is copied to memory at a time. The others stay in the mapped files of the tasks.
    """
    stay: list[list[Kept | None]] = []
    later: dict[tuple[str, str], list[Keys]] = {}
    for piece in reversed(pieces):
        stay.append([_kept(chunk, later.setdefault((chunk.database, chunk.table), [])) for chunk in piece])
    for piece, kept in zip(pieces, reversed(stay), strict=True):
        yield [_only(chunk, rows) for chunk, rows in zip(piece, kept, strict=True)]


def _kept(chunk: TableChunk, later: list[Keys]) -> Kept | None:
    """Return a mask of the updates to keep, or None to keep all.

    `later` has the keys that later pieces change. The function adds the keys of this chunk to it.
    """
    bulk = chunk.bulk
    if bulk is None:
        return None
    keys = _keys(bulk.updates)
    kept = ~np.isin(keys, np.concatenate(later)) if later and len(keys) else None
    later += [changed for changed in (keys, _keys(bulk.deletes)) if len(changed)]
    return None if kept is None or kept.all() else kept


def _only(chunk: TableChunk, kept: Kept | None) -> TableChunk:
    if chunk.bulk is None or kept is None:
        return chunk
    rows = chunk.bulk.updates
    text = byte_view(rows.view)
    ends = row_ends(text, len(rows.columns), length_prefixed=rows.length_prefixed)
    left = text[np.repeat(kept, np.diff(ends, prepend=0))]
    updates = EncodedRows(
        rows.columns, int(kept.sum()), left.tobytes(), _keys(rows)[kept].tobytes(), rows.length_prefixed
    )
    return replace(chunk, bulk=replace(chunk.bulk, updates=updates))


def _keys(rows: EncodedRows) -> Keys:
    return np.frombuffer(rows.keys, np.int64)
