"""What ALTER TABLE … MODIFY makes of stored values in SQLite: the rules of `target.conversion` over values as they are
kept (`ddl_type`). Integers past 2^63-1 are text here, and SQLite's substr and GLOB end at a NUL.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, DdlContext
from rplctl.schema.default_value import Value
from rplctl.schema.model import TEXT_BYTES, Column
from rplctl.target.conversion import (
    ASCII_CHARSETS,
    UTF8_CHARSETS,
    Conversion,
    Modify,
    either,
    family,
    integer_range,
    keeps_blanks,
)
from rplctl.target.sqlite.ddl_type import literal

_EXACT_DIGITS = 15  # and their power of ten are both exact doubles: one division rounds as the server does


class SqliteModify(Modify):
    def literal(self, value: Value) -> str:
        return literal(value)

    def nothing(self) -> str:
        return "NULL" if self.new.nullable else self.value

    def retyped(self) -> str:
        return self.value

    def whole(self, number: str) -> str:
        return f"CAST({number} AS INTEGER)"

    def size(self, raw: str) -> str:
        return f"length({raw})"

    def text_size(self, text: str) -> str:
        return f"length(CAST({text} AS BLOB))"

    def zero_padded(self, raw: str, length: int) -> str:
        return f"CAST(substr(CAST({raw} || zeroblob({length}) AS BLOB), 1, {length}) AS BLOB)"

    def has_comma(self, text: str) -> str:
        return f"instr({text}, ',') > 0"

    def number_to_integer(self) -> Conversion:
        """Integers, BIT and YEAR; an unsigned number above 2^63-1 is text."""
        low, high = integer_range(self.new)
        old_low, old_high = integer_range(self.old)
        if low <= old_low and old_high <= high:
            return Conversion(self.value)
        limits = [] if low <= old_low else [f"{self.value} < {low}"]
        if high < old_high:
            limits.append(f"(typeof({self.value}) = 'text' OR {self.value} > {min(high, 2**63 - 1)})")
        return self.only(self.value, " OR ".join(limits))

    def integer_to_text(self) -> Conversion:
        digits = f"CAST({self.value} AS TEXT)"
        width = self.old.length or 0
        if self.old.type == "year":
            width = width or 4
            return self.fit_text(f"substr('{'0' * width}' || {self.value}, -{width})")  # printf would show NULL as 0
        if self.old.zerofill and width:
            padded = f"substr('{'0' * width}' || {digits}, -{width})"
            digits = f"CASE WHEN length({digits}) >= {width} THEN {digits} ELSE {padded} END"
        return self.fit_text(digits)

    def text_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        number = f"CAST({self.value} AS INTEGER)"
        bad = f"CAST({number} AS TEXT) <> {self.value} OR {number} < {low} OR {number} > {min(high, 2**63 - 1)}"
        return self.only(number, bad)

    def text_to_float(self) -> Conversion:
        if self.new.scale is not None or self.new.unsigned:
            return self.impossible()
        number, bad = text_to_number(self.value)
        return self.only(number, bad if self.new.type == "double" else f"{bad} OR {self.not_whole(number, 2**24)}")

    def integer_to_decimal(self) -> Conversion:
        digits, scale = f"CAST({self.value} AS TEXT)", self.new.scale or 0
        tail = f" || '.{'0' * scale}'" if scale else ""
        whole = (self.new.length or 10) - scale
        sign = f" OR ltrim({digits}, '-') <> {digits}" if self.new.unsigned else ""
        return self.only(f"({digits}{tail})", f"length(ltrim({digits}, '-')) > {whole}{sign}")

    def integer_to_float(self) -> Conversion:
        exact = self.most_whole(2**53 if self.new.type == "double" else 2**24)
        bad = f"typeof({self.value}) = 'text' OR {self.value} NOT BETWEEN -{exact} AND {exact}"
        return self.only(f"CAST({self.value} AS REAL)", bad)

    def decimal_to_decimal(self) -> Conversion:
        old, new, value = self.old.scale or 0, self.new.scale or 0, self.value
        whole = f"substr({value}, 1, instr({value} || '.', '.') - 1)"
        bad = [f"length(ltrim({whole}, '-')) > {max((self.new.length or 10) - new, 1)}"]
        if self.new.unsigned and not self.old.unsigned:
            bad.append(f"{value} LIKE '-%'")
        expression = value
        if new > old:
            expression = f"({value} || '{'' if old else '.'}{'0' * (new - old)}')"
        elif new < old:
            cut = old - new + (1 if new == 0 else 0)
            bad.append(f"ltrim(substr({value}, -{cut}), '.0') <> ''")
            expression = f"substr({value}, 1, length({value}) - {cut})"
        if (self.new.length or 10) - new >= (self.old.length or 10) - old:
            bad = bad[1:]  # the whole part always fits
        return self.only(expression, " OR ".join(bad)) if bad else Conversion(expression)

    def decimal_to_integer(self) -> Conversion:
        whole = f"CAST({self.value} AS INTEGER)"
        low, high = integer_range(self.new)
        scale = self.old.scale or 0
        bad = f"ltrim(substr({self.value}, -{scale}), '0') <> '' OR " if scale else ""
        digits = f"length(ltrim(substr({self.value}, 1, instr({self.value} || '.', '.') - 1), '-')) > 18"
        return self.only(whole, f"{bad}{digits} OR {whole} < {low} OR {whole} > {min(high, 2**63 - 1)}")

    def decimal_to_float(self) -> Conversion:
        """Digits and power of ten are both exact floats up to 15 digits, so one division rounds as the server does."""
        if self.new.type == "float" or self.new.scale is not None or (self.old.length or 10) > 15:
            return self.impossible()
        return Conversion(f"CAST(replace({self.value}, '.', '') AS INTEGER) / 1e{self.old.scale or 0}")

    def float_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        whole = f"CAST({self.value} AS INTEGER)"
        bad = f"{self.not_whole(self.value, 2**53)} OR {whole} < {low} OR {whole} > {min(high, 2**63 - 1)}"
        return self.only(whole, bad)

    def fit_text(self, text: str) -> Conversion:
        kind, length = self.new.type, self.new.length
        if kind in ("char", "varchar"):
            known = self.old.length if self.old.type in ("char", "varchar", "binary", "varbinary") else None
            grows = known is not None and length is not None and known <= length
            fitted = text if grows else f"substr({text}, 1, {length})"
            if kind == "char" and not (grows and self.old.type == "char"):
                fitted = f"rtrim({fitted}, ' ')"
            if grows or family(self.old) not in ("char", "text", "binary"):
                return Conversion(fitted)
            return self.only(fitted, f"instr({text}, char(0)) > 0")  # SQLite's substr ends at a NUL
        if self.old.type in TEXT_BYTES and TEXT_BYTES[self.old.type] > TEXT_BYTES[kind]:
            return self.only(text, f"length(CAST({text} AS BLOB)) > {TEXT_BYTES[kind]}")
        return Conversion(text)

    def text_to_binary(self) -> Conversion:
        charset = self.old.charset or ""
        if charset not in ASCII_CHARSETS:
            return self.impossible()
        bad = "" if charset in UTF8_CHARSETS else f"length(CAST({self.value} AS BLOB)) <> length({self.value})"
        fitted = self.fit_binary(f"CAST({self.value} AS BLOB)")
        bad = either(bad, fitted.impossible)
        return self.only(fitted.expression, bad) if bad else fitted

    def binary_to_text(self) -> Conversion:
        text = f"CAST({self.value} AS TEXT)"
        fitted = self.fit_text(text)
        if self.new.charset in UTF8_CHARSETS and self.context.is_strict:
            return fitted
        if self.new.charset in ASCII_CHARSETS:
            high = f"{text} GLOB '*[' || char(128) || '-' || char(1114111) || ']*'"  # bytes that are no UTF-8, too
            return self.only(fitted.expression, f"length({text}) <> length({self.value}) OR {high}")
        return self.impossible()

    def refit_fraction(self, text: str, old: int, new: int) -> Conversion:
        if new >= old:
            zeros = ("" if old else ".") + "0" * (new - old)
            return Conversion(f"({text} || '{zeros}')" if new > old else text)
        cut = old - new + (1 if new == 0 else 0)
        shorter = f"substr({text}, 1, length({text}) - {cut})"
        if self.context.is_mariadb and not self.context.sql_mode & TIME_ROUND_FRACTIONAL:
            return Conversion(shorter)
        return self.only(shorter, f"ltrim(substr({text}, -{cut}), '.0') <> ''")

    def date_to_datetime(self) -> Conversion:
        return self.refit_fraction(f"({self.value} || ' 00:00:00')", 0, self.new.fraction_digits)

    def datetime_to_date(self) -> Conversion:
        day = f"substr({self.value}, 1, 10)"
        if self.context.is_mariadb or not self.old.fraction_digits:
            return Conversion(day)
        return self.only(day, f"ltrim(substr({self.value}, 21), '0') <> ''")

    def between_zones(self) -> Conversion:
        """TIMESTAMP is kept in UTC, DATETIME in the session's time zone of the ALTER."""
        offset = self.context.utc_offset()
        if offset is None:
            return self.impossible()
        seconds = int(offset.total_seconds()) * (1 if self.old.type == "timestamp" else -1)
        moved, zero = self.value, f"{self.value} LIKE '0000-00-00%'"
        if seconds:
            moved = f"datetime(substr({self.value}, 1, 19), '{seconds:+d} seconds') || substr({self.value}, 20)"
            moved = f"CASE WHEN {zero} THEN {self.value} ELSE {moved} END"
        found = self.refit_fraction(moved, self.old.fraction_digits, self.new.fraction_digits)
        if self.new.type == "datetime":
            return found
        first, last = self.context.timestamp_range
        no_day = f"{self.value} LIKE '_____00%' OR {self.value} LIKE '________00%'"
        bad = f"NOT {zero} AND ({no_day} OR substr({moved}, 1, 19) NOT BETWEEN '{first}' AND '{last}')"
        return self.only(found.expression, either(found.impossible, bad))

    def plain_to_text(self) -> Conversion:
        return self.fit_text(self.value)

    def text_to_datetime(self) -> Conversion:
        shape = {"date": "####-##-##", "time": "##:##:##", "datetime": "####-##-## ##:##:##"}[self.new.type]
        if digits := self.new.fraction_digits:
            shape += "." + "#" * digits
        return self.only(self.value, f"{self.value} NOT GLOB '{shape.replace('#', '[0-9]')}'")


