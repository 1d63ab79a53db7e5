"""Decompress events: MySQL's TRANSACTION_PAYLOAD (a complete transaction), and MariaDB's compressed rows and queries.

The body of a TRANSACTION_PAYLOAD has a list of fields, and then the payload. Each field has a type, a length and a
value, which are length-encoded integers:

    type  value
    0     none: this type ends the list
    1     the size of the payload
    2     the compression: 0 zstd, 255 none
    3     the size of the decompressed payload

The decompressed payload is a sequence of plain events without checksums.

A compressed event of MariaDB is like the plain event, but one part is a compressed record. In a rows event, this part
is everything after the column bitmaps. In a query event, it is the statement.

Invariant: the output never exceeds `max_bytes`, even if the event states a larger size. The output is complete plain
events without checksums.
"""

from __future__ import annotations

import io
from typing import BinaryIO, Final

import zstandard

from rplctl.event.cursor import EventCursor, open_event
from rplctl.event.format_description import FormatDescription
from rplctl.event.header import HEADER_LENGTH, format_error
from rplctl.event.inflate import MAX_INFLATED, inflate, inflated, plain_length
from rplctl.event.jit import ByteArray, byte_view
from rplctl.event.scan import scan_events
from rplctl.event.types import COMPRESSED_ROWS, MARIADB_COMPRESSED, EventType

_ZSTD: Final = 0
_NO_COMPRESSION: Final = 255
_END_MARK: Final = 0
_SIZE_FIELD: Final = 1
_COMPRESSION_FIELD: Final = 2
_PLAIN_SIZE_FIELD: Final = 3
_MOST_HEAD_BYTES: Final = 1 << 18  # bytes before a compressed record: status variables, or two column bitmaps
_MOST_FIELD_BYTES: Final = 64  # the list of fields in a payload event
_PIECE_BYTES: Final = 1 << 20

_UPDATES = frozenset({EventType.UPDATE_ROWS_V1, EventType.UPDATE_ROWS})
_VERSION_2 = frozenset({EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS})


def expand_event(event: bytes, description: FormatDescription, max_bytes: int = MAX_INFLATED) -> bytes:
    """Return the plain events of one compressed event, without checksums.

    Raises BinlogFormatError for other types of events, for damaged events, and for more than `max_bytes` plain bytes.
    """
    type_code = event[4] if len(event) > 4 else -1
    if type_code == EventType.TRANSACTION_PAYLOAD:
        return decompress_payload(event, description, max_bytes)
    if type_code not in MARIADB_COMPRESSED:
        raise format_error("not a compressed event", event)
    body = open_event(event, description.checksum_length)
    plain_type = _skip_to_record(body, EventType(type_code))
    head = event[HEADER_LENGTH : body.position]
    plain = inflate(body.rest(), max_bytes, event)
    return _header(event, plain_type, len(head) + len(plain)) + head + plain


def unpack_event(event: ByteArray, description: FormatDescription, out: BinaryIO) -> None:
    """Decompress one compressed event of MariaDB, and write the plain event to `out` in parts.

    The plain event may be larger than the memory. Raises BinlogFormatError if the event is damaged.
    """
    head = event[: HEADER_LENGTH + _MOST_HEAD_BYTES].tobytes()
    body = EventCursor(head, HEADER_LENGTH, min(len(head), len(event) - description.checksum_length))
    plain_type = _skip_to_record(body, EventType(head[4]))
    record = event[body.position : len(event) - description.checksum_length].data
    length = body.position - HEADER_LENGTH + plain_length(record, head)
    out.write(_header(head, plain_type, length) + head[HEADER_LENGTH : body.position])
    out.writelines(inflated(record, MAX_INFLATED, head))


