"""Copy the cells of one column out of row images, as integers or as consecutive bytes.

Invariant: a cell is not copied if it is NULL or if its row image does not contain it. `Cells.valid` has the rows of the
copied cells.
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
    """The cells of one column that are present and not NULL, as ranges of bytes in `data`.

    `images` has the index of the row image of each cell. `total` is the number of requested rows, and `valid` has the
    index of each cell among them.
    """

    data: ByteArray
    starts: Ints
    lengths: npt.NDArray[np.int32]
    images: Ints
    valid: Ints
    total: int

    def __len__(self) -> int:
        return len(self.starts)


def cells_of(images: Images, rows: Ints, column: int) -> Cells:
    """Return the cells of one column in the row images with the indexes `rows`.

    The index -1 means that a row has no image. The result has no cell for a row without an image, and none for NULL.
    """
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
    """Return each cell as an unsigned integer. A cell must have at most 8 bytes."""
    return cast("npt.NDArray[np.uint64]", _load(cells.data, cells.starts, cells.lengths, big_endian))


def signed_cells(cells: Cells, width: int) -> Ints:
    """Return each cell as a signed integer. A cell has `width` bytes, little-endian, in two's complement."""
    shift = 64 - 8 * width
    value: Ints = (unsigned_cells(cells) << np.uint64(shift)).view(np.int64) >> shift
    return value


def has_large_cell(cells: Cells) -> bool:
    return len(cells) > 0 and int(cells.lengths.max()) > LARGE_CELL


def gather(cells: Cells) -> tuple[ByteArray, Ints]:
    """Copy the n cells into one buffer without gaps, as Arrow needs them, and return (buffer, offsets).

    Cell i is `buffer[offsets[i] : offsets[i + 1]]`. So `offsets` has n + 1 numbers.
    """
    offsets = np.zeros(len(cells) + 1, np.int64)
    np.cumsum(cells.lengths, out=offsets[1:])
    return cast(ByteArray, _gather(cells.data, cells.starts, offsets)), offsets


def raw_cells(cells: Cells) -> list[bytes]:
    """Return the bytes of each cell."""
    if has_large_cell(cells):  # copy each cell only once: two copies may not fit into memory
        spans = zip(cells.starts.tolist(), cells.lengths.tolist(), strict=True)
        return [cells.data[start : start + length].tobytes() for start, length in spans]
    buffer, offsets = gather(cells)
    raw = buffer.tobytes()
    ends = offsets.tolist()
    return [raw[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def cell_views(cells: Cells) -> list[bytes | memoryview]:
    """Return the bytes of each cell. A cell above LARGE_CELL bytes is a view of the log's bytes, and not a copy."""
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
