"""Packets of rows to images: framing, cuts, and bytes that are no rows."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.cells import cells_of, raw_cells
from rplctl.event.images import Images
from rplctl.result_set.columns import selected_columns
from rplctl.result_set.rows import read_images
from rplctl.schema.model import Column
from tests.result_set.packets import FULL, counted, length_prefixed, row, texts


def cells(batches: list[Images], column: int) -> list[bytes]:
    return [raw for im in batches for raw in raw_cells(cells_of(im, np.arange(len(im.cell_start)), column))]


def test_rows_come_in_batches_and_are_the_same_in_batches_of_any_size() -> None:
    columns, wire, packets = texts(500)
    whole = list(read_images(packets, columns, wire))
    small = list(read_images(packets, columns, wire, batch_bytes=1000))
    assert len(whole) == 1 and len(small) > 20
    assert cells(whole, 0) == cells(small, 0) == [struct.pack("<i", n) for n in range(500)]
    assert cells(whole, 1) == cells(small, 1) == [b"x" * (n * 7 % 400) for n in range(500) if n % 3]


@pytest.mark.parametrize("size", [FULL - 12, FULL - 11, FULL - 10, FULL, 2 * FULL + 5])
def test_a_cell_of_many_packets_is_in_one_piece(size: int) -> None:
    columns = selected_columns([Column(name="t", type="longblob")])
    big = np.random.default_rng(1).integers(0, 256, size, np.uint8).tobytes()
    packets = length_prefixed([row(counted(b"a")), row(counted(big)), row(counted(b"b"))])
    batches = list(read_images(packets, columns, [252]))
    assert cells(batches, 0) == [b"a", big, b"b"]


def test_bytes_that_are_no_rows_are_refused_wherever_they_are_cut_or_changed() -> None:
    columns, wire, packets = texts(4)
    ends = {0, *np.cumsum([4 + len(p) for p in (row(struct.pack("<i", 0), None),)]).tolist()}
    for length in range(len(packets)):
        try:
            whole = list(read_images(packets[:length], columns, wire))
        except BinlogFormatError:
            continue
        assert length in ends or sum(len(im.cell_start) for im in whole) < 4
    generator = np.random.default_rng(7)
    for _ in range(3000):
        changed = bytearray(packets)
        for at in generator.integers(0, len(packets), 3):
            changed[at] = generator.integers(0, 256)
        try:
            for images in read_images(bytes(changed), columns, wire):
                inside = images.cell_start + images.cell_length <= len(images.data)
                assert inside.all()
        except BinlogFormatError:
            pass
