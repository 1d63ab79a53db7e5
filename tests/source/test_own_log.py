"""A chained replica reads another's log as far as it is finished, and knows it from relay logs beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rplctl.applied_log.files import binary_log_files
from rplctl.applied_log.record import EventPlace, PositionRecord, log_event
from rplctl.applied_log.writer import BinaryLogWriter
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.event.format_description import build_format_description, parse_format_description
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.source.base import DumpStart
from rplctl.source.binlog_folder import FolderStream
from rplctl.source.log_folder import log_names
from rplctl.source.own_log import ReadableEnd, is_own_log

HEAD = build_format_description(1, 0, 1, "10.11.2-MariaDB-log")


def record(number: int) -> PositionRecord:
    info = RelayLogInfo().at(RelayLogPosition("relay-bin.000001", number), BinlogPosition("b.000001", number))
    return PositionRecord(before=info, after=info)


@pytest.fixture
def writer(tmp_path: Path) -> BinaryLogWriter:
    config = Config(tmp_path, log_bin="binlog")
    files = binary_log_files(config, Channel("", tmp_path))
    assert files is not None
    made = BinaryLogWriter(files, config, 5)
    made.begin(parse_format_description(HEAD), record(1))
    return made


def events_read(stream: FolderStream) -> list[int]:
    found: list[int] = []
    while (batch := stream.read_batch(0)) is not None:
        found += [int(batch.data[offset + 4]) for offset in batch.offsets[:-1]]
    return found


def stop_event(at: int) -> bytes:
    return log_event(
        EventType.INTVAR, bytes(9), EventPlace(server_id=1, timestamp=0, begins_at=at, checksum_algorithm=1)
    )


def test_nothing_behind_the_last_record_is_handed_out(tmp_path: Path, writer: BinaryLogWriter) -> None:
    stream = FolderStream(tmp_path, tmp_path, DumpStart(BinlogPosition("", 4)))
    assert events_read(stream)[-1] == EventType.IGNORABLE
    log, size = tmp_path / "binlog.000001", writer.end.log_pos
    with log.open("ab") as file:
        file.write(stop_event(size))
    assert events_read(stream) == [], "a transaction in work"
    with log.open("r+b") as file:
        file.truncate(size)  # its writer was killed, and its recovery cut it off
    writer.write([np.frombuffer(stop_event(size), np.uint8)], record(2), 0, durable=False)
    assert events_read(stream) == [EventType.INTVAR, EventType.IGNORABLE]
    writer.begin(parse_format_description(HEAD), record(2))
    assert EventType.ROTATE in events_read(stream)
    stream.close()


def test_an_event_larger_than_a_chunk_is_passed_over_on_the_way(tmp_path: Path, writer: BinaryLogWriter) -> None:
    begin = writer.end.log_pos
    large = log_event(
        EventType.ANNOTATE_ROWS,
        bytes(9 << 20),
        EventPlace(server_id=1, timestamp=0, begins_at=begin, checksum_algorithm=1),
    )
    writer.write([np.frombuffer(large, np.uint8)], record(2), 0, durable=False)
    with (tmp_path / "binlog.000001").open("rb") as file:
        assert ReadableEnd().advance(file.fileno(), writer.end.log_pos) == writer.end.log_pos
        assert ReadableEnd().advance(file.fileno(), writer.end.log_pos - 1) == begin


def test_it_is_known_by_its_version_and_no_relay_log_is_taken_for_it() -> None:
    assert not is_own_log(HEAD)
    assert is_own_log(build_format_description(1, 0, 1, "10.11.2-MariaDB-log-rplctl", relay_log=False))
    assert not is_own_log(build_format_description(1, 0, 1, "8.0.40-rplctl"))


def test_relay_logs_in_the_same_folder_are_left_aside(tmp_path: Path, writer: BinaryLogWriter) -> None:
    (tmp_path / "relay-bin.000001").write_bytes(b"")
    assert log_names(tmp_path) == ["binlog.000001"]
    (tmp_path / "relay-bin.index").write_text("./relay-bin.000001\n")
    assert log_names(tmp_path) == ["binlog.000001"]
    (tmp_path / "binlog.index").unlink()
    (tmp_path / "binlog.000001").unlink()
    assert log_names(tmp_path) == ["relay-bin.000001"]
