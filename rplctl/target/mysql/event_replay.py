"""Applies row events with the BINLOG statement: the server executes them as if it were a replica of the source.

Tables with triggers or system versioning need BINLOG, because plain SQL would fire the triggers and write history.

    BINLOG '<FORMAT_DESCRIPTION>'        once per connection; MySQL accepts it only between transactions
    BINLOG '<TABLE_MAP><rows event>'     the rows event gets the flag STMT_END, at offset 25 (19 bytes header, 6 table)

Invariant: a rows event is sent only after the FORMAT_DESCRIPTION of the source's log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.event.checksum_trailer import without_checksum
from rplctl.event.format_description import CHECKSUM_OFF, FormatDescription, build_format_description
from rplctl.sql_text import SqlBytes, base64_literal, written_bytes
from rplctl.target.mysql.connection import mapped_errors
from rplctl.target.mysql.session import ServerKind

_ROWS_FLAGS: Final = 19 + 6  # offset of a rows event's flags
_STMT_END: Final = 1


class EventReplay:
    """Sends BINLOG statements on one connection. `send`: executes a statement."""

    def __init__(self, send: Callable[[SqlBytes], Any]) -> None:
        self._send = send
        self._described: FormatDescription | None = None  # the last one that this connection has received

    def forget(self) -> None:
        """Forget which FORMAT_DESCRIPTION was sent, because a new connection is used from now on."""
        self._described = None

    def introduce(self, description: FormatDescription, server: ServerKind) -> None:
        """Send the source's FORMAT_DESCRIPTION to a MySQL server. Do nothing for MariaDB, because `rows` can send it.

        On MySQL, this BINLOG statement leaves gtid_next undetermined, so gtid_next is set again. If the account lacks
        the privilege for BINLOG, do nothing; a later call of `rows` then fails.
        """
        if self._described == description or server.is_mariadb:
            return
        try:
            self._describe(description, server)
        except TargetError as error:
            if error.errno != er.SPECIFIC_ACCESS_DENIED_ERROR:
                raise
            return
        with mapped_errors():
            self._send(written_bytes(b"SET SESSION gtid_next='AUTOMATIC'"))

    def is_ready(self, description: FormatDescription, server: ServerKind) -> bool:
        """True if `rows` can be called, because the description is of the server's vendor and, on MySQL, was sent."""
        same = description.is_mariadb == server.is_mariadb
        return same and (server.is_mariadb or self._described == description)

    def rows(self, table_map: bytes, rows: bytes, description: FormatDescription, server: ServerKind) -> None:
        """Let the server execute a rows event, with its TABLE_MAP event. Raises TargetError 1235 if the events are of
        the other vendor.
        """
        if description.is_mariadb != server.is_mariadb:
            raise TargetError(
                "cannot apply row events of the other vendor to a table with triggers or system versioning",
                errno=er.NOT_SUPPORTED_YET,
                hint="to continue after you have dropped the target table's triggers, whose rows the log already has, "
                "and its system versioning, whose history the target then lacks, run: rplctl start",
            )
        with mapped_errors():
            self._describe(description, server)
            last = bytearray(without_checksum(rows, description.checksum_length))
            last[_ROWS_FLAGS] |= _STMT_END
            first = without_checksum(table_map, description.checksum_length)
            self._send(written_bytes(b"BINLOG %s", base64_literal(first + last)))

    def _describe(self, description: FormatDescription, server: ServerKind) -> None:
        if self._described != description and description.is_mariadb == server.is_mariadb:
            event = build_format_description(1, 0, CHECKSUM_OFF, description.server_version, relay_log=False)
            with mapped_errors():
                self._send(written_bytes(b"BINLOG %s", base64_literal(event)))
            self._described = description
