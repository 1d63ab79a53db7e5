"""The fields of both records in the order they are stored, and how each is written in a line and in a column.

Invariant: FILE and TABLE hold the same values; only the notation differs (WL#2775 `Rpl_info_fields`: a cursor that sets
and gets fields strictly in order). The order is MySQL 8.0.30's line order, which is also its column order.

    kind         line of a file                    column
    text         as it is, never a newline         TEXT
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
    """A stored value that cannot be; the repository turns it into error 1201 or 1872 with the place."""


class Notation(ABC):
    """How one kind of value stands in a line and in a column, which holds the same text unless it says otherwise."""

    @abstractmethod
    def to_line(self, value: Any) -> str: ...

    @abstractmethod
    def from_line(self, line: str) -> Any: ...

    def to_column(self, value: Any) -> str | int | float | bool | None:
        return self.to_line(value)

    def from_column(self, stored: Any) -> Any:
        return self.from_line("" if stored is None else str(stored))


class Text(Notation):
    """Free text. A newline would shift every later line: the server's grammar refuses it, and so do we."""

    def to_line(self, value: str) -> str:
        if "\n" in value or "\x00" in value:
            raise FieldError("a value must not contain a newline or a NUL")
        return value

    def from_line(self, line: str) -> str:
        return line


class NullableText(Text):
    """`None` is an empty line; a file cannot tell it from '' (file.py keeps '' in the key section)."""

    def to_line(self, value: str | None) -> str:
        return "" if value is None else super().to_line(value)

    def from_line(self, line: str) -> str | None:  # type: ignore[override]  # NULL has no other notation in a line
        return line or None

    def to_column(self, value: str | None) -> str | None:
        return None if value is None else super().to_line(value)

    def from_column(self, stored: Any) -> str | None:
        return None if stored is None else str(stored)


class GtidText(Text):
    """A GTID set: the server prints a newline after each comma; a line has no room for it."""

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


class Switch(Notation):
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
    """Server or domain ids: `2 1 3`; the empty list is `0`."""

    def to_line(self, value: tuple[int, ...]) -> str:
        ids = sorted(set(value))
        return " ".join(map(str, (len(ids), *ids)))

    def from_line(self, line: str) -> tuple[int, ...]:
        words = line.split()
        if not all(_NUMBER.fullmatch(word) for word in words) or (words and int(words[0]) != len(words) - 1):
            raise FieldError(f"'{line[:80]}' is not a count followed by that many ids")
        return tuple(sorted({int(word) for word in words[1:]}))


class SourceLog(Text):
    """A binary log's base name; a folder in it is refused (it would be sent to the source)."""

    def from_line(self, line: str) -> str:
        if line and not is_log_name(line):
            raise FieldError(f"'{line[:80]}' is not the name of a binary log")
        return line


class RelayLog(Text):
    """`./relay-bin.000002`: the record keeps the base name; a server's absolute path is cut to it."""

    def to_line(self, value: str) -> str:
        return f"./{super().to_line(value)}" if value else ""

    def from_line(self, line: str) -> str:
        name = line.rpartition("/")[2]
        if line and not is_log_name(name):
            raise FieldError(f"'{line[:80]}' is not the name of a relay log")
        return name


@dataclass(frozen=True, slots=True)
class Choice(Notation):
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
    """One field: its column in the table, its attribute in the record, its notation."""

    column: str
    notation: Notation

    @property
    def name(self) -> str:
        return self.column.lower()

    @property
    def key(self) -> str:
        """Its name in the `key=value` section of our files."""
        return f"rplctl_{self.name}"


_BY_TYPE: dict[str, Notation] = {
    "str": Text(),
    "str | None": NullableText(),
    "int": Number(),
    "bool": Switch(),
    "float": Seconds(),
    "tuple[int, ...]": Ids(),
}
_POSITION = Number(0, MAX_POSITION)


def _fields(record: type[MasterInfo | RelayLogInfo], first: str, last: str, **special: Notation) -> tuple[Field, ...]:
    """The record's from one to another, in its order; `special`: what the type of an attribute does not say."""
    known = {field.name: special.get(field.name) or _BY_TYPE.get(str(field.type)) for field in fields(record)}
    names = list(known)
    chosen = names[names.index(first) : names.index(last) + 1]
    return tuple(Field(name.capitalize(), notation) for name in chosen if (notation := known[name]))


# master.info lines 2 to 33 (line 1 is their count, itself included)
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
# MariaDB's key section, keys spelt as MariaDB spells them
MARIADB_KEYS = _fields(MasterInfo, "using_gtid", "ignore_domain_ids", using_gtid=Number(0, 2))
MASTER_INFO_KEYS = _fields(
    MasterInfo, "master_id", "flushed_relay_log_pos", flushed_relay_log_name=RelayLog(), flushed_relay_log_pos=_POSITION
)
# relay-log.info lines 2 to 15 (line 1 is their count, itself not included)
RELAY_LOG_INFO_LINES = _fields(
    RelayLogInfo,
    "relay_log_name",
    "assign_gtids_to_anonymous_transactions_value",
    relay_log_name=RelayLog(),
    relay_log_pos=_POSITION,
    master_log_name=SourceLog(),
    master_log_pos=_POSITION,
    sql_delay=Number(0, (1 << 31) - 1),
    require_table_primary_key_check=Choice(("STREAM", "ON", "OFF", "GENERATE")),
    assign_gtids_to_anonymous_transactions_type=Choice(("OFF", "LOCAL", "UUID")),
)
RELAY_LOG_INFO_KEYS = _fields(RelayLogInfo, "master_id", "gtid_executed", gtid_executed=GtidText())
