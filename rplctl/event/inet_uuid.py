"""Convert MariaDB's INET4, INET6 and UUID to text. In the log, they are binary columns of a fixed length.

Invariant: the text is MariaDB's own text, which differs from Python's. For example, MariaDB also shortens a single zero
group, as in `1::2:0:3:0:4:0`.
"""

from __future__ import annotations

import re
from typing import Final

ADDRESS_BYTES: Final = {"inet4": 4, "inet6": 16, "uuid": 16}


def inet4_text(raw: bytes) -> str:
    """Return 4 bytes as `1.2.3.4`."""
    return ".".join(map(str, raw))


def inet6_text(raw: bytes) -> str:
    """Return 16 bytes as text. `::` replaces the first of the longest runs of zero groups.

    If the bytes contain an IPv4 address, the text ends like `1.2.3.4`.
    """
    if raw[:12] == bytes(10) + b"\xff\xff":
        return f"::ffff:{inet4_text(raw[12:])}"
    if raw[:12] == bytes(12) and raw[12:14] != bytes(2):
        return f"::{inet4_text(raw[12:])}"
    text = ":".join(f"{raw[at] << 8 | raw[at + 1]:x}" for at in range(0, 16, 2))
    runs = list(re.finditer(r"(?<![^:])0(?::0)*(?![^:])", text))
    if not runs:
        return text
    longest = max(runs, key=lambda run: run.end() - run.start())
    return f"{text[: longest.start()].rstrip(':')}::{text[longest.end() :].lstrip(':')}"


def uuid_text(raw: bytes) -> str:
    """Return 16 bytes as text. MariaDB stores versions 1-5 (RFC 4122) with the groups in reverse order.

    In this order, the stored bytes sort by time.
    """
    text = raw.hex()
    if raw[6] & 0x80 and 0 < raw[8] < 0x60:
        text = text[24:] + text[20:24] + text[16:20] + text[12:16] + text[:12]
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
