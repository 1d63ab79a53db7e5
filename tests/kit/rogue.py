"""A rogue source: a real server behind a proxy that rewrites cells of the result sets of chosen queries."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

HOST = "127.0.0.1"
COM_QUERY = 3
Cells = list[bytes | None]


@dataclass
class Lie:
    """Of a query that `query` is found in, cells that `cell` fits become `answer`."""

    query: str
    cell: str
    answer: str
    told: int = field(default=0, compare=False)

    def rewrite(self, cells: Cells) -> Cells:
        return [self._rewritten(cell) for cell in cells]

    def _rewritten(self, cell: bytes | None) -> bytes | None:
        if cell is None or not re.fullmatch(self.cell.encode(), cell, re.DOTALL):
            return cell
        self.told += 1
        return re.sub(self.cell.encode(), self.answer.encode(), cell, count=1, flags=re.DOTALL)


class RogueSource:
    """`lies` may be changed at any time; `port` is where it listens. `damage`: bytes of rows that a prepared statement
    brings, and what they become.
    """

    def __init__(self, server_port: int) -> None:
        self.server_port, self.lies = server_port, list[Lie]()
        self.damage: tuple[bytes, bytes] | None = None
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> RogueSource:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
        for one in self._sockets:
            one.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((HOST, self.server_port), 10)
                server.settimeout(None)
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets += [client, server]
                asked = [""]
                self._start(self._up, client, server, asked)
                self._start(self._down, client, server, asked)

    def _up(self, client: socket.socket, server: socket.socket, asked: list[str]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                sequence, payload = _read(client)
                if sequence == 0:
                    asked[0] = payload[1:].decode("latin-1") if payload[0] == COM_QUERY else ""
                server.sendall(_packet(sequence, payload))
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _down(self, client: socket.socket, server: socket.socket, asked: list[str]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                sequence, payload = _read(server)
                if self.damage and not asked[0]:
                    payload = payload.replace(*self.damage)
                for lie in self.lies if asked[0] else ():
                    if lie.query in asked[0] and (cells := _cells(payload)) is not None:
                        payload = _row(lie.rewrite(cells))
                client.sendall(_packet(sequence, payload))
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def _cells(payload: bytes) -> Cells | None:
    """None for what is no row of texts."""
    found: Cells = []
    at = 0
    while at < len(payload):
        first = payload[at]
        at += 1
        if first == 0xFB:
            found.append(None)
            continue
        width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
        length = int.from_bytes(payload[at : at + width], "little") if width else first
        at += width + length
        if first == 0xFF or at > len(payload):
            return None
        found.append(payload[at - length : at])
    return found


def _row(cells: Cells) -> bytes:
    return b"".join(b"\xfb" if cell is None else _length(len(cell)) + cell for cell in cells)


def _length(length: int) -> bytes:
    return bytes([length]) if length < 0xFB else b"\xfd" + length.to_bytes(3, "little")


def _packet(sequence: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload) | sequence << 24) + payload


def _read(link: socket.socket) -> tuple[int, bytes]:
    (head,) = struct.unpack("<I", _exactly(link, 4))
    return head >> 24, _exactly(link, head & 0xFFFFFF)


def _exactly(link: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = link.recv(length - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
