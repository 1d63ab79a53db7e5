"""What ALTER TABLE … MODIFY makes of stored values in DuckDB: the rules of `target.conversion` over typed columns.

A new column's expression is cast to its type where the table is made anew (`ddl`), so numbers need no cast of their
own. A DECIMAL of more than 38 digits is text here, and converts to nothing but itself.
"""

from __future__ import annotations

from datetime import timedelta

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, DdlContext
from rplctl.schema.default_value import Value
from rplctl.schema.model import Column
from rplctl.target.conversion import ASCII_CHARSETS, UTF8_CHARSETS, Conversion, keeps_blanks
from rplctl.target.duckdb.ddl_type import MOST_DIGITS, ZERO_DATE, declared, literal, typed
from rplctl.target.typed_conversion import TypedModify, zero_moment

_FORMATS = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%d %H:%M:%S", "timestamp": "%Y-%m-%d %H:%M:%S"}


class DuckdbModify(TypedModify):
    def literal(self, value: Value) -> str:
        """Of the new column, or one of the old labels."""
        return literal(value, self.old if self.old.type == "enum" and isinstance(value, str) else self.new)

    def declared(self, column: Column) -> str:
        return declared(column)

    def shown(self) -> str:
        return shown(self.old, self.value)

    def float_of(self, text: str) -> str:
        return f"TRY_CAST(trim({text}) AS {'FLOAT' if self.new.type == 'float' else 'DOUBLE'})"

    def encoded(self, text: str) -> str:
        return f"encode({text})"

    def moved(self, by: timedelta) -> str:
        naive, seconds = f"CAST({self.value} AS TIMESTAMP)", int(by.total_seconds())  # our connections are in UTC
        return f"({naive} + INTERVAL '{seconds} seconds')" if seconds else naive

    def moment(self, text: str) -> str:
        return f"TIMESTAMP '{text}'"

    def text_size(self, text: str) -> str:
        return f"strlen({text})"

    def zero_padded(self, raw: str, length: int) -> str:
        return f"({raw} || unhex(repeat('00', greatest({length} - octet_length({raw}), 0))))"

    def number_to_integer(self) -> Conversion:
        """Integers, BIT and YEAR."""
        return self.only(self.value if self.has_same_type else self.as_new(self.value), self.beyond_integer(self.value))

    def text_to_integer(self) -> Conversion:
        number = f"TRY_CAST({self.value} AS HUGEINT)"
        return self.only(number, self.no_integer(number))

    def integer_to_decimal(self) -> Conversion:
        return self.impossible() if self._is_long() else super().integer_to_decimal()

    def fitted(self) -> str:
        return f"TRY_CAST({self.value} AS {declared(self.new)})"

    def cut(self, digits: int) -> str:
        return self.fitted()

    def beyond(self) -> str:
        """Numbers that do not fit into the new DECIMAL."""
        bad = f"{self.value} IS NOT NULL AND {self.fitted()} IS NULL"
        return f"{bad} OR {self.value} < 0" if self.new.unsigned and not self.old.unsigned else bad

    def _is_long(self) -> bool:
        return any(c.type == "decimal" and (c.length or 10) > MOST_DIGITS for c in (self.old, self.new))

    def decimal_to_decimal(self) -> Conversion:
        return self.impossible() if self._is_long() else super().decimal_to_decimal()

    def decimal_to_integer(self) -> Conversion:
        return self.impossible() if self._is_long() else self.only(self.fitted(), self.no_whole_integer())

    def decimal_to_float(self) -> Conversion:
        """By way of the digits, which are rounded once."""
        if self.new.type == "float" or self.new.scale is not None or (self.old.length or 10) > 15:
            return self.impossible()
        return Conversion(f"CAST(CAST({self.value} AS VARCHAR) AS DOUBLE)")

    def float_to_integer(self) -> Conversion:
        return self.only(self.fitted(), self.float_beyond_integer())

    def binary_to_text(self) -> Conversion:
        text = f"TRY(decode({self.value}))"
        fitted, unread = self.fit_text(text).expression, f"{self.value} IS NOT NULL AND {text} IS NULL"
        if self.new.charset in UTF8_CHARSETS and self.context.is_strict:
            return self.only(fitted, unread)
        if self.new.charset in ASCII_CHARSETS:
            return self.only(fitted, f"{unread} OR octet_length({self.value}) <> length({text})")
        return self.impossible()

    def refit_fraction(self, value: str, old: int, new: int) -> Conversion:
        """Cut: a cast of more digits would keep them."""
        if new >= old:
            return Conversion(value)
        is_finite = f"{value} IS NOT NULL" if self.old.type == "time" else f"isfinite({value})"
        rest = f"(CASE WHEN {is_finite} THEN epoch_us({value}) % {10 ** (6 - new)} ELSE 0 END)"
        cut = f"({value} - {rest} * INTERVAL 1 MICROSECOND)"
        if self.context.is_mariadb and not self.context.sql_mode & TIME_ROUND_FRACTIONAL:
            return Conversion(cut)
        return self.only(cut, f"{rest} <> 0")

    def plain_to_text(self) -> Conversion:
        return self.impossible() if self._is_long() else self.fit_text(self.shown())

    def text_to_datetime(self) -> Conversion:
        made = typed(self.new, self.value).replace("CAST(", "TRY_CAST(", 1)
        is_none = f"({self.value} IS NOT NULL AND {made} IS NULL)"
        return self.only(made, f"{self.value} !~ {self.shape_of_new()} OR {is_none}")


def convert(old: Column, new: Column, value: str, context: DdlContext) -> Conversion:
    """The conversion of one column's stored values; the identity when nothing changes."""
    value = f"rpad({value}, {old.length or 1}, ' ')" if keeps_blanks(old, new, context) else value
    change = DuckdbModify(old, new, value, context)
    return change.with_default(change.by_rule())


def shown(column: Column, value: str) -> str:
    """The value as text, as the source prints it."""
    kind, digits = column.type, column.fraction_digits
    if kind in _FORMATS:
        text = f"strftime({value}, '{_FORMATS[kind]}')"
        if digits:
            text += f" || '.' || left(strftime({value}, '%f'), {digits})"
        return f"CASE WHEN {value} = '{ZERO_DATE}' THEN '{zero_moment(column)}' ELSE {text} END"
    if kind == "time":  # as DuckDB prints it, but for the digits behind the second
        whole, rest = f"split_part(CAST({value} AS VARCHAR), '.', 1)", f"split_part(CAST({value} AS VARCHAR), '.', 2)"
        return f"{whole} || '.' || left(rpad({rest}, 6, '0'), {digits})" if digits else whole
    if kind == "year":
        return f"lpad(CAST({value} AS VARCHAR), {column.length or 4}, '0')"
    text = value if declared(column) == "VARCHAR" else f"CAST({value} AS VARCHAR)"
    if kind == "decimal" and column.scale == column.length:  # DuckDB writes no zero before the point then
        return f"regexp_replace({text}, '^(-?)[.]', '\\10.')"
    return text
