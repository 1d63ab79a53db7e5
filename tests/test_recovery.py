"""WL#4621 on real bytes: whatever is left of the relay log, what follows is fetched once and nothing is skipped."""

from __future__ import annotations

import errno
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.selftest.crash_run import in_child
from rplctl.config import Config
from rplctl.durable import sync_count
from rplctl.errors import RelayLogError, RplError
from rplctl.event.jit import byte_view
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.recovery import RecoveryResult, choose_logs, recover_relay_log
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import read_start
from rplctl.relay_log.purge import purge_all, purge_applied, register_path
from rplctl.relay_log.reader import RelayLogReader
from rplctl.relay_log.writer import RelayLogWriter
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer
from tests.relay_log.stream import (
    SOURCE_UUID,
    FakeSource,
    contents,
    executed,
    new_writer,
    read_everything,
    transactions_of,
    write_relay_log,
)

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12
NOTHING = RelayLogInfo()
AT_FIRST = RelayLogInfo().at(RelayLogPosition("relay-bin.000001", 4), BinlogPosition("", 4))  # as CHANGE MASTER sets it
MASTER = MasterInfo(host="source", master_log_name="binlog.000001", master_log_pos=4)


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Channel]:
    """In memory where there is room for that: thousands of recoveries, each with its fsyncs."""
    memory = Path("/dev/shm")
    folder = tempfile.mkdtemp(prefix="rplctl-", dir=memory if os.access(memory, os.W_OK) else tmp_path)
    yield Channel("", Path(folder))
    shutil.rmtree(folder)


def recover(channel: Channel, info: RelayLogInfo = NOTHING, master: MasterInfo = MASTER) -> RecoveryResult:
    """Recovery; its dry run must have said the same and touched nothing, and a second run must find nothing to do."""
    before = contents(channel)
    planned = recover_relay_log(channel, master, info, dry_run=True)
    assert contents(channel) == before
    result = recover_relay_log(channel, master, info)
    assert replace(planned, notes=()) == replace(result, notes=())
    after = contents(channel)
    again = recover_relay_log(channel, master, info)
    assert (again.truncated_bytes, again.removed_relay_logs, again.is_index_repaired) == (0, (), False)
    assert (again.next_event, again.relay_end) == (result.next_event, result.relay_end)
    assert contents(channel) == after
    return result


def transactions_in(channel: Channel) -> list[BinlogPosition]:
    reader = RelayLogReader(channel)
    return transactions_of(read_everything(reader)) if reader.open(NOTHING) else []


def refetch(channel: Channel, source: FakeSource, result: RecoveryResult) -> None:
    """What the receiver does next: ask for everything from `next_event` on."""
    writer = new_writer(channel)
    if result.needs_new_relay_log:
        writer.open_new(result.next_event, result.format_description or None)
    else:
        writer.resume(result.relay_end)
    again = FakeSource(result.next_event, source.checksum)
    again.sent = sum(1 for end in source.ends if not result.next_event.is_before(end))
    writer.append(again.begin(), 2)
    while again.sent < source.sent:
        writer.append(again.transaction(), 5)
    writer.close()


def applied_after_refetch(
    channel: Channel, source: FakeSource, result: RecoveryResult, info: RelayLogInfo
) -> list[BinlogPosition]:
    """Where the transactions end that the applier finds behind its position then."""
    refetch(channel, source, result)
    reader = RelayLogReader(channel)
    assert reader.open(info)
    return transactions_of(read_everything(reader))


def test_a_whole_relay_log_is_left_alone(channel: Channel) -> None:
    source = FakeSource()
    end = write_relay_log(channel, source, 3)
    result = recover(channel)
    assert (result.next_event, result.relay_end) == (source.position, end)
    assert not result.needs_new_relay_log
    assert result.notes == ()


def test_what_a_killed_receiver_left_is_durable_before_another_relay_log_follows_it(channel: Channel) -> None:
    """Else a power cut takes it away from amid the relay log, where no later recovery looks."""
    writer, source = new_writer(channel, sync_relay_log=0), FakeSource()
    writer.open_new(source.position)
    writer.append(source.begin() + source.transaction(), 7)
    writer.close()
    before = sync_count["relay-bin.000001"]
    recover_relay_log(channel, MASTER, NOTHING, dry_run=True)
    assert sync_count["relay-bin.000001"] == before
    recover_relay_log(channel, MASTER, NOTHING)
    assert sync_count["relay-bin.000001"] == before + 1


