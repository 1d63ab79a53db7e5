"""What a server may take of our memory and time before a session stands, source and target alike.

Each rogue does one thing for ever: it sends no end, one byte at a time, or announces more than anyone has.
"""

from __future__ import annotations

import re
import socket
import time
import tomllib
import tracemalloc
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from pymysql.connections import Connection
from pymysql.err import OperationalError

from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.source import DumpStart, ReplicaIdentity, survey as source_survey
from rplctl.source.connection import connect
from rplctl.sql_text import written
from rplctl.target import mapped_errors, open_engine
from rplctl.target.mysql import connection as mysql_connection
from rplctl.target.mysql.security import connection_options
from tests.source.fake_server import OK, FakeServer

PATIENCE_S = 0.5
COLUMN = b"\x03def" + b"\x00" * 3 + b"\x01c" + b"\x00" + b"\x0c\x2d\x00\xff\x00\x00\x00\xfd\x00\x00\x00\x00\x00"


class Greedy(FakeServer):
    """`where` it begins: instead of the greeting, while it signs in, or in answer to the first question."""

    def __init__(self, where: str, how: Callable[[socket.socket, int], None]) -> None:
        super().__init__()
        self._where, self._how = where, how

    def talk(self, client: socket.socket) -> None:
        if self._where == "greeting":
            self._how(client, 0)
        super().talk(client)

    def authenticate(self, client: socket.socket) -> None:
        if self._where == "sign-in":
            self._how(client, self.sequence)
        super().authenticate(client)

    def answer(self, client: socket.socket, payload: bytes) -> None:
        if self._where == "statement" or (self._where == "rows" and payload[1:].startswith(b"SELECT")):
            self._how(client, 1)
        super().answer(client, payload)


def endless_packet(client: socket.socket, sequence: int) -> None:
    """Full packets, each continued by the next."""
    full = bytes(0xFFFFFF)
    while True:
        client.sendall(b"\xff\xff\xff" + bytes([sequence & 0xFF]) + full)
        sequence += 1


def slow_drip(client: socket.socket, sequence: int) -> None:
    """Always something within any timeout for silence, never all of it."""
    client.sendall((1000).to_bytes(3, "little") + bytes([sequence]))
    while True:
        client.sendall(b"x")
        time.sleep(0.05)


def endless_rows(client: socket.socket, sequence: int) -> None:
    rows = [b"\x01", COLUMN, b"\xfe\x00\x00\x02\x00"]
    while True:
        data = b""
        for row in rows:
            data += len(row).to_bytes(3, "little") + bytes([sequence & 0xFF]) + row
            sequence += 1
        client.sendall(data)
        rows = [b"\x01x"] * 1000


def endless_notes(client: socket.socket, sequence: int) -> None:
    """More to say about the sign-in, each time."""
    while True:
        FakeServer.send(client, sequence, b"\x01\x03")
        sequence += 1


def silence(_: socket.socket, __: int) -> None:
    time.sleep(3 * PATIENCE_S)


CASES = [
    *[(where, endless_packet) for where in ("greeting", "sign-in", "statement", "rows")],
    *[(where, slow_drip) for where in ("greeting", "sign-in", "statement", "rows")],
    *[(where, silence) for where in ("greeting", "sign-in", "statement", "rows")],
    ("rows", endless_rows),
    ("sign-in", endless_notes),
]


def source(port: int) -> None:
    info = MasterInfo(host="127.0.0.1", port=port, user_name="rpl")
    start = DumpStart(BinlogPosition("bin.000001", 4))
    replica = ReplicaIdentity(77, "00000000-0000-0000-0000-000000000077")
    connect(info, "pw", start, replica, Config(Path("/nowhere"), replica_net_timeout=PATIENCE_S)).close()  # type: ignore[arg-type]


