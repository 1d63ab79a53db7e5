"""Reads the dump of a live server: one request, then raw events until the server or rplctl ends the stream.

PyMySQL signs in. From the request of the dump on, this module reads the socket into one large buffer. A kernel removes
the packet headers of all events in the buffer at once, without Python code for each event. The buffer then belongs to
the batch that is returned. An event that is too large for memory is collected in a file (receive_buffer.py).
Invariants: the buffer begins with the start of a packet, and bytes that are not received yet need no memory. The
connection counts as lost if the source sends nothing, not even a heartbeat, for `replica_net_timeout` seconds.
"""

from __future__ import annotations

import select
import ssl
import time
from typing import Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.errors import BinlogFormatError, SourceError
from rplctl.event.scan import Deframed, PacketEnd, deframe
from rplctl.handshake import LONGEST_WAIT_S
from rplctl.info import MasterInfo
from rplctl.receive_buffer import Room
from rplctl.source import flavor
from rplctl.source.base import (
    COPY_AGAIN,
    DumpStart,
    EventBatch,
    ReplicaIdentity,
    SourceIdentity,
    fatal_reading_binlog,
    lost_connection,
)
from rplctl.source.connection import ServerConnection, connect

BUFFER_BYTES: Final = 4 << 20
MAX_BUFFER_BYTES: Final = (1 << 30) + (1 << 20)  # one event of slave_max_allowed_packet bytes, with packet headers
_FULL_PACKET: Final = 0xFFFFFF
_EVENT_LENGTH_AT: Final = 4 + 1 + 9  # in the buffer: packet header, the byte 0x00, first 9 bytes of the event header


