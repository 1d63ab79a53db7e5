from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.checksum_trailer import append_checksum, event_crc, has_valid_checksum
from rplctl.event.format_description import build_format_description, parse_format_description, resent
from rplctl.event.header import BINLOG_MAGIC, FLAG_BINLOG_IN_USE, FLAG_RELAY_LOG, parse_header
from rplctl.event.types import EventType
from tests.event.logs import event, events, log

MYSQL = next(events(log("my97-torture-mixed")))
MARIADB = next(events(log("ma1011-torture-mixed")))


def test_mysql_describes_itself() -> None:
    description = parse_format_description(MYSQL)
    assert (description.server_version, description.version_number) == ("9.7.4-2", (9, 7, 4))
    assert not description.is_mariadb
    assert (description.checksum_algorithm, description.checksum_length) == (1, 4)
    assert len(description.header_lengths) == EventType.GTID_TAGGED
    assert description.fixed_length(EventType.QUERY) == 13
    assert description.fixed_length(EventType.TABLE_MAP) == 8
    assert description.fixed_length(EventType.MARIADB_GTID) == 0


def test_mariadb_describes_itself() -> None:
    description = parse_format_description(MARIADB)
    assert description.version_number == (10, 11, 19)
    assert description.is_mariadb
    assert description.fixed_length(EventType.MARIADB_GTID) == 19
    assert len(description.header_lengths) == EventType.DELETE_ROWS_COMPRESSED


def old_description(version: bytes, types: int) -> bytes:
    body = (4).to_bytes(2, "little") + version.ljust(50, b"\0") + bytes(4) + bytes([19]) + bytes(types)
    return event(EventType.FORMAT_DESCRIPTION, body, checksum=False)


def test_servers_before_checksums_have_neither_algorithm_nor_trailer() -> None:
    description = parse_format_description(old_description(b"5.5.62-log", 27))
    assert (len(description.header_lengths), description.checksum_length) == (27, 0)


def test_a_mariadb_that_hides_its_name_is_known_by_its_event_types() -> None:
    assert parse_format_description(old_description(b"5.5.62", 163)).is_mariadb


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [(19, 3, "version 3 is not supported"), (75, 20, "headers of 20 bytes"), (-5, 9, "checksum algorithm 9")],
)
def test_an_unknown_format_stops(offset: int, value: int, message: str) -> None:
    broken = bytearray(MYSQL)
    broken[offset] = value
    with pytest.raises(BinlogFormatError, match=message):
        parse_format_description(bytes(broken))


def test_another_event_is_no_description() -> None:
    with pytest.raises(BinlogFormatError, match="was expected"):
        parse_format_description(event(EventType.STOP))


def test_a_description_that_is_cut_short_stops() -> None:
    for length in range(19, 80):
        with pytest.raises(BinlogFormatError):
            parse_format_description(MYSQL[:9] + length.to_bytes(4, "little") + MYSQL[13:length])


def test_start_encryption_says_that_the_log_is_encrypted() -> None:
    with pytest.raises(BinlogFormatError, match="encrypted binlog") as caught:
        parse_format_description(event(EventType.START_ENCRYPTION, bytes(17)))
    assert "change-master" in caught.value.hint


@pytest.mark.parametrize("version", ["8.4.0-rplctl", "10.11.19-MariaDB-rplctl"])
@pytest.mark.parametrize("algorithm", [0, 1])
def test_our_own_description_is_read_back(version: str, algorithm: int) -> None:
    built = build_format_description(77, 1_700_000_000, algorithm, version)
    description, header = parse_format_description(built), parse_header(built)
    assert (description.server_version, description.checksum_algorithm) == (version, algorithm)
    assert description.is_mariadb == ("MariaDB" in version)
    assert header.flags == FLAG_RELAY_LOG
    assert (header.server_id, header.end_log_pos) == (77, 4 + len(built))
    assert has_valid_checksum(built)


def test_our_description_has_the_lengths_of_the_real_ones() -> None:
    for real, version in ((MYSQL, "9.7.4"), (MARIADB, "10.11.19-MariaDB")):
        built = parse_format_description(build_format_description(1, 0, 1, version))
        assert built.header_lengths == parse_format_description(real).header_lengths


@pytest.mark.parametrize("version", ["8.4.0-rplctl", "10.11.19-MariaDB-rplctl"])
@pytest.mark.parametrize("algorithm", [0, 1])
def test_mariadb_binlog_reads_our_description(version: str, algorithm: int, tmp_path: Path) -> None:
    tool = shutil.which("mariadb-binlog")
    if tool is None:
        pytest.skip("mariadb-binlog is not installed (package mariadb-client)")
    path = tmp_path / "relay-bin.000001"
    path.write_bytes(BINLOG_MAGIC + build_format_description(77, 1_700_000_000, algorithm, version))
    run = subprocess.run([tool, "--verify-binlog-checksum", path], capture_output=True, text=True, check=True)
    assert f"Start: binlog v 4, server v {version}" in run.stdout


def test_the_in_use_flag_is_not_part_of_the_checksum() -> None:
    event = next(events(log("ma1011-crash-inuse-next")))
    assert parse_header(event).flags & 1  # recorded while the server held the file open
    assert has_valid_checksum(event)
    closed = bytearray(event)
    closed[17] &= 0xFE
    assert has_valid_checksum(bytes(closed))


def test_a_checksum_is_appended_only_where_the_length_counts_it() -> None:
    stop = event(EventType.STOP)
    assert append_checksum(stop[:-4]) == stop
    assert event_crc(stop[:-4]).to_bytes(4, "little") == stop[-4:]
    with pytest.raises(BinlogFormatError, match="does not count the checksum"):
        append_checksum(event(EventType.STOP, checksum=False))


@pytest.mark.parametrize("in_place", [True, False])
def test_a_description_is_sent_closed_and_checksummed(in_place: bool) -> None:
    in_use = bytearray(MYSQL)
    in_use[17] |= FLAG_BINLOG_IN_USE
    sent = resent(bytes(in_use), in_place=in_place)
    header = parse_header(sent)
    assert has_valid_checksum(sent) and not header.flags & FLAG_BINLOG_IN_USE
    assert bool(header.end_log_pos) is in_place
    assert in_place or parse_format_description(sent).created == 0


@pytest.mark.parametrize("byte", [0x80, 0xC3, 0xFF])
def test_a_server_version_that_is_not_ascii_is_refused_where_it_is_read(byte: int) -> None:
    event = bytearray(build_format_description(1, 0, 1, "10.11.19-MariaDB"))
    event[30] = byte
    with pytest.raises(BinlogFormatError, match="server version is not ASCII"):
        parse_format_description(bytes(event))
