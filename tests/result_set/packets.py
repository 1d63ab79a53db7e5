"""Packets of a result set's rows, made by hand."""

from __future__ import annotations

import struct

from rplctl.result_set.columns import SelectedColumn, selected_columns
from rplctl.schema.model import Column

LONG, DECIMAL, TEXT, TIME, DATETIME, DATE, TIMESTAMP = 3, 246, 253, 11, 12, 10, 7
FULL = 0xFFFFFF


def counted(cell: bytes) -> bytes:
    if len(cell) < 251:
        return bytes([len(cell)]) + cell
    return (
        b"\xfd" + len(cell).to_bytes(3, "little") + cell
        if len(cell) < 1 << 24
        else b"\xfe" + struct.pack("<Q", len(cell)) + cell
    )


def length_prefixed(payloads: list[bytes], sequence: int = 0) -> bytes:
    out = []
    for payload in payloads:
        for at in range(0, len(payload) + 1, FULL):
            piece = payload[at : at + FULL]
            out.append(len(piece).to_bytes(3, "little") + bytes([sequence & 0xFF]) + piece)
            sequence += 1
    return b"".join(out)


def row(*cells: bytes | None) -> bytes:
    """`cells` with their lengths."""
    bits = sum(1 << (number + 2) for number, cell in enumerate(cells) if cell is None)
    return b"\0" + bits.to_bytes((len(cells) + 9) // 8, "little") + b"".join(cell or b"" for cell in cells)


def texts(count: int) -> tuple[list[SelectedColumn], list[int], bytes]:
    columns = selected_columns([Column(name="id", type="int"), Column(name="t", type="longtext", charset="utf8mb4")])
    rows = [row(struct.pack("<i", n), None if n % 3 == 0 else counted(b"x" * (n * 7 % 400))) for n in range(count)]
    return columns, [LONG, TEXT], length_prefixed(rows)