def survey(port: int) -> None:
    info = MasterInfo(host="127.0.0.1", port=port, user_name="rpl")
    config = Config(Path("/nowhere"), replica_net_timeout=PATIENCE_S)  # type: ignore[arg-type]
    with source_survey.survey(info, "pw", config) as query:
        query(written("SELECT @@version"))


def target(port: int) -> None:
    engine = open_engine(f"mysql://rpl:pw@127.0.0.1:{port}/")
    try:
        with mapped_errors("mysql"), engine.connect():
            pass
    finally:
        engine.dispose()


@pytest.mark.long("One silence and the floods of a source stay.", keeps=r"^source-(greeting-silence|\S+-endless_\w+)$")
@pytest.mark.slow
@pytest.mark.parametrize(("where", "how"), CASES, ids=[f"{where}-{how.__name__}" for where, how in CASES])
@pytest.mark.parametrize("visit", [source, survey, target])
def test_no_answer_takes_more_memory_or_time_than_allowed(
    monkeypatch: pytest.MonkeyPatch,
    visit: Callable[[int], None],
    where: str,
    how: Callable[[socket.socket, int], None],
) -> None:
    monkeypatch.setattr(mysql_connection, "SIGN_IN_S", PATIENCE_S)
    monkeypatch.setattr(source_survey, "PATIENCE", 1)
    monkeypatch.setattr(source_survey, "MOST_BYTES", 4 << 20)
    with Greedy(where, how) as server:
        tracemalloc.start()
        began = time.monotonic()
        try:
            with pytest.raises(RplError) as caught:
                visit(server.port)
            taken, peak = time.monotonic() - began, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert caught.value.errno in (2013, 2020, 2061), caught.value
    assert peak < 96 << 20  # the rogue's own 16 MB packets are in this process too
    assert taken < 20 * PATIENCE_S  # one allowance for the sign-in, one for each of a few statements; slow machines


def test_a_target_may_take_its_time_once_it_is_signed_in_but_not_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(FakeServer):
        asked = 0

        def answer(self, client: socket.socket, payload: bytes) -> None:
            if b"SLEEP" in payload:
                time.sleep(2 * PATIENCE_S)
                self.send(client, 1, OK)
            elif b"ENDLESS" in payload:
                endless_rows(client, 1)
            else:
                super().answer(client, payload)

    server = Late()
    server.answers["max_allowed_packet"] = "16777216"
    monkeypatch.setattr(mysql_connection, "SIGN_IN_S", 20 * PATIENCE_S)
    monkeypatch.setattr(mysql_connection, "SILENCE_S", PATIENCE_S)
    monkeypatch.setattr(mysql_connection, "MOST_BYTES", 1 << 20)
    engine = open_engine("mysql://rpl:pw@127.0.0.1:1/")
    with server:
        options = {**engine.dialect.create_connect_args(engine.url)[1], "port": server.port}
        raw = mysql_connection.connect(options, connection_options(engine.url)[0])
        with raw.cursor() as cursor:
            cursor.execute(written("DO SLEEP(1)"))
            with pytest.raises(OperationalError, match="exceeds the limit"):
                cursor.execute(written("SELECT ENDLESS"))


def test_the_driver_is_the_one_minor_version_whose_private_names_are_used() -> None:
    """1.1 connected without TLS unless told to; 1.2 tries TLS by itself and tells passwords through it: a range that
    lets such a change in is no range.
    """
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (wanted,) = [line for line in project["dependencies"] if line.startswith("pymysql")]
    low, high = re.findall(r"[<>]=?(\d+)\.(\d+)", wanted)
    assert (int(high[0]), int(high[1])) == (int(low[0]), int(low[1]) + 1)
    assert version("pymysql").split(".")[:2] == list(low)
    used = ("_read_bytes", "_read_packet", "_process_auth", "_get_auth_plugin_handler", "_get_server_information")
    missing = [name for name in used if not callable(getattr(Connection, name, None))]
    assert missing == []
