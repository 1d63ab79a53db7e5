"""The BINLOG statement: row events of the source as they are, applied by the server as by its own replica.

Invariant: the connection knows a FORMAT_DESCRIPTION of the events' vendor before it gets any. It may hang on the
server's variables whether a row that is missing is an error (D2); `may_replay` and `check` ask.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from rplctl.binlog.format_description import (
    CHECKSUM_OFF,
    FormatDescription,
    build_format_description,
    parse_format_description,
)
from rplctl.binlog.trailer import without_checksum
from rplctl.errors import TargetError
from rplctl.target.base import CountMismatch
from rplctl.target.mysql_connection import mapped_errors
from rplctl.target.mysql_session import ServerKind

_ROWS_FLAGS = 19 + 6  # offset of a rows event's flags
_STMT_END = 1
_NO_PRIVILEGE = 1227
_PACKET = 4 << 20  # bytes: an event of `row_event.LARGEST_ROW` as text, and some


class Replay:
    """Of one connection. `send` executes, `query` returns rows."""

    def __init__(
        self,
        send: Callable[[bytes], object],
        query: Callable[[str], Sequence[tuple[Any, ...]]],
        server: ServerKind,
        server_version: str,
    ) -> None:
        self._send = send
        self._query = query
        self._server = server
        self._version = server_version
        self._described: FormatDescription | None = None

    def introduce(self, description: FormatDescription) -> None:
        """BINLOG takes a FORMAT_DESCRIPTION first, MySQL only between transactions; it leaves gtid_next undetermined.

        Without the privilege for BINLOG only what cannot do without it fails.
        """
        if self._described == description or self._server.is_mariadb:
            return
        try:
            self._describe(description)
        except TargetError as error:
            if error.errno != _NO_PRIVILEGE:
                raise
            return
        with mapped_errors():
            self._send(b"SET SESSION gtid_next='AUTOMATIC'")

    def can_replay(self, description: FormatDescription) -> bool:
        same = description.is_mariadb == self._server.is_mariadb
        return same and (self._server.is_mariadb or self._described == description)

    def rows(self, table_map: bytes, rows: bytes, description: FormatDescription) -> None:
        """One rows event of the source. Raises TargetError."""
        if description.is_mariadb != self._server.is_mariadb:
            raise TargetError(
                "The table has triggers or system versioning on the target, and its row events are of the other vendor",
                errno=1235,
                hint="drop the triggers on the target: their effects are in the binary log already",
            )
        with mapped_errors():
            self._describe(description)
            last = bytearray(without_checksum(rows, description.checksum_length))
            last[_ROWS_FLAGS] |= _STMT_END
            self.events(without_checksum(table_map, description.checksum_length) + last)

    def events(self, events: bytes) -> None:
        """Raises the driver's errors."""
        self._send(b"BINLOG '%s'" % base64.b64encode(events))

    def may_replay(self) -> bool:
        """Whether batches of net changes may come as events: the server is MariaDB, has the privilege, takes the
        packets, and neither forgives a row that is missing nor converts values.
        """
        if not self._server.is_mariadb:
            return False
        with mapped_errors():
            ((packet, mode, conversions),) = self._query(
                "SELECT @@max_allowed_packet, @@slave_exec_mode, @@slave_type_conversions"
            )
        if packet < _PACKET or (mode, conversions) != ("STRICT", ""):
            return False
        try:
            self._describe_own()
        except TargetError as error:
            if error.errno != _NO_PRIVILEGE:
                raise
            return False
        return True

    def check(self) -> None:
        """Before a piece of a batch: the variables may have changed, the connection too. Raises CountMismatch."""
        if self._query("SELECT @@slave_exec_mode, @@slave_type_conversions")[0] != ("STRICT", ""):
            raise CountMismatch("the server forgives rows that are missing, or converts values")
        if self._described is None:
            self._describe_own()

    def _describe_own(self) -> None:
        event = build_format_description(1, 0, CHECKSUM_OFF, self._version, relay_log=False)
        self._describe(parse_format_description(event))

    def _describe(self, description: FormatDescription) -> None:
        if self._described != description and description.is_mariadb == self._server.is_mariadb:
            event = build_format_description(1, 0, CHECKSUM_OFF, description.server_version, relay_log=False)
            with mapped_errors():
                self.events(event)
            self._described = description
