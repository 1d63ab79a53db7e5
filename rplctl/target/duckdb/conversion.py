"""Converts stored values for ALTER TABLE … MODIFY in DuckDB, by the rules of `target.conversion`.

The statement that rebuilds a table (`ddl`) casts each expression to the new type, so the rules need no such cast. A
DECIMAL with more than 38 digits is stored as text, and cannot be converted to another type.
"""

from __future__ import annotations

from datetime import timedelta

from rplctl.schema.context import DdlContext
from rplctl.schema.model import BINARY_TYPES, Column
from rplctl.schema.value import Value
from rplctl.sql_text import NOTHING, Sql, written
from rplctl.target.conversion import ASCII_CHARSETS, UTF8_CHARSETS, Conversion, keeps_blanks, zerofilled_width
from rplctl.target.ddl_parts import text_literal
from rplctl.target.duckdb.ddl_type import MOST_DIGITS, ZERO_DATE, declared, literal, typed
from rplctl.target.typed_conversion import TypedModify, zero_moment

_ZERO = text_literal(ZERO_DATE)
_FORMATS = {
    "date": written("%Y-%m-%d"),
    "datetime": written("%Y-%m-%d %H:%M:%S"),
    "timestamp": written("%Y-%m-%d %H:%M:%S"),
}


class DuckdbModify(TypedModify):
    def literal(self, value: Value) -> Sql:
        """Return a literal for a value of the new column, or for a label (a text) if the old column is an ENUM."""
        return literal(value, self.old if self.old.type == "enum" and isinstance(value, str) else self.new)

    def declared(self, column: Column) -> Sql:
        return declared(column)

    def shown(self) -> Sql:
        return shown(self.old, self.value)

    def float_of(self, text: Sql) -> Sql:
        return written(
            "TRY_CAST(trim({}) AS {})", text, written("FLOAT") if self.new.type == "float" else written("DOUBLE")
        )

    def encoded(self, text: Sql) -> Sql:
        return written("encode({})", text)

    def moved(self, by: timedelta) -> Sql:
        naive, seconds = (
            written("CAST({} AS TIMESTAMP)", self.value),
            int(by.total_seconds()),
        )  # rplctl's connections have the time zone UTC
        return written("({} + INTERVAL '{} seconds')", naive, seconds) if seconds else naive

    def moment(self, text: str) -> Sql:
        return written("TIMESTAMP {}", text_literal(text))

    def text_size(self, text: Sql) -> Sql:
        return written("strlen({})", text)

    def zero_padded(self, raw: Sql, length: int) -> Sql:
        return written("({} || unhex(repeat('00', greatest({} - octet_length({}), 0))))", raw, length, raw)

    def number_to_integer(self) -> Conversion:
        """Return the conversion of an integer, BIT or YEAR into another integer or BIT type."""
        return self.only(self.value if self.has_same_type else self.as_new(self.value), self.beyond_integer(self.value))

    def text_to_integer(self) -> Conversion:
        number = written("TRY_CAST({} AS HUGEINT)", self.value)
        return self.only(number, self.no_integer(number))

    def integer_to_decimal(self) -> Conversion:
        return self.impossible() if self._is_long() else super().integer_to_decimal()

    def fitted(self) -> Sql:
        return written("TRY_CAST({} AS {})", self.value, declared(self.new))

    def cut(self, digits: int) -> Sql:
        return self.fitted()

    def beyond(self) -> Sql:
        """Return the SQL condition for old numbers that do not fit the new DECIMAL type."""
        bad = written("{} IS NOT NULL AND {} IS NULL", self.value, self.fitted())
        return written("{} OR {} < 0", bad, self.value) if self.new.unsigned and not self.old.unsigned else bad

    def _is_long(self) -> bool:
        return any(c.type == "decimal" and (c.length or 10) > MOST_DIGITS for c in (self.old, self.new))

    def decimal_to_decimal(self) -> Conversion:
        return self.impossible() if self._is_long() else super().decimal_to_decimal()

    def decimal_to_integer(self) -> Conversion:
        return self.impossible() if self._is_long() else self.only(self.fitted(), self.no_whole_integer())

    def decimal_to_float(self) -> Conversion:
        """Return the conversion of DECIMAL to DOUBLE. It reads the decimal digits as text, so that the number is
        rounded only once.
        """
        if self.new.type == "float" or self.new.scale is not None or (self.old.length or 10) > 15:
            return self.impossible()
        return Conversion(expression=written("CAST(CAST({} AS VARCHAR) AS DOUBLE)", self.value))

    def float_to_integer(self) -> Conversion:
        return self.only(self.fitted(), self.float_beyond_integer())

    def binary_to_text(self) -> Conversion:
        text = written("TRY(decode({}))", self.value)
        fitted, unread = self.fit_text(text).expression, written("{} IS NOT NULL AND {} IS NULL", self.value, text)
        if self.new.charset in UTF8_CHARSETS and self.context.is_strict:
            return self.only(fitted, unread)
        if self.new.charset in ASCII_CHARSETS:
            return self.only(fitted, written("{} OR octet_length({}) <> length({})", unread, self.value, text))
        return self.impossible()

    def refit_fraction(self, value: Sql, old: int, new: int) -> Conversion:
        """Return the conversion of a time to fewer digits of a fractional second. It cuts or rounds surplus digits,
        because a cast in DuckDB would keep them.
        """
        if new >= old:
            return Conversion(expression=value)
        rounds = self.rounds_fractions and self.old.type != "time"
        if rounds:
            value = written("({} + INTERVAL {} MICROSECOND)", value, self.half(new))
        is_finite, rest = written("isfinite({})", value), written("epoch_us({}) % {}", value, unit := 10 ** (6 - new))
        if self.old.type == "time":
            is_finite = written("{} IS NOT NULL", value)
        else:  # epoch_us of a time before 1970 is negative; such a time, too, must be cut to an earlier time
            rest = written("({} + {}) % {}", rest, unit, unit)
        rest = written("(CASE WHEN {} THEN {} ELSE 0 END)", is_finite, rest)
        cut = written("({} - {} * INTERVAL 1 MICROSECOND)", value, rest)
        if rounds:
            return self.only(cut, written("isfinite({}) AND {} > {}", value, cut, self.moment(self.last_moment)))
        return self.only(cut, written("{} <> 0", rest) if self.rounds_fractions else NOTHING)

    def plain_to_text(self) -> Conversion:
        if self._is_long():
            return self.impossible()
        width = zerofilled_width(self.old)
        return self.fit_text(written("lpad({}, {}, '0')", self.shown(), width) if width else self.shown())

    def text_to_datetime(self) -> Conversion:
        made = typed(self.new, self.value, tries=True)
        is_none = written("({} IS NOT NULL AND {} IS NULL)", self.value, made)
        return self.only(made, written("{} !~ {} OR {}", self.value, self.shape_of_new(), is_none))


