"""Little-endian numbers at an offset, for kernels. The caller has checked the bounds."""

from __future__ import annotations

from rplctl.event.jit import ByteArray, lean_kernel


@lean_kernel
def u16(data: ByteArray, at: int) -> int:
    return int(data[at]) | int(data[at + 1]) << 8


@lean_kernel
def u24(data: ByteArray, at: int) -> int:
    return int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16


@lean_kernel
def u32(data: ByteArray, at: int) -> int:
    return int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16 | int(data[at + 3]) << 24
