"""Computes 64-bit hashes of rows, and sums them in buckets, so that both sides of a table can be compared.

A row belongs to one of 4,096 buckets, which the hash of its key selects. A bucket has the number of its rows, and the
sum of their hashes. So it does not matter in which order, collation or chunks the two sides are read. If a bucket is
equal on both sides, it contains the same rows, except with a probability of 2^-64. Invariant: the hash of a cell
depends only on its bytes. The hash of an integer depends only on the value, not on the width.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rplctl.event.bytes_at import u8, u64
from rplctl.event.images import Images
from rplctl.event.jit import lean_kernel

BUCKETS: Final = 4096
RAW, SIGNED, UNSIGNED = range(3)
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Buckets:
    """The sum of the hashes, and the number of rows, in each bucket of one side of a table."""

    sums: Hashes = field(default_factory=lambda: np.zeros(BUCKETS, np.uint64))
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))

    def add(self, keys: Hashes, rows: Hashes) -> None:
        _add(keys, rows, self.sums, self.counts)

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def unequal(self, other: Buckets) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (self.sums != other.sums) | (self.counts != other.counts)
        return found


def bucket_of(keys: Hashes) -> npt.NDArray[np.int64]:
    return (keys & np.uint64(BUCKETS - 1)).astype(np.int64)


def hash_images(images: Images, columns: Sequence[int], modes: Sequence[int]) -> Hashes:
    """Return one hash for each row, computed from the row's cells in the columns with these indexes.

    `modes`: for each column, SIGNED or UNSIGNED for an integer, and RAW for other types.
    """
    out = np.empty(len(images.cell_start), np.uint64)
    numbers, how = np.array(columns, np.int64), np.array(modes, np.int64)
    _hash_cells(images.data, images.cell_start, images.cell_length, numbers, how, out)
    return out


def hash_values(rows: Iterable[object]) -> Hashes:
    """Return one hash for each row, whose values are Python objects such as int, str and bytes (`key_values.Plain`).

    The hash is that of the row's `repr`, because Python prints equal values of these types in the same way.
    """
    digests = b"".join(hashlib.blake2b(repr(row).encode(), digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, np.uint64)


@lean_kernel
def _add(keys: Any, rows: Any, sums: Any, counts: Any) -> None:
    for i in range(len(keys)):
        bucket = np.int64(keys[i] & np.uint64(4095))
        sums[bucket] += rows[i]
        counts[bucket] += 1


@lean_kernel
def _mixed(h: Any, word: Any) -> Any:
    h = (h ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@lean_kernel
def _hash_cells(  # noqa: PLR0913 - a kernel
    data: Any, starts: Any, lengths: Any, columns: Any, modes: Any, out: Any
) -> None:
    for row in range(len(out)):
        h = np.uint64(0x243F6A8885A308D3)
        for i in range(len(columns)):
            column = columns[i]
            at = starts[row, column]
            if at < 0:
                h = _mixed(h, np.uint64(0xFFFFFFFFFFFFFFFF))
                continue
            end = at + np.int64(lengths[row, column])
            if modes[i] == 0:
                h = _mixed(h, np.uint64(end - at))
            while end - at >= 8:
                h = _mixed(h, u64(data, at))
                at += 8
            word = np.uint64(0)
            shift = np.uint64(0)
            for p in range(at, end):
                word |= np.uint64(u8(data, p)) << shift
                shift += np.uint64(8)
            if shift != np.uint64(0):
                if modes[i] == 1 and data[end - 1] >= 128:
                    word |= np.uint64(0xFFFFFFFFFFFFFFFF) << shift
                h = _mixed(h, word)
        out[row] = _mixed(h, h >> np.uint64(32))