def convert(old: Column, new: Column, value: str, context: DdlContext) -> Conversion:
    """The conversion of one column's stored values; the identity when nothing changes."""
    change = SqliteModify(old, new, value, context)
    if not keeps_blanks(old, new, context):
        return change.with_default(change.by_rule())
    width = old.length or 1
    filled = f"({value} || substr('{' ' * width}', 1, {width} - length({value})))"  # a NUL ends what SQLite counts
    found = replace(change, value=filled).by_rule()
    return change.with_default(change.only(found.expression, either(f"instr({value}, char(0)) > 0", found.impossible)))


def text_to_number(value: str) -> tuple[str, str]:
    """SQL of the DOUBLE that a text is, and of the condition that it cannot be told to the bit.

    Servers read a decimal number, blanks around it, and round once. The condition names what is no such number (a
    source without strict mode took what it began with), or has more digits than SQLite surely rounds alike.
    """
    body = f"substr(trim({value}, ' '), 1 + (substr(trim({value}, ' '), 1, 1) IN ('+', '-')))"
    bad = (
        f"{body} GLOB '*[^0-9.]*'",
        f"{body} NOT GLOB '*[0-9]*'",
        f"{body} GLOB '*.*.*'",
        f"length(replace({body}, '.', '')) > {_EXACT_DIGITS}",
        f"length(CAST({value} AS BLOB)) <> length({value})",  # a NUL, which ends it for GLOB
    )
    return f"CAST({value} AS REAL)", " OR ".join(bad)
