"""Where in the relay logs a source position is, where it is not, and how far a file is intact."""

from __future__ import annotations

import numpy as np
import pytest

from rplctl.channel import Channel
from rplctl.errors import RelayLogError
from rplctl.event.scan import scan_events
from rplctl.position import BinlogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import boundary_at, find_place
from rplctl.relay_log.log_file import intact_end
from tests.relay_log.stream import FakeSource, new_writer, write_relay_log


def three_files(channel: Channel) -> FakeSource:
    """Relay logs with four transactions each; the source turns to its next log in the second."""
    source, writer = FakeSource(), new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin(), 2)
    for number in range(1, 13):
        writer.append(source.transaction(), 5)
        if number == 6:
            writer.append(source.rotate("binlog.000002"), 3)
        if number in (4, 8):
            writer.rotate()
    writer.close()
    return source


def test_every_transaction_end_is_found_in_its_file(channel: Channel) -> None:
    source, index = three_files(channel), RelayLogIndex(channel)
    found = [find_place(index, end) for end in source.ends]
    for end, place in zip(source.ends, found, strict=True):
        assert place is not None and place.boundary.source == end
        at = boundary_at(index.path(place.log_name), place.position.log_pos)
        assert at is not None and at.source == end
    names = [place.log_name for place in found if place]
    # the end of a file is the beginning of the next: it is read from there
    assert names == ["relay-bin.000001"] * 3 + ["relay-bin.000002"] * 4 + ["relay-bin.000003"] * 5


def test_no_other_offset_is_a_boundary(channel: Channel) -> None:
    end = write_relay_log(channel, source := FakeSource(), 2)
    path = channel.datadir / end.log_name
    size = path.stat().st_size
    found = {offset: at.source for offset in range(4, size + 1) if (at := boundary_at(path, offset)) is not None}
    assert [at for at in found.values() if at in source.ends] == source.ends
    ends = [offset for offset, at in found.items() if at in source.ends]
    others = [offset for offset, at in found.items() if at not in source.ends]
    assert max(others) == min(ends) - (ends[1] - ends[0]), "between the events that begin the file, none behind them"
    assert {found[size], boundary_at(path, size).source} == {source.ends[-1]}  # type: ignore[union-attr]
    assert boundary_at(path, size + 1) is None
    assert boundary_at(channel.datadir / "relay-bin.000099", 4) is None


def test_a_position_inside_a_transaction_is_refused_and_one_not_yet_fetched_is_none(channel: Channel) -> None:
    source, index = three_files(channel), RelayLogIndex(channel)
    inside = BinlogPosition(source.ends[1].log_name, source.ends[1].log_pos - 31)
    with pytest.raises(RelayLogError, match="inside a transaction of relay-bin.000001") as caught:
        find_place(index, inside)
    assert (caught.value.errno, caught.value.transient, caught.value.position) == (1594, True, str(inside))
    assert find_place(index, BinlogPosition("binlog.000002", 1 << 30)) is None
    assert find_place(index, BinlogPosition("binlog.000003", 4)) is None


def test_behind_the_format_description_of_a_log_that_was_fetched_again_from_its_start(channel: Channel) -> None:
    """What was applied to there was lost with the relay log: the new one has that event among its own first ones."""
    source, writer = FakeSource(BinlogPosition("binlog.000002", 4)), new_writer(channel)
    description = source.begin()[-len(source.description(0)) :]
    behind = source.position
    writer.open_new(BinlogPosition("binlog.000002", 4), description)
    begins = writer.end
    assert find_place(RelayLogIndex(channel), behind) is None
    writer.append(source.transaction(), 5)
    writer.close()
    place = find_place(RelayLogIndex(channel), behind)
    assert place is not None and (place.position, place.boundary.source) == (begins, behind)
    with pytest.raises(RelayLogError, match="inside a transaction"):
        find_place(RelayLogIndex(channel), BinlogPosition("binlog.000002", behind.log_pos + 1))


def test_relay_logs_that_begin_too_late_or_have_a_hole_are_refused(channel: Channel) -> None:
    source, index = three_files(channel), RelayLogIndex(channel)
    index.remove(["relay-bin.000001"])
    with pytest.raises(RelayLogError, match=r"the first relay log relay-bin.000002 begins after this position"):
        find_place(index, source.ends[1])
    assert find_place(index, source.ends[5]) is not None
    index.remove(["relay-bin.000002"])
    (channel.datadir / "relay-bin.000001").touch()
    with pytest.raises(RelayLogError, match="begins after this position"):
        find_place(index, source.ends[5])


def test_without_relay_logs_everything_has_to_be_fetched(channel: Channel) -> None:
    assert find_place(RelayLogIndex(channel), BinlogPosition("binlog.000001", 4)) is None


# how far a file is intact


def relay_log(channel: Channel, checksum: int = 1) -> tuple[bytes, list[int]]:
    """A relay log's bytes and the offsets of its events' ends."""
    source, writer = FakeSource(checksum=checksum), new_writer(channel)
    writer.open_new(source.position, checksum_algorithm=checksum)
    writer.append(source.begin() + b"".join(source.transaction() for _ in range(3)), 17)
    path = channel.datadir / writer.end.log_name
    writer.close()
    data = path.read_bytes()
    return data, scan_events(np.frombuffer(data, np.uint8), 4).offsets.tolist()


def intact(data: bytes, offset: int = 4) -> int:
    return intact_end(np.frombuffer(data, np.uint8), offset, 1)


def test_a_whole_file_is_intact_and_a_torn_one_up_to_its_last_whole_event(channel: Channel) -> None:
    data, ends = relay_log(channel)
    assert intact(data) == len(data)
    for cut in range(ends[-3], len(data)):
        assert intact(data[:cut]) == max(end for end in ends if end <= cut)


def test_one_flipped_bit_ends_it_before_its_event(channel: Channel) -> None:
    data, ends = relay_log(channel)
    for offset in range(ends[4], len(data), 3):
        damaged = bytearray(data)
        damaged[offset] ^= 0x10
        assert intact(bytes(damaged)) <= max(end for end in ends if end <= offset)


def test_without_checksums_only_lengths_are_known(channel: Channel) -> None:
    data, ends = relay_log(channel, checksum=0)
    damaged = bytearray(data)
    damaged[-1] ^= 0xFF
    assert intact(bytes(damaged)) == len(data)
    assert intact(data[:-1]) == ends[-2]


def test_what_lies_before_the_offset_is_not_looked_at(channel: Channel) -> None:
    data, ends = relay_log(channel)
    damaged = bytearray(data)
    damaged[ends[5] - 1] ^= 0xFF
    assert intact(bytes(damaged)) == ends[4]
    assert intact(bytes(damaged), ends[5]) == len(data)
