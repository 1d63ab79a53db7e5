"""Sends the binary log to a replica, one log file after the other, with heartbeats while there are no events.

For each file, it sends an artificial ROTATE event, the FORMAT_DESCRIPTION event and the other events. A kernel converts
the events of a chunk to packets. An event that is larger than a chunk is read and sent in several parts. The docstring
of the package has the invariants.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from rplctl.applied_log.purge import kept_from_purge
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.events import build_rotate
from rplctl.event.format_description import CHECKSUM_CRC32, CHECKSUM_OFF, resent
from rplctl.event.header import CHECKSUM_LENGTH, HEADER_LENGTH, EventHeader, build_header
from rplctl.event.jit import byte_view
from rplctl.event.packets import as_packets
from rplctl.event.scan import event_offsets
from rplctl.event.types import EventType
from rplctl.front import wire
from rplctl.front.dump.request import DumpRequest
from rplctl.front.dump.sendable import CHUNK, POLL_S, LogStart, SendableLog
from rplctl.front.dump.skip import Skip
from rplctl.front.dump.until import DumpEnd
from rplctl.front.wire import WHOLE, ClientConnection, Closed
from rplctl.plain_file import closing_descriptor, open_plain
from rplctl.position import FIRST_EVENT_POSITION
from rplctl.relay_log.index import RelayLogIndex

PATIENCE_S: Final = 60.0  # a replica that accepts no byte for this time is disconnected (net_write_timeout)
_LARGEST_HEARTBEAT_POSITION: Final = 0xFFFFFFFF


class Stream:
    """One dump: it sends the events that the replica lacks, and then waits for new events.

    `server_id`: the server id of this instance.
    """

    def __init__(self, link: ClientConnection, log: SendableLog, request: DumpRequest, server_id: int) -> None:
        self._link, self._log, self._request, self._server_id = link, log, request, server_id
        self._sent_at = time.monotonic()
        self._has_checksums = request.has_checksums  # of the events that are sent now; `_begin` sets it for each log
        self._skip: Skip | None = None
        self._until: DumpEnd | None = None

    def run(self, name: str, offset: int) -> None:
        """Send the events from the offset in the log file `name` on, and then the later log files.

        Returns only if the client has requested an end of the dump: at the end of the logs, or at its UNTIL. Otherwise,
        the dump continues until Closed, RplError or OSError is raised.
        """
        while name:
            with self._reading(name) as descriptor:
                start = self._log.start(name)
                self._begin(name, offset, start)
                offset = max(offset, start.first_end)
                if self._is_at_end(offset):
                    break
                following = self._send_log(descriptor, name, offset, strips=self._strips(start))
            name, offset = following, FIRST_EVENT_POSITION
        self._link.send(wire.eof())

    @contextmanager
    def _reading(self, name: str) -> Iterator[int]:
        """Open the log file for the block, protect the file from being purged, and yield its descriptor.

        Raises RplError 1236 if the file is already purged, or is damaged.
        """
        path = RelayLogIndex(self._log.files).path(name)
        with kept_from_purge(self._log.files, name):
            self._log.look(name)
            with closing_descriptor(open_plain(path, follow=False)) as descriptor:
                yield descriptor

    def _strips(self, start: LogStart) -> bool:
        return bool(start.description.checksum_length) and not self._request.has_checksums

    def _begin(self, name: str, offset: int, start: LogStart) -> None:
        if self._skip is None:
            self._skip = Skip(self._request, start)
            self._until = DumpEnd(self._request, start.executed) if self._request.until is not None else None
        self._skip.next_log(start.description)
        algorithm = CHECKSUM_CRC32 if self._has_checksums else CHECKSUM_OFF
        event = resent(start.event, in_place=offset == FIRST_EVENT_POSITION)
        if self._strips(start):
            event = append_checksum(event[: -CHECKSUM_LENGTH - 1] + bytes([CHECKSUM_OFF]))
        self._has_checksums = bool(start.description.checksum_length) and self._request.has_checksums
        rotate = build_rotate(self._server_id, name, offset, algorithm)
        self._link.send(b"\0" + rotate, b"\0" + event, patience_s=PATIENCE_S)
        self._sent_at = time.monotonic()

    def _send_log(self, descriptor: int, name: str, offset: int, *, strips: bool) -> str:
        """Send the events of one log file from the offset on, and wait for new events at its end.

        `strips`: True to remove the checksums. Return the name of the next log file, or '' if the dump ends.
        """
        while True:
            found = self._log.look(name)
            while offset < found.end:
                offset = self._send_some(descriptor, offset, found.end, strips=strips)
                if self._is_at_end(offset):
                    return ""
                self._heartbeat_if_due(name, offset)
            if found.following:
                return found.following
            if self._request.ends:
                return ""
            self._wait()
            self._heartbeat_if_due(name, offset)

    def _send_some(self, descriptor: int, offset: int, end: int, *, strips: bool) -> int:
        """Send the events in the next chunk of the log file, or one larger event. Return the offset after them."""
        assert self._skip is not None
        data = byte_view(os.pread(descriptor, min(CHUNK, end - offset), offset))
        offsets, types = event_offsets(data)
        if not len(types):
            return self._send_large(descriptor, offset, data[:HEADER_LENGTH].tobytes(), strips=strips)
        kept = self._skip.kept(data, offsets, types)
        end = int(offsets[-1])
        if self._until is not None:
            may, after = self._until.sent(data, offsets, types)
            kept &= may
            end = end if after is None else int(offsets[after])
        if kept.any():
            starts, lengths = offsets[:-1][kept], np.diff(offsets)[kept]
            packets, self._link.sequence = as_packets(data, starts, lengths, self._link.sequence, strips=strips)
            self._write(packets.data)
        return offset + end

    def _is_at_end(self, offset: int) -> bool:
        """True if the dump has reached its UNTIL. The replica then also gets the event that stops its threads."""
        if self._until is None or not self._until.is_at_end:
            return False
        event = self._until.event(self._server_id, offset, checksum=self._has_checksums)
        self._link.send(b"\0" + event, patience_s=PATIENCE_S)
        return True

    def _send_large(self, descriptor: int, offset: int, header: bytes, *, strips: bool) -> int:
        """Send one event that is larger than a chunk in several parts, or skip it. Return the offset after the event.

        `header`: the header of the event.
        """
        assert self._skip is not None
        length = int.from_bytes(header[9:13], "little")
        if self._skip.is_skipped(header[4]) or (self._until is not None and self._until.is_skipped):
            return offset + length
        size = length - CHECKSUM_LENGTH * strips
        left, at = 1 + size, offset + HEADER_LENGTH
        before = b"\0" + header[:9] + size.to_bytes(4, "little") + header[13:]
        while True:
            packet = min(left, WHOLE)
            head = packet.to_bytes(3, "little") + bytes((self._link.sequence,)) + before
            self._link.sequence = (self._link.sequence + 1) & 0xFF
            rest, before, left = packet - len(before), b"", left - packet
            self._write(memoryview(head))
            while rest:
                piece = os.pread(descriptor, min(CHUNK, rest), at)
                if not piece:
                    raise Closed
                self._write(memoryview(piece))
                rest, at = rest - len(piece), at + len(piece)
            if packet < WHOLE:
                return offset + length

    def _write(self, data: memoryview) -> None:
        self._link.write(data, PATIENCE_S)
        self._sent_at = time.monotonic()

    def _wait(self) -> None:
        """Wait for POLL_S seconds, before the log is checked for new events.

        Raises Closed if the client has disconnected, or has sent a packet, which can only be COM_QUIT.
        """
        poll = select.poll()
        try:
            poll.register(self._link.connection, select.POLLIN)
        except (OSError, ValueError) as error:
            raise Closed from error
        if poll.poll(POLL_S * 1000):
            raise Closed

    def _heartbeat_if_due(self, name: str, offset: int) -> None:
        period = self._request.heartbeat_s
        if not period or time.monotonic() - self._sent_at < period or offset > _LARGEST_HEARTBEAT_POSITION:
            return
        checksum = CHECKSUM_LENGTH if self._has_checksums else 0
        header = EventHeader(
            timestamp=0,
            type_code=EventType.HEARTBEAT,
            server_id=self._server_id,
            event_length=HEADER_LENGTH + len(name) + checksum,
            end_log_pos=offset,
            flags=0,
        )
        event = build_header(header) + name.encode()
        self._link.send(b"\0" + (append_checksum(event) if checksum else event), patience_s=PATIENCE_S)
        self._sent_at = time.monotonic()
