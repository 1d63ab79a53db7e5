"""Cells of one column, copied out of row images: as integers, or as consecutive bytes.

Invariant: a cell that is NULL or not in its image is not copied. `Cells.valid` has the rows of the copied cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from rplctl.event.bytes_at import copy_bytes, u8
from rplctl.event.images import Images
from rplctl.event.jit import ByteArray, kernel
from rplctl.event.rows import Ints

LARGE_CELL = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """The non-NULL cells of a column. `images`: the image of each cell; `valid`: its index among the `total` rows."""

    data: ByteArray
    starts: Ints
    lengths: npt.NDArray[np.int32]
    images: Ints
    valid: Ints
    total: int

    def __len__(self) -> int:
        return len(self.starts)


def cells_of(images: Images, rows: Ints, column: int) -> Cells:
    """Return the cells of one column in the images with the numbers `rows`; -1 = no image. NULLs are skipped."""
    starts = images.cell_start[rows, column]
    valid = np.flatnonzero((starts >= 0) & (rows >= 0))
    chosen = rows if len(valid) == len(rows) else rows[valid]
    starts = starts if len(valid) == len(rows) else starts[valid]
    lengths = np.ascontiguousarray(images.cell_length[chosen, column])
    return Cells(
        data=images.data,
        starts=np.ascontiguousarray(starts),
        lengths=lengths,
        images=chosen,
        valid=valid,
        total=len(rows),
    )


def unsigned_cells(cells: Cells, *, big_endian: bool = False) -> npt.NDArray[np.uint64]:
    """Return each cell as an unsigned integer. A cell has at most 8 bytes."""
    return cast("npt.NDArray[np.uint64]", _load(cells.data, cells.starts, cells.lengths, big_endian))


def signed_cells(cells: Cells, width: int) -> Ints:
    """Return each cell as a little-endian integer in two's complement of `width` bytes."""
    shift = 64 - 8 * width
    value: Ints = (unsigned_cells(cells) << np.uint64(shift)).view(np.int64) >> shift
    return value


def has_large_cell(cells: Cells) -> bool:
    return len(cells) > 0 and int(cells.lengths.max()) > LARGE_CELL


def gather(cells: Cells) -> tuple[ByteArray, Ints]:
    """Return (bytes, offsets[n + 1]): the cells without gaps between them, as Arrow needs them."""
    offsets = np.zeros(len(cells) + 1, np.int64)
    np.cumsum(cells.lengths, out=offsets[1:])
    return cast(ByteArray, _gather(cells.data, cells.starts, offsets)), offsets


def raw_cells(cells: Cells) -> list[bytes]:
    """Return the bytes of each cell."""
    if has_large_cell(cells):  # copy each cell once: memory may not hold large cells twice
        spans = zip(cells.starts.tolist(), cells.lengths.tolist(), strict=True)
        return [cells.data[start : start + length].tobytes() for start, length in spans]
    buffer, offsets = gather(cells)
    raw = buffer.tobytes()
    ends = offsets.tolist()
    return [raw[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def cell_views(cells: Cells) -> list[bytes | memoryview]:
    """Return the bytes of each cell as `raw_cells` does, but each large cell as a view, without a copy."""
    if not has_large_cell(cells):
        return [*raw_cells(cells)]
    spans = zip(cells.starts.tolist(), cells.lengths.tolist(), strict=True)
    views = (cells.data[start : start + length].data for start, length in spans)
    return [view if len(view) > LARGE_CELL else bytes(view) for view in views]


@kernel
def _load(data: Any, starts: Any, lengths: Any, big_endian: Any) -> Any:
    values = np.zeros(len(starts), np.uint64)
    for i in range(len(starts)):
        value = np.uint64(0)
        if big_endian:
            for k in range(lengths[i]):
                value = (value << np.uint64(8)) | np.uint64(u8(data, starts[i] + k))
        else:
            for k in range(lengths[i]):
                value |= np.uint64(u8(data, starts[i] + k)) << np.uint64(8 * k)
        values[i] = value
    return values


@kernel
def _gather(data: Any, starts: Any, offsets: Any) -> Any:
    out = np.empty(offsets[-1], np.uint8)
    for i in range(len(starts)):
        copy_bytes(data, starts[i], offsets[i + 1] - offsets[i], out, offsets[i])
    return out
