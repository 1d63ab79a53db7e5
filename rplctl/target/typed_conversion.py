"""What ALTER TABLE … MODIFY makes of stored values where columns have types of their own (PostgreSQL, DuckDB).

The rules of `target.conversion` that such targets write alike: standard SQL, with CAST to the type that the target
declares. A NUMERIC and a date come as what they are, text in UTF-8.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta

from rplctl.schema.model import TEXT_BYTES, Column
from rplctl.target.conversion import ASCII_CHARSETS, UTF8_CHARSETS, Conversion, Modify, either, integer_range

CANONICAL_INTEGER = "'^(0|-?[1-9][0-9]{0,29})$'"


class TypedModify(Modify):
    # what each target writes in its own words

    @abstractmethod
    def declared(self, column: Column) -> str:
        """The column's type there."""

    @abstractmethod
    def shown(self) -> str:
        """The old value as text, as the source prints it."""

    @abstractmethod
    def float_of(self, text: str) -> str:
        """A text that is a decimal number, as DOUBLE or FLOAT."""

    @abstractmethod
    def fitted(self) -> str:
        """A number as the new DECIMAL, where it fits."""

    @abstractmethod
    def beyond(self) -> str:
        """Numbers that do not fit into the new DECIMAL."""

    @abstractmethod
    def encoded(self, text: str) -> str:
        """Its bytes in UTF-8."""

    @abstractmethod
    def moved(self, by: timedelta) -> str:
        """The old moment in the other zone."""

    @abstractmethod
    def moment(self, text: str) -> str:
        """A literal to compare `moved` with."""

    # what they write alike

    @property
    def has_same_type(self) -> bool:
        return self.declared(self.old) == self.declared(self.new)

    def as_new(self, value: str) -> str:
        return f"CAST({value} AS {self.declared(self.new)})"

    def nothing(self) -> str:
        return self.value if self.has_same_type else self.as_new("NULL")

    def retyped(self) -> str:
        return self.value if self.old.type == self.new.type else self.as_new(self.value)

    def whole(self, number: str) -> str:
        return f"trunc({number})"

    def size(self, raw: str) -> str:
        return f"octet_length({raw})"

    def has_comma(self, text: str) -> str:
        return f"strpos({text}, ',') > 0"

    def beyond_integer(self, number: str) -> str:
        """Integers, BIT and YEAR that are none of the new column."""
        low, high = integer_range(self.new)
        old_low, old_high = integer_range(self.old)
        return either(f"{number} < {low}" if low > old_low else "", f"{number} > {high}" if high < old_high else "")

    def integer_to_text(self) -> Conversion:
        digits, width = self.shown(), self.old.length or 0
        if self.old.zerofill and width:
            digits = f"CASE WHEN length({digits}) >= {width} THEN {digits} ELSE lpad({digits}, {width}, '0') END"
        return self.fit_text(digits)

    def no_integer(self, number: str) -> str:
        """Texts that are none of the new column; `number`: such a text as a number."""
        low, high = integer_range(self.new)
        is_number, is_beyond = f"{self.value} ~ {CANONICAL_INTEGER}", f"{number} NOT BETWEEN {low} AND {high}"
        return f"CASE WHEN {is_number} THEN {is_beyond} ELSE {self.value} IS NOT NULL END"

    def text_to_float(self) -> Conversion:
        if self.new.scale is not None or self.new.unsigned:
            return self.impossible()
        return self.only(*self.number_of_text())

    def number_of_text(self) -> tuple[str, str]:
        """SQL of the DOUBLE or FLOAT that a text is, and of the condition that it cannot be told to the bit.

        Servers read a decimal number, blanks around it, and round once; these targets round right. A source without
        strict mode took what other texts began with.
        """
        exponent = "" if self.new.type == "float" else "([eE][+-]?[0-9]{1,2})?"
        number = f"{self.value} ~ '^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+){exponent} *$'"
        bad = f"{number.replace(' ~ ', ' !~ ', 1)} OR length({self.value}) > 36"
        return f"CASE WHEN {number} THEN {self.float_of(self.value)} END", bad

    def integer_to_decimal(self) -> Conversion:
        return self.only(self.fitted(), self.beyond())

    def integer_to_float(self) -> Conversion:
        exact = self.most_whole(2**53 if self.new.type == "double" else 2**24)
        return self.only(self.as_new(self.value), f"{self.value} NOT BETWEEN -{exact} AND {exact}")

    def decimal_to_decimal(self) -> Conversion:
        old, new = self.old.scale or 0, self.new.scale or 0
        bad = [] if (self.new.length or 10) - new >= (self.old.length or 10) - old else [self.beyond()]
        if not bad and self.new.unsigned and not self.old.unsigned:
            bad.append(f"{self.value} < 0")
        if new < old:
            bad.append(f"{self.value} <> {self.cut(new)}")
        return self.only(self.value if self.has_same_type else self.fitted(), " OR ".join(bad))

    def cut(self, digits: int) -> str:
        """A DECIMAL without what is behind so many digits after the point."""
        return f"trunc({self.value}, {digits})"

    def no_whole_integer(self) -> str:
        """Of DECIMAL."""
        low, high = integer_range(self.new)
        return f"{self.value} <> trunc({self.value}) OR {self.value} NOT BETWEEN {low} AND {high}"

    def float_beyond_integer(self) -> str:
        low, high = integer_range(self.new)
        return f"{self.not_whole(self.value, 2**53)} OR {self.value} < {low} OR {self.value} > {high}"

    def fit_text(self, text: str) -> Conversion:
        kind, length = self.new.type, self.new.length
        if kind in ("char", "varchar"):
            known = self.old.length if self.old.type in ("char", "varchar") else None
            grows = known is not None and length is not None and known <= length
            fitted = text if grows else f"left({text}, {length})"
            has_no_blanks = kind == "varchar" or (grows and self.old.type == "char")
            return Conversion(fitted if has_no_blanks else f"rtrim({fitted}, ' ')")
        if self.old.type in TEXT_BYTES and TEXT_BYTES[self.old.type] > TEXT_BYTES[kind]:
            return self.only(text, f"{self.text_size(text)} > {TEXT_BYTES[kind]}")
        return Conversion(text)

    def text_to_binary(self) -> Conversion:
        charset, text = self.old.charset or "", f"CAST({self.value} AS VARCHAR)"
        if charset not in ASCII_CHARSETS and self.old.type != "decimal":
            return self.impossible()
        is_utf8 = charset in UTF8_CHARSETS or self.old.type == "decimal"
        fitted = self.fit_binary(self.encoded(text))
        bad = "" if is_utf8 else f"{self.text_size(text)} <> length({text})"
        return self.only(fitted.expression, either(bad, fitted.impossible))

    def date_to_datetime(self) -> Conversion:
        return Conversion(self.as_new(self.value))

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
        moved = self.moved(offset if self.old.type == "timestamp" else -offset)
        found = self.refit_fraction(moved, self.old.fraction_digits, self.new.fraction_digits)
        if self.new.type == "datetime":
            return found
        first, last = map(self.moment, self.context.timestamp_range)
        bad = f"isfinite({self.value}) AND date_trunc('second', {moved}) NOT BETWEEN {first} AND {last}"
        return self.only(found.expression, either(found.impossible, bad))

    def shape_of_new(self) -> str:
        """The pattern of a text that is a canonical value of the new DATE, TIME or DATETIME."""
        shape = {"date": "#{4}-#{2}-#{2}", "time": "#{2}:#{2}:#{2}", "datetime": "#{4}-#{2}-#{2} #{2}:#{2}:#{2}"}
        pattern = shape[self.new.type] + (f"[.]#{{{self.new.fraction_digits}}}" if self.new.fraction_digits else "")
        return f"'^{pattern.replace('#', '[0-9]')}$'"


def zero_moment(column: Column) -> str:
    """As the source prints it."""
    digits = column.fraction_digits
    return "0000-00-00" + ("" if column.type == "date" else " 00:00:00") + ("." + "0" * digits if digits else "")
