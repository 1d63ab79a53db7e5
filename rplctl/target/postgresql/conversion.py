"""Writes the SQL that converts stored values if the source executes ALTER TABLE … MODIFY.

The SQL is the `USING` expression of ALTER COLUMN … TYPE. It implements the rules of `target.conversion` for PostgreSQL.
"""

from __future__ import annotations

from datetime import timedelta

from rplctl.schema.context import DdlContext
from rplctl.schema.model import BINARY_TYPES, Column
from rplctl.schema.value import Value
from rplctl.sql_text import NOTHING, Sql, written
from rplctl.target.conversion import (
    ASCII_CHARSETS,
    UTF8_CHARSETS,
    Conversion,
    integer_range,
    keeps_blanks,
    zerofilled_width,
)
from rplctl.target.ddl_parts import text_literal
from rplctl.target.postgresql.ddl_type import ZERO_DATE, declared, literal
from rplctl.target.typed_conversion import TypedModify, zero_moment

_BEYOND_BIGINT = 1 << 63
_ZERO = text_literal(ZERO_DATE)
_FORMATS = {
    "date": written("YYYY-MM-DD"),
    "datetime": written("YYYY-MM-DD HH24:MI:SS"),
    "timestamp": written("YYYY-MM-DD HH24:MI:SS"),
}


class PostgresqlModify(TypedModify):
    small = written("::smallint")

    @property
    def number(self) -> Sql:
        """The SQL of an integer or BIT column's value as a number."""
        return bit_number(self.old, self.value) if self.old.type == "bit" else self.value

    def literal(self, value: Value) -> Sql:
        return literal(value, self.new)

    def declared(self, column: Column) -> Sql:
        return declared(column)

    def shown(self) -> Sql:
        return shown(self.old, self.value)

    def float_of(self, text: Sql) -> Sql:
        return written("{}::double precision{}", text, written("::real") if self.new.type == "float" else NOTHING)

    def encoded(self, text: Sql) -> Sql:
        return written("convert_to({}, 'UTF8')", text)

    def moved(self, by: timedelta) -> Sql:
        moved, seconds = written("({} AT TIME ZONE 'UTC')", self.value), int(by.total_seconds())
        return written("({} + interval '{} seconds')", moved, seconds) if seconds else moved

    def moment(self, text: str) -> Sql:
        return text_literal(f"{text}+00")

    def fitted(self) -> Sql:
        return self.as_new(self.value)

    def zero_padded(self, raw: Sql, length: int) -> Sql:
        return written("({} || decode(repeat('00', greatest({} - octet_length({}), 0)), 'hex'))", raw, length, raw)

    def number_to_integer(self) -> Conversion:
        """Return the conversion from an integer, BIT or YEAR to an integer or BIT."""
        expression = number = self.number
        if self.has_same_type:
            expression = self.value
        if self.new.type == "bit" and expression == number:
            expression = _to_bits(number, self.new.length or 1, integer_range(self.old)[1] >= _BEYOND_BIGINT)
        return self.only(expression, self.beyond_integer(number))

    def text_to_integer(self) -> Conversion:
        number = written("{}::numeric", self.value)
        expression = number if self.new.type != "bit" else _to_bits(number, self.new.length or 1, True)
        return self.only(expression, self.no_integer(number))

    def beyond(self) -> Sql:
        """Return the condition for numbers that do not fit the new DECIMAL type."""
        scale = self.new.scale or 0
        rounded = written("round({}::numeric, {})", self.value, scale)
        bad = written("abs(trunc({})) >= 1e{}", rounded, (self.new.length or 10) - scale)
        return written("{} OR {} < 0", bad, self.value) if self.new.unsigned and not self.old.unsigned else bad

    def decimal_to_integer(self) -> Conversion:
        number = written("trunc({})", self.value)
        expression = number if self.new.type != "bit" else _to_bits(number, self.new.length or 1, True)
        return self.only(expression, self.no_whole_integer())

    def decimal_to_float(self) -> Conversion:
        if self.new.type == "float" or self.new.scale is not None or (self.old.length or 10) > 15:
            return self.impossible()
        return Conversion(expression=written("{}::double precision", self.value))

    def float_to_integer(self) -> Conversion:
        """Return the conversion from FLOAT or DOUBLE to an integer, with a cast to BIGINT.

        A cast to NUMERIC would keep only 6 digits of a real, and 15 digits of a double.
        """
        return self.only(written("{}::bigint", self.value), self.float_beyond_integer())

    def binary_to_text(self) -> Conversion:
        digits, fitted = (
            written("encode({}, 'hex')", self.value),
            self.fit_text(written("convert_from({}, 'UTF8')", self.value)).expression,
        )
        has_nul = written("{} ~ '^(..)*00'", digits)  # PostgreSQL's text cannot have a NUL
        if self.new.charset in UTF8_CHARSETS and self.context.is_strict:
            return self.only(fitted, has_nul)
        if self.new.charset in ASCII_CHARSETS:
            return self.only(fitted, written("{} OR {} ~ '^(..)*[89a-f]'", has_nul, digits))
        return self.impossible()

    def refit_fraction(self, value: Sql, old: int, new: int) -> Conversion:
        """Return the conversion of `value` from `old` to `new` digits of a fractional second.

        Surplus digits are cut or rounded before the cast, as on the source, because the cast would always round.
        """
        if new >= old:
            same = declared(self.old) == declared(self.new) and value == self.value
            return Conversion(expression=value if same else written("({})::{}", value, declared(self.new)))
        rounds = self.rounds_fractions and self.old.type != "time"
        if rounds:
            value = written("({} + interval '{} microseconds')", value, self.half(new))
        rest = written("(coalesce(EXTRACT(microseconds FROM {}), 0)::bigint % {})", value, 10 ** (6 - new))
        if self.old.type != "time":
            rest = written(
                "(CASE WHEN isfinite({}) THEN EXTRACT(microseconds FROM {})::bigint % {} END)",
                value,
                value,
                10 ** (6 - new),
            )
        cut = written("({} - coalesce({}, 0) * interval '1 microsecond')::{}", value, rest, declared(self.new))
        if rounds:
            return self.only(cut, written("isfinite({}) AND {} > {}", value, cut, self.moment(self.last_moment)))
        return self.only(cut, written("{} <> 0", rest) if self.rounds_fractions else NOTHING)

    def plain_to_text(self) -> Conversion:
        if width := zerofilled_width(self.old):
            return self.fit_text(written("lpad({}, {}, '0')", self.shown(), width))
        return self.fit_text(self.shown() if self.old.type not in ("enum", "set") else self.value)

    def text_to_datetime(self) -> Conversion:
        value = self.value
        if self.new.type != "time":
            value = written("CASE WHEN {} ~ '^[0:. -]+$' THEN {} ELSE {} END", value, _ZERO, value)
        return self.only(
            written("({})::{}", value, declared(self.new)), written("{} !~ {}", self.value, self.shape_of_new())
        )


