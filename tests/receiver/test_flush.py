"""MasterInfo's write triggers (WL#2775 REQ-3), counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import sync_count
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.receiver.flush import MasterInfoFlusher
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.repository import open_master_info
from tests.receiver.running import _no_engine
from tests.source.binlogs import statements

AT = BinlogPosition("bin.000001", 500)


@pytest.mark.parametrize(("period", "syncs"), [(0, 0), (1, 10), (4, 2), (10, 1), (10_000, 0)])
def test_a_file_is_written_for_every_event_and_synced_by_the_period(tmp_path: Path, period: int, syncs: int) -> None:
    config, channel = Config(tmp_path, sync_master_info=period), Channel("", tmp_path)
    repository = open_master_info(config, channel, _no_engine)
    writer = RelayLogWriter(channel, config, 77)
    writer.open_new(BinlogPosition("bin.000001", 4))
    flusher = MasterInfoFlusher(repository, MasterInfo(host="h"))
    before = sync_count["master.info"]
    for number in range(10):
        position = BinlogPosition("bin.000001", 100 + number)
        flusher.after_events(position, writer, 1)
        assert repository.read().read_position == position
    assert sync_count["master.info"] - before == syncs


def test_a_forced_flush_follows_the_relay_log_it_describes(tmp_path: Path) -> None:
    config, channel = Config(tmp_path, sync_relay_log=0, sync_master_info=0), Channel("", tmp_path)
    repository = open_master_info(config, channel, _no_engine)
    writer = RelayLogWriter(channel, config, 77)
    writer.open_new(BinlogPosition("bin.000001", 4))
    writer.append(b"".join(statements(1, start=4)), 2)
    before = sync_count.copy()
    MasterInfoFlusher(repository, MasterInfo(host="h")).force(AT, writer)
    assert sync_count["relay-bin.000001"] - before["relay-bin.000001"] == 1
    assert sync_count["master.info"] - before["master.info"] == 1
    stored = repository.read()
    assert stored.read_position == AT
    assert (stored.flushed_relay_log_name, stored.flushed_relay_log_pos) == (writer.end.log_name, writer.end.log_pos)
