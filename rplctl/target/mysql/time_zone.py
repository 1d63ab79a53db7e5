"""Finds the time zone for statements that the source executed with time_zone=SYSTEM (design D21).

The event of such a statement does not contain the zone that SYSTEM means on the source. The receiver has asked the
source for this zone (source_zones.py). If SYSTEM means the same zone on both servers, the statement keeps SYSTEM.
Otherwise SYSTEM is replaced by an offset from UTC, or by the name of a zone with the same offset at every time.
Invariant: if a statement depends on the zone, it is executed in the source's zone, or the channel stops before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError, TargetError
from rplctl.event.query import Query
from rplctl.schema.context import DdlContext
from rplctl.schema.model import Column, TableModel
from rplctl.schema.parse import parse_ddl
from rplctl.schema.statement import AddColumn, AlterTable, ChangeColumn, Operation, Repartition
from rplctl.sql_text import text_literal, word, written
from rplctl.system_zone import LOAD_ZONES, SYSTEM, Ask, SystemZone, is_shown_alike, offset_text, read_zone
from rplctl.target.mysql.statement import changes_only_rows

_QUOTED: Final = re.compile(rb"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"|`(?:[^`]|``)*`""", re.S)
_NOW: Final = re.compile(rb"\b(?:NOW|CURRENT_TIMESTAMP|CURRENT_DATE|CURRENT_TIME|CURDATE|CURTIME|LOCALTIME\w*)\b", re.I)
_OF_ZONE: Final = re.compile(rb"TIMESTAMP|UNIXTIME|CONVERT_TZ|SYSDATE|\bSELECT\b|\bSTARTS\b|\bENDS\b|\bAT\b", re.I)
_OF_TABLE: Final = re.compile(rb"\s*(?:CREATE|ALTER)\b.*?\b(?:TABLE|EVENT)\b", re.I | re.S)
_UNKNOWN_HINT: Final = (
    "to let the receiver ask the source, run: rplctl start\n"
    "To name the time zone yourself (init changes only this setting), run: rplctl init --source-time-zone Area/City; "
    "rplctl start"
)


class _Need(Enum):
    """The part of the session's time zone that rplctl must know before it can execute a statement."""

    NOTHING = 0
    MOMENT = 1  # only the offset from UTC at the time of the statement
    ZONE = 2


class TimeZones:
    """Finds names for the source's time zones on one target. `ask`: executes a SELECT on the target."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._words: dict[SystemZone, str] = {}  # '' if the target has no name for the zone

    def of_source(
        self,
        query: Query,
        context: DdlContext,
        zone: SystemZone | None,
        table_model: Callable[[str, str], TableModel | None],
    ) -> Query:
        """Return the statement with `zone` in place of the time zone SYSTEM. `zone` is the zone that SYSTEM means on
        the source, or None if this is unknown. A statement that does not depend on the zone is unchanged. Raises
        TargetError 1846 if the zone is unknown to rplctl or to the target.
        """
        if query.context.time_zone != SYSTEM or (need := _need(query, context, table_model)) is _Need.NOTHING:
            return query
        if zone is None:
            raise _stop("the source's time zone SYSTEM is unknown", _UNKNOWN_HINT)
        if zone not in self._words:
            self._words[zone] = self.word_for(zone)
        text = self._words[zone]
        if not text and need is _Need.MOMENT:
            text = offset_text(zone.offset_at(query.timestamp))
        if not text:
            raise _stop(
                "the target does not know the source's time zone SYSTEM",
                f"{LOAD_ZONES}\nTo continue after that, run: rplctl start",
            )
        return replace(query, context=replace(query.context, time_zone=text))

    def word_for(self, zone: SystemZone) -> str:
        """Return the value of the target's variable time_zone that means this zone, or '' if there is no such value."""
        if read_zone(self._ask, known=zone) == zone:
            return SYSTEM
        if zone.fixed is not None and (text := offset_text(zone.fixed)):
            return text
        alike = is_shown_alike(zone, word("Name"))
        try:
            names = self._ask(
                written(
                    "SELECT Name FROM mysql.time_zone_name WHERE Name NOT LIKE {} AND {} ORDER BY Name",
                    text_literal("%right/%"),
                    alike,
                )
            )
        except TargetError:  # the account may not read the table
            return ""
        return next((str(row[0]) for row in names if read_zone(self._ask, str(row[0]), known=zone) == zone), "")


def _stop(why: str, hint: str) -> TargetError:
    message = f"the statement depends on its session's time zone, and {why}"
    return TargetError(message, errno=er.ALTER_OPERATION_NOT_SUPPORTED_REASON, hint=hint)


def _need(query: Query, context: DdlContext, table_model: Callable[[str, str], TableModel | None]) -> _Need:
    """Return the part of the time zone that rplctl must know to execute the statement. Servers log nearly every ALTER
    TABLE with the zone SYSTEM. Most of these statements do not depend on the zone, and so never stop the channel.
    """
    if changes_only_rows(query.sql_bytes):
        return _Need.ZONE  # a column's default may depend on the zone
    words = _QUOTED.sub(b"''", query.sql_bytes)
    if not _OF_TABLE.match(words):
        return _Need.NOTHING
    try:
        actions = parse_ddl(query.sql_bytes.decode("latin-1"), query.database, context, query.charset)
    except RplError:
        actions = []
    found = _Need.NOTHING
    for action in actions:
        if not isinstance(action, AlterTable):
            break
        model = table_model(*action.name)
        found = max((found, *(_of_operation(each, model) for each in action.operations)), key=lambda need: need.value)
    else:
        if actions:
            return found
    rest = _NOW.sub(b"", words)
    if _OF_ZONE.search(rest):
        return _Need.ZONE
    return _Need.MOMENT if rest != words else _Need.NOTHING


def _of_operation(operation: Operation, model: TableModel | None) -> _Need:
    match operation:
        case AddColumn(column):
            return _of_column(column)
        case ChangeColumn(name, column):
            old = model.find(name) if model is not None else None
            times = ("timestamp", "datetime", "date", "time", "year")
            if old is None or "timestamp" in (old.type, column.type):
                return _Need.ZONE
            return _Need.MOMENT if column.type in times else _of_column(column)
        case Repartition():
            return _Need.ZONE
    return _Need.NOTHING


def _of_column(column: Column) -> _Need:
    if column.generated is not None:
        return _Need.ZONE
    default = column.default or ""
    is_now = _NOW.search(default.encode()) is not None and not _OF_ZONE.search(_NOW.sub(b"", default.encode()))
    if is_now:
        return _Need.MOMENT
    return _Need.ZONE if default and (column.type == "timestamp" or "(" in default) else _Need.NOTHING
