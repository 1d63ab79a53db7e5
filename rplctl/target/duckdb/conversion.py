"""What ALTER TABLE … MODIFY makes of stored values in DuckDB: the rules of `target.conversion` over typed columns.

A new column's expression is cast to its type where the table is made anew (`ddl`), so numbers need no cast of their
own. A DECIMAL of more than 38 digits is text here, and converts to nothing but itself.
"""

from __future__ import annotations

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, DdlContext
from rplctl.schema.default_value import Value
from rplctl.schema.model import TEXT_BYTES, Column
from rplctl.target.conversion import (
    ASCII_CHARSETS,
    UTF8_CHARSETS,
    Conversion,
    Modify,
    either,
    integer_range,
    keeps_blanks,
)
from rplctl.target.duckdb.ddl_type import MOST_DIGITS, ZERO_DATE, declared, literal, typed

_CANONICAL_INTEGER = "'^(0|-?[1-9][0-9]{0,29})$'"
_FORMATS = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%d %H:%M:%S", "timestamp": "%Y-%m-%d %H:%M:%S"}


class DuckdbModify(Modify):
    def literal(self, value: Value) -> str:
        """Of the new column, or one of the old labels."""
        return literal(value, self.old if self.old.type == "enum" and isinstance(value, str) else self.new)

    def nothing(self) -> str:
        return self.value if declared(self.old) == declared(self.new) else f"CAST(NULL AS {declared(self.new)})"

    def cast(self) -> str:
        return self.value if declared(self.old) == declared(self.new) else f"CAST({self.value} AS {declared(self.new)})"

    def retyped(self) -> str:
        return self.value if self.old.type == self.new.type else f"CAST({self.value} AS {declared(self.new)})"

    def whole(self, number: str) -> str:
        return f"trunc({number})"

    def size(self, raw: str) -> str:
        return f"octet_length({raw})"

    def text_size(self, text: str) -> str:
        return f"strlen({text})"

    def zero_padded(self, raw: str, length: int) -> str:
        return f"({raw} || unhex(repeat('00', greatest({length} - octet_length({raw}), 0))))"

    def has_comma(self, text: str) -> str:
        return f"strpos({text}, ',') > 0"

    def number_to_integer(self) -> Conversion:
        """Integers, BIT and YEAR."""
        low, high = integer_range(self.new)
        old_low, old_high = (0, 2155) if self.old.type == "year" else integer_range(self.old)
        limits = [] if low <= old_low else [f"{self.value} < {low}"]
        if high < old_high:
            limits.append(f"{self.value} > {high}")
        return self.only(self.cast(), " OR ".join(limits))

    def integer_to_text(self) -> Conversion:
        digits = shown(self.old, self.value)
        width = self.old.length or 0
        if self.old.zerofill and width:
            digits = f"CASE WHEN length({digits}) >= {width} THEN {digits} ELSE lpad({digits}, {width}, '0') END"
        return self.fit_text(digits)

    def text_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        number = f"TRY_CAST({self.value} AS HUGEINT)"
        is_number = f"{self.value} ~ {_CANONICAL_INTEGER}"
        bad = f"CASE WHEN {is_number} THEN {number} NOT BETWEEN {low} AND {high} ELSE {self.value} IS NOT NULL END"
        return self.only(number, bad)

    def text_to_float(self) -> Conversion:
        if self.new.scale is not None or self.new.unsigned:
            return self.impossible()
        return self.only(*text_to_number(self.value, is_float=self.new.type == "float"))

    def integer_to_decimal(self) -> Conversion:
        return self.impossible() if self._is_long() else self.only(self.fitted(), self.beyond())

    def fitted(self) -> str:
        return f"TRY_CAST({self.value} AS {declared(self.new)})"

    def beyond(self) -> str:
        """Numbers that do not fit into the new DECIMAL."""
        bad = f"{self.value} IS NOT NULL AND {self.fitted()} IS NULL"
        return f"{bad} OR {self.value} < 0" if self.new.unsigned and not self.old.unsigned else bad

    def _is_long(self) -> bool:
        return any(c.type == "decimal" and (c.length or 10) > MOST_DIGITS for c in (self.old, self.new))

    def integer_to_float(self) -> Conversion:
        exact = 2**53 if self.new.type == "double" else 2**24
        return self.only(self.cast(), f"{self.value} NOT BETWEEN -{exact} AND {exact}")

    def decimal_to_decimal(self) -> Conversion:
        if self._is_long():
            return self.impossible()
        old, new = self.old.scale or 0, self.new.scale or 0
        bad = [] if (self.new.length or 10) - new >= (self.old.length or 10) - old else [self.beyond()]
        if not bad and self.new.unsigned and not self.old.unsigned:
            bad.append(f"{self.value} < 0")
        if new < old:
            bad.append(f"{self.value} <> {self.fitted()}")
        return self.only(self.value if declared(self.old) == declared(self.new) else self.fitted(), " OR ".join(bad))

    def decimal_to_integer(self) -> Conversion:
        if self._is_long():
            return self.impossible()
        low, high = integer_range(self.new)
        bad = f"{self.value} <> trunc({self.value}) OR {self.value} NOT BETWEEN {low} AND {high}"
        return self.only(f"TRY_CAST({self.value} AS {declared(self.new)})", bad)

    def decimal_to_float(self) -> Conversion:
        """By way of the digits, which are rounded once."""
        if self.new.type == "float" or (self.old.length or 10) > 15:
            return self.impossible()
        return Conversion(f"CAST(CAST({self.value} AS VARCHAR) AS DOUBLE)")

    def float_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        bad = f"{self.not_whole(self.value, 2**53)} OR {self.value} < {low} OR {self.value} > {high}"
        return self.only(f"TRY_CAST({self.value} AS {declared(self.new)})", bad)

    def fit_text(self, text: str) -> Conversion:
        kind, length = self.new.type, self.new.length
        if kind == "char":
            return Conversion(f"rtrim(left({text}, {length}), ' ')")
        if kind == "varchar":
            known = self.old.length if self.old.type in ("char", "varchar") else None
            grows = known is not None and length is not None and known <= length
            return Conversion(text if grows else f"left({text}, {length})")
        if self.old.type in TEXT_BYTES and TEXT_BYTES[self.old.type] > TEXT_BYTES[kind]:
            return self.only(text, f"strlen({text}) > {TEXT_BYTES[kind]}")
        return Conversion(text)

    def text_to_binary(self) -> Conversion:
        charset, text = self.old.charset or "", f"CAST({self.value} AS VARCHAR)"
        if charset not in ASCII_CHARSETS and self.old.type != "decimal":
            return self.impossible()
        is_utf8 = charset in UTF8_CHARSETS or self.old.type == "decimal"
        fitted = self.fit_binary(f"encode({text})")
        bad = "" if is_utf8 else f"strlen({text}) <> length({text})"
        return self.only(fitted.expression, either(bad, fitted.impossible))

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
        rest = f"(CASE WHEN {_is_finite(self.old, value)} THEN epoch_us({value}) % {10 ** (6 - new)} ELSE 0 END)"
        cut = f"({value} - {rest} * INTERVAL 1 MICROSECOND)"
        if self.context.is_mariadb and not self.context.sql_mode & TIME_ROUND_FRACTIONAL:
            return Conversion(cut)
        return self.only(cut, f"{rest} <> 0")

    def date_to_datetime(self) -> Conversion:
        return Conversion(self.cast())

    def datetime_to_date(self) -> Conversion:
        day = f"CAST({self.value} AS DATE)"
        if self.context.is_mariadb or not self.old.fraction_digits:
            return Conversion(day)
        return self.only(day, f"isfinite({self.value}) AND {self.value} <> date_trunc('second', {self.value})")

    def between_zones(self) -> Conversion:
        """TIMESTAMP is kept in UTC, DATETIME in the session's time zone of the ALTER."""
        offset = self.context.utc_offset()
        if offset is None:
            return self.impossible()
        seconds = int(offset.total_seconds()) * (1 if self.old.type == "timestamp" else -1)
        naive = f"CAST({self.value} AS TIMESTAMP)"  # our connections are in UTC
        moved = f"({naive} + INTERVAL '{seconds} seconds')" if seconds else naive
        found = self.refit_fraction(moved, self.old.fraction_digits, self.new.fraction_digits)
        if self.new.type == "datetime":
            return found
        first, last = (f"TIMESTAMP '{limit}'" for limit in self.context.timestamp_range)
        bad = f"isfinite({self.value}) AND date_trunc('second', {moved}) NOT BETWEEN {first} AND {last}"
        return self.only(found.expression, either(found.impossible, bad))

    def plain_to_text(self) -> Conversion:
        return self.impossible() if self._is_long() else self.fit_text(shown(self.old, self.value))

    def text_to_datetime(self) -> Conversion:
        shape = {"date": "#{4}-#{2}-#{2}", "time": "#{2}:#{2}:#{2}", "datetime": "#{4}-#{2}-#{2} #{2}:#{2}:#{2}"}
        pattern = shape[self.new.type] + (f"[.]#{{{self.new.fraction_digits}}}" if self.new.fraction_digits else "")
        made = typed(self.new, self.value).replace("CAST(", "TRY_CAST(", 1)
        bad = f"{self.value} !~ '^{pattern.replace('#', '[0-9]')}$' OR ({self.value} IS NOT NULL AND {made} IS NULL)"
        return self.only(made, bad)


