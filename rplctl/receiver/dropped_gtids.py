"""Keep the GTIDs of dropped transactions in the relay log, as empty transactions.

As in MariaDB, a transaction that IGNORE_SERVER_IDS, a domain list or the own server id excludes counts as executed.
Otherwise, a new connection would request it again, and the source refuses this after it has purged the log. An empty
transaction has these events, with the header of the dropped GTID event, the flag ARTIFICIAL and no end_log_pos:

    GTID     of MySQL: unchanged; of MariaDB: sequence, domain, and no flags
    XID      the number 0

Invariant: an empty transaction is before each kept event that followed it on the source, and it is written only after
the dropped transaction has ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rplctl.event.checksum_trailer import append_checksum, without_checksum
from rplctl.event.gtid_event import MARIADB_LENGTH
from rplctl.event.header import CHECKSUM_LENGTH, FLAG_ARTIFICIAL, HEADER_LENGTH, EventHeader, build_header, parse_header
from rplctl.event.types import EventType

_SEQUENCE_AND_DOMAIN: Final = slice(HEADER_LENGTH, HEADER_LENGTH + 12)
_DOMAIN: Final = slice(HEADER_LENGTH + 8, HEADER_LENGTH + 12)


class DroppedGtids:
    """The GTID events of dropped transactions that the relay log does not show yet, in the order of the source's log.

    Only the last one of each domain of MariaDB is kept, because it includes the earlier ones.
    """

    def __init__(self) -> None:
        self._events: dict[bytes, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, event: bytes) -> None:
        """Add a GTID event, with its checksum if the source sends checksums."""
        key = event[_DOMAIN] if event[4] == EventType.MARIADB_GTID else event
        self._events.pop(key, None)  # the new one is the last in the order
        self._events[key] = event

    def cut(self) -> None:
        """Forget the events, because their last transaction has no end. A new connection requests them again."""
        self._events.clear()

    def take(self, checksum_length: int) -> tuple[bytes, int]:
        """Return the events of the empty transactions and their number. Each transaction is returned once."""
        taken = b"".join(_empty(event, checksum_length) for event in self._events.values())
        count = 2 * len(self._events)
        self._events.clear()
        return taken, count


def _empty(event: bytes, checksum_length: int) -> bytes:
    header = replace(parse_header(event), end_log_pos=0, flags=FLAG_ARTIFICIAL)
    gtid = without_checksum(event, checksum_length)[HEADER_LENGTH:]
    if header.type_code == EventType.MARIADB_GTID:
        gtid = event[_SEQUENCE_AND_DOMAIN].ljust(MARIADB_LENGTH, b"\0")
    return _built(header, gtid, checksum_length) + _built(
        replace(header, type_code=EventType.XID), bytes(8), checksum_length
    )


def _built(header: EventHeader, body: bytes, checksum_length: int) -> bytes:
    event = build_header(replace(header, event_length=HEADER_LENGTH + len(body) + checksum_length)) + body
    return append_checksum(event) if checksum_length == CHECKSUM_LENGTH else event