def convert(old: Column, new: Column, value: Sql, context: DdlContext) -> Conversion:
    """Return the conversion of a column's stored values by MODIFY. `value`: SQL of the old value. If the value does not
    change, the conversion's expression is `value`.
    """
    value = written("rpad({}, {}, ' ')", value, old.length or 1) if keeps_blanks(old, new, context) else value
    change = DuckdbModify(old=old, new=new, value=value, context=context)
    return change.with_default(change.by_rule())


def shown(column: Column, value: Sql) -> Sql:
    """Return SQL that prints the value as text in the format of the source."""
    kind, digits = column.type, column.fraction_digits
    if kind in _FORMATS:
        text = written("strftime({}, {})", value, text_literal(_FORMATS[kind]))
        if digits:
            text = written("{} || '.' || left(strftime({}, '%f'), {})", text, value, digits)
        return written("CASE WHEN {} = {} THEN {} ELSE {} END", value, _ZERO, text_literal(zero_moment(column)), text)
    if kind == "time":  # DuckDB's format, except for the fraction of a second
        whole, rest = (
            written("split_part(CAST({} AS VARCHAR), '.', 1)", value),
            written("split_part(CAST({} AS VARCHAR), '.', 2)", value),
        )
        return written("{} || '.' || left(rpad({}, 6, '0'), {})", whole, rest, digits) if digits else whole
    if kind == "year":
        return written("lpad(CAST({} AS VARCHAR), {}, '0')", value, column.length or 4)
    text = value if declared(column) == "VARCHAR" else written("CAST({} AS VARCHAR)", value)
    if kind == "decimal" and column.scale == column.length:  # DuckDB prints no zero before the decimal point
        return written("regexp_replace({}, '^(-?)[.]', '\\10.')", text)
    return text


def value_key(column: Column, value: Sql) -> Sql:
    """Return SQL that prints a value as a unique text: numbers with all digits, and bytes as hexadecimal digits."""
    if column.type in ("float", "double"):
        return written("CAST(CAST({} AS DOUBLE) AS VARCHAR)", value)
    return written("hex({})", value) if column.type in BINARY_TYPES else shown(column, value)