def decompress_payload(event: bytes, description: FormatDescription, max_bytes: int = MAX_INFLATED) -> bytes:
    """Return the inner events of one TRANSACTION_PAYLOAD.

    Raises BinlogFormatError if the event is damaged or of another type, or has more than `max_bytes` plain bytes.
    """
    if event[4] != EventType.TRANSACTION_PAYLOAD:
        raise format_error("a TRANSACTION_PAYLOAD event was expected", event)
    open_event(event, description.checksum_length)  # raises an error if the event is not complete
    out = io.BytesIO()
    unpack_payload(byte_view(event), description, out, max_bytes)
    plain = out.getvalue()
    if scan_events(plain).end != len(plain):  # otherwise, a reader would continue into the next event
        raise format_error("the payload ends inside an event", event)
    return plain


def payload_size(event: ByteArray, description: FormatDescription) -> int:
    """Return the plain size that a TRANSACTION_PAYLOAD states, in bytes."""
    head = event[: HEADER_LENGTH + _MOST_FIELD_BYTES].tobytes()
    fields = _payload_fields(EventCursor(head, HEADER_LENGTH, len(head)))
    return fields.get(_PLAIN_SIZE_FIELD, len(event) - HEADER_LENGTH - description.checksum_length)


def unpack_payload(event: ByteArray, description: FormatDescription, out: BinaryIO, max_bytes: int) -> None:
    """Write the inner events of one TRANSACTION_PAYLOAD to `out` in parts, because they may be larger than the memory.

    Raises BinlogFormatError if the payload is damaged, or has more than `max_bytes` plain bytes.
    """
    head = event[: HEADER_LENGTH + _MOST_FIELD_BYTES].tobytes()
    body = EventCursor(head, HEADER_LENGTH, len(head))
    fields = _payload_fields(body)
    payload = event[body.position : len(event) - description.checksum_length]
    size, plain_size = fields.get(_SIZE_FIELD, -1), fields.get(_PLAIN_SIZE_FIELD, len(payload))
    if size != len(payload):
        raise body.error(f"the payload has {len(payload)} bytes, but states {size}")
    if plain_size > max_bytes:
        raise body.error(f"a payload has {plain_size} plain bytes, more than {max_bytes}")
    if fields.get(_COMPRESSION_FIELD, -1) not in (_ZSTD, _NO_COMPRESSION):
        raise body.error(f"unknown payload compression {fields.get(_COMPRESSION_FIELD, -1)}")
    written = 0
    try:
        if fields[_COMPRESSION_FIELD] == _NO_COMPRESSION:
            written += out.write(payload.data)
        else:
            with zstandard.ZstdDecompressor().stream_reader(payload.data, read_across_frames=True) as reader:
                while written <= plain_size and (piece := reader.read(min(_PIECE_BYTES, plain_size + 1 - written))):
                    written += out.write(piece)
    except zstandard.ZstdError as error:
        raise body.error(f"the payload is damaged: {error}") from error
    if written != plain_size:
        raise body.error(f"the payload has {written} plain bytes, but states {plain_size}")


def _payload_fields(body: EventCursor) -> dict[int, int]:
    fields: dict[int, int] = {}
    while True:
        kind = body.packed_length()
        if kind == _END_MARK:
            return fields
        value = body.sub(body.packed_length())
        fields[kind] = value.packed_length()


def _header(event: bytes, type_code: EventType, body_length: int) -> bytes:
    length = (HEADER_LENGTH + body_length).to_bytes(4, "little")
    return event[:4] + bytes([type_code]) + event[5:9] + length + event[13:HEADER_LENGTH]


def _skip_to_record(body: EventCursor, type_code: EventType) -> EventType:
    """Skip the uncompressed part of a compressed event of MariaDB, and return the type of the plain event."""
    if type_code == EventType.QUERY_COMPRESSED:
        body.skip(8)
        database_length = body.unsigned(1)
        body.skip(2)
        body.skip(body.unsigned(2) + database_length + 1)
        return EventType.QUERY
    plain_type = COMPRESSED_ROWS[type_code]
    body.skip(8)
    if plain_type in _VERSION_2:
        extra = body.unsigned(2)
        body.skip(extra - 2)
    columns = body.packed_length()
    bitmaps = 2 if plain_type in _UPDATES else 1
    body.skip(bitmaps * ((columns + 7) // 8))
    return plain_type
