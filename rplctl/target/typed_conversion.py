"""Converts stored values for ALTER TABLE … MODIFY on targets with typed columns (PostgreSQL, DuckDB).

This module has the rules of `target.conversion` that these targets share. The rules are standard SQL, with CAST to the
type of the column on the target. These targets have types for DECIMAL and dates, and store text in UTF-8.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta

from rplctl.schema.model import TEXT_BYTES, Column
from rplctl.sql_text import NOTHING, NULL, Sql, joined, written
from rplctl.target.conversion import ASCII_CHARSETS, UTF8_CHARSETS, Conversion, Modify, either, integer_range
from rplctl.target.ddl_parts import text_literal

CANONICAL_INTEGER = written("'^(0|-?[1-9][0-9]{0,29})$'")


class TypedModify(Modify):
    # SQL that differs between the targets

    @abstractmethod
    def declared(self, column: Column) -> Sql:
        """Return the SQL type that the column has on the target."""

    @abstractmethod
    def shown(self) -> Sql:
        """Return SQL that prints the old value as text, in the format of the source."""

    @abstractmethod
    def float_of(self, text: Sql) -> Sql:
        """Return SQL that converts the text of a decimal number to DOUBLE or FLOAT."""

    @abstractmethod
    def fitted(self) -> Sql:
        """Return SQL that converts the old number to the new DECIMAL type. The number must fit the type."""

    @abstractmethod
    def beyond(self) -> Sql:
        """Return the SQL condition for old numbers that do not fit the new DECIMAL type."""

    @abstractmethod
    def encoded(self, text: Sql) -> Sql:
        """Return SQL that converts a text to its bytes in UTF-8."""

    @abstractmethod
    def moved(self, by: timedelta) -> Sql:
        """Return SQL that adds the offset `by` of a time zone to the old date and time."""

    @abstractmethod
    def moment(self, text: str) -> Sql:
        """Return a date and time as a literal, for a comparison with `moved`."""

    # SQL that is the same on all of these targets

    @property
    def has_same_type(self) -> bool:
        return self.declared(self.old) == self.declared(self.new)

    def as_new(self, value: Sql) -> Sql:
        return written("CAST({} AS {})", value, self.declared(self.new))

    def nothing(self) -> Sql:
        return self.value if self.has_same_type else self.as_new(NULL)

    def retyped(self) -> Sql:
        return self.value if self.old.type == self.new.type else self.as_new(self.value)

    def whole(self, number: Sql) -> Sql:
        return written("trunc({})", number)

    def size(self, raw: Sql) -> Sql:
        return written("octet_length({})", raw)

    def has_comma(self, text: Sql) -> Sql:
        return written("strpos({}, ',') > 0", text)

    def beyond_integer(self, number: Sql) -> Sql:
        """Return the SQL condition for old integer, BIT or YEAR values that are out of the new column's range."""
        low, high = integer_range(self.new)
        old_low, old_high = integer_range(self.old)
        return either(
            written("{} < {}", number, low) if low > old_low else NOTHING,
            written("{} > {}", number, high) if high < old_high else NOTHING,
        )

    def integer_to_text(self) -> Conversion:
        digits, width = self.shown(), self.old.length or 0
        if self.old.zerofill and width:
            digits = written(
                "CASE WHEN length({}) >= {} THEN {} ELSE lpad({}, {}, '0') END", digits, width, digits, digits, width
            )
        return self.fit_text(digits)

    def no_integer(self, number: Sql) -> Sql:
        """Return the SQL condition for old texts that are not an integer in the new column's range. `number`: SQL that
        converts the text to a number.
        """
        low, high = integer_range(self.new)
        is_number, is_beyond = (
            written("{} ~ {}", self.value, CANONICAL_INTEGER),
            written("{} NOT BETWEEN {} AND {}", number, low, high),
        )
        return written("CASE WHEN {} THEN {} ELSE {} IS NOT NULL END", is_number, is_beyond, self.value)

    def text_to_float(self) -> Conversion:
        if self.new.scale is not None or self.new.unsigned:
            return self.impossible()
        return self.only(*self.number_of_text())

    def number_of_text(self) -> tuple[Sql, Sql]:
        """Return SQL that converts a text to DOUBLE or FLOAT, and the condition for texts with an uncertain result.

        The result is certain for a decimal number of at most 36 characters, also with blanks around it. Source and
        target round such a number alike. For any other text, a source without strict mode used the number at the
        beginning of the text.
        """
        exponent = NOTHING if self.new.type == "float" else written("([eE][+-]?[0-9]{1,2})?")
        pattern = written("'^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+){} *$'", exponent)
        number = written("{} ~ {}", self.value, pattern)
        bad = written("{} !~ {} OR length({}) > 36", self.value, pattern, self.value)
        return written("CASE WHEN {} THEN {} END", number, self.float_of(self.value)), bad

    def integer_to_decimal(self) -> Conversion:
        return self.only(self.fitted(), self.beyond())

    def integer_to_float(self) -> Conversion:
        exact = self.most_whole(2**53 if self.new.type == "double" else 2**24)
        return self.only(self.as_new(self.value), written("{} NOT BETWEEN -{} AND {}", self.value, exact, exact))

    def decimal_to_decimal(self) -> Conversion:
        old, new = self.old.scale or 0, self.new.scale or 0
        room = (self.new.length or 10) - new - ((self.old.length or 10) - old)
        bad = [] if room > 0 or (room == 0 and new >= old) else [self.beyond()]  # 9.9 may become 10
        if not bad and self.new.unsigned and not self.old.unsigned:
            bad.append(written("{} < 0", self.value))
        return self.only(self.value if self.has_same_type else self.fitted(), joined(" OR ", bad))

    def cut(self, digits: int) -> Sql:
        """Return SQL that cuts the old DECIMAL to this number of digits after the decimal point."""
        return written("trunc({}, {})", self.value, digits)

    def no_whole_integer(self) -> Sql:
        """Return the SQL condition for old DECIMAL values that are not integers in the new column's range."""
        low, high = integer_range(self.new)
        return written("{} <> trunc({}) OR {} NOT BETWEEN {} AND {}", self.value, self.value, self.value, low, high)

    def float_beyond_integer(self) -> Sql:
        low, high = integer_range(self.new)
        return written("{} OR {} < {} OR {} > {}", self.not_whole(self.value, 2**53), self.value, low, self.value, high)

    def fit_text(self, text: Sql) -> Conversion:
        kind, length = self.new.type, self.new.length
        if kind in ("char", "varchar"):
            known = self.old.length if self.old.type in ("char", "varchar") else None
            grows = known is not None and length is not None and known <= length
            fitted = text if grows else written("left({}, {})", text, length or 0)
            has_no_blanks = kind == "varchar" or (grows and self.old.type == "char")
            return Conversion(expression=fitted if has_no_blanks else written("rtrim({}, ' ')", fitted))
        if self.old.type in TEXT_BYTES and TEXT_BYTES[self.old.type] > TEXT_BYTES[kind]:
            return self.only(text, written("{} > {}", self.text_size(text), TEXT_BYTES[kind]))
        return Conversion(expression=text)

    def text_to_binary(self) -> Conversion:
        charset, text = self.old.charset or "", written("CAST({} AS VARCHAR)", self.value)
        if (charset not in ASCII_CHARSETS and self.old.type != "decimal") or self.old.zerofill:
            return self.impossible()
        is_utf8 = charset in UTF8_CHARSETS or self.old.type == "decimal"
        fitted = self.fit_binary(self.encoded(text))
        bad = NOTHING if is_utf8 else written("{} <> length({})", self.text_size(text), text)
        return self.only(fitted.expression, either(bad, fitted.impossible))

    def date_to_datetime(self) -> Conversion:
        return Conversion(expression=self.as_new(self.value))

    def datetime_to_date(self) -> Conversion:
        day = written("CAST({} AS DATE)", self.value)
        if self.context.is_mariadb or not self.old.fraction_digits:
            return Conversion(expression=day)
        return self.only(
            day, written("isfinite({}) AND {} <> date_trunc('second', {})", self.value, self.value, self.value)
        )

    def between_zones(self) -> Conversion:
        """Convert between TIMESTAMP, which is stored in UTC, and DATETIME. The DATETIME is in the time zone of the
        session that executed the ALTER TABLE.
        """
        offset = self.context.utc_offset()
        if offset is None:
            return self.impossible()
        moved = self.moved(offset if self.old.type == "timestamp" else -offset)
        found = self.refit_fraction(moved, self.old.fraction_digits, self.new.fraction_digits)
        if self.new.type == "datetime":
            return found
        first, last = map(self.moment, self.context.timestamp_range)
        bad = written("isfinite({}) AND date_trunc('second', {}) NOT BETWEEN {} AND {}", self.value, moved, first, last)
        return self.only(found.expression, either(found.impossible, bad))

    def shape_of_new(self) -> Sql:
        """Return a regular expression, as an SQL literal, for texts that are canonical values of the new DATE, TIME or
        DATETIME column.
        """
        shape = {"date": "#{4}-#{2}-#{2}", "time": "#{2}:#{2}:#{2}", "datetime": "#{4}-#{2}-#{2} #{2}:#{2}:#{2}"}
        pattern = shape[self.new.type] + (
            written("[.]#{{{}}}", self.new.fraction_digits) if self.new.fraction_digits else ""
        )
        return text_literal(f"^{pattern.replace('#', '[0-9]')}$")


def zero_moment(column: Column) -> str:
    """Return the zero date or time as the source prints it."""
    digits = column.fraction_digits
    return "0000-00-00" + ("" if column.type == "date" else " 00:00:00") + ("." + "0" * digits if digits else "")
