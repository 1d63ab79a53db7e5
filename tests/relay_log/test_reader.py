from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.errors import RelayLogError
from rplctl.event.scan import GroupKind
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.log_file import cut_file
from rplctl.relay_log.purge import purge_all, purge_applied
from rplctl.relay_log.reader import RelayLogReader
from tests.relay_log.stream import (
    FakeSource,
    executed,
    new_writer,
    read_everything,
    transactions_of,
    write_relay_log,
)


def opened(channel: Channel, info: RelayLogInfo | None = None) -> RelayLogReader:
    reader = RelayLogReader(channel)
    assert reader.open(info or RelayLogInfo())
    return reader


def test_nothing_there_yet_is_no_error(channel: Channel) -> None:
    reader = RelayLogReader(channel)
    assert not reader.open(RelayLogInfo())
    assert not reader.open(executed(BinlogPosition("binlog.000001", 400), RelayLogPosition("relay-bin.000001", 4)))
    assert reader.groups(1 << 20) is None
    assert reader.position == RelayLogPosition("", 0)


def test_batches_tile_the_log_and_keep_to_the_limit(channel: Channel) -> None:
    source = FakeSource()
    end = write_relay_log(channel, source, 20)
    found = read_everything(opened(channel), limit_bytes=500)
    assert transactions_of(found) == source.ends
    assert len(found) > 5
    assert found[0].start.log_pos == 4
    assert found[-1].end == end
    for before, after in zip(found, found[1:], strict=False):
        assert (before.end, before.end_source) == (after.start, after.start_source)


def test_a_reader_follows_a_growing_file_and_never_sees_half_a_transaction(channel: Channel) -> None:
    """One byte at a time: a transaction is handed out when its last byte is there."""
    source, writer = FakeSource(), new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin(), 2)
    reader = opened(channel)
    assert transactions_of(read_everything(reader)) == []
    for _ in range(2):
        transaction = source.transaction()
        for at in range(len(transaction) - 1):
            writer.append(transaction[at : at + 1], 0)
            assert reader.groups(1 << 20) is None
        writer.append(transaction[-1:], 1)
        assert transactions_of(read_everything(reader)) == source.ends[-1:]


def test_a_reader_beside_a_writer_gets_every_transaction_once(channel: Channel) -> None:
    """Two threads: odd pieces, many rotations, purge behind the reader."""
    source = FakeSource()
    stream = source.begin() + b"".join(source.transaction(rows=1 + n % 3, images=1 + n % 50) for n in range(600))
    writer = new_writer(channel, max_relay_log_size=4096, sync_relay_log=0)
    writer.open_new(BinlogPosition("binlog.000001", 4))

    def write() -> None:
        at = 0
        while at < len(stream):
            size = 1 + (at * 7919) % 1500
            writer.append(stream[at : at + size], 1)
            at += size
            if writer.should_rotate:
                writer.rotate()

    thread = threading.Thread(target=write)
    reader = opened(channel)
    thread.start()
    found: list[BinlogPosition] = []
    while len(found) < len(source.ends):
        is_written = not thread.is_alive()  # asked before the reader is: what was written by then it must find
        groups = reader.groups(3000)
        if groups is not None:
            found += transactions_of([groups])
            purge_applied(channel, groups.end)
        elif is_written:
            break
    thread.join()
    found += transactions_of(read_everything(reader))
    assert found == source.ends
    assert writer.end.log_name > "relay-bin.000020"


def test_stored_coordinates_lead_back_to_the_same_place(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 10)
    for groups in read_everything(opened(channel), limit_bytes=300):
        reader = opened(channel, executed(groups.end_source, groups.end))
        assert (reader.position, reader.source_position) == (groups.end, groups.end_source)
        assert transactions_of(read_everything(reader)) == [p for p in source.ends if groups.end_source.is_before(p)]


def test_relay_coordinates_that_do_not_fit_the_source_position_are_not_believed(channel: Channel) -> None:
    """Relay logs were fetched again: the same name and offset, another transaction."""
    source = FakeSource()
    write_relay_log(channel, source, 5)
    middle = read_everything(opened(channel), limit_bytes=300)[3]
    for relay in (
        RelayLogPosition("relay-bin.000001", middle.end.log_pos),
        RelayLogPosition("relay-bin.000001", middle.end.log_pos + 1),
        RelayLogPosition("relay-bin.000001", 1 << 40),
        RelayLogPosition("relay-bin.000099", 4),
        RelayLogPosition("", 0),
    ):
        reader = opened(channel, executed(source.ends[0], relay))
        assert transactions_of(read_everything(reader)) == source.ends[1:]


