"""Positions in the two kinds of log: the source's binary log and our relay log.

The two are different types on purpose: a relay log position where a source position belongs is a type error.
Positions are 64-bit byte offsets (binary logs pass 4 GiB although the event header's field is 32-bit).
Order is by the number after the last dot, then by offset (WL#4621), never by comparing names as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from rplctl.errors import UsageError

FIRST_EVENT_POSITION = 4  # the magic number `\xfebin` comes first
LARGEST_POSITION = (1 << 62) - 1  # of an offset: any event behind it still has one of 63 bits
_LOG_NAME = re.compile(r"[^/\x00-\x1f\x7f]{1,500}\.[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class _LogPosition:
    log_name: str  # base name without a folder; '' = not known yet (from the first log there is)
    log_pos: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """`binlog.000003:1170` → position. Raises UsageError."""
        name, colon, offset = text.rpartition(":")
        is_number = offset.isascii() and offset.isdecimal() and len(offset) < 20 and int(offset) <= LARGEST_POSITION
        if not colon or not is_log_name(name) or not is_number:
            raise UsageError(f"'{text}' is not a position; write FILE:POS, for example binlog.000003:1170")
        return cls(name, int(offset))

    def __str__(self) -> str:
        return f"{self.log_name}:{self.log_pos}"

    def or_else(self, nothing: str) -> str:
        """Return the position as text; `nothing` if it is unknown."""
        return str(self) if self.log_name else nothing

    def is_before(self, other: Self) -> bool:
        return self.order_key() < other.order_key()

    def order_key(self) -> tuple[int, int]:
        return (log_number(self.log_name), self.log_pos)


class BinlogPosition(_LogPosition):
    """Where in the source's binary log: `Read_Master_Log_Pos`, `Exec_Master_Log_Pos`."""

    __slots__ = ()


class RelayLogPosition(_LogPosition):
    """Where in our relay log: `Relay_Log_Pos`."""

    __slots__ = ()


def is_log_name(name: str) -> bool:
    """True for `base.NNNNNN` without folder or control characters: what may be stored, sent or opened."""
    return _LOG_NAME.fullmatch(name) is not None


def can_begin_at(offset: int) -> bool:
    """True for an offset at which an event of a log can begin: what a ROTATE may say."""
    return FIRST_EVENT_POSITION <= offset <= LARGEST_POSITION


def log_number(name: str) -> int:
    """`binlog.000012` → 12; 0 for the empty name, which comes before every log."""
    digits = name.rpartition(".")[2]
    return int(digits) if digits.isdecimal() else 0


def numbered_log_name(base: str, number: int) -> str:
    """(`relay-bin`, 7) → `relay-bin.000007`; more digits once six do not hold the number."""
    return f"{base}.{number:06d}"
