"""Damaged packets and statements end a connection or one statement: never the server, and never a sign-in.

The seed is in the message of a failure: `SEED=… FUZZ_SECONDS=… make torture` runs the same clients again.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pymysql
import pytest

from rplctl.command.user import add_user
from rplctl.config import load_config
from tests.front.test_front import PASSWORD, datadir
from tests.kit.dba_statements import OF_MARIADB, OF_MYSQL, SHARED
from tests.kit.private_server import free_port, release_port
from tests.kit.process_memory import unshared_bytes
from tests.kit.replica import wait_until

__all__ = ["datadir"]

CLIENTS = 4
GROWTH = 400 << 20  # bytes that the process may have more than after its first clients: each may get a large answer
LEAK = 100 << 20  # bytes that it may have more at the end than after half of the time
BEFORE_SIGN_IN = {b"\xff", b"\xfe", b"\x01"}  # an error, another plugin, more for the plugin
WORDS = [
    "'",
    '"',
    "`",
    "(",
    ")",
    ",",
    ";",
    "--",
    "/*",
    "*/",
    "@",
    "@@",
    "\\",
    "\0",
    "NULL",
    "é",
    "😀",
    "0x",
    "-1",
    "FROM",
]
EXTREMES = [b"", b"\0", b"\xff", b"\xfb", b"\xfc\xff\xff", b"\xfd\xff\xff\xff", b"\xfe" + b"\xff" * 8, b"\x7f", b"\x80"]


@contextmanager
def serving(datadir: Path, flavor: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """The port and the process of a server. Its process is its own, because its memory and its end are observed."""
    port = free_port()
    program = [sys.executable, "-m", "rplctl", "--datadir", os.fspath(datadir), "serve", "--listen", ""]
    with (
        (datadir.parent / "serve.err").open("wb") as errors,
        subprocess.Popen([*program, "--mysql", f"127.0.0.1:{port}", "--mysql-flavor", flavor], stderr=errors) as server,
    ):
        try:
            wait_until(lambda: is_open(port) or server.poll() is not None, 120)
            yield port, server
        finally:
            if server.poll() is None:
                server.send_signal(signal.SIGTERM)
            release_port(port)


def is_open(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(
            5.0, marks=pytest.mark.long("tests/front/test_front.py::test_a_reader_changes_nothing stays in make test.")
        ),
        pytest.param(float(os.environ.get("FUZZ_SECONDS") or 300), marks=pytest.mark.torture),
    ],
    ids=["short", "torture"],
)
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_damaged_packets_end_neither_the_server_nor_its_order(datadir: Path, flavor: str, seconds: float) -> None:
    config = load_config(datadir, "")
    add_user(config, "chain", "replication", PASSWORD, native=True)
    seed = os.environ.get("SEED", "47")
    with serving(datadir, flavor) as (port, server):
        for number in range(20):
            unsigned(port, Random(f"{seed} {flavor} warm {number}"))
            signed(port, Random(f"{seed} {flavor} warm {number}"))
        before, end = unshared_bytes([server.pid]), time.monotonic() + seconds
        found: list[str] = []

        def client(who: int) -> None:
            number = 0
            while time.monotonic() < end and not found:
                number += 1
                name = f"{seed} {flavor} {who} {number}"
                random = Random(name)
                try:
                    (unsigned if random.random() < 0.5 else signed)(port, random)
                except Exception as error:  # noqa: BLE001 - the failure of the test
                    found.append(f"{name}: {error!r}")

        clients = [threading.Thread(target=client, args=(who,)) for who in range(CLIENTS)]
        for each in clients:
            each.start()
        time.sleep(seconds / 2)
        half = unshared_bytes([server.pid])
        for each in clients:
            each.join()
        assert not found
        assert server.poll() is None, f"seed {seed}: the server ended with {server.returncode}"
        wait_until(lambda: answers(port))
        log = datadir / "run" / "front.log"
        assert not log.exists(), f"seed {seed}: {log.read_text()}"
        after = unshared_bytes([server.pid])
        assert after - before < GROWTH and after - half < LEAK, f"seed {seed}: {before}, {half}, {after} bytes"
    assert (datadir.parent / "serve.err").read_text().count("Traceback") == 0


def answers(port: int) -> bool:
    with suppress(pymysql.MySQLError), closing(connected(port, "old")) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return bool(cursor.fetchall() == ((1,),))
    return False


def connected(port: int, user: str) -> Any:
    return pymysql.connect(
        host="127.0.0.1", port=port, user=user, password=PASSWORD, autocommit=True, read_timeout=20, write_timeout=20
    )


def unsigned(port: int, random: Random) -> None:
    """Talk without a password. Only errors and questions of the sign-in may come back."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        if received(client)[:1] not in (b"\x0a", b"\xff"):
            return
        for sequence in range(1, random.randrange(2, 6)):
            body = sign_in_packet(random) if random.random() < 0.7 else random.randbytes(random.randrange(300))
            body = damaged(body, random)
            head = len(body).to_bytes(3, "little") if random.random() < 0.9 else random.randbytes(3)
            client.sendall(head + bytes((sequence if random.random() < 0.9 else random.randrange(256),)) + body)
            if random.random() < 0.3:
                continue  # without a look at the answer, as a client that ignores its refusal
            client.settimeout(0.2)
            if (answer := received(client)) and (answer[:1] not in BEFORE_SIGN_IN or answer == b"\x01\x03"):
                raise AssertionError(f"an answer before the sign-in: {answer[:80]!r} to {body[:200]!r}")


