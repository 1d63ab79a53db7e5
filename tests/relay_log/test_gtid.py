"""Retrieved_Gtid_Set is what complete transactions in the relay logs carry, and shrinks with a cut tail."""

from __future__ import annotations

from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.demo import BINLOG_FOLDER
from rplctl.event.gtid import MariadbGtidState
from rplctl.position import BinlogPosition
from rplctl.relay_log.gtid import retrieved_gtids
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.writer import RelayLogWriter


def test_only_complete_transactions_count(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    writer = RelayLogWriter(channel, Config(datadir=tmp_path), 1)
    writer.open_new(BinlogPosition("binlog.000001", 4))
    name = writer.end.log_name
    writer.close()
    with (tmp_path / name).open("ab") as file:
        file.write((BINLOG_FOLDER / "binlog.000001").read_bytes()[4:])
    index = RelayLogIndex(channel)
    size = (tmp_path / name).stat().st_size
    numbers = []
    for cut in range(size, size // 2, -997):
        state = MariadbGtidState.parse(retrieved_gtids(index, [name], cut))
        numbers.append(state.domains[0][1])
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > numbers[-1] > 0
