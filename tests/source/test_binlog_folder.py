"""A folder of binary logs as a source: the same stream and the same errors as a live server's."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from rplctl import receive_buffer as room
from rplctl.errors import RelayLogError, SourceError
from rplctl.event.checksum import verify_events
from rplctl.event.checksum_trailer import has_valid_checksum
from rplctl.event.events import Rotate, parse_event
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import BINLOG_MAGIC, ENCRYPTED_MAGIC, FLAG_BINLOG_IN_USE, parse_header
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition
from rplctl.source import DumpStart
from rplctl.source.binlog_folder import LISTING_S, FolderStream
from rplctl.source.log_folder import log_names
from tests.source.binlogs import FIRST_EVENT, SERVER_ID, description, event, rotate, statements, write_log


def start(name: str = "", position: int = 4) -> DumpStart:
    return DumpStart(BinlogPosition(name, position))


def read_all(stream: FolderStream) -> list[bytes]:
    events: list[bytes] = []
    while (batch := stream.read_batch(0)) is not None:
        assert verify_events(batch.data, batch.offsets) == -1
        events += [batch.event(i) for i in range(len(batch))]
    stream.close()
    return events


def types(events: list[bytes]) -> list[int]:
    return [parse_header(e).type_code for e in events]


def two_logs(folder: Path) -> tuple[list[bytes], list[bytes]]:
    first = statements(3, start=FIRST_EVENT)
    first.append(rotate("bin.000002", 0))
    second = statements(2, start=FIRST_EVENT, first=4)
    write_log(folder / "bin.000001", first)
    write_log(folder / "bin.000002", second)
    return first, second


def test_each_log_begins_with_an_artificial_rotate_and_its_description(tmp_path: Path) -> None:
    first, second = two_logs(tmp_path)
    events = read_all(FolderStream(tmp_path, tmp_path, start()))
    assert types(events)[:2] == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]
    assert parse_header(events[0]).is_artificial and events[0][27:-4] == b"bin.000001"
    assert events[2 : 2 + len(first)] == first
    assert types(events)[2 + len(first) : 4 + len(first)] == [EventType.ROTATE, EventType.FORMAT_DESCRIPTION]
    assert events[4 + len(first) :] == second


@pytest.mark.parametrize("crc", [True, False])
def test_a_rotate_names_its_log_and_is_checksummed_as_that_is(tmp_path: Path, crc: bool) -> None:
    head = description(crc=crc)
    (tmp_path / "bin.000007").write_bytes(BINLOG_MAGIC + head)
    stream = FolderStream(tmp_path, tmp_path, start())
    batch = stream.read_batch(0)
    stream.close()
    assert batch is not None
    assert parse_event(batch.event(0), parse_format_description(head)) == Rotate("bin.000007", 4)
    assert parse_header(batch.event(0)).is_artificial and has_valid_checksum(batch.event(0)) is crc


def test_a_start_inside_a_log_gets_a_description_that_moves_nothing(tmp_path: Path) -> None:
    first, _ = two_logs(tmp_path)
    position = FIRST_EVENT + len(first[0]) + len(first[1])
    events = read_all(FolderStream(tmp_path, tmp_path, start("bin.000001", position)))
    sent = parse_header(events[1])
    assert sent.end_log_pos == 0 and events[1][71:75] == bytes(4)
    assert events[2] == first[2]


def test_the_in_use_flag_is_not_handed_on(tmp_path: Path) -> None:
    open_log = bytearray(description())
    open_log[17] |= FLAG_BINLOG_IN_USE
    (tmp_path / "bin.000001").write_bytes(BINLOG_MAGIC + open_log)
    events = read_all(FolderStream(tmp_path, tmp_path, start()))
    assert events[1] == description()


def test_events_are_handed_out_whole_as_the_log_grows_by_single_bytes(tmp_path: Path) -> None:
    events = statements(2, start=FIRST_EVENT)
    path = write_log(tmp_path / "bin.000001", [])
    stream = FolderStream(tmp_path, tmp_path, start())
    assert len(stream.read_batch(0) or ()) == 2
    seen: list[bytes] = []
    for byte in b"".join(events):
        with path.open("ab") as log:
            log.write(bytes([byte]))
        if (batch := stream.read_batch(0)) is not None:
            seen += [batch.event(i) for i in range(len(batch))]
    stream.close()
    assert seen == events


def test_a_log_that_appears_later_is_followed(tmp_path: Path) -> None:
    write_log(tmp_path / "bin.000001", [*statements(1, start=FIRST_EVENT), rotate("bin.000002", 0)])
    stream = FolderStream(tmp_path, tmp_path, start())
    while stream.read_batch(0) is not None:
        pass
    (tmp_path / "bin.000002").write_bytes(BINLOG_MAGIC)  # just created
    assert stream.read_batch(0) is None
    second = statements(1, start=FIRST_EVENT, first=2)
    write_log(tmp_path / "bin.000002", second)
    assert read_all(stream)[2:] == second


@pytest.mark.parametrize("ended", [True, False])
def test_a_folder_at_rest_is_listed_once_a_second_and_its_next_log_read_at_once(
    ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings: list[object] = []
    list_folder = os.listdir

    def counted(folder: Path) -> list[str]:
        listings.append(folder)
        return list_folder(folder)

    write_log(tmp_path / "bin.000009", [rotate("bin.000010", 0)] if ended else statements(1, start=FIRST_EVENT))
    stream = FolderStream(tmp_path, tmp_path, start())
    while stream.read_batch(0) is not None:
        pass
    monkeypatch.setattr(os, "listdir", counted)
    began = time.monotonic()
    for _ in range(50):
        assert stream.read_batch(0) is None
    assert len(listings) <= 1 + (time.monotonic() - began) / LISTING_S
    second = statements(1, start=FIRST_EVENT, first=2)
    write_log(tmp_path / "bin.000010", second)
    assert read_all(stream)[2:] == second


def test_a_gap_that_appears_at_rest_is_1236(tmp_path: Path) -> None:
    write_log(tmp_path / "bin.000001", [rotate("bin.000002", 0)])
    stream = FolderStream(tmp_path, tmp_path, start())
    while stream.read_batch(0) is not None:
        pass
    write_log(tmp_path / "bin.000003", [])
    with pytest.raises(SourceError, match="could not find next log"):
        stream.read_batch(60)
    stream.close()


def test_a_source_that_crashed_is_followed_into_its_next_log(tmp_path: Path) -> None:
    write_log(tmp_path / "bin.000001", statements(1, start=FIRST_EVENT))
    second = statements(1, start=FIRST_EVENT, first=2)
    write_log(tmp_path / "bin.000002", second)
    assert read_all(FolderStream(tmp_path, tmp_path, start()))[-2:] == second


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_event_larger_than_a_chunk_is_read_whole(
    in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.setattr(room, "MOST_IN_MEMORY", 8 << 20)
        monkeypatch.setattr(room, "STEP_BYTES", 5 << 20)
    large = event(EventType.ROWS_QUERY, bytes(range(256)) * (36 << 10), 0)
    archive, datadir = tmp_path / "archive", tmp_path / "data"
    for folder in (archive, datadir):
        folder.mkdir()
    write_log(archive / "bin.000001", [large, *statements(1, start=0)])
    stream = FolderStream(archive, datadir, start())
    batches = [stream.read_batch(0), stream.read_batch(0)]
    assert batches[1] is not None and batches[1].event(0) == large and len(batches[1]) == 1
    assert (str(datadir) in Path("/proc/self/maps").read_text()) is not in_memory
    assert len(read_all(stream)) == len(statements(1, start=0))
    assert not list(datadir.iterdir()) and os.listdir(archive) == ["bin.000001"]


def test_a_disk_without_room_for_a_large_event_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, offset: int, _length: int) -> None:
        if offset:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(room, "MOST_IN_MEMORY", 8 << 20)
    monkeypatch.setattr(room, "STEP_BYTES", 5 << 20)
    write_log(tmp_path / "bin.000001", [event(EventType.ROWS_QUERY, bytes(9 << 20), 0)])
    stream = FolderStream(tmp_path, tmp_path, start())
    stream.read_batch(0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", full)
        with pytest.raises(RelayLogError, match="No space left on device") as raised:
            stream.read_batch(0)
    assert raised.value.errno == 1595 and raised.value.transient
    assert len(read_all(stream)) == 1


def test_an_index_decides_which_files_count(tmp_path: Path) -> None:
    two_logs(tmp_path)
    (tmp_path / "bin.index").write_text("/var/lib/mysql/bin.000002\n")
    assert log_names(tmp_path) == ["bin.000002"]


def test_order_is_by_number_not_by_name(tmp_path: Path) -> None:
    for number in (999999, 1000000):
        write_log(tmp_path / f"bin.{number}", [])
    assert log_names(tmp_path) == ["bin.999999", "bin.1000000"]


@pytest.mark.parametrize(
    ("name", "position", "text"),
    [
        ("bin.000009", 4, "Could not find first log file name in binary log index file"),
        ("bin.000001", 1 << 20, "impossible position"),
        ("bin.000001", 5, "bogus data in log event"),
    ],
)
def test_a_start_that_is_not_there_is_1236(tmp_path: Path, name: str, position: int, text: str) -> None:
    two_logs(tmp_path)
    with pytest.raises(SourceError, match=text) as caught:
        read_all(FolderStream(tmp_path, tmp_path, start(name, position)))
    assert caught.value.errno == 1236 and not caught.value.transient


def test_a_start_inside_an_event_of_the_last_log_does_not_wait_for_ever(tmp_path: Path) -> None:
    write_log(tmp_path / "bin.000001", statements(2, start=FIRST_EVENT))
    with pytest.raises(SourceError, match="no event at 130"):
        read_all(FolderStream(tmp_path, tmp_path, start("bin.000001", 130)))


def test_a_start_behind_an_event_larger_than_a_chunk_is_found(tmp_path: Path) -> None:
    large = event(EventType.ROWS_QUERY, bytes(9 << 20), 0)
    rest = statements(1, start=0)
    write_log(tmp_path / "bin.000001", [large, *rest])
    assert read_all(FolderStream(tmp_path, tmp_path, start("bin.000001", FIRST_EVENT + len(large))))[2:] == rest


def test_a_missing_log_between_two_others_is_1236(tmp_path: Path) -> None:
    two_logs(tmp_path)
    os.rename(tmp_path / "bin.000002", tmp_path / "bin.000003")
    with pytest.raises(SourceError, match="could not find next log") as caught:
        read_all(FolderStream(tmp_path, tmp_path, start()))
    assert caught.value.errno == 1236


def test_a_torn_log_before_another_one_is_1236(tmp_path: Path) -> None:
    write_log(tmp_path / "bin.000001", [statements(1, start=FIRST_EVENT)[0][:-3]])
    write_log(tmp_path / "bin.000002", [])
    with pytest.raises(SourceError, match="truncated in the middle of event"):
        read_all(FolderStream(tmp_path, tmp_path, start()))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (ENCRYPTED_MAGIC + bytes(508), "encrypted"),
        (b"PK\x03\x04" + bytes(100), "bad magic number"),
        (BINLOG_MAGIC + description() + event(EventType.START_ENCRYPTION, bytes(17), 0), "encrypted"),
        (BINLOG_MAGIC + statements(1, start=4)[0], "format_description_event"),
        (BINLOG_MAGIC + bytes(30), "bogus data"),
    ],
)
def test_a_file_that_is_no_readable_binary_log_is_named(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "bin.000001").write_bytes(content)
    with pytest.raises(SourceError, match=text):
        read_all(FolderStream(tmp_path, tmp_path, start()))


def test_logs_of_two_sources_in_one_folder_are_refused(tmp_path: Path) -> None:
    write_log(tmp_path / "a.000001", [])
    write_log(tmp_path / "b.000001", [])
    with pytest.raises(SourceError, match="different base names"):
        log_names(tmp_path)


def test_a_folder_that_is_away_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        log_names(tmp_path / "not mounted")
    assert caught.value.transient


def test_a_log_that_becomes_shorter_stops_the_stream(tmp_path: Path) -> None:
    path = write_log(tmp_path / "bin.000001", statements(2, start=FIRST_EVENT))
    stream = FolderStream(tmp_path, tmp_path, start())
    while stream.read_batch(0) is not None:
        pass
    os.truncate(path, FIRST_EVENT)
    with pytest.raises(SourceError, match="shorter"):
        stream.read_batch(0)
    stream.close()


def test_the_identity_is_that_of_the_logs(tmp_path: Path) -> None:
    two_logs(tmp_path)
    identity = FolderStream(tmp_path, tmp_path, start()).identity()
    assert (identity.server_id, identity.version, identity.is_mariadb) == (SERVER_ID, "8.0.40", False)
