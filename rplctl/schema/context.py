"""The context of a DDL statement: the settings of the session and of the server that executed it.

The settings come from the status variables of the statement's QUERY event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rplctl.system_zone import SYSTEM, SystemZone, fixed_offset

# The bits of sql_mode. They are equal in MySQL and MariaDB, except where a comment names one of them.
REAL_AS_FLOAT = 1 << 0
ANSI_QUOTES = 1 << 2
ORACLE = 1 << 9  # MariaDB
NO_AUTO_VALUE_ON_ZERO = 1 << 19
NO_BACKSLASH_ESCAPES = 1 << 20
STRICT_TRANS_TABLES = 1 << 21
STRICT_ALL_TABLES = 1 << 22
PAD_CHAR_TO_FULL_LENGTH = 1 << 31
TIME_TRUNCATE_FRACTIONAL = 1 << 32  # MySQL
TIME_ROUND_FRACTIONAL = 1 << 34  # MariaDB


@dataclass(frozen=True)  # no slots: cached_property
class DdlContext:
    """The session and the server that executed one statement. The default of every field is that of a modern server.

    `charset`, `collation`: from collation_server, the default of a new database. `timestamp` (seconds since 1970) and
    `microseconds`: the time of the event, for CURRENT_TIMESTAMP. `system_zone`: the meaning of the time zone SYSTEM on
    that server, None if it is unknown. `error_code`: from the event; a DROP TABLE that failed in part has 1051.
    `has_binary_literals`: True if the session used the character set binary.
    """

    sql_mode: int = STRICT_TRANS_TABLES
    server_version: str = "8.0.40"
    charset: str = "utf8mb4"
    collation: str | None = None
    explicit_defaults_for_timestamp: bool = True
    timestamp: int = 0
    microseconds: int = 0
    time_zone: str = "+00:00"
    system_zone: SystemZone | None = None
    auto_increment_increment: int = 1
    auto_increment_offset: int = 1
    lower_case_table_names: int = 0
    has_binary_literals: bool = False
    error_code: int = 0

    @property
    def is_mariadb(self) -> bool:
        return "mariadb" in self.server_version.lower()

    @cached_property
    def version_number(self) -> int:
        """The version of the server as a number, as versioned comments have it: 101119 for `10.11.19-MariaDB`."""
        numbers = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)(?:\.(\d+))?", self.server_version)
        if numbers is None:
            return 80000
        major, minor, patch = (int(part or 0) for part in numbers.groups())
        return major * 10000 + minor * 100 + patch

    @property
    def is_strict(self) -> bool:
        """True if the session was in strict mode, so that the source refused a DDL statement that would have
        lost data.
        """
        return bool(self.sql_mode & (STRICT_TRANS_TABLES | STRICT_ALL_TABLES))

    @property
    def pads_char(self) -> bool:
        """True if a CHAR keeps its trailing blanks when it is converted to another text or binary type."""
        return bool(self.sql_mode & PAD_CHAR_TO_FULL_LENGTH)

    @property
    def timestamp_range(self) -> tuple[str, str]:
        """The first and the last second that a TIMESTAMP can have, in UTC.

        For other values, the source raised an error or stored the zero date.
        """
        later = self.is_mariadb and self.version_number >= 110500
        return "1970-01-01 00:00:01", "2106-02-07 06:28:15" if later else "2038-01-19 03:14:07"

    def fold_name(self, name: str) -> str:
        """Return the name of a database or table in the case in which the source stores it."""
        return name.lower() if self.lower_case_table_names else name

    @property
    def zone_text(self) -> str:
        """The session's time zone as text for a message."""
        unknown = self.time_zone == SYSTEM and self.system_zone is None
        return "SYSTEM, which the option source_time_zone can set" if unknown else self.time_zone

    def utc_offset(self) -> timedelta | None:
        """Return the UTC offset of the session's time zone, or None if the zone has no fixed offset or is unknown."""
        if self.time_zone == SYSTEM:
            return self.system_zone.fixed if self.system_zone is not None else None
        return fixed_offset(self.time_zone)

    def now(self, *, in_utc: bool) -> datetime | None:
        """Return the start time of the statement, in UTC or in the session's time zone, or None if this zone is
        unknown.
        """
        moment = datetime.fromtimestamp(self.timestamp, UTC).replace(microsecond=self.microseconds)
        if in_utc:
            return moment
        offset = self.utc_offset()
        if self.time_zone == SYSTEM and self.system_zone is not None:
            offset = self.system_zone.offset_at(self.timestamp)
        if offset is not None:
            return moment.astimezone(timezone(offset))
        try:
            return moment.astimezone(ZoneInfo(self.time_zone))
        except (ZoneInfoNotFoundError, ValueError):
            return None
