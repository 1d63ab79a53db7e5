"""Compute net changes: the effect of a run of row changes in one table on each key.

Invariant (design D2): every entry states the final row of its key, and if the key must be present in the target before
(`expect_present`). Entries are in the order of the first change to each key. An UPDATE that changes the key is a delete
of the old key and an insert of the new key. Keys are compared byte by byte, so two spellings that a collation treats as
equal are two entries. The target deletes the row with one spelling before it inserts the row with the other spelling.

Partial images (binlog_row_image MINIMAL, NOBLOB): `cell_image` has, for each column, the image with the column's last
value. A column without such an image keeps the value of the target's row. `origin` has the key of this row in the
target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rplctl.event.bytes_at import is_same, u8, u64
from rplctl.event.images import NOT_IN_IMAGE, Images
from rplctl.event.jit import lean_kernel
from rplctl.event.rows import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class NetChanges:
    """The net changes of k keys, with one entry for each key.

    expect_present[k]  True if the first operation needs the key (update, delete), False if it creates the key
    key_image[k]       an image with the key's cells; image key_fallback[k] has the cells that this image lacks
    final_image[k]     the last image of the row, -1 if the row is absent at the end
    first_change[k]    the index of the first change to the key
    origin[k]          the entry with the key that the final row has in the target before these changes; the target's
                       row supplies the columns that no image has; -1 if these changes inserted the row, or if the
                       row is absent at the end
    cell_image[k, c]   the image that supplies column c, -1 if no image does; None if all images are full
    conflict           the first change that contradicts the changes before it (insert of a present key, update or
                       delete of an absent key), or -1; the change at `conflict` and all later changes are excluded
    diff_without_base  the first change with a JSON diff that has no before image, or -1
    """

    expect_present: npt.NDArray[np.bool_]
    key_image: Ints
    key_fallback: Ints
    final_image: Ints
    first_change: Ints
    origin: Ints
    cell_image: npt.NDArray[np.int32] | None
    conflict: int
    diff_without_base: int

    def __len__(self) -> int:
        return len(self.key_image)

    def rows_for(self, column: int) -> Ints:
        """Return, for each entry, the index of the image that has the final value of `column`.

        -1 means that no image has this value, or that the row is absent at the end.
        """
        if self.cell_image is None:
            return self.final_image
        return self.cell_image[:, column].astype(np.int64)

    def key_rows_for(self, images: Images, column: int) -> Ints:
        """Return, for each entry, the index of the image that has the cell of key column `column`."""
        missing = images.cell_start[self.key_image, column] == NOT_IN_IMAGE
        return np.where(missing & (self.key_fallback >= 0), self.key_fallback, self.key_image)


def net_changes(images: Images, key_columns: Sequence[int]) -> NetChanges:
    """Return the net changes of `images`. `key_columns` has the indexes of the key's columns.

    Raises ValueError if `key_columns` is empty.
    """
    if not key_columns:
        raise ValueError("a table without a key has no net changes; apply its rows one by one")
    full = images.are_full()
    changes = len(images.ops)
    most = 2 * changes  # an update may change two keys
    key_images = np.empty((most, 2), np.int64)  # an image of the key, and an image with its missing cells
    expect = np.zeros(most, np.uint8)
    state = np.empty((most, 3), np.int64)  # final image (-1 = absent), first change, origin
    cell_image = np.empty((0, 0) if full else (most, images.column_count), np.int32)
    size, conflict, no_base = _net_changes(
        images.data,
        (images.cell_start, images.cell_length, images.is_diff),
        (images.ops, images.before, images.after),
        np.array(key_columns, np.int64),
        exact_key_hashes(images, key_columns),
        not full,
        np.full(max(16, 1 << (2 * most).bit_length()), -1, np.int32),  # slots of the hash table, at most half used
        np.empty(most, np.uint64),
        (key_images, expect, state, cell_image),
    )
    key_image, key_fallback = np.ascontiguousarray(key_images[:size].T)
    final_image, first_change, origin = np.ascontiguousarray(state[:size].T)
    return NetChanges(
        expect_present=expect[:size].view(np.bool_),
        key_image=key_image,
        key_fallback=key_fallback,
        final_image=final_image,
        first_change=first_change,
        origin=origin,
        cell_image=None if full else cell_image[:size],
        conflict=int(conflict),
        diff_without_base=int(no_base),
    )


def exact_key_hashes(images: Images, columns: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Return a hash of the key in each image, or no hashes if different keys could have the same hash.

    With hashes, keys are compared without reading the cells again. Different keys have different hashes if the key is
    one column, and all its cells have the same length of at most 8 bytes. The reason is that `_hash_key` processes 8
    bytes at a time in reversible steps.
    """
    none = np.empty(0, np.uint64)
    if len(columns) != 1 or not len(images.cell_start):
        return none
    lengths = images.cell_length[:, columns[0]]
    if images.cell_start[:, columns[0]].min() < 0 or lengths.max() > 8 or lengths.min() != lengths.max():
        return none
    hashes = np.empty(len(lengths), np.uint64)
    _hash_keys(images.data, images.cell_start, images.cell_length, np.array(columns, np.int64), hashes)
    return hashes


