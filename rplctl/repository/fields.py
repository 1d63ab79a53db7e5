"""The fields of MasterInfo and RelayLogInfo in their stored order, and their notation in a file and in a table.

Invariant: a record has the same values in a file (FILE) and in a row of a table (TABLE). Only the notation of the
values differs. The order is MySQL 8.0.30's line order, which is also its column order. (In WL#2775, `Rpl_info_fields`
is a cursor that sets and gets fields in this order.)

    kind         line of a file                    column of a table
    text         unchanged, never a newline        TEXT
    nullable     '' = NULL                         TEXT NULL
    number       decimal                           INTEGER / BIGINT
    switch       0 or 1                            BOOLEAN
    heartbeat    `%.3f` seconds                    DOUBLE
    ids          `COUNT ID ID …`, sorted           the same text
    relay log    `./relay-bin.000002`              the same text
    choice       1-based number                    the word (ENUM)
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import is_log_name

MAX_POSITION = (1 << 63) - 1
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_SECONDS = re.compile(r"[0-9]{1,10}(\.[0-9]{1,9})?")


class FieldError(ValueError):
    """The error for a stored value that is not valid.

    The repository adds the location of the value, and reports error 1201 (MasterInfo) or 1872 (RelayLogInfo).
    """


class Notation(ABC):
    """The notation of one kind of value in a line of a file and in a column of a table.

    A column has the same text as a line, except if the subclass defines another notation.
    """

    @abstractmethod
    def to_line(self, value: Any) -> str: ...

    @abstractmethod
    def from_line(self, line: str) -> Any: ...

    def to_column(self, value: Any) -> str | int | float | bool | None:
        return self.to_line(value)

    def from_column(self, stored: Any) -> Any:
        return self.from_line("" if stored is None else str(stored))


class Text(Notation):
    """Free text without newlines. A newline would shift every later line, so rplctl refuses it, as the server does."""

    def to_line(self, value: str) -> str:
        if "\n" in value or "\x00" in value:
            raise FieldError("a value must not contain a newline or a NUL")
        return value

    def from_line(self, line: str) -> str:
        return line


class NullableText(Text):
    """Text or NULL. An empty line means NULL.

    A line cannot distinguish NULL from '', so lines.py stores '' in its `key=value` section.
    """

    def to_line(self, value: str | None) -> str:
        return "" if value is None else super().to_line(value)

    def from_line(self, line: str) -> str | None:  # type: ignore[override]  # NULL has no other notation in a line
        return line or None

    def to_column(self, value: str | None) -> str | None:
        return None if value is None else super().to_line(value)

    def from_column(self, stored: Any) -> str | None:
        return None if stored is None else str(stored)


class GtidText(Text):
    """A GTID set without newlines.

    The server prints a newline after each comma, and a line cannot contain a newline.
    """

    def to_line(self, value: str) -> str:
        return super().to_line(value.replace("\n", ""))


@dataclass(frozen=True, slots=True)
class Number(Notation):
    low: int = 0
    high: int = (1 << 32) - 1

    def to_line(self, value: int) -> str:
        return str(self._checked(value))

    def from_line(self, line: str) -> int:
        text = line.strip()
        if not _NUMBER.fullmatch(text):
            raise FieldError(f"'{text[:40]}' is not a number")
        return self._checked(int(text))

    def to_column(self, value: int) -> int:
        return self._checked(value)

    def from_column(self, stored: Any) -> int:
        if stored is None:
            return max(self.low, 0)
        try:
            return self._checked(int(stored))
        except (TypeError, ValueError) as error:
            raise FieldError(f"'{str(stored)[:40]}' is not a number") from error

    def _checked(self, value: int) -> int:
        if not self.low <= value <= self.high:
            raise FieldError(f"{value} is not within {self.low} to {self.high}")
        return value


class OnOff(Notation):
    def to_line(self, value: bool) -> str:
        return "1" if value else "0"

    def from_line(self, line: str) -> bool:
        if line.strip() not in ("0", "1"):
            raise FieldError(f"'{line[:40]}' is neither 0 nor 1")
        return line.strip() == "1"

    def to_column(self, value: bool) -> bool:
        return value

    def from_column(self, stored: Any) -> bool:
        return bool(stored)


class Seconds(Notation):
    def to_line(self, value: float) -> str:
        return f"{value:.3f}"

    def from_line(self, line: str) -> float:
        if not _SECONDS.fullmatch(line.strip()):
            raise FieldError(f"'{line[:40]}' is not a number of seconds")
        return float(line)

    def to_column(self, value: float) -> float:
        return round(value, 3)

    def from_column(self, stored: Any) -> float:
        return round(float(stored or 0.0), 3)


class Ids(Notation):
    """Server ids or domain ids after their count: `2 1 3` is a list of the two ids 1 and 3. The empty list is `0`."""

    def to_line(self, value: tuple[int, ...]) -> str:
        ids = sorted(set(value))
        return " ".join(map(str, (len(ids), *ids)))

    def from_line(self, line: str) -> tuple[int, ...]:
        words = line.split()
        if not all(_NUMBER.fullmatch(word) for word in words) or (words and int(words[0]) != len(words) - 1):
            raise FieldError(f"'{line[:80]}' is not a count followed by that many ids")
        return tuple(sorted({int(word) for word in words[1:]}))


class SourceLog(Text):
    """The base name of a binary log of the source. A path is refused, because rplctl would send it to the source."""

    def from_line(self, line: str) -> str:
        if line and not is_log_name(line):
            raise FieldError(f"'{line[:80]}' is not the name of a binary log")
        return line


class RelayLog(Text):
    """The name of a relay log. A line has `./` before the name, for example `./relay-bin.000002`.

    The record has only the base name, even if a server wrote an absolute path.
    """

    def to_line(self, value: str) -> str:
        return f"./{super().to_line(value)}" if value else ""

    def from_line(self, line: str) -> str:
        name = line.rpartition("/")[2]
        if line and not is_log_name(name):
            raise FieldError(f"'{line[:80]}' is not the name of a relay log")
        return name


@dataclass(frozen=True, slots=True)
class OneOf(Notation):
    words: tuple[str, ...]

    def to_line(self, value: str) -> str:
        return str(self.words.index(self.from_column(value)) + 1)

    def from_line(self, line: str) -> str:
        number = Number(1, len(self.words)).from_line(line)
        return self.words[number - 1]

    def to_column(self, value: str) -> str:
        return self.from_column(value)

    def from_column(self, stored: Any) -> str:
        if stored not in self.words:
            raise FieldError(f"'{str(stored)[:40]}' is none of {', '.join(self.words)}")
        return str(stored)


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its column in the table, its attribute in the record, and its notation."""

    column: str
    notation: Notation

    @property
    def name(self) -> str:
        return self.column.lower()

    @property
    def key(self) -> str:
        """The field's name in the `key=value` section of rplctl's files."""
        return f"rplctl_{self.name}"


