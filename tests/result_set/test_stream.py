"""The end of a stream of rows, however it is cut."""

from __future__ import annotations

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.result_set.stream import RowStream
from tests.result_set.packets import length_prefixed, texts


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 7, 64, 1000, 1 << 20])
@pytest.mark.parametrize("end", [b"\xfe\0\0\2\0", b"\xff\x84\5#HY000gone"])
def test_the_end_of_a_stream_is_found_however_it_is_cut(piece: int, end: bytes) -> None:
    _, _, packets = texts(300)
    stream = RowStream(0)
    data = np.frombuffer(packets + length_prefixed([end], 300), np.uint8)
    for at in range(0, len(data), piece):
        stream.take(data[at : at + piece])
        assert stream.row_bytes <= len(packets)
    assert (stream.rows, stream.row_bytes, stream.end) == (300, len(packets), end)


def test_packets_out_of_sequence_are_refused() -> None:
    _, _, packets = texts(3)
    with pytest.raises(BinlogFormatError):
        RowStream(1).take(np.frombuffer(packets, np.uint8))
