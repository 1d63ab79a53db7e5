"""The feed: from the committed position on, patient with damage that the receiver heals, and not for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.applier.relay_feed import RelayFeed
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.demo import BINLOG_FOLDER
from rplctl.errors import RelayLogError
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.writer import RelayLogWriter

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
