"""One connection's batches into the relay log, and the source position behind them (queue_event)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import sync_count
from rplctl.errors import SourceError
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver.pull import MasterInfoFlusher, Pull
from rplctl.receiver.reporter import Reporter
from rplctl.recovery import RecoveryResult
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import out_of_order
from rplctl.relay_log.log_file import artificial_rotate
from rplctl.relay_log.writer import FULL_STEPS, RelayLogWriter
from rplctl.repository import open_master_info
from rplctl.repository.base import InfoRepository
from rplctl.source import EventBatch, ReplicaIdentity, SourceIdentity
from tests.receiver.running import _no_engine, log_events
from tests.relay_log.stream import FakeSource
from tests.source.binlogs import statements

pytestmark = pytest.mark.slow

REPLICA = ReplicaIdentity(77, "r")
SOURCE = SourceIdentity(server_id=1, uuid="s", version="8.0.40", is_mariadb=False, clock_difference=0.0)
NOTHING_YET = RecoveryResult(
    next_event=BinlogPosition("", 4),
    relay_end=RelayLogPosition("", 0),
    needs_new_relay_log=True,
    format_description=b"",
    truncated_bytes=0,
    removed_relay_logs=(),
    retrieved_gtid_set="",
    is_index_repaired=False,
    notes=(),
)


@dataclass
class Sent:
    """A stream of ready batches; nothing when they are used up."""

    batches: list[bytes] = field(default_factory=list)

    def read_batch(self, timeout_s: float) -> EventBatch | None:
        if not self.batches:
            return None
        data = np.frombuffer(self.batches.pop(0), np.uint8)
        return EventBatch(data, scan_events(data, 0).offsets)


@dataclass
class Connection:
    pull: Pull
    channel: Channel
    master_info: InfoRepository[MasterInfo]

    def take(self, *batches: bytes) -> None:
        stream: Any = Sent(list(batches))
        while stream.batches:
            self.pull.step(stream, 0.0)

    @property
    def names(self) -> list[str]:
        return RelayLogIndex(self.channel).names()

    def relayed(self) -> list[bytes]:
        return log_events([self.channel.datadir / name for name in self.names])


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    opened: list[Pull] = []

    def connect(info: MasterInfo | None = None, **options: Any) -> Connection:
        config, channel = Config(tmp_path, **options), Channel("", tmp_path)
        channel.run_folder.mkdir(parents=True, exist_ok=True)
        repository = open_master_info(config, channel, _no_engine)
        pull = Pull(config, channel, REPLICA, Reporter(channel))
        pull.begin(info or MasterInfo(host="h"), repository, SOURCE, NOTHING_YET, resume=False)
        opened.append(pull)
        return Connection(pull, channel, repository)

    yield connect
    for pull in opened:
        pull.finish(flush=False)


def test_what_is_sent_is_in_the_relay_log_byte_for_byte_and_the_record_follows(make: Any) -> None:
    link, source = make(), FakeSource()
    begun = source.begin()
    sent = [source.transaction() for _ in range(5)]
    link.take(begun, b"".join(sent[:3]), *sent[3:])
    assert b"".join(link.relayed()) == b"".join(sent)
    stored = link.master_info.read()
    assert stored.read_position == source.position
    assert (stored.uuid, stored.master_server_id) == ("s", 1)  # the wrong-server guard's memory
    assert link.pull.transactions > 0  # the connection has worked: a lost one is tried again at once


def test_a_batch_cut_inside_a_transaction_is_position_for_position_the_same(make: Any) -> None:
    link, source = make(), FakeSource()
    link.take(source.begin())
    whole = source.transaction(rows=3)
    events = scan_events(np.frombuffer(whole, np.uint8), 0).offsets.tolist()
    for start, end in itertools.pairwise(events):
        link.take(whole[start:end])
    assert b"".join(link.relayed()) == whole
    assert link.master_info.read().read_position == source.position


@pytest.mark.long("Three sizes stay in make test.", keeps=r"^(?=.*1).*[^4-9]$")
@pytest.mark.parametrize("seed", range(12))
def test_no_relay_log_outgrows_its_limit_by_more_than_a_transaction_however_large_the_batches(
    make: Any, seed: int
) -> None:
    """A batch is up to megabytes; the last transaction that a file began is ended in it, or moves to the next one."""
    chance = random.Random(seed)
    limit = chance.choice((4096, 8192, 20_000))
    link, source = make(max_relay_log_size=limit), FakeSource()
    begun = source.begin()
    sent = [source.transaction(chance.randint(1, 3), chance.choice((1, 10, 300))) for _ in range(120)]
    whole = b"".join(sent)
    first = chance.choice((len(whole), len(whole) // 2))
    cut = max(int(at) for at in scan_events(np.frombuffer(whole, np.uint8), 0).offsets if at <= first)
    link.take(begun, *filter(None, (whole[:cut], whole[cut:])))
    assert b"".join(link.relayed()) == whole
    sizes = [(link.channel.datadir / name).stat().st_size for name in link.names]
    assert max(sizes) <= limit + limit // FULL_STEPS + 1.25 * max(map(len, sent)) + 500
    assert len(sizes) >= len(whole) // (2 * limit)
    assert link.master_info.read().read_position == source.position
    assert out_of_order(RelayLogIndex(link.channel), link.names, by_gtid=True) == ""


@pytest.mark.parametrize("control", ["rotate", "description"])
def test_a_stream_that_does_not_begin_as_a_dump_does_is_refused_and_leaves_no_relay_log(
    make: Any, control: str
) -> None:
    link, source = make(), FakeSource()
    rotate = artificial_rotate(1, source.position, 1)
    begun = source.begin()
    wrong = rotate + source.transaction() if control == "rotate" else begun[len(rotate) :]
    with pytest.raises(SourceError, match="FORMAT_DESCRIPTION") as caught:
        link.take(wrong)
    assert caught.value.errno == 1595
    assert link.names == []


def test_a_heartbeat_ahead_of_us_is_written_down_so_that_the_applier_gets_past_left_out_events(make: Any) -> None:
    link, source = make(), FakeSource()
    link.take(source.begin(), source.transaction())
    size = (link.channel.datadir / link.names[0]).stat().st_size
    heartbeat = source.event(EventType.HEARTBEAT, b"binlog.000001")
    link.take(heartbeat)
    data = np.fromfile(link.channel.datadir / link.names[0], np.uint8)
    added = scan_events(data, size)
    assert added.type_codes.tolist() == [EventType.ROTATE]  # artificial: no event of the source
    assert link.master_info.read().read_position == source.position
    again = (link.channel.datadir / link.names[0]).stat().st_size
    link.take(heartbeat)  # the same position again
    assert (link.channel.datadir / link.names[0]).stat().st_size == again


def test_our_own_transactions_are_left_out_and_the_position_goes_past_them(make: Any) -> None:
    link, source = make(MasterInfo(host="h", ignored_server_ids=(1,))), FakeSource()
    link.take(source.begin(), source.transaction(), source.transaction())
    assert [event[4] for event in link.relayed()] == [EventType.GTID, EventType.XID] * 2  # empty transactions
    assert link.master_info.read().read_position == source.position


def test_a_dropped_transaction_without_a_gtid_leaves_only_its_position(make: Any) -> None:
    """Also one that ends with a statement: the source may be silent for long after it."""
    link, source = make(MasterInfo(host="h", ignored_server_ids=(1,))), FakeSource()
    link.take(source.begin(), source.query("CREATE TABLE t (a INT)"))
    (channel_log,) = link.names
    data = np.fromfile(link.channel.datadir / channel_log, np.uint8)
    assert scan_events(data, 4).type_codes.tolist()[-1] == EventType.ROTATE and link.relayed() == []


def test_a_new_relay_log_begins_at_a_transaction_end_and_nothing_is_lost_between(make: Any) -> None:
    link, source = make(max_relay_log_size=4096), FakeSource()
    begun, sent = source.begin(), [source.transaction(images=50) for _ in range(40)]
    link.take(begun, *sent)
    assert len(link.names) > 2
    assert b"".join(link.relayed()) == b"".join(sent)
    for name in link.names[:-1]:
        assert log_events([link.channel.datadir / name])[-1][4] == EventType.XID


def test_the_sources_next_log_moves_the_position_to_it(make: Any) -> None:
    link, source = make(), FakeSource()
    begun, first, turn = source.begin(), source.transaction(), source.rotate("binlog.000002")
    link.take(begun, first, turn, second := source.transaction())
    assert link.master_info.read().read_position == source.position
    assert source.position.log_name == "binlog.000002"
    assert b"".join(link.relayed()) == first + second


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
