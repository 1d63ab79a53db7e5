"""Find the distinct byte ranges among many, so that rplctl parses each distinct table map only once.

A source repeats the table maps with every statement.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rplctl.event.bytes_at import is_same, u32
from rplctl.event.jit import ByteArray, lean_kernel
from rplctl.event.rows import Ints

_AHEAD: Final = 16  # number of ranges by which memory is read ahead of the comparison
_RECENT: Final = 64  # power of two


def distinct_ranges(data: ByteArray, starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Divide byte ranges into kinds of equal ranges, and return (firsts, kinds).

    `firsts` has the index of the first range of each kind. `kinds` has an entry for each range: the index of its kind
    in `firsts`.
    """
    slots = np.full(max(16, 1 << (2 * len(starts)).bit_length()), -1, np.int64)  # at most half used
    recent = np.full(_RECENT, -1, np.int64)
    firsts, kinds = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    count, _ = _classify(data, starts, lengths, slots, recent, firsts, kinds)
    return firsts[:count], kinds


@lean_kernel
def _hash(data: Any, start: Any, length: Any) -> Any:
    h = np.uint64(length)
    words = length & ~3
    for k in range(0, words, 4):
        h = (h ^ np.uint64(u32(data, start + k))) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    for k in range(words, length):
        h = (h ^ np.uint64(data[start + k])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@lean_kernel
def _classify(data: Any, starts: Any, lengths: Any, slots: Any, recent: Any, firsts: Any, kinds: Any) -> Any:
    """Write `firsts` and `kinds` as `distinct_ranges` returns them. Return (the number of kinds, a meaningless sum).

    The kernel reads the first byte of each range some ranges in advance, so that the processor loads the range from
    memory in time. The sum of these bytes keeps the compiler from removing the reads. `slots` is a hash table of the
    kinds. `recent` has the kind that was found last for each value of the low bits of a range's first byte.
    """
    count = np.int64(0)
    fetched = np.int64(0)
    mask = np.uint64(len(slots) - 1)
    for i in range(len(starts)):
        if i + _AHEAD < len(starts) and lengths[i + _AHEAD] > 0:
            fetched += data[starts[i + _AHEAD]]
        length = lengths[i]
        last = data[starts[i]] & (_RECENT - 1) if length > 0 else 0
        kind = recent[last]
        if kind >= 0 and lengths[firsts[kind]] == length and is_same(data, starts[firsts[kind]], starts[i], length):
            kinds[i] = kind
            continue
        slot = _hash(data, starts[i], length) & mask
        while True:
            kind = slots[slot]
            if kind < 0:
                kind = slots[slot] = count
                firsts[count] = i
                count += 1
                break
            j = firsts[kind]
            if lengths[j] == length and is_same(data, starts[j], starts[i], length):
                break
            slot = (slot + np.uint64(1)) & mask
        kinds[i] = recent[last] = kind
    return count, fetched
