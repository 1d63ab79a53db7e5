"""Positions in the two kinds of log: the source's binary log and rplctl's relay log.

Each kind has its own type, so mypy rejects a relay log position in place of a source position. A position has the name
of a log and an offset in bytes. The offset has 64 bits, because a binary log may exceed 4 GiB, although the field in
the event header has 32 bits. Positions are ordered by the number after the last dot of the name, then by the offset
(WL#4621). Names are never compared as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from rplctl.errors import UsageError

FIRST_EVENT_POSITION = 4  # a log begins with the magic number `\xfebin`
LARGEST_POSITION = (1 << 62) - 1  # the largest offset; the end of an event at this offset fits into 63 bits
_LOG_NAME = re.compile(r"[^/\x00-\x1f\x7f]{1,500}\.[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class _LogPosition:
    log_name: str  # base name without a folder; '' = not known yet (the first existing log)
    log_pos: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `binlog.000003:1170`. Raises UsageError for any other text."""
        name, colon, offset = text.rpartition(":")
        is_number = offset.isascii() and offset.isdecimal() and len(offset) < 20 and int(offset) <= LARGEST_POSITION
        if not colon or not is_log_name(name) or not is_number:
            raise UsageError(f"'{text}' is not a position; write FILE:POS, for example binlog.000003:1170")
        return cls(name, int(offset))

    def __str__(self) -> str:
        return f"{self.log_name}:{self.log_pos}"

    def or_else(self, nothing: str) -> str:
        """Return the position as text. Return `nothing` if the position is unknown."""
        return str(self) if self.log_name else nothing

    def is_before(self, other: Self) -> bool:
        return self.order_key() < other.order_key()

    def order_key(self) -> tuple[int, int]:
        return (log_number(self.log_name), self.log_pos)


class BinlogPosition(_LogPosition):
    """A position in the source's binary log: `Read_Master_Log_Pos`, `Exec_Master_Log_Pos`."""

    __slots__ = ()


class RelayLogPosition(_LogPosition):
    """A position in rplctl's relay log: `Relay_Log_Pos`."""

    __slots__ = ()


def is_log_name(name: str) -> bool:
    """True for a name such as `base.NNNNNN`, without a folder and without control characters.

    rplctl never stores, sends or opens a log with another name.
    """
    return _LOG_NAME.fullmatch(name) is not None


def can_begin_at(offset: int) -> bool:
    """True if an event of a log can begin at this offset, so that a ROTATE event with this offset is valid."""
    return FIRST_EVENT_POSITION <= offset <= LARGEST_POSITION


def log_number(name: str) -> int:
    """Return the number of a log, for example 12 for `binlog.000012`.

    The number is 0 for a name without a number, for example the empty name. So this name is ordered before all logs.
    """
    digits = name.rpartition(".")[2]
    return int(digits) if digits.isdecimal() else 0


def numbered_log_name(base: str, number: int) -> str:
    """Return the name of a log, for example `relay-bin.000007` for (`relay-bin`, 7).

    The number has six digits, or more if it needs them.
    """
    return f"{base}.{number:06d}"
