"""Relay logs of a channel whose source changed: coordinates of one source say nothing about the other's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.channel import Channel
from rplctl.errors import RelayLogError
from rplctl.info import SET_BY_COMMAND, MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.recovery import RecoveryResult, recover_relay_log
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import artificial_rotate
from rplctl.relay_log.reader import RelayLogReader
from tests.relay_log.stream import SOURCE_UUID, FakeSource, new_writer, read_everything, transactions_of

BY_GTID = MasterInfo(host="h", enabled_auto_position=True)
NAMES = [("binlog.000009", "binlog.000001"), ("binlog.000001", "mysql-bin.000009"), ("binlog.000001", "binlog.000001")]


@pytest.fixture(params=NAMES, ids=["lower", "higher", "alike"])
def ends(request: pytest.FixtureRequest, channel: Channel) -> list[BinlogPosition]:
    """Three transactions of one source, three of another, as the receiver writes them; the ends of all six."""
    first, second = (FakeSource(BinlogPosition(name, 4)) for name in request.param)
    second.sent = 3
    writer = new_writer(channel)
    writer.open_new(first.position)
    for source in (first, second):
        if source is second:
            writer.open_new(first.position)
            writer.append(artificial_rotate(7, second.position, 1), 1)
        writer.append(source.begin(), 2)
        for _ in range(3):
            writer.append(source.transaction(), 5)
    writer.sync()
    writer.close()
    return [*first.ends, *second.ends]


def recover(channel: Channel, master: MasterInfo, executed: RelayLogInfo) -> RecoveryResult:
    return recover_relay_log(channel, master, executed)


def read_from(channel: Channel, info: RelayLogInfo) -> list[BinlogPosition]:
    reader = RelayLogReader(channel, by_gtid=True)
    assert reader.open(info)
    return transactions_of(read_everything(reader, 1))


def test_all_transactions_of_both_are_handed_out_in_order(channel: Channel, ends: list[BinlogPosition]) -> None:
    assert read_from(channel, RelayLogInfo()) == ends


@pytest.mark.parametrize("count", range(7))
def test_relay_logs_fetched_again_are_read_from_the_first_gtid_that_is_not_executed(
    channel: Channel, ends: list[BinlogPosition], count: int
) -> None:
    """The relay log coordinates that were stored mean nothing, and the source's may be met twice, or later."""
    executed = f"{SOURCE_UUID}:1-{count}" if count else ""
    at = ends[count - 1] if count else BinlogPosition("", 4)
    info = RelayLogInfo(gtid_executed=executed).at(RelayLogPosition("relay-bin.000077", 999), at)
    assert read_from(channel, info if count else RelayLogInfo()) == ends[count:]


def test_the_next_connection_asks_by_gtid_and_the_relay_log_goes_on_from_its_end(
    channel: Channel, ends: list[BinlogPosition]
) -> None:
    executed = RelayLogInfo().at(RelayLogPosition("relay-bin.000001", 4), BinlogPosition("binlog.000009", 4))
    found = recover(channel, BY_GTID, executed)
    assert found.retrieved_gtid_set == f"{SOURCE_UUID}:1-6"
    assert (found.next_event, found.continues_at) == (ends[-1], ends[-1])


def test_without_the_appliers_own_relay_log_all_is_fetched_again_by_gtid(
    channel: Channel, ends: list[BinlogPosition]
) -> None:
    executed = RelayLogInfo(gtid_executed=f"{SOURCE_UUID}:1").at(RelayLogPosition("relay-bin.000001", 700), ends[0])
    (channel.datadir / "relay-bin.000001").unlink()
    found = recover(channel, BY_GTID, executed)
    assert found.retrieved_gtid_set == "" and RelayLogIndex(channel).names() == []


def test_relay_logs_that_were_fetched_again_are_not_fetched_a_third_time(
    channel: Channel, ends: list[BinlogPosition]
) -> None:
    begins = BinlogPosition(ends[0].log_name, 4)
    found = recover(channel, BY_GTID, RelayLogInfo().at(RelayLogPosition("relay-bin.000077", 700), begins))
    assert found.retrieved_gtid_set == f"{SOURCE_UUID}:1-6" and not found.removed_relay_logs


def test_a_reader_whose_file_is_gone_or_cut_asks_to_be_opened_again(
    channel: Channel, ends: list[BinlogPosition]
) -> None:
    reader = RelayLogReader(channel, by_gtid=True)
    assert reader.open(RelayLogInfo()) and reader.groups(1) is not None
    for name in RelayLogIndex(channel).names():
        (channel.datadir / name).unlink()
    RelayLogIndex(channel).replace([])
    with pytest.raises(RelayLogError) as caught:
        reader.groups(1)
    assert caught.value.transient


def test_by_position_change_master_behind_kept_relay_logs_is_heeded_once(
    channel: Channel, ends: list[BinlogPosition]
) -> None:
    wanted = BinlogPosition("other-bin.000004", 1234)
    executed = RelayLogInfo().at(RelayLogPosition("relay-bin.000001", 4), BinlogPosition("", 4))
    moved = MasterInfo(host="h", flushed_relay_log_pos=SET_BY_COMMAND).with_read_position(wanted)
    found = recover(channel, moved, executed)
    assert (found.next_event, found.continues_at, found.needs_new_relay_log) == (wanted, ends[-1], True)
    flushed = replace(moved, flushed_relay_log_name="relay-bin.000003", flushed_relay_log_pos=300)
    assert recover(channel, flushed, executed).next_event == ends[-1]