def convert(old: Column, new: Column, value: Sql, context: DdlContext) -> Conversion:
    """Return the SQL with which MODIFY converts a column's stored values from the type of `old` to that of `new`.

    `value`: the SQL expression of the old value, which is also the result if nothing changes.
    """
    value = written("rpad({}, {})", value, old.length or 1) if keeps_blanks(old, new, context) else value
    change = PostgresqlModify(old=old, new=new, value=value, context=context)
    return change.with_default(change.by_rule())


def shown(column: Column, value: Sql) -> Sql:
    """Return an SQL expression for the column's value as text, in the format that the source prints."""
    kind, digits = column.type, column.fraction_digits
    tail = written("substr(to_char({}, 'US'), 1, {})", value, digits)
    if kind in _FORMATS:
        text = written("to_char({}, {})", value, text_literal(_FORMATS[kind]))
        text = written("{} || '.' || {}", text, tail) if digits else text
        return written("CASE WHEN {} = {} THEN {} ELSE {} END", value, _ZERO, text_literal(zero_moment(column)), text)
    if kind == "time":
        micros = written("abs(round(EXTRACT(epoch FROM {}) * 1000000))::bigint", value)
        hours, rest = written("({} / 3600000000)", micros), written("({} % 3600000000)", micros)
        text = written(
            "CASE WHEN {} < interval '0' THEN '-' ELSE '' END || CASE WHEN {} < 100 THEN "
            "lpad({}::text, 2, '0') ELSE {}::text END || ':' || lpad(({} / 60000000)::text, 2, '0') "
            "|| ':' || lpad(({} / 1000000 % 60)::text, 2, '0')",
            value,
            hours,
            hours,
            hours,
            rest,
            rest,
        )
        if not digits:
            return text
        return written("{} || '.' || substr(lpad(({} % 1000000)::text, 6, '0'), 1, {})", text, micros, digits)
    if kind == "year":
        return written("lpad({}::text, {}, '0')", value, column.length or 4)
    if kind in ("inet4", "inet6"):
        return written("host({})", value)
    return written("{}::text", value)


def bit_number(column: Column, value: Sql) -> Sql:
    """Return an SQL expression for the value of a BIT column as an unsigned number."""
    number = written("lpad({}::text, 64, '0')::bit(64)::bigint", value)
    if (column.length or 1) < 64:
        return number
    return written("({} + CASE WHEN {} < 0 THEN 18446744073709551616 ELSE 0 END)", number, number)


def _to_bits(number: Sql, length: int, is_wide: bool) -> Sql:
    if is_wide:
        number = written(
            "(CASE WHEN {} >= {} THEN {} - {} ELSE {} END)", number, _BEYOND_BIGINT, number, 2 * _BEYOND_BIGINT, number
        )
    return written("right(({})::bigint::bit(64)::text, {})::bit({})", number, length, length)


def value_key(column: Column, value: Sql) -> Sql:
    """Return an SQL expression for a text that is different for different values of the column.

    Numbers have their digits as text, and bytes have hexadecimal digits.
    """
    if column.type in ("float", "double"):
        return written("{}::double precision::text", value)
    if column.type == "bit":
        return written("{}::text", bit_number(column, value))
    return written("encode({}, 'hex')", value) if column.type in BINARY_TYPES else shown(column, value)
