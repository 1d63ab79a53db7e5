"""The recorded logs of real servers, received in odd pieces, rotated in mid-stream, cut, recovered and read back."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import parse_header
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.recovery import recover_relay_log
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import artificial_rotate
from rplctl.relay_log.reader import RelayLogReader
from tests.relay_log.stream import executed, new_writer, read_everything, transactions_of

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data" / "binlog"
CASES = ["ma1011-sysbench-mix-small", "ma1011-torture-mixed", "ma1011-torture-statement", "my97-sysbench-mix-small"]
CASES += ["my97-torture-mixed", "my97-torture-nogtid"]
SMALL = ("ma1011-torture-mixed", "my97-torture-nogtid")


def bounds(case: str) -> list[BinlogPosition]:
    """End of every transaction as another program found it."""
    lines = lzma.decompress((DATA / f"{case}.bounds.xz").read_bytes()).decode().splitlines()
    return [BinlogPosition("binlog.000001", int(line.split("\t")[0])) for line in lines]


def receive(channel: Channel, case: str, expected: list[BinlogPosition], piece: int) -> bytes:
    raw = lzma.decompress((DATA / f"{case}.xz").read_bytes())
    first = raw[4 : 4 + parse_header(raw, 4).event_length]
    start = BinlogPosition(expected[0].log_name, 4)
    algorithm = parse_format_description(first).checksum_algorithm
    writer = new_writer(channel, max_relay_log_size=100_000, sync_relay_log=0)
    writer.open_new(start, checksum_algorithm=algorithm)
    writer.append(artificial_rotate(1, start, algorithm), 1)
    for at in range(4, len(raw), piece):
        writer.append(raw[at : min(at + piece, len(raw))], 1)
        if writer.should_rotate:
            writer.rotate()
    writer.close()
    return raw


@pytest.mark.parametrize("case", CASES)
def test_every_transaction_of_a_real_log_comes_back_in_order(channel: Channel, case: str) -> None:
    expected = bounds(case)
    receive(channel, case, expected, piece=7919)
    reader = RelayLogReader(channel)
    assert reader.open(RelayLogInfo())
    assert transactions_of(read_everything(reader, 20_000)) == expected
    for position in expected[:: max(1, len(expected) // 10)]:
        assert reader.open(executed(position))
        assert reader.source_position == position


@pytest.mark.long("tests/receiver/test_network.py cuts a live one after its bytes.")
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case in SMALL else pytest.mark.slow) for case in CASES]
)
def test_a_real_log_cut_anywhere_keeps_what_is_whole(channel: Channel, case: str) -> None:
    expected = bounds(case)
    receive(channel, case, expected, piece=65_536)
    last = RelayLogIndex(channel).path(RelayLogIndex(channel).names()[-1])
    whole = last.read_bytes()
    for size in range(400, len(whole), max(1, len(whole) // 150)):
        last.write_bytes(whole[:size])
        result = recover_relay_log(channel, MasterInfo(), RelayLogInfo())
        reader = RelayLogReader(channel, verify_checksums=False)
        assert reader.open(RelayLogInfo())
        found = transactions_of(read_everything(reader))
        assert found == expected[: len(found)]
        assert not found or not result.next_event.is_before(found[-1])
        assert not any(position == result.next_event for position in expected[len(found) :])