@lean_kernel
def _hash_key(data: Any, starts: Any, lengths: Any, image: Any, other: Any, keys: Any) -> Any:
    """Return the hash of a key's cells. A cell that `image` lacks is taken from `other`, the before image."""
    h = np.uint64(1469598103934665603)
    for i in range(len(keys)):
        row = image
        if starts[row, keys[i]] == -2 and other >= 0:
            row = other
        p = starts[row, keys[i]]
        length = np.int64(lengths[row, keys[i]]) if p >= 0 else np.int64(0)
        h = (h ^ np.uint64(length + 7 * (p < 0))) * np.uint64(0x9E3779B97F4A7C15)
        whole = length & ~7
        for b in range(0, whole, 8):
            h = (h ^ u64(data, p + b)) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        word = np.uint64(0)
        for b in range(whole, length):
            word = (word << np.uint64(8)) | np.uint64(u8(data, p + b))
        h = (h ^ word) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(32)
    return h


@lean_kernel
def _hash_keys(data: Any, starts: Any, lengths: Any, keys: Any, hashes: Any) -> None:
    for image in range(len(hashes)):
        hashes[image] = _hash_key(data, starts, lengths, image, np.int64(-1), keys)


@lean_kernel
def _same_key(data: Any, starts: Any, lengths: Any, a: Any, a_other: Any, b: Any, b_other: Any, keys: Any) -> Any:
    for i in range(len(keys)):
        c = keys[i]
        x = a_other if starts[a, c] == -2 and a_other >= 0 else a
        y = b_other if starts[b, c] == -2 and b_other >= 0 else b
        p = starts[x, c]
        q = starts[y, c]
        if p < 0 or q < 0:
            if p != q:
                return False
            continue
        if lengths[x, c] != lengths[y, c]:
            return False
        if not is_same(data, p, q, np.int64(lengths[x, c])):
            return False
    return True


@lean_kernel
def entry_of(data: Any, cells: Any, image: Any, other: Any, keys: Any, table: Any, size: Any, exact_hashes: Any) -> Any:
    """Return the index of the entry of a key. A new key is added to `table` as the entry with the index `size`.

    `table` is the hash table of all keys so far, and `size` is the number of its keys. `image` is the image with the
    cells of the key. A cell that this image lacks is taken from the image `other`. `exact_hashes` is the result of
    `exact_key_hashes`.
    """
    starts, lengths = cells
    slots, hashes, key_images = table
    h = exact_hashes[image] if len(exact_hashes) else _hash_key(data, starts, lengths, image, other, keys)
    mask = np.uint64(len(slots) - 1)
    slot = h & mask
    while slots[slot] >= 0:
        entry = np.int64(slots[slot])
        if hashes[entry] == h and (
            len(exact_hashes)
            or _same_key(data, starts, lengths, image, other, key_images[entry, 0], key_images[entry, 1], keys)
        ):
            return entry
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = size
    hashes[size] = h
    key_images[size, 0] = image
    key_images[size, 1] = other
    return np.int64(size)


