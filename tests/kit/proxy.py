"""A TCP proxy between two real programs: it cuts, resets, freezes or crumbles a connection where a test says."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

HOST: Final = "127.0.0.1"
Trigger = Callable[[bytes], bool]


def dump_request(data: bytes) -> bool:
    """COM_BINLOG_DUMP or COM_BINLOG_DUMP_GTID, which a replica sends as a packet of its own."""
    return data[4:5] in (b"\x12", b"\x1e") and data[3:4] == b"\0"


@dataclass(frozen=True)
class Fate:
    """What becomes of one connection. Bytes of the answer are counted from the request that `begins` it."""

    cut_after: int = -1  # bytes of answer that still get through; -1 = all
    how: str = "fin"  # fin, rst, or hold: silence on an open connection
    begins: Trigger = dump_request
    request_arrives: bool = True  # False: cut before the server sees the request
    server_hears: bool = True  # False: to the server the connection stays open, as when a network falls apart
    piece: int = 1 << 16  # bytes forwarded at a time
    closes: bool = False  # with the cut, `open` is cleared


class Proxy:
    """`fates` are dealt to connections as they come, the last one's successors get `usual`."""

    def __init__(self, port: int, *, host: str = HOST, own_port: int = 0) -> None:
        self.server_port = port
        self.fates: deque[Fate] = deque()
        self.usual = Fate()
        self.accepted = 0
        self.dump_requests: list[bytes] = []
        self.hold_dumps = threading.Event()  # set: the second dump and later ones wait
        self.answered = 0  # bytes of counted answers
        self.hold_at = 0  # once so many have come, they wait until it is 0 again
        self.is_cut = threading.Event()  # some fate has come true
        self.cuts = 0
        self.lock = threading.Lock()
        self.open = threading.Event()  # cleared: new connections wait
        self.open.set()
        self.away = threading.Event()  # set: new connections end at once
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, own_port), family=family)
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> Proxy:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.open.set()
        self.hold_at = 0
        self.hold_dumps.clear()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut_all()
        for thread in self._threads:
            thread.join(180)
        for one in self._sockets:
            one.close()

    def cut_all(self) -> None:
        """End every connection, held ones too."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            self._start(self._serve, client, self.fates.popleft() if self.fates else self.usual)

    def _serve(self, client: socket.socket, fate: Fate) -> None:
        self._sockets.append(client)
        self.open.wait()
        try:
            if self.away.is_set():
                raise ConnectionRefusedError
            server = socket.create_connection((HOST, self.server_port), 10)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets.append(server)
        _Link(self, client, server, fate).run(self._start)


class _Link:
    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket, fate: Fate) -> None:
        self._proxy, self._client, self._server, self._fate = proxy, client, server, fate
        self._counting = False
        self._left = fate.cut_after
        self._ended = threading.Event()

    def run(self, start: Callable[..., None]) -> None:
        start(self._down)
        with contextlib.suppress(OSError):
            while data := self._client.recv(1 << 16):
                if dump_request(data):
                    self._note_dump(data[5:])
                if self._fate.cut_after >= 0 and self._fate.begins(data):
                    self._counting = True
                    if not self._fate.request_arrives:
                        self._end()
                        return
                if not self._ended.is_set():
                    self._server.sendall(data)
        if self._fate.server_hears or not self._ended.is_set():
            self._close(self._server)
        if self._fate.how == "rst" and self._ended.is_set():
            self._client.close()

    def _note_dump(self, request: bytes) -> None:
        self._proxy.dump_requests.append(request)
        while self._proxy.hold_dumps.is_set() and len(self._proxy.dump_requests) > 1:
            time.sleep(0.002)

    def _down(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._server.recv(self._fate.piece):
                if self._ended.is_set():
                    continue  # held: what comes is lost
                if self._counting:
                    data, self._left = data[: max(0, self._left)], self._left - len(data)
                    self._proxy.answered += len(data)
                    while 0 < self._proxy.hold_at <= self._proxy.answered:
                        time.sleep(0.002)
                self._forward(data)
                if self._counting and self._left <= 0:
                    self._end()
        if not self._ended.is_set():
            self._close(self._client)

    def _forward(self, data: bytes) -> None:
        for at in range(0, len(data), self._fate.piece):
            self._client.sendall(data[at : at + self._fate.piece])

    def _end(self) -> None:
        with self._proxy.lock:
            if self._ended.is_set():
                return
            self._ended.set()
            self._proxy.cuts += 1
        if self._fate.closes:
            self._proxy.open.clear()
        if self._fate.how == "rst":
            self._client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._client.shutdown(socket.SHUT_RD)  # wakes `run`, which closes it
        elif self._fate.how == "fin":
            self._close(self._client)
        self._proxy.is_cut.set()
        if self._fate.how != "hold" and self._fate.server_hears:
            self._close(self._server)

    @staticmethod
    def _close(one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