def test_a_disk_that_fails_in_recovery_is_an_error_that_names_the_file(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_relay_log(channel, FakeSource(), 1)

    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(RplError, match=r"relay-bin\.000001: Input/output error"):
        recover_relay_log(channel, MASTER, NOTHING)


@pytest.mark.long("One of the two logs stays; the cut is the same.", keeps=r"^0$")
@pytest.mark.slow
@pytest.mark.parametrize("checksum", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_torn_at_every_byte(channel: Channel, checksum: int) -> None:
    """Cut anywhere from the first byte on: the next event is the end of the last whole transaction, no other."""
    source = FakeSource(checksum=checksum)
    writer = new_writer(channel)
    writer.open_new(source.position, checksum_algorithm=checksum)
    writer.append(source.begin(), 2)
    header_end = writer.end.log_pos
    ends = [(0, source.position)]
    for rows in (1, 2, 1, 3):
        writer.append(source.transaction(rows, images=10), 5)
        ends.append((writer.end.log_pos, source.position))
    writer.close()
    path = channel.datadir / "relay-bin.000001"
    whole = path.read_bytes()
    assert len(whole) > 1500
    for size in range(header_end, len(whole) + 1):
        path.write_bytes(whole[:size])
        result = recover_relay_log(channel, MASTER, NOTHING)
        kept, position = max(end for end in ends if end[0] <= size)
        assert result.next_event == position, size
        assert path.stat().st_size == result.relay_end.log_pos == (kept or header_end)
        assert result.needs_new_relay_log == (size != result.relay_end.log_pos)


def test_torn_inside_the_header_is_fetched_from_where_it_began(channel: Channel) -> None:
    source = FakeSource(BinlogPosition("binlog.000004", 9000))
    master = replace(MASTER, master_log_name="binlog.000004", master_log_pos=9000)
    write_relay_log(channel, source, 1)
    path = channel.datadir / "relay-bin.000001"
    whole = path.read_bytes()
    header_end = len(whole) - (source.position.log_pos - 9000)
    for size in range(header_end):
        path.write_bytes(whole[:size])
        channel.relay_log_index_path.write_bytes(b"./relay-bin.000001\n")
        result = recover_relay_log(channel, master, NOTHING)
        assert result.next_event == BinlogPosition("binlog.000004", 9000), size


@pytest.mark.long("test_torn_at_every_byte cuts at each byte; this writes zeros there.")
@pytest.mark.parametrize("fill", [b"\x00", b"\xff", b"\x5a", b"old"])
def test_a_torn_page_from_any_byte_on_is_cut(channel: Channel, fill: bytes) -> None:
    """The tail is there in length but not in content, as after a power cut."""
    source = FakeSource()
    end = write_relay_log(channel, source, 3)
    path = channel.datadir / "relay-bin.000001"
    whole = path.read_bytes()
    second_end = len(whole) - (source.ends[2].log_pos - source.ends[1].log_pos)
    for offset in range(second_end, len(whole)):
        tail = (fill * len(whole))[: len(whole) - offset + 512]
        path.write_bytes(whole[:offset] + tail)
        result = recover_relay_log(channel, MASTER, NOTHING)
        same = whole[offset:] == tail[: len(whole) - offset]
        assert result.next_event == source.ends[2 if same else 1], offset
        assert path.read_bytes() == whole[: end.log_pos if same else second_end]


def test_one_flipped_bit_anywhere_is_found(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 3)
    path = channel.datadir / "relay-bin.000001"
    whole = path.read_bytes()
    start = len(whole) - source.ends[2].log_pos + source.ends[0].log_pos  # in the second and third transaction
    for offset in range(start, len(whole)):
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << (offset % 8)
        path.write_bytes(damaged)
        result = recover_relay_log(channel, MASTER, NOTHING)
        second = start + source.ends[1].log_pos - source.ends[0].log_pos
        assert result.next_event == source.ends[0 if offset < second else 1], offset


def test_noise_never_raises_anything_but_keeps_whole_transactions(channel: Channel) -> None:
    source = FakeSource()
    end = write_relay_log(channel, source, 2)
    path = channel.datadir / "relay-bin.000001"
    whole = path.read_bytes()
    noise = random.Random(4621)
    for _ in range(300):
        path.write_bytes(whole + noise.randbytes(noise.randrange(1, 400)))
        result = recover_relay_log(channel, MASTER, NOTHING)
        assert (result.next_event, result.relay_end) == (source.position, end)


def test_what_was_cut_is_fetched_again_once(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 5)
    path = channel.datadir / "relay-bin.000001"
    os.truncate(path, path.stat().st_size - 100)
    result = recover(channel)
    assert result.needs_new_relay_log
    refetch(channel, source, result)
    assert transactions_in(channel) == source.ends


def test_an_applier_ahead_of_the_relay_log_goes_on_where_it_stopped(channel: Channel) -> None:
    """WL#4621's last case: it applied what never reached the disk. e'' wins, and nothing is applied twice."""
    source = FakeSource()
    end = write_relay_log(channel, source, 5)
    os.truncate(channel.datadir / "relay-bin.000001", end.log_pos - 500)
    info = executed(source.ends[3], RelayLogPosition("relay-bin.000001", end.log_pos - 223))
    result = recover(channel, info)
    assert result.next_event == source.ends[3]
    assert result.needs_new_relay_log
    reader = RelayLogReader(channel)
    assert not reader.open(info)  # not there yet
    refetch(channel, source, result)
    assert reader.open(info)
    assert transactions_of(read_everything(reader)) == source.ends[4:]


def test_an_applier_behind_does_not_move_the_next_event(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 3)
    assert recover(channel, executed(source.ends[0])).next_event == source.ends[2]


def test_positions_are_ordered_by_number_not_as_text(channel: Channel) -> None:
    source = FakeSource(BinlogPosition("binlog.1000000", 4))
    write_relay_log(channel, source, 1)
    assert recover(channel, executed(BinlogPosition("binlog.999999", 900_000_000))).next_event.log_pos == 900_000_000
    source = FakeSource(BinlogPosition("binlog.999999", 4))
    write_relay_log(channel, source, 1)
    jump = recover(channel, executed(BinlogPosition("binlog.1000000", 4)))
    assert jump.next_event == BinlogPosition("binlog.1000000", 4)


def test_without_anything_the_configured_position_is_asked_for(channel: Channel) -> None:
    result = recover(channel)
    assert result.next_event == BinlogPosition("binlog.000001", 4)
    assert result.needs_new_relay_log


def test_lost_relay_logs_are_fetched_from_the_executed_position(channel: Channel) -> None:
    """A stale or too new Read_Master_Log_Pos must not matter (rpl_sync case 2)."""
    source = FakeSource()
    write_relay_log(channel, source, 3)
    for path in channel.datadir.glob("relay-bin*"):
        path.unlink()
    master = replace(MASTER.with_read_position(source.position), flushed_relay_log_name="relay-bin.000001")
    assert recover(channel, executed(source.ends[0]), master).next_event == source.ends[0]
    with pytest.raises(RelayLogError) as lost:
        recover(channel, NOTHING, master)
    assert lost.value.hint.startswith("to begin at the source's first log, run: rplctl reset; ")


@pytest.mark.parametrize("stale", [4, 350, 99_999_999])
def test_the_stored_read_position_is_not_believed(channel: Channel, stale: int) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 3)
    assert recover(channel, NOTHING, replace(MASTER, master_log_pos=stale)).next_event == source.position


def write_three_logs(channel: Channel) -> FakeSource:
    """Three relay logs with two transactions each."""
    source, writer = FakeSource(), new_writer(channel)
    writer.open_new(source.position)
    writer.append(source.begin(), 2)
    for number in range(3):
        writer.append(source.transaction() + source.transaction(), 10)
        if number < 2:
            writer.rotate()
    writer.close()
    return source


INDEX = b"./relay-bin.000001\n./relay-bin.000002\n./relay-bin.000003\n"


@pytest.mark.parametrize(
    "index",
    [
        b"",
        None,
        INDEX + INDEX,
        INDEX.replace(b"./", b""),
        INDEX[:-1],
        b"/somewhere/else.000001\n" + INDEX + b"\xff\x00garbage",
        INDEX + b"./relay-bin.000004\n",
        b"./relay-bin.000003\n./relay-bin.000001\n./relay-bin.000002\n",
    ],
    ids=["empty", "missing", "duplicates", "bare", "no-newline", "foreign", "extra", "unordered"],
)
def test_a_damaged_index_is_repaired_without_loss(channel: Channel, index: bytes | None) -> None:
    source = write_three_logs(channel)
    if index is None:
        channel.relay_log_index_path.unlink()
    else:
        channel.relay_log_index_path.write_bytes(index)
    result = recover(channel)
    assert result.is_index_repaired
    assert channel.relay_log_index_path.read_bytes() == INDEX
    assert result.next_event == source.position
    assert transactions_in(channel) == source.ends


def test_a_log_lost_in_the_middle_takes_what_follows_with_it(channel: Channel) -> None:
    source = write_three_logs(channel)
    (channel.datadir / "relay-bin.000002").unlink()
    result = recover(channel)
    assert (result.next_event, result.removed_relay_logs) == (source.ends[1], ("relay-bin.000003",))
    refetch(channel, source, result)
    assert transactions_in(channel) == source.ends


@pytest.mark.parametrize("how", ["a flipped bit", "zeros", "torn", "its beginning", "the next one's beginning"])
def test_damage_in_the_log_that_the_applier_is_in_is_fetched_again(channel: Channel, how: str) -> None:
    """Not the last log: no cut mends it, and the next begins behind what is lost."""
    source = write_three_logs(channel)
    path = channel.datadir / ("relay-bin.000002" if how == "the next one's beginning" else "relay-bin.000001")
    data = bytearray(path.read_bytes())
    where = slice(0, 30) if "beginning" in how else slice(len(data) - 100, len(data) - 60)
    data[where] = bytes(b ^ 8 for b in data[where]) if how == "a flipped bit" else bytes(where.stop - where.start)
    path.write_bytes(data[:-60] if how == "torn" else data)
    info = executed(source.ends[0], RelayLogPosition("relay-bin.000001", 1))
    result = recover(channel, info)
    is_next = how == "the next one's beginning"
    assert (result.next_event, len(result.removed_relay_logs)) == (
        source.ends[1 if is_next else 0],
        3 if how == "its beginning" else 2,
    )
    assert result.notes
    assert applied_after_refetch(channel, source, result, info) == source.ends[1:]


@pytest.mark.parametrize("applied", [None, 0, 1])
def test_damage_ahead_of_the_applier_is_cut_and_fetched_again_at_once(channel: Channel, applied: int | None) -> None:
    """What comes before it stays: the source need not have it any more. Later connections do not look so far."""
    source = write_three_logs(channel)
    path = channel.datadir / "relay-bin.000002"
    data = bytearray(path.read_bytes())
    data[-50] ^= 1
    path.write_bytes(data)
    info = AT_FIRST if applied is None else executed(BinlogPosition("binlog.000001", 4))
    info = executed(source.ends[0]) if applied else info
    reader = RelayLogReader(channel)
    assert reader.open(info)
    with pytest.raises(RelayLogError) as caught:
        read_everything(reader)
    assert reader.source_position == source.ends[2] and caught.value.transient  # a receiver that starts mends it
    assert recover_relay_log(channel, MASTER, info, dry_run=True, thorough=False).notes == ()
    result = recover(channel, info)
    assert (result.next_event, result.removed_relay_logs) == (source.ends[2], ("relay-bin.000003",))
    assert "relay-bin.000002 can be read to" in result.notes[0]
    assert applied_after_refetch(channel, source, result, info) == source.ends[applied or 0 :]


def test_a_log_amid_others_that_says_no_more_where_it_begins_is_not_passed_over(channel: Channel) -> None:
    """Its FORMAT_DESCRIPTION is whole and nothing behind it: the next log begins behind what is lost."""
    source = write_three_logs(channel)
    path = channel.datadir / "relay-bin.000002"
    os.truncate(path, read_start(byte_view(path.read_bytes())).first_event_end)
    reader = RelayLogReader(channel)
    with pytest.raises(RelayLogError, match="begins at an unknown position"):
        reader.open(AT_FIRST)
    assert reader.open(executed(source.ends[0]))
    with pytest.raises(RelayLogError, match="does not say where it begins"):
        read_everything(reader)
    assert reader.source_position == source.ends[1]
    result = recover(channel, AT_FIRST)
    assert result.next_event == source.ends[1]
    assert applied_after_refetch(channel, source, result, AT_FIRST) == source.ends


@pytest.mark.long("Such a replica is moved in tests/stories/test_move_replica.py.")
@pytest.mark.mariadb
@pytest.mark.slow
@pytest.mark.parametrize("last", [True, False])
def test_an_intact_relay_log_of_a_native_replica_is_never_removed(
    mariadb_factory: Callable[..., MariadbServer], channel: Channel, last: bool
) -> None:
    """FLUSH RELAY LOGS makes MariaDB begin a file that does not say where in the source's log it begins."""
    source, replica = mariadb_factory(), mariadb_factory()
    source.sql("RESET MASTER; CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)")
    replica.sql(
        f"CHANGE MASTER TO MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='rpl', "
        "MASTER_PASSWORD='rpl', MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4; START SLAVE IO_THREAD"
    )

    def fetched() -> bool:
        return source.master_status()[1] in replica.sql("SHOW SLAVE STATUS")[0]

    source.sql("INSERT INTO shop.t VALUES (1)")
    wait_until(fetched)
    replica.sql("FLUSH RELAY LOGS")
    source.sql("INSERT INTO shop.t VALUES (2)")
    wait_until(fetched)
    if not last:
        source.sql("FLUSH BINARY LOGS; INSERT INTO shop.t VALUES (3)")
        wait_until(fetched)
    replica.sql("STOP SLAVE")
    for path in replica.data.glob("relay-bin.*"):
        shutil.copy(path, channel.datadir)
    before = contents(channel)
    first = RelayLogIndex(channel).names()[0]
    info = RelayLogInfo().at(RelayLogPosition(first, 4), BinlogPosition("binlog.000001", 4))
    with pytest.raises(RelayLogError, match="another program wrote it") as caught:
        recover_relay_log(channel, MASTER, info)
    assert caught.value.hint.endswith("run: rplctl recover --refetch; rplctl start") and contents(channel) == before


def test_a_first_log_that_never_said_where_it_begins_is_kept_before_damaged_ones(channel: Channel) -> None:
    """As a receiver leaves it that asked for the source's first log and was told to begin another at once."""
    source, writer = FakeSource(), new_writer(channel)
    writer.open_new(BinlogPosition("", 4))
    end = writer.end
    for _ in range(2):
        writer.rotate()
        writer.append(source.begin() + source.transaction(), 7)
    writer.close()
    path = channel.datadir / "relay-bin.000002"
    path.write_bytes(bytes(30) + path.read_bytes()[30:])
    result = recover(channel, AT_FIRST)
    assert (result.relay_end, result.needs_new_relay_log, len(result.removed_relay_logs)) == (end, False, 2)
    assert f"everything after {end} is removed" in result.notes[0]


def test_the_first_log_lost_before_anything_was_applied_is_told_with_what_that_means(channel: Channel) -> None:
    write_three_logs(channel)
    (channel.datadir / "relay-bin.000001").unlink()
    master = replace(MASTER, flushed_relay_log_name="relay-bin.000003")
    with pytest.raises(RelayLogError, match="relay-bin.000001 is missing") as lost:
        recover(channel, AT_FIRST, master)
    assert "rplctl reset; rplctl start" in lost.value.hint and "rows are missing" in lost.value.hint


def test_noise_behind_the_end_of_a_closed_log_is_passed_over(channel: Channel) -> None:
    source = write_three_logs(channel)
    with (channel.datadir / "relay-bin.000001").open("ab") as file:
        file.write(bytes(700))
    before = contents(channel)
    assert recover(channel, executed(source.ends[0])).notes == () and contents(channel) == before
    assert transactions_in(channel) == source.ends


def test_by_gtid_damage_that_keeps_the_relay_logs_from_being_read_is_fetched_again(channel: Channel) -> None:
    """What is in them cannot be told, so the source is asked for all that is not executed."""
    source = write_three_logs(channel)
    path = channel.datadir / "relay-bin.000001"
    data = bytearray(path.read_bytes())
    data[-100:-60] = bytes(40)
    path.write_bytes(data)
    by_gtid = replace(MASTER, using_gtid=1, flushed_relay_log_name="relay-bin.000003")
    info = replace(executed(source.ends[0], RelayLogPosition("relay-bin.000001", 1)), gtid_executed="0-1-1")
    result = recover(channel, info, by_gtid)
    assert (len(result.removed_relay_logs), result.retrieved_gtid_set) == (3, "")


@pytest.mark.parametrize("lost", ["all", "the first", "amid"])
def test_by_gtid_with_nothing_executed_lost_relay_logs_are_fetched_from_the_start(channel: Channel, lost: str) -> None:
    """The empty set of what is executed says where: the source refuses it if its own first logs are gone."""
    source = write_three_logs(channel)
    first = channel.datadir / "relay-bin.000001"
    if lost == "amid":
        data = bytearray(first.read_bytes())
        data[-100:-60] = bytes(40)
        first.write_bytes(data)
    for path in {"all": channel.datadir.glob("relay-bin*"), "the first": [first]}.get(lost, ()):
        path.unlink()
    by_gtid = replace(MASTER, enabled_auto_position=True, flushed_relay_log_name="relay-bin.000003")
    info = RelayLogInfo().at(RelayLogPosition(first.name, 4), BinlogPosition("", 4))
    result = recover(channel, info, by_gtid)
    assert (result.next_event.log_name, result.retrieved_gtid_set, result.continues_at.log_name) == ("", "", "")
    assert RelayLogIndex(channel).files() == []
    result = replace(result, next_event=BinlogPosition("binlog.000001", 4))  # which the source begins with
    assert applied_after_refetch(channel, source, result, info) == source.ends


@pytest.mark.parametrize("order", [(2, 1, 3), (3, 2, 1), (1, 3, 2), (2, 3, 1), (3, 1, 2)])
@pytest.mark.parametrize("by_gtid", [False, True], ids=["by position", "by GTID"])
@pytest.mark.parametrize("applied", [None, 0, 1], ids=["nothing known", "at the start", "one applied"])
def test_relay_logs_that_have_changed_places_are_fetched_again_or_refused(
    channel: Channel, order: tuple[int, ...], by_gtid: bool, applied: int | None
) -> None:
    """Each is whole and begins and ends somewhere; only that they do not follow one another tells. One start mends
    it; with nothing applied and the first one elsewhere, the command that the error names.
    """
    source = write_three_logs(channel)
    paths = [channel.datadir / f"relay-bin.{number:06}" for number in (1, 2, 3)]
    for path, data in zip(paths, [paths[number - 1].read_bytes() for number in order], strict=True):
        path.write_bytes(data)
    start = BinlogPosition("binlog.000001", 4) if applied == 0 else source.ends[0]
    gtids = f"{SOURCE_UUID}:1" if applied else ""
    info = (
        AT_FIRST if applied is None else replace(AT_FIRST.at(AT_FIRST.relay_log_position, start), gtid_executed=gtids)
    )
    reader = RelayLogReader(channel, by_gtid=by_gtid)
    with suppress(RelayLogError):  # an applier that is there first gets nothing wrong
        if reader.open(info):
            seen = transactions_of(read_everything(reader))
            assert seen == source.ends[applied or 0 :][: len(seen)]
    master = replace(MASTER, enabled_auto_position=by_gtid, flushed_relay_log_name="relay-bin.000003")
    if applied is None and not by_gtid:
        with pytest.raises(RelayLogError, match="are out of order"):
            reader.open(info)
        if order[0] != 1:
            with pytest.raises(
                RelayLogError, match=r"nothing was applied yet: the receiver had begun at binlog.000001:4"
            ) as told:
                recover(channel, info, master)
            assert told.value.hint.endswith(
                "run: rplctl change-master --master-log-file binlog.000001 --master-log-pos 4; rplctl start"
            )
            return
    result = recover(channel, info, master)
    is_prefix = order[0] == 1 and not by_gtid  # the first stays, what is behind it is fetched again
    assert len(result.removed_relay_logs) == (2 if is_prefix else 3)
    assert result.next_event == (source.ends[1] if is_prefix else info.exec_position)
    if applied is None and by_gtid:
        result = replace(result, next_event=BinlogPosition("binlog.000001", 4))  # which the source begins with
    assert applied_after_refetch(channel, source, result, info) == source.ends[applied or 0 :]


def test_a_short_index_drops_the_unlisted_log_and_fetches_it_again(channel: Channel) -> None:
    source = write_three_logs(channel)
    channel.relay_log_index_path.write_bytes(INDEX[: len(INDEX) * 2 // 3])
    result = recover(channel)
    assert (result.next_event, result.removed_relay_logs) == (source.ends[3], ("relay-bin.000003",))
    refetch(channel, source, result)
    assert transactions_in(channel) == source.ends


def test_relay_logs_that_begin_after_the_executed_position_are_useless(channel: Channel) -> None:
    source = write_three_logs(channel)
    (channel.datadir / "relay-bin.000001").unlink()
    info = executed(source.ends[0], RelayLogPosition("relay-bin.000001", 900))
    result = recover(channel, info)
    assert (result.next_event, len(result.removed_relay_logs)) == (source.ends[0], 2)
    assert applied_after_refetch(channel, source, result, info) == source.ends[1:]


def test_a_last_log_without_one_whole_event_gives_way_to_the_one_before(channel: Channel) -> None:
    source = write_three_logs(channel)
    for content in (b"", b"\xfebi", b"\xfebin", b"\0" * 500, b"failure\n"):
        channel.relay_log_index_path.write_bytes(INDEX)
        (channel.datadir / "relay-bin.000003").write_bytes(content)
        result = recover(channel)
        assert (result.next_event, result.removed_relay_logs) == (source.ends[3], ("relay-bin.000003",))


def test_an_interrupted_purge_is_finished_and_nothing_comes_back(channel: Channel) -> None:
    source = write_three_logs(channel)
    register_path(channel).write_bytes(INDEX)
    channel.relay_log_index_path.write_bytes(b"")  # the purge of all got as far as the index
    result = recover(channel, executed(source.ends[3]))
    assert result.next_event == source.ends[3]
    assert RelayLogIndex(channel).files() == []
    assert not register_path(channel).exists()


@pytest.mark.parametrize("start", [(1 << 32) - 700, (1 << 33) + 5, (1 << 31) - 300])
def test_positions_beyond_32_bits(channel: Channel, start: int) -> None:
    """The header's end_log_pos wraps; ours does not (64-bit ROTATE, own count)."""
    source = FakeSource(BinlogPosition("binlog.000001", start))
    end = write_relay_log(channel, source, 6)
    assert recover(channel).next_event == source.position
    assert source.position.log_pos > start + 1000
    os.truncate(channel.datadir / end.log_name, end.log_pos - 1)
    result = recover(channel, executed(source.ends[1]))
    assert result.next_event == source.ends[4]
    refetch(channel, source, result)
    reader = RelayLogReader(channel)
    assert reader.open(executed(source.ends[2]))
    assert transactions_of(read_everything(reader)) == source.ends[3:]


def test_the_next_log_of_the_source_is_followed(channel: Channel) -> None:
    source = FakeSource()
    write_relay_log(channel, source, 2)
    writer = new_writer(channel)
    writer.resume(recover(channel).relay_end)
    writer.append(source.rotate("binlog.000002"), 3)
    at_start = recover(channel)
    assert at_start.next_event == source.position == BinlogPosition("binlog.000002", source.position.log_pos)
    writer.append(source.transaction(), 5)
    writer.close()
    assert recover(channel).next_event == source.position


def test_gtids_of_whole_transactions_are_retrieved(channel: Channel) -> None:
    source = write_three_logs(channel)
    last = channel.datadir / "relay-bin.000003"
    os.truncate(last, last.stat().st_size - 1)
    uses_gtid = replace(MASTER, enabled_auto_position=True)
    assert recover(channel, master=uses_gtid).retrieved_gtid_set == "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    assert recover(channel).retrieved_gtid_set == ""
    assert source.sent == 6


@pytest.mark.parametrize(
    ("listed", "files", "kept"),
    [
        ([], [], []),
        ([1, 2, 3], [1, 2, 3], [1, 2, 3]),
        ([1, 2, 3], [2, 3], [2, 3]),
        ([1, 2, 3], [1, 3], [1]),
        ([1, 2], [1, 2, 3], [1, 2]),
        ([2, 3], [1, 2, 3], [2, 3]),
        ([], [1, 3, 4], [3, 4]),
        ([7], [1, 2], []),
    ],
)
def test_which_relay_logs_are_kept(listed: list[int], files: list[int], kept: list[int]) -> None:
    def names(numbers: list[int]) -> list[str]:
        return [f"relay-bin.{number:06d}" for number in numbers]

    assert choose_logs(names(listed), names(files))[0] == names(kept)


# --- killed anywhere ---


def act(channel: Channel, action: str, *arguments: str) -> None:
    config = Config(datadir=channel.datadir)
    if action == "recover":
        name, position = arguments[0].split(":")
        info = RelayLogInfo(master_log_name=name, master_log_pos=int(position))
        recover_relay_log(channel, MasterInfo(), info)
    elif action == "purge":
        purge_applied(channel, RelayLogPosition("relay-bin.000003", 4))
    elif action == "purge-all":
        purge_all(channel)
    else:
        writer = RelayLogWriter(channel, config, 2)
        writer.resume(RelayLogPosition("relay-bin.000003", (channel.datadir / "relay-bin.000003").stat().st_size))
        if action == "append":
            writer.append(bytes.fromhex(arguments[0]), 5)
        else:
            writer.rotate()


def run_killed(channel: Channel, action: str, point: str, *arguments: str) -> bool:
    """Run the action in a process that dies at the crash point; True when it did."""
    done = in_child(lambda _: act(channel, action, *arguments), f"{point}=kill" if point else "")
    assert not done.error, done.error
    return done.killed


PURGE_POINTS = [
    "crash_before_purge_logs",
    "crash_purge_before_update_index",
    "crash_purge_critical_after_update_index",
]
CREATE_POINTS = [
    "crash_before_rotate_relaylog",
    "crash_create_critical_before_update_index",
    "crash_create_after_update_index",
]


@pytest.mark.parametrize("point", CREATE_POINTS)
def test_killed_while_rotating(channel: Channel, point: str) -> None:
    source = write_three_logs(channel)
    assert run_killed(channel, "rotate", point)
    result = recover(channel)
    assert result.next_event == source.position
    assert transactions_in(channel) == source.ends
    assert RelayLogIndex(channel).names() == RelayLogIndex(channel).files()


def test_killed_after_an_append(channel: Channel) -> None:
    source = write_three_logs(channel)
    assert run_killed(channel, "append", "crash_after_relay_log_append", source.transaction().hex())
    assert recover(channel).next_event == source.position
    assert transactions_in(channel) == source.ends


@pytest.mark.parametrize("point", PURGE_POINTS)
def test_killed_while_purging(channel: Channel, point: str) -> None:
    source = write_three_logs(channel)
    assert run_killed(channel, "purge", point)
    result = recover(channel, executed(source.ends[3], RelayLogPosition("relay-bin.000003", 4)))
    assert result.next_event == source.position
    assert transactions_in(channel)[-2:] == source.ends[4:]
    assert RelayLogIndex(channel).names() == RelayLogIndex(channel).files()
    purge_applied(channel, RelayLogPosition("relay-bin.000003", 4))
    assert RelayLogIndex(channel).files() == ["relay-bin.000003"]


@pytest.mark.parametrize("point", PURGE_POINTS)
def test_killed_while_purging_everything_comes_back_whole_or_not_at_all(channel: Channel, point: str) -> None:
    source = write_three_logs(channel)
    assert run_killed(channel, "purge-all", point)
    result = recover(channel)
    if point == "crash_before_purge_logs":
        assert transactions_in(channel) == source.ends
    else:
        assert RelayLogIndex(channel).files() == RelayLogIndex(channel).names() == []
        assert result.next_event == MASTER.read_position
    purge_all(channel)
    assert RelayLogIndex(channel).files() == []


@pytest.mark.parametrize("point", ["crash_recovery_before_truncate", "crash_recovery_after_truncate", *PURGE_POINTS])
def test_killed_while_recovering(channel: Channel, point: str) -> None:
    """A torn tail and a lost log at once; recovery is killed, then runs again."""
    source = write_three_logs(channel)
    if point.startswith("crash_recovery"):
        os.truncate(channel.datadir / "relay-bin.000003", (channel.datadir / "relay-bin.000003").stat().st_size - 9)
        expected = source.ends[4]
    else:
        shutil.copy(channel.datadir / "relay-bin.000003", channel.datadir / "relay-bin.000004")
        (channel.datadir / "relay-bin.000002").unlink()
        expected = source.ends[1]
    info = executed(source.ends[0])
    assert run_killed(channel, "recover", point, str(source.ends[0]))
    result = recover(channel, info)
    assert result.next_event == expected
    assert applied_after_refetch(channel, source, result, info) == source.ends[1:]