@lean_kernel
def _stays(data: Any, cells: Any, before: Any, after: Any, keys: Any, exact_hashes: Any) -> Any:
    """True if an update does not change the key."""
    if len(exact_hashes):
        return exact_hashes[before] == exact_hashes[after]
    return _same_key(data, cells[0], cells[1], after, before, before, np.int64(-1), keys)


@lean_kernel
def _overlay(starts: Any, image: Any, cell_image: Any, entry: Any) -> None:
    for c in range(starts.shape[1]):
        if starts[image, c] != -2:
            cell_image[entry, c] = image


@lean_kernel
def _copy_cells(cell_image: Any, target: Any, source: Any) -> None:
    """Copy the cells of entry `source` to entry `target`. If `source` is -1, the cells of `target` are cleared."""
    for c in range(cell_image.shape[1]):
        cell_image[target, c] = cell_image[source, c] if source >= 0 else -1


@lean_kernel
def _lacks_base(starts: Any, diffs: Any, before: Any, after: Any) -> Any:
    for c in range(diffs.shape[1]):
        if diffs[after, c] and starts[before, c] == -2:
            return True
    return False


@lean_kernel
def _net_changes(
    data: Any,
    where: Any,
    changes: Any,
    keys: Any,
    exact_hashes: Any,
    partial: Any,
    slots: Any,
    hashes: Any,
    entries: Any,
) -> Any:
    """Write the entries of all keys. Return (number of entries, conflict, first diff without a before image).

    The docstring of `NetChanges` explains these values.
    """
    starts, lengths, diffs = where
    ops, before, after = changes
    key_images, expect, state, cell_image = entries
    cells = (starts, lengths)
    table = (slots, hashes, key_images)
    none = np.int64(-1)
    size = np.int64(0)
    no_base = none
    for i in range(len(ops)):
        entry = none
        if ops[i] != 1:
            entry = entry_of(data, cells, before[i], none, keys, table, size, exact_hashes)
            if entry == size:
                size += 1
                expect[entry] = 1
                state[entry, 0] = before[i]
                state[entry, 1] = i
                state[entry, 2] = entry
                if partial:
                    _copy_cells(cell_image, entry, none)
                    _overlay(starts, before[i], cell_image, entry)
            elif state[entry, 0] < 0:
                return size, np.int64(i), no_base
        target = entry
        if ops[i] == 1 or (ops[i] == 2 and not _stays(data, cells, before[i], after[i], keys, exact_hashes)):
            target = entry_of(data, cells, after[i], before[i], keys, table, size, exact_hashes)
            if target == size:
                size += 1
                state[target, 0] = -1
                state[target, 1] = i
                state[target, 2] = -1
                if partial:
                    _copy_cells(cell_image, target, none)
            elif state[target, 0] >= 0:
                return size, np.int64(i), no_base
            if entry >= 0:  # the row moves to another key together with its cells
                state[target, 2] = state[entry, 2]
                if partial:
                    _copy_cells(cell_image, target, entry)
        if entry >= 0 and entry != target or ops[i] == 3:
            state[entry, 0] = -1
            state[entry, 2] = -1
            if partial:
                _copy_cells(cell_image, entry, none)
        if ops[i] != 3:
            state[target, 0] = after[i]
            if partial:
                if no_base < 0 and len(diffs) and _lacks_base(starts, diffs, before[i], after[i]):
                    no_base = np.int64(i)
                _overlay(starts, after[i], cell_image, target)
    return size, none, no_base
