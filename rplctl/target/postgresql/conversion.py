"""What ALTER TABLE … MODIFY makes of stored values in PostgreSQL: the rules of `target.conversion` as `USING`
expressions over typed columns.
"""

from __future__ import annotations

from datetime import timedelta

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, DdlContext
from rplctl.schema.default_value import Value
from rplctl.schema.model import Column
from rplctl.target.conversion import ASCII_CHARSETS, UTF8_CHARSETS, Conversion, integer_range, keeps_blanks
from rplctl.target.postgresql.ddl_type import ZERO_DATE, declared, literal
from rplctl.target.typed_conversion import TypedModify, zero_moment

_BEYOND_BIGINT = 1 << 63
_FORMATS = {"date": "YYYY-MM-DD", "datetime": "YYYY-MM-DD HH24:MI:SS", "timestamp": "YYYY-MM-DD HH24:MI:SS"}


class PostgresqlModify(TypedModify):
    small = "::smallint"

    @property
    def number(self) -> str:
        """An integer column's value as a number."""
        return bit_number(self.old, self.value) if self.old.type == "bit" else self.value

    def literal(self, value: Value) -> str:
        return literal(value, self.new)

    def declared(self, column: Column) -> str:
        return declared(column)

    def shown(self) -> str:
        return shown(self.old, self.value)

    def float_of(self, text: str) -> str:
        return f"{text}::double precision{'::real' if self.new.type == 'float' else ''}"

    def encoded(self, text: str) -> str:
        return f"convert_to({text}, 'UTF8')"

    def moved(self, by: timedelta) -> str:
        moved, seconds = f"({self.value} AT TIME ZONE 'UTC')", int(by.total_seconds())
        return f"({moved} + interval '{seconds} seconds')" if seconds else moved

    def moment(self, text: str) -> str:
        return f"'{text}+00'"

    def fitted(self) -> str:
        return self.as_new(self.value)

    def zero_padded(self, raw: str, length: int) -> str:
        return f"({raw} || decode(repeat('00', greatest({length} - octet_length({raw}), 0)), 'hex'))"

    def number_to_integer(self) -> Conversion:
        """Integers, BIT and YEAR."""
        expression = number = self.number
        if self.has_same_type:
            expression = self.value
        if self.new.type == "bit" and expression == number:
            expression = _to_bits(number, self.new.length or 1, integer_range(self.old)[1] >= _BEYOND_BIGINT)
        return self.only(expression, self.beyond_integer(number))

    def text_to_integer(self) -> Conversion:
        number = f"{self.value}::numeric"
        expression = number if self.new.type != "bit" else _to_bits(number, self.new.length or 1, True)
        return self.only(expression, self.no_integer(number))

    def beyond(self) -> str:
        """Numbers whose whole part is too long for the new DECIMAL."""
        scale = self.new.scale or 0
        bad = f"abs(trunc({self.value}::numeric)) >= 1e{(self.new.length or 10) - scale}"
        return f"{bad} OR {self.value} < 0" if self.new.unsigned and not self.old.unsigned else bad

    def decimal_to_integer(self) -> Conversion:
        number = f"trunc({self.value})"
        expression = number if self.new.type != "bit" else _to_bits(number, self.new.length or 1, True)
        return self.only(expression, self.no_whole_integer())

    def decimal_to_float(self) -> Conversion:
        if self.new.type == "float" or self.new.scale is not None or (self.old.length or 10) > 15:
            return self.impossible()
        return Conversion(f"{self.value}::double precision")

    def float_to_integer(self) -> Conversion:
        """By way of BIGINT: a cast to NUMERIC keeps only 6 digits of a real and 15 of a double."""
        return self.only(f"{self.value}::bigint", self.float_beyond_integer())

    def binary_to_text(self) -> Conversion:
        digits, fitted = f"encode({self.value}, 'hex')", self.fit_text(f"convert_from({self.value}, 'UTF8')").expression
        has_nul = f"{digits} ~ '^(..)*00'"  # text has no NUL here
        if self.new.charset in UTF8_CHARSETS and self.context.is_strict:
            return self.only(fitted, has_nul)
        if self.new.charset in ASCII_CHARSETS:
            return self.only(fitted, f"{has_nul} OR {digits} ~ '^(..)*[89a-f]'")
        return self.impossible()

    def refit_fraction(self, value: str, old: int, new: int) -> Conversion:
        """Cut first: the cast would round."""
        if new >= old:
            same = declared(self.old) == declared(self.new) and value == self.value
            return Conversion(value if same else f"({value})::{declared(self.new)}")
        rest = f"(coalesce(EXTRACT(microseconds FROM {value}), 0)::bigint % {10 ** (6 - new)})"
        if self.old.type != "time":
            rest = (
                f"(CASE WHEN isfinite({value}) THEN EXTRACT(microseconds FROM {value})::bigint % {10 ** (6 - new)} END)"
            )
        cut = f"({value} - coalesce({rest}, 0) * interval '1 microsecond')::{declared(self.new)}"
        if self.context.is_mariadb and not self.context.sql_mode & TIME_ROUND_FRACTIONAL:
            return Conversion(cut)
        return self.only(cut, f"{rest} <> 0")

    def plain_to_text(self) -> Conversion:
        return self.fit_text(self.shown() if self.old.type not in ("enum", "set") else self.value)

    def text_to_datetime(self) -> Conversion:
        value = self.value
        if self.new.type != "time":
            value = f"CASE WHEN {value} ~ '^[0:. -]+$' THEN '{ZERO_DATE}' ELSE {value} END"
        return self.only(f"({value})::{declared(self.new)}", f"{self.value} !~ {self.shape_of_new()}")


