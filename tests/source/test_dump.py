"""The dump: framing cut anywhere, large events, end and error packets, silence."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rplctl import receive_buffer as room
from rplctl.config import Config
from rplctl.errors import RelayLogError, SourceError
from rplctl.event.scan import Deframed, deframe
from rplctl.event.types import EventType
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.receiver.receiver import open_source
from rplctl.source import (
    DumpStart,
    EventBatch,
    ReplicaIdentity,
    SourceStream,
    dump as dump_module,
)
from rplctl.source.dump import end_of_dump
from tests.source.binlogs import event, statements
from tests.source.fake_server import COM_BINLOG_DUMP, FakeServer, frame, frame_error

pytestmark = pytest.mark.slow

REPLICA = ReplicaIdentity(77, "00000000-0000-0000-0000-000000000077")


def dump_of(server: FakeServer, net_timeout: int = 5, folder: Path = Path("/nowhere")) -> SourceStream:
    info = MasterInfo(host="127.0.0.1", port=server.port, user_name="rpl")
    config = Config(folder, replica_net_timeout=net_timeout)
    return open_source(info, "", DumpStart(BinlogPosition("bin.000001", 4)), REPLICA, config)


def read_until_error(stream: SourceStream) -> tuple[list[bytes], SourceError]:
    events: list[bytes] = []
    try:
        while True:
            batch = stream.read_batch(0.5)
            events += [batch.event(i) for i in range(len(batch))] if batch is not None else []
    except SourceError as error:
        return events, error
    finally:
        stream.close()


@pytest.mark.long("One cut of the stream stays.", keeps=r"^3$")
@pytest.mark.parametrize("piece", [1, 3, 61, 1 << 16])
def test_events_come_out_whole_however_the_stream_is_cut(piece: int) -> None:
    events = statements(5, start=4)
    with FakeServer(frame(events), piece=piece) as server:
        seen, error = read_until_error(dump_of(server))
    assert seen == events
    assert error.errno == 2013 and error.transient


@pytest.mark.parametrize("in_memory", [True, False])
def test_an_event_of_many_packets_is_put_together(
    in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.setattr(room, "MOST_IN_MEMORY", dump_module.BUFFER_BYTES)
        monkeypatch.setattr(room, "STEP_BYTES", 5 << 20)
    large = event(EventType.ROWS_QUERY, bytes(range(256)) * (160 << 10), 0)  # 40 MB
    exact = event(EventType.ROWS_QUERY, bytes(0xFFFFFF - 1 - 23), 0)  # one full packet, then an empty one
    events = [*statements(1, start=4), large, exact, *statements(1, start=4, first=2)]
    with FakeServer(frame(events), piece=1 << 20) as server:
        seen, _ = read_until_error(dump_of(server, folder=tmp_path))
    assert [len(e) for e in seen] == [len(e) for e in events]
    assert seen == events
    assert not list(tmp_path.iterdir())


def test_a_disk_without_room_for_a_large_event_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found out before a byte is written to the mapped file: that would end the process."""

    def full(_descriptor: int, offset: int, _length: int) -> None:
        if offset:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(room, "MOST_IN_MEMORY", dump_module.BUFFER_BYTES)
    monkeypatch.setattr(room, "STEP_BYTES", 5 << 20)
    monkeypatch.setattr(os, "posix_fallocate", full)
    large = event(EventType.ROWS_QUERY, bytes(12 << 20), 0)
    with FakeServer(frame([large]), piece=1 << 20) as server:
        stream = dump_of(server, folder=tmp_path)
        with pytest.raises(RelayLogError, match="No space left on device") as raised:
            while True:
                stream.read_batch(0.5)
        stream.close()
    assert raised.value.errno == 1595 and raised.value.transient and str(tmp_path) in raised.value.message


@pytest.mark.slow
def test_the_stream_may_be_cut_at_every_seventh_byte() -> None:
    events = statements(2, start=4)
    stream = frame(events)
    ends = [sum(map(len, events[:n])) + 5 * n for n in range(len(events) + 1)]
    with FakeServer() as server:
        for cut in range(1, len(stream), 7):
            server.dump = stream[:cut]
            server.keep_open.set()
            seen, error = read_until_error(dump_of(server))
            assert seen == events[: sum(end <= cut for end in ends) - 1]
            assert error.transient


