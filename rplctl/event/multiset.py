"""Compute the net changes of a table without a key. It is a multiset: only the number of copies of each row counts.

The changes of each distinct row are processed in log order. A change that removes a copy first cancels a copy that an
earlier change inserted. If no such copy exists, the copy must be in the target, and `gone` counts it.

Invariant: the changes can be applied one by one if the target has at least `gone` copies of each row, and only then.
The result is the same as after removing `gone` copies and inserting `come` copies, because equal rows are
interchangeable.

Rows are compared byte by byte, so two spellings of one value are two rows. If one change inserts a row and a later
change removes it in another spelling, `gone` counts a copy that the target lacks. The target then reports too few
copies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rplctl.event.images import NOT_IN_IMAGE, Images
from rplctl.event.jit import lean_kernel
from rplctl.event.net_change import entry_of
from rplctl.event.rows import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class MultisetChanges:
    """The changes of each distinct row, in the order of the first change of the row.

    `image` has the index of an image of the row. `gone` has the number of copies to remove, and `come` the number of
    copies to insert.
    """

    image: Ints
    gone: Ints
    come: Ints


def with_old_cells(images: Images) -> Images:
    """Return images in which each after image also has the cells that only its before image has.

    Such cells are missing with binlog_row_image MINIMAL, NOBLOB and FULL_NODUP.
    """
    before = images.before_of_image
    fill = (images.cell_start == NOT_IN_IMAGE) & (before >= 0)[:, None]
    if not fill.any():
        return images
    starts = np.where(fill, images.cell_start[before], images.cell_start)
    return replace(
        images, cell_start=starts, cell_length=np.where(fill, images.cell_length[before], images.cell_length)
    )


def multiset_changes(images: Images) -> MultisetChanges:
    """Return the net changes of the rows of a table without a key. Every image must be full."""
    if (images.before < 0).all():  # only inserts: keep them in log order
        return MultisetChanges(image=images.after, gone=np.zeros_like(images.after), come=np.ones_like(images.after))
    most = len(images.cell_start)
    rows = np.empty((most, 2), np.int64)
    counts = np.zeros((most, 2), np.int64)
    size = _multiset_changes(
        images.data,
        (images.cell_start, images.cell_length),
        (images.before, images.after),
        np.arange(images.column_count),
        np.empty(0, np.uint64),  # a hash cannot identify a row of several columns
        (np.full(max(16, 1 << (2 * most).bit_length()), -1, np.int32), np.empty(most, np.uint64), rows),
        counts,
    )
    gone, come = np.ascontiguousarray(counts[:size].T)
    return MultisetChanges(image=np.ascontiguousarray(rows[:size, 0]), gone=gone, come=come)


@lean_kernel
def _multiset_changes(
    data: Any, cells: Any, changes: Any, columns: Any, exact_hashes: Any, table: Any, counts: Any
) -> Any:
    """Write the counts of the distinct rows, and return the number of these rows."""
    before, after = changes
    none = np.int64(-1)
    size = np.int64(0)
    for i in range(len(before)):
        if before[i] >= 0:
            entry = entry_of(data, cells, before[i], none, columns, table, size, exact_hashes)
            if entry == size:
                size += 1
            if counts[entry, 1] > 0:
                counts[entry, 1] -= 1
            else:
                counts[entry, 0] += 1
        if after[i] >= 0:
            entry = entry_of(data, cells, after[i], none, columns, table, size, exact_hashes)
            if entry == size:
                size += 1
            counts[entry, 1] += 1
    return size
