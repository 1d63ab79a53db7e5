"""Every byte of a handshake and of a stream's first events, changed: the receiver goes on, or ends with a typed error
that says why in the status (issue G 21). It never ends without a reason.
"""

from __future__ import annotations

import itertools
import random
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import RplError, SourceError
from rplctl.event.events import build_rotate
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.receiver.pull import Pull
from rplctl.receiver.reporter import Reporter
from rplctl.repository import open_master_info
from rplctl.source import DumpStart, EventBatch, ReplicaIdentity, SourceIdentity
from rplctl.source.connection import connect
from rplctl.status import read_status
from tests.receiver.running import RunningReceiver, _no_engine
from tests.receiver.test_pull import NOTHING_YET
from tests.source.binlogs import FIRST_EVENT, SERVER_ID, description, event, mariadb_gtid, statements
from tests.source.fake_server import FakeServer, frame

pytestmark = pytest.mark.slow

REPLICA = ReplicaIdentity(77, "00000000-0000-0000-0000-000000000077")
VALUES = (0x00, 0x7F, 0xFF)


class _Changed(FakeServer):
    at, value = 0, 0

    def greeting(self) -> bytes:
        data = bytearray(super().greeting())
        data[self.at] = self.value
        return bytes(data)


def test_each_byte_of_the_greeting_may_be_anything() -> None:
    seen = set()
    info = MasterInfo(host="127.0.0.1", user_name="rpl")
    start = DumpStart(BinlogPosition("bin.000001", 4))
    with _Changed() as server:
        info = replace(info, port=server.port)
        for at, value in itertools.product(range(len(FakeServer.greeting(server))), VALUES):
            server.at, server.value = at, value
            try:
                connect(info, "pw", start, REPLICA, Config(Path("/nowhere"), replica_net_timeout=2)).close()
                seen.add("connected")
            except SourceError as error:
                assert error.errno > 0 and error.message.startswith(
                    ("error connecting to master", "cannot read the answer of the source: it is version")
                )
                seen.add("refused")
    assert seen == {"connected", "refused"}


def first_events() -> list[bytes]:
    made = description()
    return [
        build_rotate(SERVER_ID, "bin.000001", 4),
        made,
        *statements(1, start=FIRST_EVENT),
        mariadb_gtid(3, 5, 0),
        event(16, bytes(8), 0),
        event(27, b"bin.000001", 0),
        event(4, (4).to_bytes(8, "little") + b"bin.000002", 0),
    ]


def changed(events: list[bytes], which: int, at: int, value: int) -> bytes:
    """All of them, one byte changed; its checksum fits, as a server's that lies would."""
    data = bytearray(events[which])
    data[at] = value
    if at < len(data) - 4:
        data[-4:] = zlib.crc32(data[:-4]).to_bytes(4, "little")
    return b"".join([*events[:which], bytes(data), *events[which + 1 :]])


def pulled(folder: Path, events: list[bytes], data: bytes) -> RplError | None:
    """What the receiver makes of a stream whose frames are right and whose events are not."""
    config, channel = Config(folder, server_id=77), Channel("", folder)
    (folder / "run").mkdir(parents=True, exist_ok=True)
    pull = Pull(config, channel, REPLICA, Reporter(channel))
    repository = open_master_info(config, channel, _no_engine)
    pull.begin(
        MasterInfo(host="h"),
        repository,
        SourceIdentity(server_id=1, uuid="s", version="8", is_mariadb=False, clock_difference=0.0),
        NOTHING_YET,
        resume=False,
    )
    offsets = np.cumsum([0, *map(len, events)])

    class Stream:
        def read_batch(self, _: float) -> EventBatch:
            return EventBatch(np.frombuffer(data, np.uint8).copy(), offsets)

    stream: Any = Stream()
    try:
        pull.step(stream, 0.0)
    except RplError as error:
        assert error.message
        return error
    finally:
        pull.finish(flush=False)
    return None


@pytest.mark.long("Two of eight parts of the bytes stay.", keeps=r"^[05]$")
@pytest.mark.parametrize("which", range(len(first_events())))
def test_each_byte_of_the_first_events_may_be_anything(tmp_path: Path, which: int) -> None:
    events = first_events()
    random.seed(which)
    refused = 0
    for at in range(len(events[which])):
        value = random.choice([value for value in VALUES if value != events[which][at]])
        refused += pulled(tmp_path / str(at), events, changed(events, which, at, value)) is not None
    assert refused < len(events[which])  # some bytes mean nothing, or another thing that is as good


def test_a_log_name_that_is_no_utf8_is_a_typed_error(tmp_path: Path) -> None:
    name = event(4, (4).to_bytes(8, "little") + b"bin\xff\xfe.000001", 0, flags=0x20)
    with (
        FakeServer(frame([name])) as server,
        RunningReceiver(tmp_path, host="127.0.0.1", port=server.port) as receiver,
    ):
        error = receiver.wait_for_error()
    assert isinstance(error, SourceError) and "invalid binary log name" in error.message
    assert receiver.status().last_errno and "invalid binary log name" in receiver.status().last_error


@pytest.mark.parametrize("version", [b"\xff5.5", b"10.11.\xff-MariaDB", b"\xff" * 40])
def test_a_server_version_of_foreign_bytes_is_borne_or_refused_in_words(tmp_path: Path, version: bytes) -> None:
    class Foreign(FakeServer):
        def greeting(self) -> bytes:
            return super().greeting().replace(self.version.encode(), version)

    made = description(version="8.0.40")
    made = made[:21] + version.ljust(50, b"\0") + made[71:-4]
    made += zlib.crc32(made).to_bytes(4, "little")
    dump = frame([build_rotate(SERVER_ID, "bin.000001", 4), made, *statements(1, start=FIRST_EVENT)])
    with (
        Foreign(dump) as server,
        RunningReceiver(tmp_path, host="127.0.0.1", port=server.port, retry_count=1) as receiver,
    ):
        error = receiver.wait_for_error()
    assert receiver.status().last_errno == (error.errno or 1593)
    assert receiver.status().last_error.startswith(error.message)


def test_an_error_that_nobody_foresaw_tells_where_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("nobody\x1b[31m\nforesaw this")

    monkeypatch.setattr("rplctl.receiver.pull.verify_events", fails)
    dump = frame([build_rotate(SERVER_ID, "bin.000001", 4), description()])
    with (
        FakeServer(dump) as server,
        RunningReceiver(tmp_path, host="127.0.0.1", port=server.port) as running,
    ):
        error = running.wait_for_error()
    assert isinstance(error.__cause__, ZeroDivisionError) and error.errno == 1593 and error.channel == ""
    status = read_status(Channel("", tmp_path).status_path("receiver"))
    assert "failed unexpectedly" in status.last_error and "ZeroDivisionError" in status.last_error
    assert "receiver.log" in status.last_hint and status.last_errno == 1593 and status.last_error_timestamp > 0
