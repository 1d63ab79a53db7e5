"""Whatever the vendors' dump tools reject, we reject: damaged events whose checksum is right again.

The reverse need not hold: the tools print much that no server would apply. A tool that crashes has said nothing.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.errors import RplError
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.table_map import TableMap
from rplctl.event.types import COMPRESSED_ROWS, PLAIN_ROWS, EventType
from tests.event.logs import events
from tests.event.test_vendor_dump import read_events, recorded, rows_of
from tests.kit.private_server import ServerUnavailable
from tests.kit.vendor_dump import run_tool, tool_for

MUTANTS = int(os.environ.get("RPLCTL_FUZZ_VENDOR", "120"))  # per corpus
CASES = {
    "mariadb-compressed": "mariadb",
    "ma1011-torture-statement": "mariadb",
    "ma1011-torture-row": "mariadb",
    "my97-torture-compress-l1": "mysql",
    "my97-torture-rowsquery": "mysql",
    "my97-torture-row": "mysql",
}
PIECE = 12  # events around the damaged one that are kept: a table map must be before its rows
_ENDS_EARLY = "an event in the middle of a statement"  # the piece ends there
_UNPRINTED = (EventType.FORMAT_DESCRIPTION,)


def damaged(log: list[bytes], chance: random.Random) -> tuple[bytes, int]:
    """A short log with one damaged event, and that event's type code."""
    number = chance.randrange(1, len(log))
    while log[number][4] in _UNPRINTED:
        number = chance.randrange(1, len(log))
    start = max(1, number - PIECE)
    parts = [log[0], *log[start : number + 2]]
    at = 1 + number - start
    parts[at] = chance.choice(_DAMAGES)(parts[at], chance)
    return b"\xfebin" + b"".join(parts), parts[at][4]


def _flip(event: bytes, chance: random.Random) -> bytes:
    body = bytearray(event[:-4])
    for _ in range(chance.choice((1, 1, 2, 8))):
        if len(body) > HEADER_LENGTH:
            body[chance.randrange(HEADER_LENGTH, len(body))] ^= 1 << chance.randrange(8)
    return append_checksum(bytes(body))


def _cut(event: bytes, chance: random.Random) -> bytes:
    """Whole by its length and its checksum, with fewer bytes than it had."""
    body = event[HEADER_LENGTH : chance.randrange(HEADER_LENGTH, max(HEADER_LENGTH + 1, len(event) - 4))]
    length = (HEADER_LENGTH + len(body) + 4).to_bytes(4, "little")
    return append_checksum(event[:9] + length + event[13:HEADER_LENGTH] + body)


def _extreme(event: bytes, chance: random.Random) -> bytes:
    """A byte of the body's head, where lengths and counts are, at its largest."""
    body = bytearray(event[:-4])
    if len(body) > HEADER_LENGTH:
        body[chance.randrange(HEADER_LENGTH, min(len(body), HEADER_LENGTH + 40))] = 0xFF
    return append_checksum(bytes(body))


_DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flip, _cut, _extreme)


def tool_rejects(vendor: str, path: Path) -> str | None:
    """Why; None when it does not, or crashes or hangs over it."""
    options = ["--skip-gtid-strict-mode"] if vendor == "mariadb" else []  # servers take numbers in any order, too
    try:
        done = run_tool(vendor, path, "-vv", "--base64-output=DECODE-ROWS", *options, timeout=3)
    except subprocess.TimeoutExpired:
        return None
    why = done.stderr.decode(errors="replace")
    return why if done.returncode > 0 and _ENDS_EARLY not in why else None


def we_reject(vendor: str, log: bytes) -> bool:
    """True when reading every event, its row images and their values raises one of our errors."""
    maps: dict[int, TableMap] = {}
    try:
        for event in read_events(log):
            if event.code in PLAIN_ROWS or event.code in COMPRESSED_ROWS:
                for _, _, cells in rows_of(vendor, event, maps):
                    assert cells
            elif event.code != EventType.TRANSACTION_PAYLOAD:
                event.remember(maps)
    except RplError:
        return True
    return False


@pytest.mark.long("One log stays; the others repeat it.", keeps=r"^my97-torture-row$")
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_the_vendors_tool_rejects_we_reject(name: str, tmp_path: Path) -> None:
    vendor, (log, *_) = recorded(name)
    assert vendor == CASES[name]
    try:
        tool_for(vendor)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    whole = list(events(log))
    assert parse_format_description(whole[0]).checksum_length == 4
    seed = int(os.environ.get("RPLCTL_FUZZ_SEED", "2775"))
    chance = random.Random(seed)
    path = tmp_path / "damaged"
    rejected, only_they = 0, []
    for _ in range(MUTANTS):
        mutant, code = damaged(whole, chance)
        path.write_bytes(mutant)
        said = tool_rejects(vendor, path)
        if said is not None:
            rejected += 1
            if not we_reject(vendor, mutant):
                only_they.append((code, said[-200:], mutant.hex()))
    assert rejected > MUTANTS // 20
    assert only_they == [], f"RPLCTL_FUZZ_SEED={seed}"