def test_an_executed_position_past_the_end_waits_for_the_receiver(channel: Channel) -> None:
    source = FakeSource()
    end = write_relay_log(channel, source, 2)
    reader = RelayLogReader(channel)
    ahead = executed(BinlogPosition("binlog.000001", source.position.log_pos + 231), end)
    assert not reader.open(ahead)
    writer = new_writer(channel)
    writer.open_new(ahead.exec_position)
    assert reader.open(ahead)


@pytest.mark.parametrize("where", ["before the first log", "inside a transaction", "in a hole"])
def test_an_executed_position_that_cannot_be_reached_says_so(channel: Channel, where: str) -> None:
    source = FakeSource(BinlogPosition("binlog.000002", 4))
    write_relay_log(channel, source, 2)
    position = BinlogPosition("binlog.000001", 4)
    if where == "inside a transaction":
        position = BinlogPosition("binlog.000002", source.ends[1].log_pos - 31)
    if where == "in a hole":
        new_writer(channel).open_new(BinlogPosition("binlog.000003", 4))
        position = BinlogPosition("binlog.000002", source.position.log_pos + 100)
    with pytest.raises(RelayLogError) as failed:
        RelayLogReader(channel).open(executed(position))
    assert (failed.value.errno, failed.value.transient) == (1594, True)
    assert failed.value.hint


def test_relay_coordinates_alone_must_be_a_transaction_end(channel: Channel) -> None:
    write_relay_log(channel, FakeSource(), 2)
    groups = read_everything(opened(channel), limit_bytes=1)[-1]
    alone = replace(RelayLogInfo(), relay_log_name=groups.start.log_name, relay_log_pos=groups.start.log_pos)
    assert opened(channel, alone).source_position == groups.start_source
    with pytest.raises(RelayLogError, match="not the end of a transaction"):
        RelayLogReader(channel).open(replace(alone, relay_log_pos=groups.start.log_pos + 1))


def test_a_position_between_control_events_is_found(channel: Channel) -> None:
    """Positions of other servers may stand where nothing of ours ends: inside what only moves positions."""
    source, writer = FakeSource(), new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin() + source.transaction() + source.event(EventType.PREVIOUS_GTIDS, bytes(8)), 8)
    writer.append(source.transaction(), 5)
    between = BinlogPosition("binlog.000001", source.ends[0].log_pos + 5)
    assert transactions_of(read_everything(opened(channel, executed(between)))) == source.ends[1:]


def test_a_hole_between_two_files_stops_the_reader(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 2)
    new_writer(channel).open_new(BinlogPosition("binlog.000001", source.position.log_pos + 1000))
    reader = opened(channel)
    assert transactions_of([groups for groups in [reader.groups(1 << 20)] if groups]) == source.ends
    with pytest.raises(RelayLogError, match="events are missing between") as missing:
        reader.groups(1 << 20)
    assert "recover --refetch" in missing.value.hint


def test_a_file_that_begins_further_back_repeats_nothing(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 3)
    writer, again = new_writer(channel), FakeSource(source.ends[0], sent=1)
    writer.open_new(again.position)
    writer.append(again.begin() + b"".join(again.transaction() for _ in range(4)), 22)
    assert transactions_of(read_everything(opened(channel))) == source.ends + again.ends[2:]


def test_a_torn_tail_with_a_successor_is_passed_over(channel: Channel) -> None:
    source, writer = FakeSource(), new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin() + source.transaction(), 7)
    here, torn = source.position, source.transaction()[:-10]
    writer.append(torn, 4)
    again = FakeSource(here, sent=1)
    writer.open_new(here)
    writer.append(again.begin() + again.transaction(), 7)
    assert transactions_of(read_everything(opened(channel))) == [source.ends[0], again.ends[0]]


