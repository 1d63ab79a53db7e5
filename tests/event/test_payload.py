from __future__ import annotations

import io
import zlib
from dataclasses import replace

import numpy as np
import pytest
import zstandard

from rplctl.errors import BinlogFormatError
from rplctl.event.format_description import parse_format_description
from rplctl.event.groups import GroupKind, scan_groups
from rplctl.event.inflate import inflate
from rplctl.event.payload import decompress_payload, expand_event, payload_size, unpack_payload
from rplctl.event.scan import scan_events
from rplctl.event.types import COMPRESSED_ROWS, EventType
from rplctl.position import BinlogPosition
from tests.event.logs import described, event, events, log

MYSQL = parse_format_description(next(events(log("my97-torture-mixed"))))
PLAIN = event(EventType.ROWS_QUERY, bytes(range(256)), checksum=False) * 40


def packed(value: int) -> bytes:
    return bytes([value]) if value < 251 else b"\xfe" + value.to_bytes(8, "little")


def payload(data: bytes, plain_size: int, *, compression: int = 0, size: int | None = None) -> bytes:
    fields = b""
    for kind, value in ((2, compression), (3, plain_size), (1, len(data) if size is None else size)):
        fields += bytes([kind, len(packed(value))]) + packed(value)
    return event(EventType.TRANSACTION_PAYLOAD, fields + b"\0" + data)


def record(data: bytes, plain: int | None = None) -> bytes:
    return b"\x84" + (len(data) if plain is None else plain).to_bytes(4, "big") + zlib.compress(data)


def test_transactions_of_a_real_server_come_out_whole() -> None:
    kinds = []
    for raw, description in described(log("my97-torture-compress-l1")):
        if raw[4] == EventType.TRANSACTION_PAYLOAD:
            plain = expand_event(raw, description)
            assert scan_events(plain).end == len(plain)
            scan = scan_groups(plain, 0, BinlogPosition("", 0), 1 << 30, replace(description, checksum_algorithm=0))
            assert (len(scan), scan.complete_end) == (1, len(plain))
            kinds.append(GroupKind(int(scan.kind[0])))
    assert (kinds.count(GroupKind.ROWS), kinds.count(GroupKind.ORDERED), len(kinds)) == (26, 2, 28)


def test_compressed_rows_of_mariadb_become_plain_rows() -> None:
    found = set()
    for raw, description in described(log("mariadb-compressed")):
        if raw[4] in COMPRESSED_ROWS:
            plain = expand_event(raw, description)
            assert plain[4] == COMPRESSED_ROWS[raw[4]]
            assert int.from_bytes(plain[9:13], "little") == len(plain)
            assert plain[19:27] == raw[19:27]
            found.add(plain[4])
        elif raw[4] == EventType.QUERY_COMPRESSED:
            assert expand_event(raw, description)[4] == EventType.QUERY
    assert found == {EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1, EventType.DELETE_ROWS_V1}


def test_compressed_rows_of_version_two_keep_their_extra_data() -> None:
    head = bytes(8) + b"\x04\0zz" + b"\x01" + b"\xff" + b"\xff"
    plain = expand_event(event(EventType.UPDATE_ROWS_COMPRESSED, head + record(PLAIN)), MYSQL)
    assert plain[4] == EventType.UPDATE_ROWS
    assert plain[19:] == head + PLAIN


@pytest.mark.parametrize("compression", [0, 255])
def test_a_payload_is_zstd_or_nothing(compression: int) -> None:
    data = zstandard.compress(PLAIN) if compression == 0 else PLAIN
    assert decompress_payload(payload(data, len(PLAIN), compression=compression), MYSQL) == PLAIN


def test_a_payload_of_several_frames_is_joined() -> None:
    data = zstandard.compress(PLAIN[:100]) + zstandard.compress(PLAIN[100:])
    assert decompress_payload(payload(data, len(PLAIN)), MYSQL) == PLAIN


