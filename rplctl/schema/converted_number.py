"""Reads, rounds, clips and prints numbers as MariaDB 10.11 and MySQL 9.7 do without strict mode.

The conversion is for ALTER TABLE, which changes the type of a column. A value for which there is no tested rule raises
NotComputable.
"""

from __future__ import annotations

import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, isinf

from rplctl.schema.model import INTEGER_BITS, Column
from rplctl.schema.value import NotComputable

_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?\d+)", re.ASCII)
_WIDE = Context(prec=400)  # a text in a column of 300 characters may have 300 digits
_MOST_EXPONENT = 300  # each type clips greater exponents in its own way
_LARGEST_FLOAT = 3.4028234663852886e38
_DIGITS_OF_FLOAT = 6
_FIRST_YEAR, _LAST_YEAR = 1901, 2155


def leading_number(text: str) -> Decimal:
    """Return the decimal number at the beginning of the text, or 0 if the text does not begin with a number.

    Raises NotComputable if the exponent is too large.
    """
    match = _NUMBER.match(text)
    if match is None:
        return Decimal(0)
    number = Decimal(match[1])
    if number and abs(number.adjusted()) > _MOST_EXPONENT:
        raise NotComputable(f"number {match[1]} has a large exponent")
    return number


def leading_integer(text: str) -> int:
    """Return the integer at the beginning of the text, clipped to the range of BIGINT, as MariaDB reads it.

    Return 0 if the text does not begin with an integer.
    """
    match = _INTEGER.match(text)
    return max(-(2**63), min(int(match[1]), 2**63 - 1)) if match else 0


def rounded(number: Decimal, scale: int = 0) -> Decimal:
    """Return the number with `scale` digits after the point. A half is rounded away from zero."""
    return number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)


def clipped_integer(column: Column, number: int) -> int:
    """Return the integer in the column's range that is nearest to the number.

    For a BIT column, a number out of its range gives a value with all bits set.
    """
    if column.type == "bit":
        most = (1 << (column.length or 1)) - 1
        return number if 0 <= number <= most else most
    bits = INTEGER_BITS[column.type]
    low, high = (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    return max(low, min(number, high))


def clipped_decimal(column: Column, number: Decimal) -> str:
    """Return the number that is nearest to this one among those that the DECIMAL column can store, as text."""
    scale = column.scale or 0
    most = Decimal(10 ** (column.length or 10) - 1).scaleb(-scale, _WIDE)
    nearest = max(-most, min(rounded(number, scale), most))
    if not nearest or (column.unsigned and nearest < 0):
        nearest = rounded(Decimal(0), scale)
    return f"{nearest:f}"


def clipped_float(column: Column, value: float) -> float:
    """Return the number as the FLOAT or DOUBLE column stores it.

    In a column of the type (M,D), the fraction has D digits, and a half is rounded to the even digit.
    """
    if column.unsigned and value < 0:
        return 0.0
    if column.scale is not None:
        unit = 10.0**column.scale
        most = 10.0 ** ((column.length or 0) - column.scale) - 1 / unit
        if abs(value) < most:
            whole = floor(value)
            value = whole + round((value - whole) * unit) / unit
        value = max(-most, min(value, most))
    if column.type == "float" and not isinf(value):
        value = max(-_LARGEST_FLOAT, min(value, _LARGEST_FLOAT))
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return value + 0.0 if value else 0.0


def year_of(column: Column, number: int) -> int:
    """Return the value that a YEAR column stores for the number, or 0 if the number is not a year.

    Raises NotComputable for YEAR(2).
    """
    if column.length == 2:
        raise NotComputable("YEAR(2)")
    if number in range(1, 100):
        return number + (1900 if number >= 70 else 2000)
    return number if _FIRST_YEAR <= number <= _LAST_YEAR else 0


def float_text(column: Column, value: float) -> str:
    """Return a FLOAT or DOUBLE as the text that the servers print.

    A DOUBLE has as few digits as possible, and a FLOAT has 6 digits. A column of the type (M,D) has D digits after the
    point.
    """
    if column.scale is not None:
        return f"{value:.{column.scale}f}"
    number = Decimal(repr(value) if column.type == "double" else f"{value:.{_DIGITS_OF_FLOAT - 1}e}")
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0") or "0"
    exponent = number.adjusted()
    if exponent in range(-5, 15):
        return f"{Decimal(f'{number:f}').normalize(_WIDE):f}"
    if exponent < 0 or len(digits) > exponent + 1:
        raise NotComputable(f"{value} as text")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{exponent}"
