"""Writes the SQL that converts stored values if the source executes ALTER TABLE … MODIFY.

The SQL implements the rules of `target.conversion` for values that SQLite stores as `ddl_type` describes. Integers
above 2^63-1 are text. SQLite's functions substr and GLOB end at a NUL character, so texts with a NUL need a check.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.context import DdlContext
from rplctl.schema.model import TEXT_BYTES, Column
from rplctl.schema.value import Value
from rplctl.sql_text import NOTHING, NULL, Sql, joined, written
from rplctl.target.conversion import (
    ASCII_CHARSETS,
    UTF8_CHARSETS,
    Conversion,
    Modify,
    either,
    integer_range,
    keeps_blanks,
    type_class,
    zerofilled_width,
)
from rplctl.target.sqlite.ddl_type import literal, text_literal

_INTEGER_DIGITS = 18  # a number with at most this many digits fits into SQLite's integer
_EXACT_DIGITS = 15  # up to this many digits, and their power of ten, are exact doubles; one division rounds as in MySQL


class SqliteModify(Modify):
    def literal(self, value: Value) -> Sql:
        return literal(value)

    def nothing(self) -> Sql:
        return NULL if self.new.nullable else self.value

    def retyped(self) -> Sql:
        return self.value

    def whole(self, number: Sql) -> Sql:
        return written("CAST({} AS INTEGER)", number)

    def size(self, raw: Sql) -> Sql:
        return written("length({})", raw)

    def text_size(self, text: Sql) -> Sql:
        return written("length(CAST({} AS BLOB))", text)

    def zero_padded(self, raw: Sql, length: int) -> Sql:
        return written("CAST(substr(CAST({} || zeroblob({}) AS BLOB), 1, {}) AS BLOB)", raw, length, length)

    def has_comma(self, text: Sql) -> Sql:
        return written("instr({}, ',') > 0", text)

    def number_to_integer(self) -> Conversion:
        """Return the conversion from an integer, BIT or YEAR to an integer or BIT. A number above 2^63-1 is text."""
        low, high = integer_range(self.new)
        old_low, old_high = integer_range(self.old)
        if low <= old_low and old_high <= high:
            return Conversion(expression=self.value)
        limits = [] if low <= old_low else [written("{} < {}", self.value, low)]
        if high < old_high:
            limits.append(written("(typeof({}) = 'text' OR {} > {})", self.value, self.value, min(high, 2**63 - 1)))
        return self.only(self.value, joined(" OR ", limits))

    def integer_to_text(self) -> Conversion:
        digits = written("CAST({} AS TEXT)", self.value)
        width = self.old.length or 0
        if self.old.type == "year":
            width = width or 4
            return self.fit_text(
                written("substr({} || {}, -{})", text_literal("0" * width), self.value, width)
            )  # printf would show NULL as 0
        if self.old.zerofill and width:
            padded = written("substr({} || {}, -{})", text_literal("0" * width), digits, width)
            digits = written("CASE WHEN length({}) >= {} THEN {} ELSE {} END", digits, width, digits, padded)
        return self.fit_text(digits)

    def text_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        number = written("CAST({} AS INTEGER)", self.value)
        bad = written(
            "CAST({} AS TEXT) <> {} OR {} < {} OR {} > {}",
            number,
            self.value,
            number,
            low,
            number,
            min(high, 2**63 - 1),
        )
        return self.only(number, bad)

    def text_to_float(self) -> Conversion:
        if self.new.scale is not None or self.new.unsigned:
            return self.impossible()
        number, bad = text_to_number(self.value)
        return self.only(
            number, bad if self.new.type == "double" else written("{} OR {}", bad, self.not_whole(number, 2**24))
        )

    def integer_to_decimal(self) -> Conversion:
        digits, scale = written("CAST({} AS TEXT)", self.value), self.new.scale or 0
        tail = written(" || {}", text_literal("." + "0" * scale)) if scale else NOTHING
        whole = (self.new.length or 10) - scale
        sign = written(" OR ltrim({}, '-') <> {}", digits, digits) if self.new.unsigned else NOTHING
        return self.only(written("({}{})", digits, tail), written("length(ltrim({}, '-')) > {}{}", digits, whole, sign))

    def integer_to_float(self) -> Conversion:
        exact = self.most_whole(2**53 if self.new.type == "double" else 2**24)
        bad = written("typeof({}) = 'text' OR {} NOT BETWEEN -{} AND {}", self.value, self.value, exact, exact)
        return self.only(written("CAST({} AS REAL)", self.value), bad)

    def decimal_to_decimal(self) -> Conversion:
        old, new, value = self.old.scale or 0, self.new.scale or 0, self.value
        whole = written("substr({}, 1, instr({} || '.', '.') - 1)", value, value)
        bad = [written("length(ltrim({}, '-')) > {}", whole, max((self.new.length or 10) - new, 1))]
        if self.new.unsigned and not self.old.unsigned:
            bad.append(written("{} LIKE '-%'", value))
        expression = value
        if new > old:
            expression = written("({} || {})", value, text_literal(("" if old else ".") + "0" * (new - old)))
        elif new < old:
            if (self.old.length or 10) <= _INTEGER_DIGITS:
                return self._rounded_decimal(old, new)
            cut = old - new + (1 if new == 0 else 0)
            bad.append(written("ltrim(substr({}, -{}), '.0') <> ''", value, cut))
            expression = written("substr({}, 1, length({}) - {})", value, value, cut)
        if (self.new.length or 10) - new >= (self.old.length or 10) - old:
            bad = bad[1:]  # the whole part always fits
        return self.only(expression, joined(" OR ", bad)) if bad else Conversion(expression=expression)

    def _rounded_decimal(self, old: int, new: int) -> Conversion:
        """Return the conversion of a DECIMAL from `old` to fewer digits after the point, `new`.

        Integer arithmetic rounds half away from zero, as on the source.
        """
        digits, unit = written("CAST(replace({}, '.', '') AS INTEGER)", self.value), 10 ** (old - new)
        rounded = written("((abs({}) + {}) / {})", digits, unit // 2, unit)
        text = written("printf('%0{}d', {})", new + 1, rounded)
        if new:
            text = written("substr({0}, 1, length({0}) - {1}) || '.' || substr({0}, -{1})", text, new)
        sign = written("CASE WHEN {} < 0 AND {} > 0 THEN '-' ELSE '' END", digits, rounded)
        bad = written("{} >= {}", rounded, 10 ** (self.new.length or 10))
        if self.new.unsigned and not self.old.unsigned:
            bad = written("{} OR {} < 0", bad, digits)
        return self.only(written("CASE WHEN {} IS NOT NULL THEN {} || {} END", self.value, sign, text), bad)

    def decimal_to_integer(self) -> Conversion:
        whole = written("CAST({} AS INTEGER)", self.value)
        low, high = integer_range(self.new)
        scale = self.old.scale or 0
        bad = written("ltrim(substr({}, -{}), '0') <> '' OR ", self.value, scale) if scale else NOTHING
        digits = written("length(ltrim(substr({}, 1, instr({} || '.', '.') - 1), '-')) > 18", self.value, self.value)
        return self.only(
            whole, written("{}{} OR {} < {} OR {} > {}", bad, digits, whole, low, whole, min(high, 2**63 - 1))
        )

    def decimal_to_float(self) -> Conversion:
        """Return the conversion from DECIMAL to DOUBLE, which divides the digits by a power of ten.

        Up to 15 digits and their power of ten are exact doubles, so the quotient is rounded correctly.
        """
        if self.new.type == "float" or self.new.scale is not None or (self.old.length or 10) > 15:
            return self.impossible()
        return Conversion(
            expression=written("CAST(replace({}, '.', '') AS INTEGER) / 1e{}", self.value, self.old.scale or 0)
        )

    def float_to_integer(self) -> Conversion:
        low, high = integer_range(self.new)
        whole = written("CAST({} AS INTEGER)", self.value)
        bad = written(
            "{} OR {} < {} OR {} > {}", self.not_whole(self.value, 2**53), whole, low, whole, min(high, 2**63 - 1)
        )
        return self.only(whole, bad)

    def fit_text(self, text: Sql) -> Conversion:
        kind, length = self.new.type, self.new.length
        if kind in ("char", "varchar"):
            known = self.old.length if self.old.type in ("char", "varchar", "binary", "varbinary") else None
            grows = known is not None and length is not None and known <= length
            fitted = text if grows else written("substr({}, 1, {})", text, length or 0)
            if kind == "char" and not (grows and self.old.type == "char"):
                fitted = written("rtrim({}, ' ')", fitted)
            if grows or type_class(self.old) not in ("char", "text", "binary"):
                return Conversion(expression=fitted)
            return self.only(fitted, written("instr({}, char(0)) > 0", text))  # SQLite's substr ends at a NUL
        if self.old.type in TEXT_BYTES and TEXT_BYTES[self.old.type] > TEXT_BYTES[kind]:
            return self.only(text, written("length(CAST({} AS BLOB)) > {}", text, TEXT_BYTES[kind]))
        return Conversion(expression=text)

    def text_to_binary(self) -> Conversion:
        charset = self.old.charset or ""
        if charset not in ASCII_CHARSETS or self.old.zerofill:
            return self.impossible()
        bad = (
            NOTHING
            if charset in UTF8_CHARSETS
            else written("length(CAST({} AS BLOB)) <> length({})", self.value, self.value)
        )
        fitted = self.fit_binary(written("CAST({} AS BLOB)", self.value))
        bad = either(bad, fitted.impossible)
        return self.only(fitted.expression, bad) if bad else fitted

    def binary_to_text(self) -> Conversion:
        text = written("CAST({} AS TEXT)", self.value)
        fitted = self.fit_text(text)
        if self.new.charset in UTF8_CHARSETS and self.context.is_strict:
            return fitted
        if self.new.charset in ASCII_CHARSETS:
            high = written(
                "{} GLOB '*[' || char(128) || '-' || char(1114111) || ']*'", text
            )  # also finds bytes that are not UTF-8
            return self.only(fitted.expression, written("length({}) <> length({}) OR {}", text, self.value, high))
        return self.impossible()

    def refit_fraction(self, text: Sql, old: int, new: int) -> Conversion:
        if new >= old:
            zeros = ("" if old else ".") + "0" * (new - old)
            return Conversion(expression=written("({} || {})", text, text_literal(zeros)) if new > old else text)
        cut = old - new + (1 if new == 0 else 0)
        shorter = written("substr({}, 1, length({}) - {})", text, text, cut)
        if not self.rounds_fractions:
            return Conversion(expression=shorter)
        if self.old.type != "time":
            return self._rounded_moment(text, old, new)
        return self.only(shorter, written("ltrim(substr({}, -{}), '.0') <> ''", text, cut))

    def _rounded_moment(self, text: Sql, old: int, new: int) -> Conversion:
        unit = 10 ** (old - new)
        digits = written("((CAST(substr({}, 21) AS INTEGER) + {}) / {})", text, unit // 2, unit)
        is_next, second = written("{} = {}", digits, 10**new), written("substr({}, 1, 19)", text)
        following = written("datetime({}, '+1 second')", second)
        rest = written(" || printf('.%0{}d', {} % {})", new, digits, 10**new) if new else NOTHING
        found = written("CASE WHEN {} THEN {} ELSE {} END{}", is_next, following, second, rest)
        no_second = written("{} IS NULL OR datetime({}) IS NOT {}", following, second, second)
        beyond = written("{} OR {} > {}", no_second, following, text_literal(self.last_moment))
        return self.only(written("({})", found), written("{} AND ({})", is_next, beyond))

    def date_to_datetime(self) -> Conversion:
        return self.refit_fraction(written("({} || ' 00:00:00')", self.value), 0, self.new.fraction_digits)

    def datetime_to_date(self) -> Conversion:
        day = written("substr({}, 1, 10)", self.value)
        if self.context.is_mariadb or not self.old.fraction_digits:
            return Conversion(expression=day)
        return self.only(day, written("ltrim(substr({}, 21), '0') <> ''", self.value))

    def between_zones(self) -> Conversion:
        """Return the conversion between TIMESTAMP and DATETIME, in the time zone of the session that executed ALTER.

        A TIMESTAMP is stored in UTC.
        """
        offset = self.context.utc_offset()
        if offset is None:
            return self.impossible()
        seconds = int(offset.total_seconds()) * (1 if self.old.type == "timestamp" else -1)
        moved, zero = self.value, written("{} LIKE '0000-00-00%'", self.value)
        if seconds:
            by = text_literal(f"{seconds:+d} seconds")
            moved = written("datetime(substr({0}, 1, 19), {1}) || substr({0}, 20)", self.value, by)
            moved = written("CASE WHEN {} THEN {} ELSE {} END", zero, self.value, moved)
        found = self.refit_fraction(moved, self.old.fraction_digits, self.new.fraction_digits)
        if self.new.type == "datetime":
            return found
        first, last = map(text_literal, self.context.timestamp_range)
        no_day = written("{} LIKE '_____00%' OR {} LIKE '________00%'", self.value, self.value)
        # SQLite returns NULL for a time after the year 9999
        beyond = written("coalesce(substr({}, 1, 19) NOT BETWEEN {} AND {}, 1)", moved, first, last)
        bad = written("NOT {} AND ({} OR {})", zero, no_day, beyond)
        return self.only(found.expression, either(found.impossible, bad))

    def plain_to_text(self) -> Conversion:
        if width := zerofilled_width(self.old):
            return self.fit_text(written("substr({} || {}, -{})", text_literal("0" * width), self.value, width))
        return self.fit_text(self.value)

    def text_to_datetime(self) -> Conversion:
        shape = {"date": "####-##-##", "time": "##:##:##", "datetime": "####-##-## ##:##:##"}[self.new.type]
        if digits := self.new.fraction_digits:
            shape += "." + "#" * digits
        return self.only(self.value, written("{} NOT GLOB {}", self.value, text_literal(shape.replace("#", "[0-9]"))))


def convert(old: Column, new: Column, value: Sql, context: DdlContext) -> Conversion:
    """Return the SQL with which MODIFY converts a column's stored values from the type of `old` to that of `new`.

    `value`: the SQL expression of the old value, which is also the result if nothing changes.
    """
    change = SqliteModify(old=old, new=new, value=value, context=context)
    if not keeps_blanks(old, new, context):
        return change.with_default(change.by_rule())
    width = old.length or 1
    filled = written(
        "({} || substr({}, 1, {} - length({})))", value, text_literal(" " * width), width, value
    )  # SQLite's length ends at a NUL
    found = replace(change, value=filled).by_rule()
    return change.with_default(
        change.only(found.expression, either(written("instr({}, char(0)) > 0", value), found.impossible))
    )


def text_to_number(value: Sql) -> tuple[Sql, Sql]:
    """Return SQL that converts a text to DOUBLE, and the condition for texts whose number may differ from the source's.

    MySQL accepts a decimal number with blanks around it, and rounds it once. The condition finds all other texts,
    because a source without strict mode uses the number at their beginning. It also finds numbers with so many digits
    that SQLite may round them in another way.
    """
    body = written("substr(trim({}, ' '), 1 + (substr(trim({}, ' '), 1, 1) IN ('+', '-')))", value, value)
    bad = (
        written("{} GLOB '*[^0-9.]*'", body),
        written("{} NOT GLOB '*[0-9]*'", body),
        written("{} GLOB '*.*.*'", body),
        written("length(replace({}, '.', '')) > {}", body, _EXACT_DIGITS),
        written("length(CAST({} AS BLOB)) <> length({})", value, value),  # a text with a NUL, at which GLOB ends
    )
    return written("CAST({} AS REAL)", value), joined(" OR ", bad)