def sign_in_packet(random: Random) -> bytes:
    flags = random.choice([0x8A209, 0x3BA68D, 0x0FA685, 0x200, random.getrandbits(32)])
    name = random.choice([b"old", b"dba", b"chain", b"monitor", b"nobody", b"", b"x" * 100])
    plugin = random.choice([b"mysql_native_password", b"caching_sha2_password", b"mysql_clear_password", b""])
    answer = random.randbytes(random.choice([0, 1, 20, 32, 255]))
    body = struct.pack("<IIB23x", flags, 1 << 24, random.choice([45, 8, 33, 63, 255, 0, 1]))
    return body + name + b"\0" + bytes((len(answer),)) + answer + b"mysql\0" + plugin + b"\0"


def damaged(body: bytes, random: Random) -> bytes:
    """Some bytes are changed, removed or inserted, in most cases."""
    changed = bytearray(body)
    for _ in range(random.choice([0, 1, 1, 2, 5])):
        at = random.randrange(len(changed) + 1)
        changed[at : at + random.choice([0, 1, 1, 4])] = random.choice([*EXTREMES, random.randbytes(3)])
    return bytes(changed)


def received(client: socket.socket) -> bytes:
    """One packet, b'' if none comes."""
    with suppress(OSError):
        head = client.recv(4, socket.MSG_WAITALL)
        return client.recv(int.from_bytes(head[:3], "little"), socket.MSG_WAITALL) if len(head) == 4 else b""
    return b""


def signed(port: int, random: Random) -> None:
    """Send damaged statements and commands after a sign-in: each has an answer, or the connection ends."""
    try:
        connection = connected(port, random.choice(["old", "old", "chain"]))
    except pymysql.MySQLError:
        return  # too many connections
    with closing(connection), suppress(pymysql.MySQLError, OSError, struct.error, IndexError, ValueError):
        for _ in range(random.randrange(1, 12)):
            command, body = request(random)
            connection._execute_command(command, body)
            if command in (24, 25):
                continue  # without an answer
            connection._sock.settimeout(1.0 if command in (18, 30) else 30.0)
            with suppress(pymysql.err.ProgrammingError, pymysql.err.InternalError, pymysql.err.NotSupportedError):
                connection._read_query_result() if command == 3 else connection._read_packet()
            if command not in (3, 14, 31):
                return  # the rest of the answer is not read
    with suppress(Exception):
        connection._force_close()


def request(random: Random) -> tuple[int, bytes]:
    if random.random() < 0.6:
        return 3, statement(random)
    command = random.choice([2, 9, 12, 14, 17, 18, 21, 22, 23, 24, 25, 26, 27, 30, 31, random.randrange(4, 256)])
    if command == 22:
        return command, statement(random)
    if command in (23, 24):
        return command, damaged(struct.pack("<IBI", random.randrange(3), 0, 1) + random.randbytes(20), random)
    if command in (18, 21, 30):
        return command, damaged(struct.pack("<IHI", 4, 1, 99) + b"binlog.000001", random)
    return command, random.randbytes(random.randrange(60))


def statement(random: Random) -> bytes:
    """A statement of DBAs that does not wait, with other words in some places."""
    words = random.choice([*SHARED, *OF_MYSQL, *OF_MARIADB]).split(" ")
    for _ in range(random.choice([0, 1, 1, 2, 4])):
        at = random.randrange(len(words) + 1)
        words[at : at + random.choice([0, 1, 1])] = [random.choice([*WORDS, str(random.getrandbits(70)), "x" * 500])]
    text = " ".join(words)
    if "WAIT" in text.upper() or "SLEEP" in text.upper():
        return b"SELECT 1"
    data = text.encode("utf-8", "replace")
    return damaged(data, random) if random.random() < 0.3 else data
