"""What ALTER TABLE … MODIFY makes of stored values in PostgreSQL: the rules of `target.conversion` as `USING`
expressions over typed columns.
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
from rplctl.target.postgresql.ddl_type import ZERO_DATE, declared, literal

_BEYOND_BIGINT = 1 << 63
_CANONICAL_INTEGER = "'^(0|-?[1-9][0-9]{0,29})$'"
_FORMATS = {"date": "YYYY-MM-DD", "datetime": "YYYY-MM-DD HH24:MI:SS", "timestamp": "YYYY-MM-DD HH24:MI:SS"}


class PostgresqlModify(Modify):
    small = "::smallint"

    @property
    def number(self) -> str:
        """An integer column's value as a number."""
        return bit_number(self.old, self.value) if self.old.type == "bit" else self.value

    def literal(self, value: Value) -> str:
        return literal(value, self.new)

    def nothing(self) -> str:
        return self.value if declared(self.old) == declared(self.new) else f"NULL::{declared(self.new)}"

    def retyped(self) -> str:
        return self.value if self.old.type == self.new.type else f"{self.value}::{declared(self.new)}"

    def whole(self, number: str) -> str:
        return f"trunc({number})"

    def size(self, raw: str) -> str:
        return f"octet_length({raw})"

    def zero_padded(self, raw: str, length: int) -> str:
        return f"({raw} || decode(repeat('00', greatest({length} - octet_length({raw}), 0)), 'hex'))"

    def has_comma(self, text: str) -> str:
        return f"strpos({text}, ',') > 0"

    def number_to_integer(self) -> Conversion:
        """Integers, BIT and YEAR."""
        low, high = integer_range(self.new)
        old_low, old_high = (0, 2155) if self.old.type == "year" else integer_range(self.old)
        number = self.number
        limits = [] if low <= old_low else [f"{number} < {low}"]
        if high < old_high:
            limits.append(f"{number} > {high}")
        expression = self.value if declared(self.old) == declared(self.new) else number
        if self.new.type == "bit" and expression == number:
            expression = _to_bits(number, self.new.length or 1, old_high >= _BEYOND_BIGINT)
        return self.only(expression, " OR ".join(limits))

    def integer_to_text(self) -> Conversion:
        digits = shown(self.old, self.value)
        width = self.old.length or 0
        if self.old.zerofill and width:
            digits = f"CASE WHEN length({digits}) >= {width} THEN {digits} ELSE lpad({digits}, {width}, '0') END"
        return self.fit_text(digits)

    def text_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        is_number, number = f"{self.value} ~ {_CANONICAL_INTEGER}", f"{self.value}::numeric"
        bad = f"CASE WHEN {is_number} THEN {number} NOT BETWEEN {low} AND {high} ELSE {self.value} IS NOT NULL END"
        expression = number if self.new.type != "bit" else _to_bits(number, self.new.length or 1, True)
        return self.only(expression, bad)

    def text_to_float(self) -> Conversion:
        if self.new.scale is not None or self.new.unsigned:
            return self.impossible()
        return self.only(*text_to_number(self.value, is_float=self.new.type == "float"))

    def integer_to_decimal(self) -> Conversion:
        return self.only(f"{self.value}::{declared(self.new)}", self.beyond())

    def beyond(self) -> str:
        """Numbers whose whole part is too long for the new DECIMAL."""
        scale = self.new.scale or 0
        bad = f"abs(trunc({self.value}::numeric)) >= 1e{(self.new.length or 10) - scale}"
        return f"{bad} OR {self.value} < 0" if self.new.unsigned and not self.old.unsigned else bad

    def integer_to_float(self) -> Conversion:
        exact = 2**53 if self.new.type == "double" else 2**24
        return self.only(f"{self.value}::{declared(self.new)}", f"{self.value} NOT BETWEEN -{exact} AND {exact}")

    def decimal_to_decimal(self) -> Conversion:
        old, new = self.old.scale or 0, self.new.scale or 0
        bad = [] if (self.new.length or 10) - new >= (self.old.length or 10) - old else [self.beyond()]
        if not bad and self.new.unsigned and not self.old.unsigned:
            bad.append(f"{self.value} < 0")
        if new < old:
            bad.append(f"{self.value} <> trunc({self.value}, {new})")
        same = declared(self.old) == declared(self.new)
        return self.only(self.value if same else f"{self.value}::{declared(self.new)}", " OR ".join(bad))

    def decimal_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        bad = f"{self.value} <> trunc({self.value}) OR {self.value} NOT BETWEEN {low} AND {high}"
        number = f"trunc({self.value})"
        return self.only(number if self.new.type != "bit" else _to_bits(number, self.new.length or 1, True), bad)

    def decimal_to_float(self) -> Conversion:
        if self.new.type == "float" or (self.old.length or 10) > 15:
            return self.impossible()
        return Conversion(f"{self.value}::double precision")

    def float_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        bad = f"{self.not_whole(self.value, 2**53)} OR {self.value} < {low} OR {self.value} > {high}"
        return self.only(f"{self.value}::numeric", bad)

    def fit_text(self, text: str) -> Conversion:
        kind, length = self.new.type, self.new.length
        if kind == "char":
            return Conversion(f"rtrim(left({text}, {length}), ' ')")
        if kind == "varchar":
            known = self.old.length if self.old.type in ("char", "varchar") else None
            grows = known is not None and length is not None and known <= length
            return Conversion(text if grows else f"left({text}, {length})")
        if self.old.type in TEXT_BYTES and TEXT_BYTES[self.old.type] > TEXT_BYTES[kind]:
            return self.only(text, f"octet_length({text}) > {TEXT_BYTES[kind]}")
        return Conversion(text)

    def text_to_binary(self) -> Conversion:
        charset, text = self.old.charset or "", f"{self.value}::text"
        if charset not in ASCII_CHARSETS and self.old.type != "decimal":
            return self.impossible()
        is_utf8 = charset in UTF8_CHARSETS or self.old.type == "decimal"
        bad = "" if is_utf8 else f"octet_length({text}) <> length({text})"
        fitted = self.fit_binary(f"convert_to({text}, 'UTF8')")
        bad = either(bad, fitted.impossible)
        return self.only(fitted.expression, bad)

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

    def date_to_datetime(self) -> Conversion:
        return Conversion(f"{self.value}::{declared(self.new)}")

    def datetime_to_date(self) -> Conversion:
        day = f"{self.value}::date"
        if self.context.is_mariadb or not self.old.fraction_digits:
            return Conversion(day)
        return self.only(day, f"isfinite({self.value}) AND {self.value} <> date_trunc('second', {self.value})")

    def between_zones(self) -> Conversion:
        """TIMESTAMP is kept in UTC, DATETIME in the session's time zone of the ALTER."""
        offset = self.context.utc_offset()
        if offset is None:
            return self.impossible()
        seconds = int(offset.total_seconds()) * (1 if self.old.type == "timestamp" else -1)
        moved = f"({self.value} AT TIME ZONE 'UTC')"
        if seconds:
            moved = f"({moved} + interval '{seconds} seconds')"
        found = self.refit_fraction(moved, self.old.fraction_digits, self.new.fraction_digits)
        if self.new.type == "datetime":
            return found
        first, last = (f"'{limit}+00'" for limit in self.context.timestamp_range)
        bad = f"{self.value} <> '-infinity' AND date_trunc('second', {moved}) NOT BETWEEN {first} AND {last}"
        return self.only(found.expression, either(found.impossible, bad))

    def plain_to_text(self) -> Conversion:
        return self.fit_text(shown(self.old, self.value) if self.old.type not in ("enum", "set") else self.value)

    def text_to_datetime(self) -> Conversion:
        shape = {"date": "#{4}-#{2}-#{2}", "time": "#{2}:#{2}:#{2}", "datetime": "#{4}-#{2}-#{2} #{2}:#{2}:#{2}"}
        pattern = shape[self.new.type] + (f"[.]#{{{self.new.fraction_digits}}}" if self.new.fraction_digits else "")
        value = self.value
        if self.new.type != "time":
            value = f"CASE WHEN {value} ~ '^[0:. -]+$' THEN '{ZERO_DATE}' ELSE {value} END"
        bad = f"{self.value} !~ '^{pattern.replace('#', '[0-9]')}$'"
        return self.only(f"({value})::{declared(self.new)}", bad)


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
        zero = "0000-00-00" + ("" if kind == "date" else " 00:00:00") + ("." + "0" * digits if digits else "")
        text = f"to_char({value}, '{_FORMATS[kind]}')" + (f" || '.' || {tail}" if digits else "")
        return f"CASE WHEN {value} = '{ZERO_DATE}' THEN '{zero}' ELSE {text} END"
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


def text_to_number(value: str, *, is_float: bool) -> tuple[str, str]:
    """SQL of the DOUBLE or FLOAT that a text is, and of the condition that it cannot be told to the bit.

    Servers read a decimal number, blanks around it, and round once; PostgreSQL rounds any number right, and refuses
    what is out of range. A source without strict mode took what other texts began with.
    """
    exponent = "" if is_float else "([eE][+-]?[0-9]{1,2})?"
    number = f"^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+){exponent} *$"
    shown = f"{value}::double precision{'::real' if is_float else ''}"
    return f"CASE WHEN {value} ~ '{number}' THEN {shown} END", f"{value} !~ '{number}' OR length({value}) > 36"
