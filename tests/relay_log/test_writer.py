from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from rplctl.channel import Channel
from rplctl.durable import sync_count
from rplctl.errors import RelayLogError
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.reader import RelayLogReader
from tests.relay_log.stream import FakeSource, new_writer, read_everything, transactions_of, write_relay_log


def test_events_stand_in_the_file_byte_for_byte(channel: Channel) -> None:
    writer, source = new_writer(channel), FakeSource()
    begin = writer.open_new(source.position)
    sent = source.begin() + source.transaction()
    end = writer.append(np.frombuffer(sent, dtype=np.uint8), 7)
    assert end.log_pos == begin.log_pos + len(sent)
    assert (channel.datadir / end.log_name).read_bytes().endswith(sent)
    assert (channel.datadir / end.log_name).stat().st_mode & 0o777 == 0o600


def test_a_rotation_keeps_source_positions_and_format_description(channel: Channel) -> None:
    writer, source = new_writer(channel), FakeSource(BinlogPosition("binlog.000007", 4))
    writer.open_new(source.position)
    writer.append(source.begin(), 2)
    writer.append(source.transaction(), 5)
    writer.rotate()
    writer.append(source.transaction(), 5)
    reader = RelayLogReader(channel)
    assert reader.open(RelayLogInfo())
    found = read_everything(reader)
    assert transactions_of(found) == source.ends
    assert found[-1].log_name == "relay-bin.000002"
    assert found[-1].format_description is not None
    assert found[-1].format_description.server_version == "8.0.40"


def test_a_rotation_inside_a_transaction_moves_it_whole(channel: Channel) -> None:
    writer, source = new_writer(channel), FakeSource()
    writer.open_new(source.position)
    writer.append(source.begin() + source.transaction(), 7)
    at_boundary = writer.end.log_pos
    second = source.transaction()
    writer.append(second[:-31], 4)
    writer.rotate()
    writer.append(second[-31:] + source.transaction(), 6)
    assert (channel.datadir / "relay-bin.000001").stat().st_size == at_boundary
    reader = RelayLogReader(channel)
    assert reader.open(RelayLogInfo())
    assert transactions_of(read_everything(reader)) == source.ends


