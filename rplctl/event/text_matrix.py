"""Represent the texts of many cells as one byte matrix. Decimal numbers and times are printed into such a matrix.

Invariant: a row's text is the bytes from column `first` to the end of the row, and all bytes are ASCII.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class TextSheet:
    """The texts of n cells. `sheet` has the shape [n, width]. `first` has the column at which each text begins."""

    sheet: Bytes
    first: Ints

    def texts(self) -> list[str]:
        width = self.sheet.shape[1]
        text = self.sheet.tobytes().decode("ascii")
        starts = (np.arange(len(self.sheet)) * width + self.first).tolist()
        return [text[start:end] for start, end in zip(starts, range(width, len(text) + 1, width), strict=True)]

    def spans(self) -> tuple[Bytes, Ints, npt.NDArray[np.int32]]:
        """Return (bytes, starts, lengths). Text i is `bytes[starts[i] : starts[i] + lengths[i]]`."""
        width = self.sheet.shape[1]
        starts = np.arange(len(self.sheet), dtype=np.int64) * width + self.first
        return self.sheet.reshape(-1), starts, (width - self.first).astype(np.int32)


def new_sheet(rows: int, width: int) -> Bytes:
    """Return a sheet of [rows, width] that is filled with the digit 0."""
    return np.full((rows, width), ord("0"), np.uint8)
