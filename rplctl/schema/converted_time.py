"""Converts dates and times as MariaDB 10.11 and MySQL 9.7 do without strict mode.

The conversion is for ALTER TABLE, which changes the type of a column. A value for which there is no tested rule raises
NotComputable.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from decimal import Decimal

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL, DdlContext
from rplctl.schema.model import Column
from rplctl.schema.value import NotComputable

_SECOND = 1_000_000  # microseconds
_LAST_TIME = ((838 * 60 + 59) * 60 + 59) * _SECOND
_CLOCK = r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
_MOMENT = re.compile(rf"(\d{{4}})-(\d{{1,2}})-(\d{{1,2}})(?:[ T]{_CLOCK})?", re.ASCII)
_TIME = re.compile(r"(-?)(\d{1,3}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?", re.ASCII)


def microseconds_of(text: str) -> int:
    """Return a TIME in microseconds. `text`: the TIME as the servers print it. Raises NotComputable for other texts."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise NotComputable(f"'{text}' is not a time")
    hours, minutes, seconds = (int(part) for part in match.groups()[1:4])
    if minutes > 59 or seconds > 59:
        raise NotComputable(f"'{text}' is not a time")
    number = ((hours * 60 + minutes) * 60 + seconds) * _SECOND + int((match[5] or "").ljust(6, "0"))
    return -number if match[1] else number


def moment_of(text: str) -> datetime:
    """Return the date, or the date and time, in a text such as 2024-01-05 10:11:12.5.

    Raises NotComputable for a text with another spelling, and for zero dates.
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise NotComputable(f"'{text}' is not a date")
    parts = [int(part or 0) for part in match.groups()[:6]]
    try:
        return datetime(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], int((match[7] or "").ljust(6, "0")))
    except ValueError:
        raise NotComputable(f"'{text}' is not a date") from None


def rounds(context: DdlContext) -> bool:
    """True if the source rounds surplus fraction digits of a second, False if it cuts them off.

    MySQL rounds by default. MariaDB rounds if its sql_mode says so.
    """
    if context.is_mariadb:
        return bool(context.sql_mode & TIME_ROUND_FRACTIONAL)
    return not context.sql_mode & TIME_TRUNCATE_FRACTIONAL


def fitted(microseconds: int, digits: int, context: DdlContext) -> int:
    """Return a time in microseconds, cut or rounded to this number of fraction digits of a second.

    The absolute value of a negative time is rounded.
    """
    unit = int(10 ** (6 - digits))
    whole, rest = divmod(abs(microseconds), unit)
    whole += bool(rounds(context) and rest * 2 >= unit)
    return whole * unit * (-1 if microseconds < 0 else 1)


def time_text(microseconds: int, digits: int, context: DdlContext) -> str:
    """Return a TIME in microseconds as text with this number of fraction digits.

    Raises NotComputable if the time is out of the range of the type.
    """
    number = fitted(microseconds, digits, context)
    sign, number = "-" if number < 0 else "", abs(number)
    if number > _LAST_TIME:
        raise NotComputable("a time out of range")
    seconds, rest = divmod(number, _SECOND)
    clock = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return clock + (f".{rest:06}"[: digits + 1] if digits else "")


def moment_text(moment: datetime, column: Column, context: DdlContext) -> str:
    """Return the text of a DATETIME, TIMESTAMP or DATE, cut or rounded to the column's fraction digits.

    Raises NotComputable if the year is below 1000 or above 9999.
    """
    digits = column.fraction_digits
    fraction = fitted(moment.microsecond, digits, context)
    try:
        moment = moment.replace(microsecond=0) + timedelta(microseconds=fraction)
    except OverflowError:
        raise NotComputable(f"'{moment}' is rounded to a later year") from None
    if moment.year < 1000:
        raise NotComputable(f"'{moment}' has a year before 1000")
    if column.type == "date":
        return str(moment.date())
    return f"{moment.replace(microsecond=0)}" + (f".{moment.microsecond:06}"[: digits + 1] if digits else "")


def zero_of(column: Column) -> str:
    """Return the zero value of the column's type as text, for example 0000-00-00."""
    fraction = "." + "0" * column.fraction_digits if column.fraction_digits else ""
    zero = {"date": "0000-00-00", "time": "00:00:00", "datetime": "0000-00-00 00:00:00"}
    return zero.get(column.type, "0000-00-00 00:00:00") + fraction


def number_of(text: str, kind: str) -> Decimal:
    """Return a date or a time as a number that has the same digits: 20240105101112.5, or -101112 for a TIME.

    `kind`: the type of the column.
    """
    sign = "-" if text.startswith("-") and kind == "time" else ""
    whole, _, fraction = text.lstrip("-").partition(".")
    return Decimal(f"{sign}{re.sub('[^0-9]', '', whole)}.{fraction or 0}")


def today(context: DdlContext) -> date:
    """Return the date of the statement in the session's time zone, which a TIME gets if it becomes a DATETIME.

    Raises NotComputable if the time zone is unknown.
    """
    now = context.now(in_utc=False)
    if now is None:
        raise NotComputable(f"the current date depends on time zone {context.zone_text}")
    return now.date()


def time_on(day: date, microseconds: int) -> datetime:
    """Return the date and time of a TIME (in microseconds) on this day. The result may be on another day."""
    return datetime(day.year, day.month, day.day) + timedelta(microseconds=microseconds)


def microseconds_of_number(number: Decimal) -> int:
    """Return a number such as 101112.5 as a TIME (10:11:12.5) in microseconds. Raises NotComputable if it is not a
    time.
    """
    whole = abs(int(number))
    hours, minutes, seconds = whole // 10_000, whole // 100 % 100, whole % 100
    if minutes > 59 or seconds > 59 or hours > 838:
        raise NotComputable(f"{number} is not a time")
    fraction = int((abs(number) - whole) * _SECOND)
    if (abs(number) - whole) * _SECOND != fraction:
        raise NotComputable(f"{number} has more digits than a time")
    microseconds = ((hours * 60 + minutes) * 60 + seconds) * _SECOND + fraction
    return -microseconds if number < 0 else microseconds


def moment_of_number(number: Decimal) -> datetime:
    """Return a number such as 20240105 or 20240105101112.5 as a date and time.

    Raises NotComputable for other numbers.
    """
    whole = int(number)
    digits = str(whole)
    fraction = int((number - whole) * _SECOND)
    if number <= 0 or (number - whole) * _SECOND != fraction or len(digits) not in (8, 14):
        raise NotComputable(f"{number} is not a date")
    try:
        moment = datetime.strptime(digits.ljust(14, "0"), "%Y%m%d%H%M%S")
    except ValueError:
        raise NotComputable(f"{number} is not a date") from None
    return moment.replace(microsecond=fraction)