_BY_TYPE: dict[str, Notation] = {
    "str": Text(),
    "str | None": NullableText(),
    "int": Number(),
    "bool": OnOff(),
    "float": Seconds(),
    "tuple[int, ...]": Ids(),
}
_POSITION = Number(0, MAX_POSITION)


def _fields(record: type[MasterInfo | RelayLogInfo], first: str, last: str, **special: Notation) -> tuple[Field, ...]:
    """Return the record's fields from `first` to `last`, in the order of the attributes of its class.

    `special`: the notation of an attribute, if the notation does not follow from the attribute's type.
    """
    known = {field.name: special.get(field.name) or _BY_TYPE.get(str(field.type)) for field in fields(record)}
    names = list(known)
    chosen = names[names.index(first) : names.index(last) + 1]
    return tuple(Field(name.capitalize(), notation) for name in chosen if (notation := known[name]))


# These fields are lines 2 to 33 of master.info. Line 1 is the count of lines, which includes line 1.
MASTER_INFO_LINES = _fields(
    MasterInfo,
    "master_log_name",
    "gtid_only",
    master_log_name=SourceLog(),
    master_log_pos=_POSITION,
    port=Number(0, 65535),
    retry_count=_POSITION,
    master_zstd_compression_level=Number(0, 22),
)
# MariaDB writes these keys after its lines. The keys have MariaDB's names.
MARIADB_KEYS = _fields(MasterInfo, "using_gtid", "ignore_domain_ids", using_gtid=Number(0, 2))
MASTER_INFO_KEYS = _fields(
    MasterInfo, "master_id", "flushed_relay_log_pos", flushed_relay_log_name=RelayLog(), flushed_relay_log_pos=_POSITION
)
# These fields are lines 2 to 15 of relay-log.info. Line 1 is the count of the lines that follow.
RELAY_LOG_INFO_LINES = _fields(
    RelayLogInfo,
    "relay_log_name",
    "assign_gtids_to_anonymous_transactions_value",
    relay_log_name=RelayLog(),
    relay_log_pos=_POSITION,
    master_log_name=SourceLog(),
    master_log_pos=_POSITION,
    sql_delay=Number(0, (1 << 31) - 1),
    require_table_primary_key_check=OneOf(("STREAM", "ON", "OFF", "GENERATE")),
    assign_gtids_to_anonymous_transactions_type=OneOf(("OFF", "LOCAL", "UUID")),
)
RELAY_LOG_INFO_KEYS = _fields(RelayLogInfo, "master_id", "gtid_executed", gtid_executed=GtidText())
