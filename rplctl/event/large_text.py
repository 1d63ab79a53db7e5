"""Text that memory should not hold: where it lies, and its UTF-8 piece by piece.

Invariant: the pieces together are the UTF-8 of what `decode_text` makes of the whole; each is of whole characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rplctl.event.charset import decode_text, is_utf8, whole_characters

PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LargeText:
    """Iterated over: its UTF-8. `size`: bytes of that. `raw`: text in `charset` that has been read once."""

    raw: memoryview
    charset: str
    size: int

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[memoryview]:
        for piece in _pieces(self.raw, self.charset):
            yield piece if is_utf8(self.charset) else memoryview(decode_text(bytes(piece), self.charset).encode())

    def __str__(self) -> str:
        return decode_text(bytes(self.raw), self.charset)


def large_text(raw: memoryview, charset: str) -> LargeText | str:
    """Text of a row. Plain where it is no UTF-8: ucs2 has halves of surrogate pairs. Raises as `decode_text`."""
    try:
        size = sum(len(decode_text(bytes(piece), charset).encode()) for piece in _pieces(raw, charset))
    except UnicodeEncodeError:
        return decode_text(bytes(raw), charset)
    return LargeText(raw, charset, size)


def checked_text(text: str) -> LargeText:
    """Check and return text that is in memory already. Raises UnicodeEncodeError."""
    raw = memoryview(text.encode())
    return LargeText(raw, "utf8mb4", len(raw))


def _pieces(raw: memoryview, charset: str) -> Iterator[memoryview]:
    at = 0
    while at < len(raw):
        piece = raw[at : at + PIECE_BYTES]
        if at + len(piece) < len(raw):
            piece = piece[: whole_characters(bytes(piece), charset)]
        yield piece
        at += len(piece)
