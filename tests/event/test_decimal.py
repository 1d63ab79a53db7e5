"""Packed decimals: one by one and as a column they give the same exact text."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rplctl.event.decimal import decimal_sheet, decimal_size, decimal_text


def packed(text: str, precision: int, scale: int) -> bytes:
    """The server's packing, from its description: groups of 9 digits, first bit inverted, negatives inverted."""
    digits = text.lstrip("-").replace(".", "").zfill(precision)[-precision:]
    whole, part = digits[: precision - scale], digits[precision - scale :]
    first = len(whole) % 9
    groups = [whole[:first]] * (first > 0) + [whole[i : i + 9] for i in range(first, len(whole), 9)]
    groups += [part[i : i + 9] for i in range(0, len(part), 9)]
    raw = bytearray(
        b"".join(int(group).to_bytes((0, 1, 1, 2, 2, 3, 3, 4, 4, 4)[len(group)], "big") for group in groups)
    )
    raw[0] ^= 0x80
    return bytes(byte ^ 0xFF for byte in raw) if text.startswith("-") else bytes(raw)


@pytest.mark.parametrize(
    ("precision", "scale", "text", "raw"),
    [  # the manual's example, and bytes recorded from MySQL 9.7
        (14, 4, "1234567890.1234", "810dfb38d204d2"),
        (14, 4, "-1234567890.1234", "7ef204c72dfb2d"),
        (1, 0, "-9", "76"),
        (9, 9, "0.000000001", "80000001"),
        (5, 2, "-0.01", "7ffffe"),
    ],
)
def test_known_bytes(precision: int, scale: int, text: str, raw: str) -> None:
    assert decimal_size(precision, scale) == len(raw) // 2
    assert decimal_text(bytes.fromhex(raw), precision, scale) == text
    assert packed(text, precision, scale).hex() == raw


def test_every_precision_and_scale_gives_exact_text_both_ways() -> None:
    rng = random.Random(11)
    for precision in range(1, 66):
        for scale in {0, 1, min(precision, 30), rng.randrange(min(precision, 30) + 1)}:
            texts = []
            for _ in range(6):
                number = rng.randrange(10 ** rng.randrange(precision + 1))
                body = str(number).zfill(scale + 1)
                body = f"{body[:-scale]}.{body[-scale:]}" if scale else body
                texts.append(f"-{body}" if number and rng.random() < 0.5 else body)
            cells = [packed(text, precision, scale) for text in texts]
            assert [decimal_text(cell, precision, scale) for cell in cells] == texts
            matrix = np.frombuffer(b"".join(cells), np.uint8).reshape(len(cells), -1)
            assert decimal_sheet(matrix, precision, scale).texts() == texts
