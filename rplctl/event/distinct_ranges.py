"""Which of many byte ranges are the same: table maps repeat with every statement, and each is to be parsed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rplctl.event.bytes_at import u32
from rplctl.event.jit import ByteArray, lean_kernel
from rplctl.event.rows import Ints


def distinct_ranges(data: ByteArray, starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """(numbers of the first of each kind, per range the position of its kind among those)."""
    slots = np.full(max(16, 1 << (2 * len(starts)).bit_length()), -1, np.int64)  # at most half used
    firsts, kinds = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    count = _classify(data, starts, lengths, slots, firsts, kinds)
    return firsts[:count], kinds


@lean_kernel
def _classify(data: Any, starts: Any, lengths: Any, slots: Any, firsts: Any, kinds: npt.NDArray[np.int64]) -> Any:
    count = 0
    mask = np.uint64(len(slots) - 1)
    for i in range(len(starts)):
        h = np.uint64(lengths[i])
        words = lengths[i] & ~3
        for k in range(0, words, 4):
            h = (h ^ np.uint64(u32(data, starts[i] + k))) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        for k in range(words, lengths[i]):
            h = (h ^ np.uint64(data[starts[i] + k])) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        slot = h & mask
        while True:
            kind = slots[slot]
            if kind < 0:
                slots[slot] = count
                firsts[count] = i
                kinds[i] = count
                count += 1
                break
            j = firsts[kind]
            same = lengths[j] == lengths[i]
            k = 0
            while same and k < lengths[i]:
                same = data[starts[j] + k] == data[starts[i] + k]
                k += 1
            if same:
                kinds[i] = kind
                break
            slot = (slot + np.uint64(1)) & mask
    return count