def convert(old: Column, new: Column, value: str, context: DdlContext) -> Conversion:
    """The conversion of one column's stored values; the identity when nothing changes."""
    value = f"rpad({value}, {old.length or 1})" if keeps_blanks(old, new, context) else value
    change = PostgresqlModify(old, new, value, context)
    return change.with_default(change.by_rule())


def shown(column: Column, value: str) -> str:
    """The value as text, as the source prints it."""
    kind, digits = column.type, column.fraction_digits
    tail = f"substr(to_char({value}, 'US'), 1, {digits})"
    if kind in _FORMATS:
        text = f"to_char({value}, '{_FORMATS[kind]}')" + (f" || '.' || {tail}" if digits else "")
        return f"CASE WHEN {value} = '{ZERO_DATE}' THEN '{zero_moment(column)}' ELSE {text} END"
    if kind == "time":
        micros = f"abs(round(EXTRACT(epoch FROM {value}) * 1000000))::bigint"
        hours, rest = f"({micros} / 3600000000)", f"({micros} % 3600000000)"
        text = (
            f"CASE WHEN {value} < interval '0' THEN '-' ELSE '' END || CASE WHEN {hours} < 100 THEN"
            f" lpad({hours}::text, 2, '0') ELSE {hours}::text END || ':' || lpad(({rest} / 60000000)::text, 2, '0')"
            f" || ':' || lpad(({rest} / 1000000 % 60)::text, 2, '0')"
        )
        return text + (f" || '.' || substr(lpad(({micros} % 1000000)::text, 6, '0'), 1, {digits})" if digits else "")
    if kind == "year":
        return f"lpad({value}::text, {column.length or 4}, '0')"
    if kind in ("inet4", "inet6"):
        return f"host({value})"
    return f"{value}::text"


def bit_number(column: Column, value: str) -> str:
    """BIT as a number."""
    number = f"lpad({value}::text, 64, '0')::bit(64)::bigint"
    if (column.length or 1) < 64:
        return number
    return f"({number} + CASE WHEN {number} < 0 THEN 18446744073709551616 ELSE 0 END)"


def _to_bits(number: str, length: int, is_wide: bool) -> str:
    if is_wide:
        number = f"(CASE WHEN {number} >= {_BEYOND_BIGINT} THEN {number} - {2 * _BEYOND_BIGINT} ELSE {number} END)"
    return f"right(({number})::bigint::bit(64)::text, {length})::bit({length})"