def convert(old: Column, new: Column, value: str, context: DdlContext) -> Conversion:
    """The conversion of one column's stored values; the identity when nothing changes."""
    value = f"rpad({value}, {old.length or 1}, ' ')" if keeps_blanks(old, new, context) else value
    change = DuckdbModify(old, new, value, context)
    return change.with_default(change.by_rule())


def shown(column: Column, value: str) -> str:
    """The value as text, as the source prints it."""
    kind, digits = column.type, column.fraction_digits
    if kind in _FORMATS:
        zero = "0000-00-00" + ("" if kind == "date" else " 00:00:00") + ("." + "0" * digits if digits else "")
        text = f"strftime({value}, '{_FORMATS[kind]}')"
        if digits:
            text += f" || '.' || left(strftime({value}, '%f'), {digits})"
        return f"CASE WHEN {value} = '{ZERO_DATE}' THEN '{zero}' ELSE {text} END"
    if kind == "time":  # as DuckDB prints it, but for the digits behind the second
        whole, rest = f"split_part(CAST({value} AS VARCHAR), '.', 1)", f"split_part(CAST({value} AS VARCHAR), '.', 2)"
        return f"{whole} || '.' || left(rpad({rest}, 6, '0'), {digits})" if digits else whole
    if kind == "year":
        return f"lpad(CAST({value} AS VARCHAR), {column.length or 4}, '0')"
    text = value if declared(column) == "VARCHAR" else f"CAST({value} AS VARCHAR)"
    if kind == "decimal" and column.scale == column.length:  # DuckDB writes no zero before the point then
        return f"regexp_replace({text}, '^(-?)[.]', '\\10.')"
    return text


def _is_finite(column: Column, value: str) -> str:
    return f"{value} IS NOT NULL" if column.type == "time" else f"isfinite({value})"


def text_to_number(value: str, *, is_float: bool) -> tuple[str, str]:
    """SQL of the DOUBLE or FLOAT that a text is, and of the condition that it cannot be told to the bit.

    Servers read a decimal number, blanks around it, and round once; DuckDB rounds right. A source without strict mode
    took what other texts began with.
    """
    exponent = "" if is_float else "([eE][+-]?[0-9]{1,2})?"
    number = f"^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+){exponent} *$"
    cast = f"TRY_CAST(trim({value}) AS {'FLOAT' if is_float else 'DOUBLE'})"
    return f"CASE WHEN {value} ~ '{number}' THEN {cast} END", f"{value} !~ '{number}' OR length({value}) > 36"
