"""Represent text that is too large for memory: a view of its bytes, from which its UTF-8 is created in parts.

Invariant: the parts together are the UTF-8 of the text that `decode_text` returns. Each part has complete characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rplctl.event.charset import decode_text, is_utf8, whole_characters

PIECE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LargeText:
    """A large text. An iteration yields its UTF-8 in parts.

    `raw` has the bytes of the text in `charset`, which are known to be valid. `size` is the number of bytes of the
    UTF-8.
    """

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
    """Check the bytes of a cell, and return the text as a LargeText.

    The result is a str if UTF-8 cannot encode the text: ucs2 text may have halves of surrogate pairs. Raises
    BinlogFormatError if the bytes are not text in `charset`.
    """
    try:
        size = sum(len(decode_text(bytes(piece), charset).encode()) for piece in _pieces(raw, charset))
    except UnicodeEncodeError:
        return decode_text(bytes(raw), charset)
    return LargeText(raw, charset, size)


def checked_text(text: str) -> LargeText:
    """Return a LargeText for a text in memory. Raises UnicodeEncodeError if UTF-8 cannot encode the text."""
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
