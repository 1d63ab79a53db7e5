"""A server that is none: speaks as much MySQL as a test wants it to, on a loopback port, in a thread.

`FakeServer` answers the questions a replica asks and then sends the dump it was given; subclasses are rogues. With
`tls` it offers to encrypt.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from typing import Self

OK = b"\x00\x00\x00\x02\x00\x00\x00"
END_OF_COLUMNS = b"\xfe\x00\x00\x02\x00"
SALT = b"abcdefgh" + b"ijklmnopqrst"
CAPABILITIES = 0x0008A205 | 0x00000008  # 4.1 protocol, secure connection, plugin authentication, connect with database
CLIENT_SSL = 0x800
COM_QUERY, COM_BINLOG_DUMP, COM_REGISTER_SLAVE, COM_BINLOG_DUMP_GTID = 0x03, 0x12, 0x15, 0x1E


class FakeServer:
    """Authenticates everybody. `dump` is sent raw in answer to the dump request, `piece` bytes at a time."""

    plugin = b"mysql_native_password"
    tls: ssl.SSLContext | None = None

    def __init__(self, dump: bytes = b"", version: str = "5.5.5-10.11.19-MariaDB-log", piece: int = 1 << 16) -> None:
        self.dump = dump
        self.piece = piece
        self.version = version
        self.answers = {
            "UNIX_TIMESTAMP": "1700000000",
            "server_id": "4711",
            "server_uuid": "3e11fa47-71ca-11e1-9e33-c80aa9429562",
            "@master_binlog_checksum": "CRC32",
            "gtid_mode": "ON",
        }
        self.received: list[bytes] = []  # payloads after the greeting
        self.keep_open = threading.Event()
        self.sequence = 2  # of our next packet while it signs in
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.keep_open.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(180)

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with client, contextlib.suppress(OSError, EOFError):
                self.talk(client)

    def talk(self, client: socket.socket) -> None:
        self.send(client, 0, self.greeting())
        _, response = self.read(client)
        self.received.append(response)
        if self.tls is not None and int.from_bytes(response[:4], "little") & CLIENT_SSL:
            with self.tls.wrap_socket(client, server_side=True) as client:
                _, response = self.read(client)
                self.received.append(response)
                self.sign_in_and_serve(client, 3)
        else:
            self.sign_in_and_serve(client, 2)

    def sign_in_and_serve(self, client: socket.socket, sequence: int) -> None:
        self.sequence = sequence
        self.authenticate(client)
        self.serve_commands(client)

    def authenticate(self, client: socket.socket) -> None:
        self.send(client, self.sequence, OK)

    def serve_commands(self, client: socket.socket) -> None:
        while True:
            _, payload = self.read(client)
            self.received.append(payload)
            if payload[0] in (COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID):
                for at in range(0, len(self.dump), self.piece):
                    client.sendall(self.dump[at : at + self.piece])
                self.keep_open.wait(0 if not self.dump else 0.3)
                return
            self.answer(client, payload)

    def answer(self, client: socket.socket, payload: bytes) -> None:
        text = payload[1:].decode("latin-1") if payload[0] == COM_QUERY else ""
        if not text.startswith("SELECT"):
            self.send(client, 1, OK)
            return
        value = next((value for key, value in self.answers.items() if key in text), None)
        column = b"\x03def" + b"\x00" * 3 + b"\x01c" + b"\x00" + b"\x0c\x2d\x00\xff\x00\x00\x00\xfd\x00\x00\x00\x00\x00"
        row = b"\xfb" if value is None else bytes([len(value)]) + value.encode()
        for sequence, packet in enumerate((b"\x01", column, END_OF_COLUMNS, row, END_OF_COLUMNS), 1):
            self.send(client, sequence, packet)

    def greeting(self) -> bytes:
        head = b"\x0a" + self.version.encode() + b"\0" + struct.pack("<I", 7) + SALT[:8] + b"\0"
        offered = CAPABILITIES | (CLIENT_SSL if self.tls is not None else 0)
        low, high = offered & 0xFFFF, offered >> 16
        middle = struct.pack("<HBHHB", low, 33, 2, high, len(SALT) + 1) + bytes(10)
        return head + middle + SALT[8:] + b"\0" + self.plugin + b"\0"

    @staticmethod
    def send(client: socket.socket, sequence: int, payload: bytes) -> None:
        client.sendall(len(payload).to_bytes(3, "little") + bytes([sequence & 0xFF]) + payload)

    @staticmethod
    def read(client: socket.socket) -> tuple[int, bytes]:
        header = _exactly(client, 4)
        return header[3], _exactly(client, int.from_bytes(header[:3], "little"))


def _exactly(client: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = client.recv(length - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def frame(events: list[bytes], first_sequence: int = 1) -> bytes:
    """Events as a dump sends them: each behind a 0x00, in packets of at most 16 MB."""
    return b"".join(_packets([b"\x00" + event for event in events], first_sequence))


def frame_error(number: int, text: str, sequence: int) -> bytes:
    return b"".join(_packets([b"\xff" + struct.pack("<H", number) + b"#HY000" + text.encode()], sequence))


def _packets(payloads: list[bytes], sequence: int) -> Iterator[bytes]:
    for payload in payloads:
        rest = payload
        while True:
            chunk, rest = rest[:0xFFFFFF], rest[0xFFFFFF:]
            yield len(chunk).to_bytes(3, "little") + bytes([sequence & 0xFF]) + chunk
            sequence += 1
            if len(chunk) < 0xFFFFFF:
                break
