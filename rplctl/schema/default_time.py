"""Reads default values of the types DATE, TIME, DATETIME and TIMESTAMP as MariaDB 10.11 and MySQL 9.7 do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import date as date_of, datetime, timedelta

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL, DdlContext
from rplctl.schema.model import TEMPORAL_TYPES, Column
from rplctl.schema.value import NotComputable, is_mariadb

NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "CURRENT_DATE", "CURDATE", "CURRENT_TIME", "CURTIME")
_NOW_IN = {name: {kind} for kind in ("date", "time") for name in (f"CURRENT_{kind.upper()}", f"CUR{kind.upper()}")}
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})|(\d{4})(\d\d)(\d\d)", re.ASCII)
_CLOCK = r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
_DATETIME = re.compile(
    rf"(?:(\d{{4}})-(\d{{1,2}})-(\d{{1,2}})(?:[ T]{_CLOCK})?|(\d{{4}})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d))?)", re.ASCII
)
_MOMENT = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d) {_CLOCK}", re.ASCII)
_TIME = re.compile(r"(-?)(\d{1,3}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?", re.ASCII)
_DIGITS_OF_TIME = re.compile(r"(-?)(\d{1,7})(?:\.(\d{1,6}))?", re.ASCII)
_ZERO_DATE = "0000-00-00"
_LAST_SECOND = (838 * 60 + 59) * 60 + 59  # the largest TIME, in seconds
_SECONDS_OF_A_DAY = 24 * 60 * 60


def temporal_value(column: Column, text: str, context: DdlContext) -> str:
    """Return the date or time in this text in the format of the column. The text is parsed as the servers do.

    A month or an hour may have one digit, and the digits may have no separators. Raises NotComputable for other texts.
    """
    if column.type == "date" and (match := _DATE.fullmatch(text)):
        return _date(column, text, [part for part in match.groups() if part is not None])
    if column.type == "time" and (match := _TIME.fullmatch(text)):
        return _time(column, text, match[1], [int(part or 0) for part in match.groups()[1:4]], match[5], context)
    if column.type == "time" and (match := _DIGITS_OF_TIME.fullmatch(text)):
        whole = int(match[2])
        return _time(column, text, match[1], [whole // 10_000, whole // 100 % 100, whole % 100], match[3], context)
    if column.type in ("date", "time") and (match := _MOMENT.fullmatch(text)):
        return _part_of_moment(column, text, match, context)
    if column.type in ("datetime", "timestamp") and (match := _DATETIME.fullmatch(text)):
        year, month, day, *clock = match.groups()[:6] if match[1] else match.groups()[7:]
        date, wanted = _date(column, text, [year, month, day]), column.fraction_digits
        hour, minute, second = (int(part or 0) for part in clock)
        shown = f"{date} {hour:02}:{minute:02}:{second:02}"
        try:
            moment = datetime.fromisoformat(shown)
        except ValueError:  # the zero date, or a date that only sql_mode allows
            is_refused = column.type == "timestamp" and shown != f"{_ZERO_DATE} 00:00:00"
            if is_refused or int(match[7] or 0) or hour > 23 or minute > 59 or second > 59:
                raise NotComputable(f"DEFAULT '{text}' for type {column.type}") from None
            return shown + _digits(0, wanted)
        offset = context.utc_offset() if column.type == "timestamp" else timedelta()
        if offset is None:
            raise NotComputable(f"DEFAULT '{text}' depends on time zone {context.zone_text}")
        try:
            moment += timedelta(microseconds=_microseconds(column, match[7], context)) - offset
        except OverflowError:
            raise NotComputable(f"DEFAULT '{text}' is later than the latest {column.type.upper()}") from None
        return f"{moment.replace(microsecond=0)}{_digits(moment.microsecond, wanted)}"
    raise NotComputable(f"DEFAULT '{text}' for type {column.type}")


def _date(column: Column, text: str, parts: Sequence[str]) -> str:
    year, month, day = map(int, parts)
    date = f"{year:04}-{month:02}-{day:02}"
    if text != date and not text.startswith((f"{date} ", f"{date}T")):  # a complete date is kept, even an invalid one
        with suppress(ValueError):
            return str(date_of(year, month, day))
        raise NotComputable(f"DEFAULT '{text}' of a {column.type} column is not a date")
    return date


def _part_of_moment(column: Column, text: str, match: re.Match[str], context: DdlContext) -> str:
    """Return the date or the time in a text that has both."""
    year, month, day, *clock = (int(part or 0) for part in match.groups()[:6])
    with suppress(ValueError):
        date = str(date_of(year, month, day))
        if column.type == "date" and clock[0] < 24 and max(clock[1:]) < 60 and not (clock == [23, 59, 59] and match[7]):
            return date
        if column.type == "time" and clock[0] < 24:
            return _time(column, text, "", clock, match[7], context, most=_SECONDS_OF_A_DAY - 1)
    raise NotComputable(f"DEFAULT '{text}' for type {column.type}")


def _time(  # noqa: PLR0913 - the parts of a time
    column: Column,
    text: str,
    sign: str,
    clock: Sequence[int],
    fraction: str | None,
    context: DdlContext,
    *,
    most: int = _LAST_SECOND,
) -> str:
    """Return a time in the format of the column. `clock`: hours, minutes and seconds. `most`: the largest number of
    seconds.
    """
    hour, minute, second = clock
    more, microseconds = divmod(_microseconds(column, fraction, context), 1_000_000)
    seconds = (hour * 60 + minute) * 60 + second + more
    if minute > 59 or second > 59 or seconds > most or (seconds == most and microseconds):
        raise NotComputable(f"DEFAULT '{text}' is not a time")
    shown = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{sign if seconds or microseconds else ''}{shown}{_digits(microseconds, column.fraction_digits)}"


def _microseconds(column: Column, digits: str | None, context: DdlContext) -> int:
    """Return the fraction of a second in microseconds, as the column stores it. `digits`: the digits of the fraction.

    Surplus digits are truncated or rounded half up, depending on the server and its sql_mode.
    """
    written, wanted = digits or "", column.fraction_digits
    kept = int(written[:wanted].ljust(wanted, "0") or "0")
    if written[wanted:].strip("0"):
        if is_mariadb(context, f"the fraction of DEFAULT '{column.default}'"):
            rounds = bool(context.sql_mode & TIME_ROUND_FRACTIONAL)
        else:
            rounds = not context.sql_mode & TIME_TRUNCATE_FRACTIONAL
        kept += bool(rounds and written[wanted] >= "5")
    return int(kept * 10 ** (6 - wanted))


def _digits(microseconds: int, wanted: int) -> str:
    return f".{microseconds:06}"[: wanted + 1] if wanted else ""


def time_of_statement(column: Column, function: str, digits: int | None, context: DdlContext) -> str:
    """Return the time of the statement as the value of a column, for a function such as NOW(6).

    `digits`: the fraction digits that the function names, or None. In the case of None, MariaDB fills all fraction
    digits of the column, and MySQL fills none. Raises NotComputable if the time zone is unknown or if the value must be
    rounded.
    """
    moment = context.now(in_utc=column.type == "timestamp")
    if moment is None:
        raise NotComputable(f"CURRENT_TIMESTAMP depends on time zone {context.zone_text}")
    wanted, is_instant = column.fraction_digits, column.type in ("datetime", "timestamp")
    if digits is None:
        digits = wanted if context.is_mariadb and is_instant else 0
    rounds = digits > wanted and not (context.is_mariadb and is_instant)
    if column.type not in _NOW_IN.get(function, TEMPORAL_TYPES) or rounds:
        raise NotComputable(f"DEFAULT {column.default} for type {column.type}")
    forms = {"date": "%Y-%m-%d", "time": "%H:%M:%S"}
    shown = moment.strftime(forms.get(column.type, "%Y-%m-%d %H:%M:%S"))
    return shown + (f".{f'{moment.microsecond:06d}'[:digits]:0<{wanted}}"[: wanted + 1] if wanted else "")
