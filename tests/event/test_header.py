from __future__ import annotations

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.cursor import EventCursor, open_event
from rplctl.event.header import FLAG_ARTIFICIAL, EventHeader, build_header, check_magic, parse_header
from rplctl.event.types import EventType, event_name
from tests.event.logs import BOUNDED, events, log

ROTATE = bytes.fromhex("00000000 04 11130000 2f000000 00000000 2000")


def test_a_header_of_a_real_server_is_read_field_by_field() -> None:
    assert parse_header(ROTATE) == EventHeader(
        timestamp=0, type_code=EventType.ROTATE, server_id=0x1311, event_length=47, end_log_pos=0, flags=FLAG_ARTIFICIAL
    )
    assert parse_header(ROTATE).is_artificial


def test_a_header_is_built_as_it_was_read() -> None:
    for event in events(log("ma1011-crash-inuse")):
        assert build_header(parse_header(event)) == event[:19]


@pytest.mark.parametrize("length", [0, 1, 18, (1 << 31) + 1, 0xFFFFFFFF])
def test_an_impossible_length_stops_with_type_offset_and_hex_dump(length: int) -> None:
    data = b"x" + ROTATE[:9] + length.to_bytes(4, "little") + ROTATE[13:]
    with pytest.raises(BinlogFormatError, match=r"length \d+, event type 4 \(ROTATE\), at offset 1: 00 00 00 00 04"):
        parse_header(data, 1)


def test_a_header_that_is_cut_short_stops() -> None:
    with pytest.raises(BinlogFormatError, match="cut short"):
        parse_header(ROTATE[:18])
    with pytest.raises(BinlogFormatError, match="cut short"):
        parse_header(ROTATE, 1)


def test_a_type_that_nobody_defined_is_named_by_its_number() -> None:
    assert event_name(40) == "TRANSACTION_PAYLOAD"
    assert event_name(171) == "DELETE_ROWS_COMPRESSED"
    assert event_name(99) == "type 99"


@pytest.mark.parametrize("case", BOUNDED)
def test_every_recorded_log_begins_with_the_magic(case: str) -> None:
    check_magic(log(case))


def test_an_encrypted_file_of_mysql_is_called_encrypted() -> None:
    with pytest.raises(BinlogFormatError, match="encrypted") as caught:
        check_magic(b"\xfdbin" + bytes(508))
    assert "change-master" in caught.value.hint


@pytest.mark.parametrize("data", [b"", b"\xfeb", b"PAR1", b"\x00" * 8])
def test_another_file_is_no_binary_log(data: bytes) -> None:
    with pytest.raises(BinlogFormatError, match="not a binary log"):
        check_magic(data)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\x00", 0),
        (b"\xfa", 250),
        (b"\xfc\x01\x02", 0x201),
        (b"\xfd\x01\x02\x03", 0x30201),
        (b"\xfe" + b"\1" * 8, 0x0101010101010101),
    ],
)
def test_a_packed_length_has_one_three_four_or_nine_bytes(data: bytes, value: int) -> None:
    assert EventCursor(data).packed_length() == value


@pytest.mark.parametrize("data", [b"", b"\xfb", b"\xff", b"\xfc\x01", b"\xfe\1\1\1"])
def test_a_broken_packed_length_stops(data: bytes) -> None:
    with pytest.raises(BinlogFormatError):
        EventCursor(data).packed_length()


def test_no_length_field_reaches_behind_the_end_of_its_part() -> None:
    body = EventCursor(b"\x05abcdefgh")
    part = body.sub(body.unsigned(1))
    assert part.take(4) == b"abcd"
    with pytest.raises(BinlogFormatError, match="2 bytes needed, 1 remaining"):
        part.take(2)
    assert body.rest() == b"fgh"


def test_an_event_must_have_the_length_it_says() -> None:
    with pytest.raises(BinlogFormatError, match="is not the 48 bytes given"):
        open_event(ROTATE + bytes(29), 4)
    with pytest.raises(BinlogFormatError, match="too short for its checksum"):
        open_event(ROTATE[:9] + (19).to_bytes(4, "little") + ROTATE[13:], 4)
