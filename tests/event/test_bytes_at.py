"""What the kernels read, compare and copy is what Python reads there."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from rplctl.event.bytes_at import copy_bytes, is_same, u8, u16, u24, u32, u64
from rplctl.event.jit import byte_view


@given(st.binary(min_size=8, max_size=24), st.integers(0, 16))
def test_numbers_are_little_endian(data: bytes, at: int) -> None:
    at = min(at, len(data) - 8)
    for width, read in ((1, u8), (2, u16), (3, u24), (4, u32), (8, u64)):
        assert int(read(byte_view(data), at)) == int.from_bytes(data[at : at + width], "little")


@given(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 1000), st.integers(1, 255))
def test_ranges_are_the_same_up_to_their_last_byte(data: bytes, changed: int, shift: int, by: int) -> None:
    view = byte_view(bytes(shift % 8) + data + data)
    first, second = shift % 8, shift % 8 + len(data)
    assert is_same(view, first, second, len(data)) and is_same(view, 0, first, 0)
    assert is_same(view, 0, first, -4), "what an event that is too short has of a body"
    if changed < len(data):
        other = bytearray(view)
        other[second + changed] ^= by
        assert not is_same(byte_view(bytes(other)), first, second, len(data))


@given(st.binary(max_size=40), st.integers(0, 8))
def test_a_copy_is_as_long_as_was_said_and_nothing_is_written_beside_it(data: bytes, to: int) -> None:
    into = np.full(60, 7, np.uint8)
    copy_bytes(byte_view(data), 0, len(data), into, to)
    assert into.tobytes() == b"\7" * to + data + b"\7" * (60 - to - len(data))
    copy_bytes(byte_view(data), 0, -1, into, 0)
    assert into.tobytes()[:to] == b"\7" * to