def test_a_log_that_is_applied_and_purged_while_it_is_rotated_stops_no_receiver(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The applier needs it no more from the moment on in which the next one is listed."""
    writer, source = new_writer(channel), FakeSource()
    writer.open_new(source.position)
    second = source.begin() + source.transaction() + source.transaction()
    writer.append(second[:-31], 4)

    def purge(point: str) -> None:
        if point == "crash_create_after_update_index":
            (channel.datadir / "relay-bin.000001").unlink()

    monkeypatch.setattr("rplctl.relay_log.writer.crash_point", purge)
    writer.rotate()
    end = writer.append(second[-31:], 1)
    assert end.log_name == "relay-bin.000002"
    assert (channel.datadir / end.log_name).stat().st_size == end.log_pos


def test_rotation_is_due_at_max_relay_log_size_only_where_it_is_cheap(channel: Channel) -> None:
    writer, source = new_writer(channel, max_relay_log_size=4096), FakeSource()
    writer.open_new(source.position)
    writer.append(source.begin(), 2)
    while not writer.should_rotate:
        assert writer.end.log_pos < 4096
        writer.append(source.transaction(), 5)
    writer.rotate()
    huge = source.transaction(rows=40, images=100)
    for start in range(0, len(huge), 1000):
        writer.append(huge[start : start + 1000], 1)
        if start + 1000 < len(huge):
            assert writer.end.log_pos < 4096 + 2048 or not writer.should_rotate
    for _ in range(400):  # the walk is repeated only after the file grew by a quarter of the tail
        writer.append(source.transaction(), 5)
        if writer.should_rotate:
            break
    else:
        pytest.fail("a finished transaction never let the file rotate")


def test_sync_relay_log_counts_events(channel: Channel) -> None:
    writer, source = new_writer(channel, sync_relay_log=10), FakeSource()
    writer.open_new(source.position)
    before = sync_count["relay-bin.000001"]
    for _ in range(4):
        writer.append(source.transaction(), 5)
    assert sync_count["relay-bin.000001"] - before == 2
    writer.sync()
    assert sync_count["relay-bin.000001"] - before == 2  # nothing new to sync


def test_sync_relay_log_zero_leaves_it_to_the_operating_system(channel: Channel) -> None:
    writer, source = new_writer(channel, sync_relay_log=0), FakeSource()
    writer.open_new(source.position)
    before = sync_count["relay-bin.000001"]
    writer.append(source.transaction(), 500_000)
    assert sync_count["relay-bin.000001"] == before


def test_a_file_is_durable_before_its_successor_is_listed(channel: Channel) -> None:
    writer, source = new_writer(channel, sync_relay_log=0), FakeSource()
    writer.open_new(source.position)
    before = sync_count["relay-bin.000001"]
    writer.append(source.transaction(), 5)
    writer.rotate()
    assert sync_count["relay-bin.000001"] == before + 1


def test_resume_goes_on_where_the_file_ended(channel: Channel) -> None:
    source = FakeSource()
    end = write_relay_log(channel, source, 2)
    writer = new_writer(channel)
    writer.resume(end)
    source_again = FakeSource(source.position, sent=source.sent, ends=source.ends)
    writer.append(source_again.begin() + source_again.transaction(), 7)
    reader = RelayLogReader(channel)
    assert reader.open(RelayLogInfo())
    assert transactions_of(read_everything(reader)) == source.ends


def test_resume_refuses_another_size(channel: Channel) -> None:
    end = write_relay_log(channel, FakeSource(), 1)
    with pytest.raises(RelayLogError, match="were expected"):
        new_writer(channel).resume(RelayLogPosition(end.log_name, end.log_pos - 1))
    with pytest.raises(RelayLogError) as missing:
        new_writer(channel).resume(RelayLogPosition("relay-bin.000009", 4))
    assert missing.value.errno == 1595


def test_a_symbolic_link_is_never_followed(channel: Channel) -> None:
    target = channel.datadir / "elsewhere"
    target.write_bytes(b"precious")
    (channel.datadir / "relay-bin.000001").symlink_to(target)
    with pytest.raises(RelayLogError):
        new_writer(channel).open_new(BinlogPosition("binlog.000001", 4))
    with pytest.raises(RelayLogError):
        new_writer(channel).resume(RelayLogPosition("relay-bin.000001", 8))
    assert target.read_bytes() == b"precious"


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_torn_event(channel: Channel) -> None:
    """Whatever part of the batch fitted: short writes are real ones (RLIMIT_FSIZE)."""
    writer, source = new_writer(channel), FakeSource()
    writer.open_new(source.position)
    writer.append(source.begin() + source.transaction(), 7)
    end = writer.end
    writer.close()
    batch = source.transaction()
    for room in range(0, len(batch), 7):
        writer = new_writer(channel)
        writer.resume(end)
        with file_size_limit(end.log_pos + room), pytest.raises(RelayLogError) as failed:
            writer.append(batch, 5)
        assert (failed.value.errno, failed.value.transient) == (1595, True)
        assert os.stat(channel.datadir / end.log_name).st_size == end.log_pos
        with pytest.raises(RelayLogError):
            writer.append(batch, 5)  # recovery comes first
        writer.close()


def test_a_full_disk_at_a_rotation_leaves_the_old_log_and_the_index_as_they_were(channel: Channel) -> None:
    writer, source = new_writer(channel), FakeSource()
    writer.open_new(source.position)
    writer.append(source.begin() + source.transaction(), 7)
    for room in (0, 3, 60, 125):
        with file_size_limit(room), pytest.raises(RelayLogError):
            writer.rotate()
        assert RelayLogIndex(channel).names() == RelayLogIndex(channel).files() == ["relay-bin.000001"]
    writer.rotate()
    assert RelayLogIndex(channel).names() == ["relay-bin.000001", "relay-bin.000002"]


def test_a_failed_fsync_is_not_tried_again(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, source = new_writer(channel), FakeSource()
    writer.open_new(source.position)
    good = writer.append(source.begin(), 2)
    writer.sync()
    writer.append(source.transaction(), 5)

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(RelayLogError) as failed:
        writer.sync()
    assert (failed.value.errno, failed.value.transient) == (1595, False)
    monkeypatch.undo()
    for again in (writer.sync, writer.rotate):
        with pytest.raises(RelayLogError):
            again()
    assert os.stat(channel.datadir / good.log_name).st_size == good.log_pos


def test_file_numbers_pass_six_digits(channel: Channel) -> None:
    (channel.datadir / "relay-bin.999998").touch()
    channel.relay_log_index_path.write_bytes(b"./relay-bin.999998\n")
    writer = new_writer(channel)
    names = [writer.open_new(BinlogPosition("binlog.000001", 4)).log_name for _ in range(3)]
    assert names == ["relay-bin.999999", "relay-bin.1000000", "relay-bin.1000001"]
    assert RelayLogIndex(channel).names()[1:] == names


@pytest.mark.parametrize("checksum", [0, 1])
@pytest.mark.parametrize("position", [4, 5000, (1 << 32) + 77, 1 << 62])
def test_mariadb_binlog_reads_every_header(channel: Channel, mariadb_binlog: str, checksum: int, position: int) -> None:
    source = FakeSource(BinlogPosition("binlog.000009", position), checksum)
    writer = new_writer(channel)
    writer.open_new(source.position, checksum_algorithm=checksum)
    writer.append(source.begin() + source.transaction(), 7)
    begins = [BinlogPosition("binlog.000009", position), source.position]
    writer.open_new(source.position, source.description(end_log_pos=123))
    writer.append(source.transaction(), 5)
    for name, begin in zip(RelayLogIndex(channel).names(), begins, strict=True):
        command = [mariadb_binlog, "--verify-binlog-checksum", "--verbose", str(channel.datadir / name)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True)
        assert f"Rotate to binlog.000009  pos: {begin.log_pos}" in shown.stdout
        assert "Table_map: `d`.`t` mapped to number 90" in shown.stdout
        assert "WARNING" not in shown.stderr + shown.stdout
