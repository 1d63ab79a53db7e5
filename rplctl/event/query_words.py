"""Recognize the SQL words that begin or end a transaction, for the group kernel.

A word is compared as one little-endian number: its first eight bytes in upper case, padded with zeros. No SQL is
parsed, and no Python code runs per event.
"""

from __future__ import annotations

from typing import Final

from rplctl.event.jit import ByteArray, lean_kernel

# Words of QUERY events.
WORD_OTHER: Final = 0
WORD_BEGIN: Final = 1
WORD_COMMIT: Final = 2
WORD_ROLLBACK: Final = 3
WORD_SAVEPOINT: Final = 4  # also ROLLBACK TO and RELEASE SAVEPOINT
WORD_XA_START: Final = 5
WORD_XA_END: Final = 6  # also XA PREPARE as text
WORD_XA_FINISH: Final = 7  # XA COMMIT, XA ROLLBACK


def _packed(word: str) -> int:
    return int.from_bytes(word.encode("ascii").ljust(8, b"\0"), "little")


_BEGIN: Final = _packed("BEGIN")
_COMMIT: Final = _packed("COMMIT")
_ROLLBACK: Final = _packed("ROLLBACK")
_SAVEPOINT: Final = _packed("SAVEPOIN")
_RELEASE: Final = _packed("RELEASE ")
_XA_START: Final = _packed("XA START")
_XA_BEGIN: Final = _packed("XA BEGIN")
_XA_END: Final = _packed("XA END ")
_XA_COMMIT: Final = _packed("XA COMMI")
_XA_ROLLBACK: Final = _packed("XA ROLLB")
_XA_PREPARE: Final = _packed("XA PREPA")
_SEVEN_BYTES: Final = (1 << 56) - 1


@lean_kernel
def query_word(data: ByteArray, start: int, end: int) -> int:
    """Return the WORD_ constant of the word that begins the statement `data[start:end]`."""
    word = 0
    for index in range(min(8, end - start)):
        byte = int(data[start + index])
        if 97 <= byte <= 122:
            byte -= 32
        word |= byte << (8 * index)
    if word == _BEGIN:
        return WORD_BEGIN
    if word == _COMMIT:
        return WORD_COMMIT
    if word == _ROLLBACK:
        return WORD_ROLLBACK if end - start == 8 else WORD_SAVEPOINT
    if word in (_SAVEPOINT, _RELEASE):
        return WORD_SAVEPOINT
    if word in (_XA_START, _XA_BEGIN):
        return WORD_XA_START
    if word == _XA_PREPARE or word & _SEVEN_BYTES == _XA_END:
        return WORD_XA_END
    if word in (_XA_COMMIT, _XA_ROLLBACK):
        return WORD_XA_FINISH
    return WORD_OTHER
