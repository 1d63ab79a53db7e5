"""Recovery with a last relay log that is damaged anywhere in its header: our FORMAT_DESCRIPTION, our ROTATE, the
source's FORMAT_DESCRIPTION. What is fetched next continues exactly where the relay logs that stay end: every
transaction that is not applied is there once, whatever of the earlier logs is applied, by position and by GTID
(WL#4621 1, 10).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.channel import Channel
from rplctl.command.channel.change_options import MasterChanges
from rplctl.errors import RelayLogError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.jit import byte_view
from rplctl.event.scan import scan_events
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.recovery import recover_relay_log
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.reader import RelayLogReader
from tests.kit.channel_life import TRANSACTIONS, Archive, Life
from tests.relay_log.stream import SOURCE_UUID, FakeSource, contents, new_writer, read_everything, transactions_of

START = BinlogPosition("binlog.000001", 4)
MASTER = MasterInfo(host="h", master_log_name=START.log_name, flushed_relay_log_name="relay-bin.000003")
AT_FIRST = RelayLogInfo().at(RelayLogPosition("relay-bin.000001", 4), START)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    usable = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path
    folder = Path(tempfile.mkdtemp(prefix="rplctl-", dir=usable))
    yield folder
    shutil.rmtree(folder)


@dataclass
class Written:
    """Relay logs as receivers leave them, each begun by a connection of its own; two transactions in each."""

    channel: Channel
    source: FakeSource
    before: dict[str, bytes]
    begins: list[list[BinlogPosition]]  # the transactions' ends by relay log
    header: int  # bytes of the last log before its first transaction

    def restore(self) -> None:
        for path in self.channel.datadir.glob("relay-bin*"):
            path.unlink()
        for name, data in self.before.items():
            (self.channel.datadir / name).write_bytes(data)


def write(channel: Channel, earlier: int) -> Written:
    source, ends = FakeSource(), []
    for _ in range(earlier + 1):
        again = FakeSource(source.position)
        writer = new_writer(channel)
        writer.open_new(source.position)
        writer.append(again.begin(), 2)
        source.position, header = again.position, writer.end.log_pos
        begun = len(source.ends)
        for _ in range(2):
            writer.append(source.transaction(), 5)
        ends.append(source.ends[begun:])
        writer.close()
    return Written(channel, source, contents(channel), ends, header)


def fetch_again(written: Written, next_event: BinlogPosition, known: MysqlGtidSet | None, recovered: object) -> None:
    """What the receiver does: from there on, or by GTID what is not known, into the relay log that recovery names."""
    source, writer = written.source, new_writer(written.channel)
    again = FakeSource(next_event if known is None and next_event.log_name else START)
    again.sent = sum(1 for end in source.ends if not again.position.is_before(end))
    opening = again.begin()
    begins = recovered.continues_at if recovered.continues_at.log_name else START  # type: ignore[attr-defined]
    if recovered.needs_new_relay_log:  # type: ignore[attr-defined]
        writer.open_new(begins, recovered.format_description or None)  # type: ignore[attr-defined]
    else:
        writer.resume(recovered.relay_end)  # type: ignore[attr-defined]
    writer.append(opening, 2)
    while again.sent < len(source.ends):
        data = again.transaction()
        if known is None or not known.contains(str(SOURCE_UUID), again.sent):
            writer.append(data, 5)
        elif again.sent < len(source.ends):
            continue
    writer.close()


def damages(written: Written, step: int) -> Iterator[tuple[str, bytes]]:
    """(what, the last log's bytes): cut at every byte of the header, with all of its event's ends; a bit, zeros."""
    whole = written.before[RelayLogIndex(written.channel).names()[-1]]
    ends = {int(end) for end in scan_events(byte_view(whole), 4).offsets if end <= written.header}
    offsets = {at + shift for at in ends for shift in (-1, 0, 1)} | set(range(0, written.header + 1, step))
    for at in sorted(offset for offset in offsets if 0 <= offset <= written.header):
        yield f"cut at {at}", whole[:at]
        yield f"zeros from {at}", whole[:at] + bytes(len(whole) - at)
        if at < written.header:
            yield f"a bit at {at}", whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :]


def applied_states(written: Written) -> list[int]:
    count = len(written.source.ends) - 2
    return sorted({0, min(1, count), min(3, count), count})


@pytest.mark.long("tests/test_recovery.py::test_torn_at_every_byte stays in make test.")
@pytest.mark.parametrize("by_gtid", [False, True], ids=["by position", "by GTID"])
@pytest.mark.parametrize("earlier", [0, 1, 2])
@pytest.mark.parametrize("step", [pytest.param(29, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.torture)])
def test_a_header_damaged_anywhere_loses_and_repeats_nothing(
    memory: Path, earlier: int, by_gtid: bool, step: int
) -> None:
    written = write(Channel("", memory), earlier)
    master = replace(MASTER, enabled_auto_position=by_gtid)
    last = RelayLogIndex(written.channel).names()[-1]
    for what, data in damages(written, step):
        for applied in applied_states(written):
            written.restore()
            (memory / last).write_bytes(data)
            place = (
                written.source.ends[applied - 1] if applied else BinlogPosition("" if by_gtid else START.log_name, 4)
            )
            gtids = f"{SOURCE_UUID}:1-{applied}" if applied and by_gtid else ""
            info = replace(AT_FIRST.at(AT_FIRST.relay_log_position, place), gtid_executed=gtids)
            recovered = recover_relay_log(written.channel, master, info)
            known = None
            if by_gtid:
                known = MysqlGtidSet.parse(recovered.retrieved_gtid_set).union(MysqlGtidSet.parse(gtids))
            fetch_again(written, recovered.next_event, known, recovered)
            reader = RelayLogReader(written.channel, by_gtid=by_gtid)
            assert reader.open(info), (what, applied)
            found = transactions_of(read_everything(reader))
            assert found == written.source.ends[applied:], (what, applied)


@pytest.mark.long("tests/test_recovery.py::test_torn_at_every_byte cuts the last log everywhere.")
@pytest.mark.slow
@pytest.mark.parametrize("way", [{}, {"master_auto_position": True}], ids=["first log", "GTID"])
@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
def test_only_our_own_format_description_left_in_the_last_log(memory: Path, kind: str, way: dict[str, Any]) -> None:
    """The whole way through, in a table without a key: with the rest of the header, too."""
    (memory / "source").mkdir()
    archive = Archive(memory / "source")
    archive.fill()
    first = Life.begin(
        memory / "life",
        archive,
        MasterChanges(**way),
        master_info_repository=kind,
        relay_log_info_repository=kind,
    )
    for _ in range(3):
        first.receive(2)
    last = RelayLogIndex(first.channel).names()[-1]
    header = (memory / "life" / last).read_bytes()[: 1 << 10]
    ends = [4, *(int(end) for end in scan_events(byte_view(header[:400]), 4).offsets[1:4])]
    for number, (end, applied) in enumerate((end, applied) for end in ends for applied in (0, 1, 4)):
        life = first.fork(memory / f"copy-{number}")
        if applied:
            life.apply(applied)
        os.truncate(life.folder / last, end)
        life.go_on()
        assert life.numbers() == list(range(1, TRANSACTIONS + 1)), (end, applied)


MIDDLE: dict[str, Callable[[Path, list[str]], None]] = {
    "a flipped bit amid": lambda folder, names: flip(folder / names[1]),
    "a cut amid": lambda folder, names: os.truncate(folder / names[1], (folder / names[1]).stat().st_size - 50),
    "two that changed places": lambda folder, names: swap(folder / names[1], folder / names[2]),
    "the first two that changed places": lambda folder, names: swap(folder / names[0], folder / names[1]),
}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-100] ^= 4
    path.write_bytes(data)


def swap(one: Path, other: Path) -> None:
    contents = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(contents)


@pytest.mark.long("One kind of damage stays.", keeps=r"^FILE-(GTID|first log)-a cut amid$")
@pytest.mark.slow
@pytest.mark.parametrize("how", MIDDLE)
@pytest.mark.parametrize("way", [{}, {"master_auto_position": True}], ids=["first log", "GTID"])
@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
def test_damage_amid_the_relay_logs_is_mended_by_one_start(
    memory: Path, kind: str, way: dict[str, Any], how: str
) -> None:
    """Or, where nothing is applied and the first log is elsewhere, by the command that the error names."""
    (memory / "source").mkdir()
    archive = Archive(memory / "source")
    archive.fill()
    options = {"master_info_repository": kind, "relay_log_info_repository": kind}
    first = Life.begin(memory / "life", archive, MasterChanges(**way), **options)
    for _ in range(3):
        first.receive(2)
    for applied in (0, 1):
        life = first.fork(memory / f"copy-{applied}")
        if applied:
            life.apply(applied)
        MIDDLE[how](life.folder, RelayLogIndex(life.channel).names())
        try:
            life.go_on()
        except RelayLogError as told:
            assert how.startswith("the first two") and not applied
            assert told.hint.endswith(
                "run: rplctl change-master --master-log-file binlog.000001 --master-log-pos 4; rplctl start"
            )
            life.change(MasterChanges(master_log_file="binlog.000001", master_log_pos=4))
            life.go_on()
        assert life.numbers() == list(range(1, TRANSACTIONS + 1)), applied