def test_a_small_event_cannot_make_us_allocate_more_than_allowed() -> None:
    bomb = zstandard.compress(bytes(50_000_000))
    with pytest.raises(BinlogFormatError, match="more than 1000000"):
        decompress_payload(payload(bomb, 50_000_000), MYSQL, 1_000_000)
    with pytest.raises(BinlogFormatError, match="has 101 plain bytes, but states 100"):
        decompress_payload(payload(bomb, 100), MYSQL)
    with pytest.raises(BinlogFormatError, match="more than 1000"):
        inflate(record(bytes(5_000_000)), 1000, b"")
    with pytest.raises(BinlogFormatError, match="does not have the 100"):
        inflate(record(bytes(5_000_000), 100), 1000, b"")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (payload(b"garbage", 7), "payload is damaged"),
        (payload(PLAIN, len(PLAIN), compression=7), "compression 7"),
        (payload(zstandard.compress(PLAIN), len(PLAIN) + 5), "plain bytes, but states"),
        (payload(zstandard.compress(PLAIN)[:-9], len(PLAIN)), "payload"),
        (payload(PLAIN, len(PLAIN), compression=255, size=3), "but states 3"),
        (event(EventType.TRANSACTION_PAYLOAD, b"\x01\x01"), "cut short"),
        (event(EventType.STOP), "not a compressed event"),
        (event(EventType.WRITE_ROWS_COMPRESSED_V1, bytes(8) + b"\x01\xff" + b"\x84"), "unknown head"),
        (event(EventType.WRITE_ROWS_COMPRESSED_V1, bytes(8) + b"\x01\xff" + b"\x91\x05xxxx"), "unknown head"),
        (event(EventType.WRITE_ROWS_COMPRESSED_V1, bytes(8) + b"\x01\xff" + b"\x81\x05xxxx"), "record is damaged"),
        (event(EventType.WRITE_ROWS_COMPRESSED, bytes(8) + b"\x01\0" + record(b"")), "cut short"),
        (event(EventType.WRITE_ROWS_COMPRESSED_V1, bytes(8) + b"\xfe" + b"\xff" * 8), "cut short"),
    ],
)
def test_a_broken_compressed_event_stops(raw: bytes, message: str) -> None:
    with pytest.raises(BinlogFormatError, match=message):
        expand_event(raw, MYSQL)


@pytest.mark.parametrize("length", [99, 5000])
def test_an_event_in_a_payload_cannot_run_past_its_end(length: int) -> None:
    last = PLAIN[:9] + length.to_bytes(4, "little") + PLAIN[13:98]
    with pytest.raises(BinlogFormatError, match="ends inside an event"):
        expand_event(payload(PLAIN + last, len(PLAIN) + 98, compression=255), MYSQL)


def test_only_a_payload_is_a_payload() -> None:
    with pytest.raises(BinlogFormatError, match="was expected"):
        decompress_payload(event(EventType.STOP), MYSQL)


def unpacked(raw: bytes, most: int = 1 << 20) -> bytes:
    out = io.BytesIO()
    unpack_payload(np.frombuffer(raw, np.uint8), MYSQL, out, most)
    return out.getvalue()


@pytest.mark.parametrize("compression", [0, 255])
def test_a_payload_unfolds_piece_by_piece_to_the_same(compression: int) -> None:
    large = PLAIN * 300
    raw = payload(zstandard.compress(large) if compression == 0 else large, len(large), compression=compression)
    assert unpacked(raw, len(large)) == large
    assert payload_size(np.frombuffer(raw, np.uint8), MYSQL) == len(large)


@pytest.mark.parametrize(
    "raw",
    [
        payload(zstandard.compress(PLAIN), len(PLAIN) - 1),
        payload(zstandard.compress(PLAIN), len(PLAIN) + 1),
        payload(zstandard.compress(bytes(1 << 24)), 1 << 12),  # a bomb that says it is small
        payload(zstandard.compress(bytes(1 << 24)), 1 << 24),  # one that says what it is
        payload(zstandard.compress(PLAIN)[:-9], len(PLAIN)),
        payload(b"no zstd", 7),
        payload(PLAIN, len(PLAIN), compression=7),
        payload(PLAIN, len(PLAIN), compression=255, size=1),
    ],
)
def test_a_payload_that_is_not_what_it_says_is_refused_while_it_unfolds(raw: bytes) -> None:
    with pytest.raises(BinlogFormatError):
        unpacked(raw)