@pytest.mark.parametrize("verify", [True, False])
def test_garbage_after_whole_transactions_hides_none_of_them(channel: Channel, verify: bool) -> None:
    """The receiver will cut it off: until then the error is transient, and after it reading goes on."""
    source = FakeSource()
    end = write_relay_log(channel, source, 3)
    path = channel.datadir / end.log_name
    with path.open("ab") as file:
        file.write(bytes(300))
    reader = RelayLogReader(channel, verify_checksums=verify)
    assert reader.open(RelayLogInfo())
    groups = reader.groups(1 << 20)
    assert groups is not None
    assert transactions_of([groups]) == source.ends
    with pytest.raises(RelayLogError) as failed:
        reader.groups(1 << 20)
    assert (failed.value.errno, failed.value.transient) == (1594, True)
    cut_file(path, end.log_pos)
    assert reader.groups(1 << 20) is None
    writer = new_writer(channel)
    writer.open_new(source.position)
    again = FakeSource(source.position, sent=3)
    writer.append(again.begin() + again.transaction(), 7)
    assert transactions_of(read_everything(reader)) == again.ends


def test_a_flipped_bit_in_a_finished_file_stops_before_its_transaction(channel: Channel) -> None:
    source, writer = FakeSource(), new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin() + source.transaction(), 7)
    second = writer.end.log_pos
    writer.append(source.transaction(), 5)
    end = writer.end.log_pos
    writer.rotate()
    path = channel.datadir / "relay-bin.000001"
    whole = path.read_bytes()
    for offset in range(second, end, 3):
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 16]) + whole[offset + 1 :])
        reader = opened(channel)
        groups = reader.groups(1 << 20)
        assert groups is not None
        assert transactions_of([groups]) == source.ends[:1]
        if offset - second in range(9, 13):
            continue  # a longer length looks like a torn tail here; then the hole to the next file is found
        with pytest.raises(RelayLogError) as failed:
            reader.groups(1 << 20)
        assert failed.value.errno == 1594


def test_relay_logs_fetched_again_under_the_reader_are_followed_by_source_position(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 3)
    reader = opened(channel)
    assert transactions_of(read_everything(reader)) == source.ends
    purge_all(channel)
    assert reader.groups(1 << 20) is None
    again = FakeSource(source.ends[1], sent=2)
    writer = new_writer(channel)
    writer.open_new(again.position)
    writer.append(again.begin() + again.transaction() + again.transaction(), 12)
    assert reader.groups(1 << 20) is None  # finds its place
    assert transactions_of(read_everything(reader)) == again.ends[1:]


def test_a_shortened_file_is_not_read_past_its_end(channel: Channel) -> None:
    source = FakeSource()
    end = write_relay_log(channel, source, 3)
    reader = opened(channel)
    read_everything(reader)
    os.truncate(channel.datadir / end.log_name, end.log_pos - 300)
    assert reader.groups(1 << 20) is None


def test_a_new_format_description_begins_a_new_batch(channel: Channel) -> None:
    """Sources change checksums from one of their logs to the next."""
    source, writer = FakeSource(), new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin() + source.transaction(), 7)
    plain = FakeSource(BinlogPosition("binlog.000002", 4), checksum=0)
    rotate = source.rotate("binlog.000002")[: -len(plain.begin())]
    plain = FakeSource(BinlogPosition("binlog.000002", 4), checksum=0)
    begin = plain.begin()
    description = begin[-len(plain.description(end_log_pos=0)) :]
    writer.append(rotate[:44] + description + plain.transaction() + plain.transaction(), 20)
    found = read_everything(opened(channel))
    assert transactions_of(found) == [*source.ends, *plain.ends]
    algorithms = [g.format_description.checksum_algorithm for g in found if g.format_description]
    assert algorithms == [1, 0]
    for groups in found:
        for group in range(len(groups.scan)):
            assert groups.scan.kind[group] in (GroupKind.CONTROL, GroupKind.ROWS)


def test_a_batch_that_is_still_held_does_not_lock_the_receiver_out(channel: Channel) -> None:
    source = FakeSource()
    end = write_relay_log(channel, source, 3)
    held = opened(channel).groups(1 << 20)
    path = channel.datadir / end.log_name
    with path.open("ab") as file:
        file.write(b"torn")
    cutting = threading.Thread(target=cut_file, args=(path, end.log_pos), daemon=True)
    cutting.start()
    cutting.join(timeout=180)
    assert not cutting.is_alive()
    assert held is not None
    assert held.data[: held.end.log_pos].tobytes() == path.read_bytes()


def test_a_batch_stays_readable_when_its_file_is_purged(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 3)
    groups = opened(channel).groups(1 << 20)
    assert groups is not None
    before = groups.data[: groups.end.log_pos].tobytes()
    purge_all(channel)
    assert not Path(groups.path).exists()
    assert groups.data[: groups.end.log_pos].tobytes() == before