class LiveStream:
    """A `SourceStream` that requests a dump on a connection, and reads its events."""

    def __init__(
        self, connection: ServerConnection, start: DumpStart, replica: ReplicaIdentity, config: Config
    ) -> None:
        self._connection = connection
        self._net_timeout_s = config.replica_net_timeout
        self._folder = config.datadir
        self._room = Room(BUFFER_BYTES, self._folder)
        self._filled = 0
        self._needed = 0  # `deframe` finds no event if the buffer has fewer bytes than this
        self._sequence = 1
        self._closed = ""  # the reason why no more bytes will arrive; events that have arrived are still returned
        command, payload = flavor.dump_request(start, connection.identity.is_mariadb, replica)
        connection.send_command(command, payload)
        self._socket = connection.socket
        self._socket.setblocking(False)
        self._last_byte = time.monotonic()

    def identity(self) -> SourceIdentity:
        return self._connection.identity

    def close(self) -> None:
        self._connection.close()

    def read_batch(self, timeout_s: float) -> EventBatch | None:
        deadline = time.monotonic() + timeout_s
        while True:
            last_byte = self._last_byte
            if not self._closed:
                self._receive(deadline)
            if self._filled > max(self._needed - 1, 0):
                batch = self._deframe()
                if batch is not None:
                    return batch
            if self._closed:
                raise lost_connection(self._closed)
            now = time.monotonic()
            # This check comes after an attempt to receive, because bytes may have arrived while the caller was busy.
            if self._last_byte == last_byte and now - last_byte > self._net_timeout_s:
                raise lost_connection(f"nothing received for {self._net_timeout_s} seconds")
            if now >= deadline:
                return None

    def _deframe(self) -> EventBatch | None:
        try:
            found = deframe(self._room.buffer, self._filled, self._sequence, in_place=True)
        except BinlogFormatError as error:
            raise SourceError(
                f"Malformed packet from master: {error.message}", errno=er.MALFORMED_PACKET, transient=True
            ) from error
        left = self._filled - found.consumed
        if found.consumed:  # this part of the buffer now belongs to the batch
            self._move(max(BUFFER_BYTES, left), found.consumed)
        self._filled, self._needed, self._sequence = left, found.needed, found.sequence
        if len(found.offsets) > 1:
            if found.end is not PacketEnd.NONE:
                self._put_back(found)
            return EventBatch(found.events, found.offsets)
        if found.end is not PacketEnd.NONE:
            raise end_of_dump(found.end_payload)
        return None

    def _put_back(self, found: Deframed) -> None:
        """Write the packet that ends the dump into the buffer again, because the events before it are returned first.

        The next call of `read_batch` reads this packet.
        """
        packet = len(found.end_payload).to_bytes(3, "little") + bytes([(found.sequence - 1) & 0xFF]) + found.end_payload
        self._room.buffer[: len(packet)] = np.frombuffer(packet, np.uint8)
        self._filled, self._needed, self._sequence = len(packet), 0, (found.sequence - 1) & 0xFF

    def _receive(self, deadline: float) -> None:
        """Wait for bytes until the deadline (time.monotonic()), then read available bytes until the buffer is full."""
        if self._needed > len(self._room.buffer) or self._filled == len(self._room.buffer):
            self._grow()
        wait = True
        while self._filled < len(self._room.buffer):
            self._room.extend(self._filled + 1)
            try:
                count = self._socket.recv_into(self._room.buffer[self._filled : self._room.usable].data)
            except (BlockingIOError, ssl.SSLWantReadError):
                if not wait or not self._readable(deadline):
                    return
                continue
            except (OSError, ValueError) as error:
                self._closed = str(error)
                return
            if count == 0:
                self._closed = "the source closed the connection"
                return
            self._filled += count
            self._last_byte = time.monotonic()
            wait = self._filled < self._needed

    def _readable(self, deadline: float) -> bool:
        timeout = max(0.0, deadline - time.monotonic())
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(min(timeout, LONGEST_WAIT_S) * 1000))

    def _grow(self) -> None:
        """Double the size of the buffer, or make it as large as its first event if the event is larger.

        A large buffer is cheap, because unused pages need no memory. Raises SourceError if the event is larger than
        MAX_BUFFER_BYTES.
        """
        buffer = self._room.buffer
        event_length = int.from_bytes(buffer[_EVENT_LENGTH_AT : _EVENT_LENGTH_AT + 4].tobytes(), "little")
        length_prefixed = event_length + 1 + 4 * (event_length // _FULL_PACKET + 2)
        size = min(max(2 * len(buffer), length_prefixed), MAX_BUFFER_BYTES)
        if size == len(buffer):
            raise SourceError(
                f"Got a packet bigger than 'slave_max_allowed_packet' ({MAX_BUFFER_BYTES} bytes)",
                errno=er.NET_PACKET_TOO_LARGE,
                hint="to copy all tables again without this event (the copy replaces all their rows in the target), "
                f"run: {COPY_AGAIN}",
            )
        self._move(size, 0)

    def _move(self, size: int, begin: int) -> None:
        """Move the received bytes from the offset `begin` on to the start of a new buffer of this size."""
        rest = self._room.buffer[begin : self._filled]
        room = Room(size, self._folder)
        room.extend(len(rest))
        room.buffer[: len(rest)] = rest
        self._room = room


def open_stream(
    info: MasterInfo, password: str, start: DumpStart, replica: ReplicaIdentity, config: Config
) -> LiveStream:
    """Connect to the source, and request all events from `start` on.

    Raises SourceError if the source does not answer or rejects the request, and ConfigError if a TLS file is not
    usable.
    """
    connection = connect(info, password, start, replica, config)
    try:
        return LiveStream(connection, start, replica, config)
    except BaseException:
        connection.close()
        raise


def end_of_dump(payload: bytes) -> SourceError:
    """Return the error for the packet with which the source ends a dump.

    The receiver stops after error 1236, as in MySQL. It also stops after error 4052 (another replica has the same
    server id) and error 1153 (an event is too large). After any other packet, it reconnects.
    """
    if payload[0] != PacketEnd.ERROR:
        return lost_connection("the source ended the dump: it shuts down, or the dump thread was killed")
    number = int.from_bytes(payload[1:3], "little")
    text = payload[3:].decode("utf-8", "replace")
    if text.startswith("#") and len(text) >= 6:
        text = text[6:]
    if number == er.MASTER_FATAL_ERROR_READING_BINLOG:
        return fatal_reading_binlog(text, hint=_hint(text))
    if number in (er.NET_PACKET_TOO_LARGE, er.SLAVE_SAME_ID):
        # A new connection would fail at the same event. Or it would end the dump of the other replica, which would then
        # connect and end this dump.
        return SourceError(f"Got fatal error {number} from master: '{text}'", errno=number, hint=_hint(text))
    return SourceError(
        f"Error reading packet from server: {text} (server_errno={number})", errno=number, transient=True
    )


def _hint(text: str) -> str:
    lowered = text.lower()
    if "not in the master's binlog" in lowered or "more gtids than the" in lowered:
        return (
            "to use another source, which has the channel's GTIDs, run: rplctl change-master --master-host HOST; "
            "rplctl start\n"
            "To copy all tables again from this source, which replaces all their rows in the target, run: "
            f"{COPY_AGAIN}"
        )
    if "purged" in lowered or "could not find first log" in lowered or "gtid state" in lowered:
        return f"to copy all tables again, which replaces all their rows in the target, run: {COPY_AGAIN}"
    if "same server_uuid/server_id" in lowered or "same server_id" in lowered:
        return (
            "to give this instance another id than that of the other replica (init changes only this setting), run: "
            "rplctl init --server-id 4711; rplctl start"
        )
    if "position" in lowered:
        return (
            "to begin at a position of this source, run: rplctl change-master --master-log-file FILE --master-log-pos "
            "POSITION; rplctl start"
        )
    return ""
