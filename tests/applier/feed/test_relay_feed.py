"""The feed: from the committed position on, patient with damage that the receiver heals, and not for ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.channel import Channel, hold_lock
from rplctl.config import Config
from rplctl.demo import BINLOG_FOLDER
from rplctl.durable import private_folder
from rplctl.errors import BinlogFormatError, RelayLogError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.log_file import cut_file
from rplctl.relay_log.origin import move_origin, note_origin
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.status import ThreadStatus

START = BinlogPosition("binlog.000001", 4)
LIMIT = 1 << 20


def relay_log(folder: Path, length: int) -> tuple[Channel, RelayLogInfo, Path]:
    """A relay log that holds the first `length` bytes of the demo's first binary log."""
    channel = Channel("", folder)
    writer = RelayLogWriter(channel, Config(datadir=folder), 1)
    writer.open_new(START)
    begin = writer.end
    writer.close()
    path = folder / begin.log_name
    with path.open("ab") as file:
        file.write((BINLOG_FOLDER / "binlog.000001").read_bytes()[4:length])
    return channel, RelayLogInfo().at(RelayLogPosition(begin.log_name, 4), START), path


def test_groups_follow_each_other_and_a_rewind_reads_them_again(tmp_path: Path) -> None:
    channel, info, _ = relay_log(tmp_path, 1 << 30)
    feed = RelayFeed(channel, 1.0)
    first, second = feed.next(info, 2_000), feed.next(info, 2_000)
    assert first is not None
    assert second is not None
    assert second.start == first.end
    feed.rewind()
    again = feed.next(info, 2_000)
    assert again is not None
    assert again.start == first.start


def test_an_unfinished_transaction_is_not_there_yet(tmp_path: Path) -> None:
    channel, info, path = relay_log(tmp_path, 40_000)
    feed = RelayFeed(channel, 1.0)
    groups = feed.next(info, LIMIT)
    assert groups is not None
    assert feed.next(info, LIMIT) is None
    with path.open("ab") as file:
        file.write((BINLOG_FOLDER / "binlog.000001").read_bytes()[40_000:])
    more = feed.next(info, LIMIT)
    assert more is not None
    assert more.start == groups.end


def test_damage_at_the_tail_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    channel, info, path = relay_log(tmp_path, 40_000)
    feed = RelayFeed(channel, 0.2)
    groups = feed.next(info, LIMIT)
    assert groups is not None
    content = path.read_bytes()
    path.write_bytes(content[: groups.end.log_pos] + bytes(4_000))
    assert feed.next(info, LIMIT) is None
    path.write_bytes(content[: groups.end.log_pos])
    info = info.at(groups.end, groups.end_source)
    assert feed.next(info, LIMIT) is None
    path.write_bytes(content[: groups.end.log_pos] + bytes(4_000))
    with pytest.raises(RelayLogError) as caught:
        for _ in range(1_000_000):
            feed.next(info, LIMIT)
    assert caught.value.errno == 1594
    assert caught.value.hint


def test_a_change_of_the_source_address_while_the_applier_runs_is_followed(tmp_path: Path) -> None:
    """The applier may have read MasterInfo just before CHANGE MASTER wrote it."""
    channel, info, _ = relay_log(tmp_path, 40_000)
    one, two = MasterInfo(host="one", port=3306), MasterInfo(host="two", port=3306)
    stored = [one]
    note_origin(channel, one, "")
    feed = RelayFeed(channel, 60.0, source_place=lambda: stored[-1].place)
    move_origin(channel, two)
    assert feed.next(info, LIMIT) is None, "MasterInfo still names the first source"
    stored.append(two)
    assert feed.next(info, LIMIT) is None, "the feed reads MasterInfo again after this error"
    assert feed.next(info, LIMIT) is not None


BROKEN = BinlogFormatError("Replication event checksum verification failed", errno=1743)


def test_what_cannot_be_decoded_is_read_again_as_recovery_left_it(tmp_path: Path) -> None:
    """A damaged transaction is complete: it was handed out before the receiver's recovery cut it off."""
    channel, info, path = relay_log(tmp_path, 1 << 30)
    feed = RelayFeed(channel, 60.0)
    first, second = feed.next(info, 2_000), feed.next(info, LIMIT)
    assert first is not None and second is not None
    committed = info.at(first.end, first.end_source)
    cut_file(path, first.end.log_pos)
    feed.damaged(committed, BROKEN)
    assert feed.next(committed, LIMIT) is None, "it is not there any more"


def test_damage_that_nobody_heals_is_an_error_when_it_comes_again(tmp_path: Path) -> None:
    channel, info, _ = relay_log(tmp_path, 1 << 30)
    feed = RelayFeed(channel, 60.0)
    feed.damaged(info, BROKEN)
    with pytest.raises(BinlogFormatError):
        feed.damaged(info, BROKEN)


def test_a_receiver_that_has_yet_to_connect_may_still_heal_it_but_not_for_ever(tmp_path: Path) -> None:
    channel, info, _ = relay_log(tmp_path, 1 << 30)
    private_folder(channel.run_folder)
    feed = RelayFeed(channel, 0.2)
    with hold_lock(channel, "receiver"):
        ThreadStatus(state="Connecting to master").write(channel.status_path("receiver"))
        feed.damaged(info, BROKEN)
        feed.damaged(info, BROKEN)
        time.sleep(0.25)
        with pytest.raises(BinlogFormatError):
            feed.damaged(info, BROKEN)
        later = info.at(info.relay_log_position, BinlogPosition("binlog.000001", 900))
        feed.damaged(later, BROKEN)  # another place: its own patience
        ThreadStatus(connected=True).write(channel.status_path("receiver"))
        with pytest.raises(BinlogFormatError):
            feed.damaged(later, BROKEN)
