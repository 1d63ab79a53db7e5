"""Whatever bytes come, the readers of the format give a value or raise BinlogFormatError.

No other error, no hang, and no group, event or piece outside of the bytes given.
"""

from __future__ import annotations

import random

import pytest

from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.events import parse_event
from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_event import decode_gtid_set
from rplctl.event.json import apply_diffs, parse_text, print_json
from rplctl.event.packets import deframe
from rplctl.event.payload import expand_event
from rplctl.event.scan import scan_events, scan_groups, split_rows
from rplctl.event.types import COMPRESSED_ROWS, EventType
from rplctl.position import BinlogPosition
from tests.event.logs import SMALL, described, log

START = BinlogPosition("bin.000001", 4)
INTERESTING = [0, 1, 2, 18, 19, 20, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF]
COMPRESSED = {EventType.TRANSACTION_PAYLOAD, *COMPRESSED_ROWS}


def mutated(data: bytes, dice: random.Random) -> bytes:
    """A few bytes changed, doubled, cut out, or a 32-bit field set to an extreme."""
    out = bytearray(data)
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        at = dice.randrange(len(out))
        what = dice.randrange(5)
        if what == 0:
            out[at] ^= 1 << dice.randrange(8)
        elif what == 1:
            out[at] = dice.choice(INTERESTING)
        elif what == 2:
            out[at : at + 4] = dice.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(out)]).to_bytes(4, "little")
        elif what == 3 and len(out) > 40:
            del out[at : at + dice.randrange(1, 20)]
        else:
            out[at:at] = out[at : at + dice.randrange(1, 20)]
    return bytes(out)


def look_at_all(data: bytes) -> None:
    index = scan_events(data, 4)
    assert 4 <= index.end <= len(data)
    scan = scan_groups(data, 4, START, 1 << 40)
    assert scan.start.tolist() == [4, *scan.end[:-1].tolist()][: len(scan)]
    assert scan.complete_end <= len(data)
    assert all(scan.source_position(number).log_pos >= 0 for number in range(len(scan)))
    pieces = split_rows(data, 4, index.end, 300)
    assert all(4 <= piece.start < piece.end <= len(data) for piece in pieces)


@pytest.mark.parametrize("case", SMALL)
def test_scans_of_changed_logs_never_fail_in_another_way(case: str) -> None:
    dice = random.Random(case)
    data = log(case)
    refused = 0
    for _ in range(400):
        try:
            look_at_all(mutated(data, dice))
        except BinlogFormatError as error:
            assert len(error.message) < 600
            refused += 1
    assert 0 < refused < 400


def parse_any(raw: bytes, description: FormatDescription) -> None:
    if raw[4:5] and raw[4] in COMPRESSED:
        expand_event(raw, description, 1 << 20)
        return
    parsed = parse_event(raw, description)
    getattr(parsed, "sql", None)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*SMALL, "ma1011-torture-statement"])
def test_changed_events_never_fail_in_another_way(case: str) -> None:
    """Lengths and checksums are mended, so that the change reaches the parsers."""
    dice = random.Random(case)
    samples = dice.choices(list(described(log(case))), k=3000)
    accepted = 0
    for raw, description in samples:
        body = mutated(raw[13:-4], dice)
        event = raw[:9] + (13 + len(body) + 4).to_bytes(4, "little") + body
        try:
            parse_any(append_checksum(event), description)
            accepted += 1
        except BinlogFormatError:
            pass
    assert 0 < accepted < 3000


def test_changed_streams_never_fail_in_another_way() -> None:
    dice = random.Random(1)
    stream = log("dump-mariadb11.8-gtid_no")
    for _ in range(1500):
        changed = mutated(stream, dice)
        try:
            found = deframe(changed, len(changed), 1)
            assert found.consumed <= len(changed)
            assert found.offsets[-1] == len(found.events)
        except BinlogFormatError:
            pass


def test_random_bytes_are_no_gtid_set_but_never_fail_in_another_way() -> None:
    dice = random.Random(2)
    for _ in range(2000):
        data = bytes(dice.choices(INTERESTING, k=dice.randrange(60)))
        try:
            decoded = decode_gtid_set(data)
            assert decode_gtid_set(decoded.encode()) == decoded
        except BinlogFormatError:
            pass


def test_texts_that_look_like_gtids_are_values_or_usage_errors() -> None:
    dice = random.Random(3)
    seeds = [
        "7028702e-e54b-11f1-909d-02fc00000001:1-335:400,7028702e-e54b-11f1-909d-02fc00000002:tag:5",
        "0-1-17,4-2-9",
    ]
    accepted = 0
    for _ in range(4000):
        text = mutated(dice.choice(seeds).encode(), dice).decode("latin-1")
        for kind in (MysqlGtidSet, MariadbGtidState):
            try:
                value = kind.parse(text)
                assert kind.parse(str(value)) == value
                accepted += 1
            except RplError as error:
                assert error.errno in (1772, 1941, 1943)
    assert accepted > 100


def test_changed_json_diffs_never_fail_in_another_way() -> None:
    dice = random.Random(4)
    document = '{"a": [1, 2.50, {"b": "x"}], "name": "\\u00fc"}'
    diff = b"\x00\x08$.a[2].b\x04\x0c\x02yy" + b"\x01\x06$.new1\x03\x05\x07\x00" + b"\x02\x06$.a[0]"
    accepted = 0
    for _ in range(3000):
        try:
            parse_text(print_json(apply_diffs(parse_text(document), mutated(diff, dice))))
            accepted += 1
        except BinlogFormatError:
            pass
    assert 0 < accepted < 3000


@pytest.mark.parametrize("code", [2, 15, 16, 19, 23, 30, 33, 162])
def test_an_event_of_any_claimed_length_is_whole_torn_or_refused(code: int) -> None:
    """Damaged lengths; nothing is allocated from the length."""
    body = bytes([0, 0, 0, 0, code, 1, 0, 0, 0])
    true = 40
    for length in (
        0,
        1,
        18,
        19,
        true - 1,
        true,
        true + 1,
        2 * true,
        (1 << 24) - 1,
        (1 << 31) - 1,
        1 << 31,
        (1 << 32) - 1,
    ):
        raw = body + length.to_bytes(4, "little") + bytes(true - 13)
        try:
            index = scan_events(raw)
            assert index.end in (0, 19, true - 1, true) and all(index.offsets[1:] - index.offsets[:-1] >= 19)
        except BinlogFormatError:
            assert length < 19 or length > (1 << 30) or length in (19, true - 1)
