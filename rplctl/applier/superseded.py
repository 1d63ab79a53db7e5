"""Row changes of one piece of a batch that a later piece makes good: they are not sent to the target at all.

Each task keeps the last image per key of its own piece; between pieces a hot row would be written once for each.
Dropped are only updates whose row a later piece updates or deletes: that one still finds out whether the row is there
(design D2).
Invariant: rows of tables with foreign keys or further unique keys are left alone, since between two pieces another row
may count on what they hold (`can_be_superseded`); so are keys of more than one column, or of text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rplctl.schema.model import TableModel
from rplctl.target.base import EncodedRows, TableChunk, has_one_unique_key

_NEWLINE = ord("\n")


def can_be_superseded(model: TableModel) -> bool:
    return not model.foreign_keys and has_one_unique_key(model)


def without_superseded(pieces: Sequence[list[TableChunk]]) -> list[list[TableChunk]]:
    """The pieces, which are in the log's order, without updates that later ones make good."""
    later: dict[tuple[str, str], list[npt.NDArray[np.int64]]] = {}
    kept: list[list[TableChunk]] = []
    for piece in reversed(pieces):
        chunks = []
        for chunk in piece:
            name = (chunk.database, chunk.table)
            bulk = chunk.bulk
            if bulk is None or not (bulk.updates.keys or bulk.deletes.keys):
                chunks.append(chunk)
                continue
            touched = later.setdefault(name, [])
            if touched and bulk.updates.count:
                chunk = replace(chunk, bulk=replace(bulk, updates=_without(bulk.updates, np.concatenate(touched))))
            touched += [np.frombuffer(rows.keys, np.int64) for rows in (bulk.updates, bulk.deletes) if rows.keys]
            chunks.append(chunk)
        kept.append(chunks)
    return kept[::-1]


def _without(rows: EncodedRows, gone: npt.NDArray[np.int64]) -> EncodedRows:
    keys = np.frombuffer(rows.keys, np.int64)
    stays = ~np.isin(keys, gone)
    if stays.all():
        return rows
    text = np.frombuffer(rows.text, np.uint8)
    ends = np.flatnonzero(text == _NEWLINE) + 1  # a newline within a field is escaped
    lengths = np.diff(ends, prepend=0)
    left = text[np.repeat(stays, lengths)]
    return EncodedRows(rows.columns, int(stays.sum()), left.tobytes(), keys[stays].tobytes())
