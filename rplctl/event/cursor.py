"""Read the fields of one event. Each length field is compared with the remaining bytes before it is used."""

from __future__ import annotations

from rplctl.errors import BinlogFormatError
from rplctl.event.header import HEADER_LENGTH, format_error, parse_header


class EventCursor:
    """A reader of little-endian fields in `data[position:end]`. A read past `end` raises BinlogFormatError."""

    __slots__ = ("data", "end", "position", "start")

    def __init__(self, data: bytes, position: int = 0, end: int | None = None, start: int = 0) -> None:
        self.data = data
        self.position = position
        self.end = len(data) if end is None else end
        self.start = start  # offset of the event, for the hex dump of an error

    def error(self, message: str) -> BinlogFormatError:
        return format_error(message, self.data, self.start)

    @property
    def remaining(self) -> int:
        return self.end - self.position

    def take(self, length: int) -> bytes:
        if length < 0 or length > self.end - self.position:
            raise self.error(f"event is cut short: {length} bytes needed, {self.end - self.position} remaining")
        self.position += length
        return self.data[self.position - length : self.position]

    def skip(self, length: int) -> None:
        self.take(length)

    def unsigned(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")

    def signed(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little", signed=True)

    def big_endian(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def packed_length(self) -> int:
        """Read a length-encoded integer of MySQL's protocol, which has 1, 3, 4 or 9 bytes.

        Raises BinlogFormatError if the first byte is 251 (NULL) or 255, because these are not lengths.
        """
        first = self.unsigned(1)
        if first < 251:
            return first
        if first in (251, 255):
            raise self.error(f"{first} is not a length-encoded integer")
        return self.unsigned({252: 2, 253: 3, 254: 8}[first])

    def counted(self) -> bytes:
        """Read a length-encoded integer n, and return the n bytes after it."""
        return self.take(self.packed_length())

    def rest(self) -> bytes:
        return self.take(self.end - self.position)

    def sub(self, length: int) -> EventCursor:
        """Return a cursor over the next `length` bytes, and skip these bytes in this cursor."""
        self.take(length)
        return EventCursor(self.data, self.position - length, self.position, self.start)


def open_event(event: bytes, checksum_length: int) -> EventCursor:
    """Return a cursor over the body of one complete event: after the header and before the checksum."""
    header = parse_header(event)
    if header.event_length != len(event):
        raise format_error(f"event length {header.event_length} is not the {len(event)} bytes given", event)
    if HEADER_LENGTH + checksum_length > len(event):
        raise format_error("event is too short for its checksum", event)
    return EventCursor(event, HEADER_LENGTH, len(event) - checksum_length)
