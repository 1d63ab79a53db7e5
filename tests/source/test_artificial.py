"""Events that a dump makes up can be read like any other."""

from __future__ import annotations

import pytest

from rplctl.event.checksum_trailer import has_valid_checksum
from rplctl.event.events import parse_rotate
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import FLAG_BINLOG_IN_USE, parse_header
from rplctl.source.artificial import artificial_rotate, sent_format_description
from tests.source.binlogs import description


@pytest.mark.parametrize("crc", [True, False])
def test_a_rotate_names_log_and_64_bit_position(crc: bool) -> None:
    sent = artificial_rotate("bin.000007", 5 << 32, description(crc=crc))
    rotate = parse_rotate(sent, parse_format_description(description(crc=crc)))
    assert (rotate.log_name, rotate.log_pos) == ("bin.000007", 5 << 32)
    assert parse_header(sent).is_artificial and has_valid_checksum(sent) is crc


@pytest.mark.parametrize("at_start", [True, False])
def test_a_description_is_sent_closed_and_checksummed(at_start: bool) -> None:
    in_use = bytearray(description())
    in_use[17] |= FLAG_BINLOG_IN_USE
    sent = sent_format_description(bytes(in_use), at_start=at_start)
    header = parse_header(sent)
    assert has_valid_checksum(sent) and not header.flags & FLAG_BINLOG_IN_USE
    assert bool(header.end_log_pos) is at_start
