"""Kernels that read little-endian numbers at an offset, or compare or copy bytes. The caller checks the bounds.

The kernels convert each offset to an unsigned number. For a signed index, Numba adds a branch, because a negative index
counts from the end.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from rplctl.event.jit import ByteArray, lean_kernel

Offset: TypeAlias = "int | np.integer[Any]"


@lean_kernel
def u8(data: ByteArray, at: Offset) -> int:
    return int(data[np.uint64(at)])


@lean_kernel
def u16(data: ByteArray, at: Offset) -> int:
    p = np.uint64(at)
    return int(data[p]) | int(data[p + np.uint64(1)]) << 8


@lean_kernel
def u24(data: ByteArray, at: Offset) -> int:
    p = np.uint64(at)
    return int(data[p]) | int(data[p + np.uint64(1)]) << 8 | int(data[p + np.uint64(2)]) << 16


@lean_kernel
def u32(data: ByteArray, at: Offset) -> int:
    p = np.uint64(at)
    low = int(data[p]) | int(data[p + np.uint64(1)]) << 8
    return low | int(data[p + np.uint64(2)]) << 16 | int(data[p + np.uint64(3)]) << 24


@lean_kernel
def u64(data: ByteArray, at: Offset) -> np.uint64:
    p = np.uint64(at)
    return np.uint64(u32(data, at)) | np.uint64(u32(data, p + np.uint64(4))) << np.uint64(32)


@lean_kernel
def is_same(data: ByteArray, first: Offset, second: Offset, length: Offset) -> bool:
    whole = max(length, 0) & ~7
    differing = np.uint64(0)
    for k in range(0, whole, 8):
        differing |= u64(data, first + k) ^ u64(data, second + k)
    for k in range(whole, length):
        differing |= np.uint64(u8(data, first + k) ^ u8(data, second + k))
    return bool(differing == np.uint64(0))


@lean_kernel
def copy_bytes(source: ByteArray, at: Offset, length: Offset, into: ByteArray, to: Offset) -> None:
    if length > 0:
        p, q = np.uint64(at), np.uint64(to)
        for k in range(np.uint64(length)):
            into[q + k] = source[p + k]