def test_events_before_an_error_packet_are_handed_out_first() -> None:
    events = statements(1, start=4)
    purged = "Could not find first log file name in binary log index file"
    with FakeServer(frame(events) + frame_error(1236, purged, len(events) + 1)) as server:
        seen, error = read_until_error(dump_of(server))
    assert seen == events
    assert error.errno == 1236 and not error.transient
    assert error.message == f"Got fatal error 1236 from master when reading data from binary log: '{purged}'"
    assert "clone --replace" in error.hint


@pytest.mark.parametrize(
    "text",
    [
        "Error: connecting slave requested to start from GTID 0-1-99, which is not in the master's binlog",
        "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may indicate that the end",
    ],
)
def test_who_has_applied_what_the_source_lacks_is_told_what_to_do(text: str) -> None:
    error = end_of_dump(b"\xff\xd4\x04" + text.encode())
    assert (error.errno, error.transient) == (1236, False) and f"'{text}'" in error.message
    assert "rplctl change-master --master-host HOST" in error.hint


def test_packets_out_of_order_and_lying_lengths_end_the_connection() -> None:
    good = statements(1, start=4)[0]
    lying = good[:9] + (len(good) + 1).to_bytes(4, "little") + good[13:]
    for dump in (frame([good], first_sequence=5), frame([lying]), b"\x05\x00\x00\x01\x77abcd"):
        with FakeServer(dump) as server:
            seen, error = read_until_error(dump_of(server))
        assert seen == [] and error.errno == 1835


def test_silence_longer_than_the_net_timeout_is_a_lost_connection() -> None:
    class Silent(FakeServer):
        def serve_commands(self, client: object) -> None:
            super().serve_commands(client)  # type: ignore[arg-type]
            self.keep_open.wait(120)

    with Silent(frame(statements(1, start=4))) as server:
        seen, error = read_until_error(dump_of(server, net_timeout=1))
    assert len(seen) == 2 and "nothing received for 1 seconds" in error.message


class InHalves(FakeServer):
    """The second half of the dump comes when it is told so."""

    def __init__(self, dump: bytes) -> None:
        super().__init__(dump)
        self.goes_on = threading.Event()

    def serve_commands(self, client: socket.socket) -> None:
        while (payload := self.read(client)[1])[0] != COM_BINLOG_DUMP:
            self.answer(client, payload)
        half = len(self.dump) // 2
        client.sendall(self.dump[:half])
        self.goes_on.wait(120)
        client.sendall(self.dump[half:])
        self.keep_open.wait(120)


def test_a_busy_moment_is_not_taken_for_silence_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled, or the machine is: what came meanwhile waits in the socket."""
    events = statements(1, start=4)[:1]
    with InHalves(frame(events)) as server:

        def slow(*arguments: Any, **options: Any) -> Deframed:
            monkeypatch.setattr(dump_module, "deframe", deframe)
            server.goes_on.set()
            time.sleep(1.1)
            return deframe(*arguments, **options)

        monkeypatch.setattr(dump_module, "deframe", slow)
        stream = dump_of(server, net_timeout=1)
        batch = stream.read_batch(60)
        assert batch is not None and batch.event(0) == events[0]
        stream.close()


def test_a_timeout_without_events_gives_none_and_loses_nothing() -> None:
    events = statements(1, start=4)[:1]
    with InHalves(frame(events)) as server:
        stream = dump_of(server)
        assert stream.read_batch(0.05) is None
        server.goes_on.set()
        batch: EventBatch | None = None
        while batch is None:
            batch = stream.read_batch(0.2)
        assert batch.event(0) == events[0]
        stream.close()


@pytest.mark.parametrize(
    ("payload", "number", "transient"),
    [
        (b"\xfe\x00\x00\x02\x00", 2013, True),
        (b"\xff" + (1317).to_bytes(2, "little") + b"#70100Query execution was interrupted", 1317, True),
        (b"\xff" + (1236).to_bytes(2, "little") + b"#HY000no", 1236, False),
        (b"\xff" + (1153).to_bytes(2, "little") + b"#08S01Got a packet bigger", 1153, False),
        (b"\xff" + (1227).to_bytes(2, "little"), 1227, True),
    ],
)
def test_which_endings_are_final(payload: bytes, number: int, transient: bool) -> None:
    error = end_of_dump(payload)
    assert (error.errno, error.transient) == (number, transient)
