"""Converts stored values for ALTER TABLE … MODIFY: the table of rules, and the rules that all kinds of target share.

Each rule returns SQL that computes the new value. If some values cannot be converted exactly, the rule also returns a
condition for them. If a row meets the condition and `known_values` cannot compute its value, the channel stops before
the table is changed. If a pair of types has no rule, only empty tables and NULLs can be converted. A strict source
(sql_mode STRICT_…) refuses to cut data, so the rules only cut data of a source that is not strict. In the table, "same"
is an unchanged value. "stop" means that a row with such a value meets the condition. "only X" means that a row with any
other value meets the condition.

| from → to | value |
|---|---|
| integers, BIT, YEAR among each other | same; out of the new range: stop |
| integer → text | its digits, with the zeros of ZEROFILL |
| integer → DECIMAL | its digits, and zeros after the point |
| integer → FLOAT, DOUBLE | same, up to 2^24 and 2^53 |
| text → integer | only canonical digits |
| text → DOUBLE, FLOAT | only up to 15 digits, and for FLOAT only whole numbers |
| DECIMAL → DECIMAL | zeros added; rounded half away from zero; out of range: stop |
| DECIMAL → integer | a fraction other than zero: stop |
| DECIMAL → text | same, with the zeros of ZEROFILL |
| DECIMAL → DOUBLE | to 15 digits |
| FLOAT → DOUBLE | same |
| DOUBLE → FLOAT; FLOAT, DOUBLE → integer | only whole numbers that fit |
| number → FLOAT(M,D), DOUBLE(M,D) | only whole numbers that fit (DECIMAL: stop); the same D and a greater M: same |
| text → text | same, cut to the length; CHAR without trailing blanks, except under PAD_CHAR_TO_FULL_LENGTH |
| text ↔ binary | UTF-8 bytes; other character sets: only ASCII; BINARY padded with zeros |
| ENUM → ENUM, SET → SET | by label; a dropped label or a new order of a SET: stop |
| ENUM → text | its label |
| text → ENUM | only exact labels |
| ENUM → integer | its index |
| DATETIME, TIMESTAMP among fractions and each other | zeros added; cut (MariaDB) or rounded (MySQL), by sql_mode |
| DATE, TIME among fractions and with DATETIME | zeros added; cut (MariaDB) or stop (MySQL rounds) |
| TIMESTAMP ↔ DATETIME | by a fixed session time zone, else stop |
| UUID, INET, JSON → text | same |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL, DdlContext
from rplctl.schema.default_value import default_value, implicit_default
from rplctl.schema.model import BINARY_TYPES, BLOB_BYTES, GEOMETRY_TYPES, INTEGER_BITS, TEXT_BYTES, Column
from rplctl.schema.value import NotComputable, Value
from rplctl.sql_text import NOTHING, Sql, joined, written

ASCII_CHARSETS = frozenset("ascii latin1 latin2 latin5 latin7 utf8mb3 utf8mb4 cp1250 cp1251 cp1256 cp1257 cp850 cp852 "
                            "cp866 greek hebrew koi8r koi8u macce macroman keybcs2 geostd8 armscii8 tis620 dec8 hp8 "
                            "gbk gb2312 gb18030 big5 euckr ujis eucjpms".split())  # fmt: skip
UTF8_CHARSETS = frozenset({"utf8mb3", "utf8mb4", "ascii"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """SQL that converts an old value to the new value. Rows that meet the condition `impossible` cannot be converted.
    `why` is the reason, for the error text.
    """

    expression: Sql
    impossible: Sql = NOTHING
    why: str = ""


def type_class(column: Column) -> str:
    """Return the group of types to which the column belongs in the table of rules."""
    kind = column.type
    if kind in INTEGER_BITS:
        return "integer"
    if kind in TEXT_BYTES or kind == "varchar":
        return "text"
    if kind in BLOB_BYTES or kind in ("varbinary", "binary"):
        return "binary"
    return "geometry" if kind in GEOMETRY_TYPES else kind


def zerofilled_width(column: Column) -> int:
    """Return the number of characters of each value in a DECIMAL ZEROFILL column as text, including leading zeros.
    Return 0 for other columns.
    """
    is_filled = column.type == "decimal" and column.zerofill
    return (column.length or 10) + bool(column.scale) if is_filled else 0


def keeps_blanks(old: Column, new: Column, context: DdlContext) -> bool:
    """True if the source kept the trailing blanks of a CHAR when it converted the column to text or binary. This
    happens under sql_mode PAD_CHAR_TO_FULL_LENGTH.
    """
    return context.pads_char and old.type == "char" and type_class(new) in ("text", "binary")


def keeps_default(old: Column, new: Column, context: DdlContext) -> bool:
    """True if NULL may become the old default value of a column that becomes NOT NULL, and not the implicit default.

    MariaDB 10.11 stores the old default if it changes the table in place, and the implicit default if it copies the
    table, as it does for another type of number. MySQL always copies the table.
    """
    is_copied = old.type != new.type and {old.type, new.type} <= {*INTEGER_BITS, "decimal"}
    if is_copied or old.default is None or (context.server_version and not context.is_mariadb):
        return False
    try:
        zero: Value = "" if old.type == "enum" else implicit_default(old)
        return default_value(replace(old, nullable=True), context) not in (None, zero)
    except NotComputable:
        return True


def integer_range(column: Column) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer, BIT or YEAR column."""
    if column.type == "year":
        return 0, 2155
    if column.type == "bit":
        return 0, (1 << (column.length or 1)) - 1
    bits = INTEGER_BITS[column.type]
    return (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


@dataclass(frozen=True, kw_only=True)
class Modify(ABC):
    """The conversion of one column from `old` to `new` on a kind of target. RULES maps the groups of the two types to
    the method that converts the values.
    """

    old: Column
    new: Column
    value: Sql  # SQL of the old value
    context: DdlContext

    small: ClassVar[Sql] = NOTHING  # the cast that is appended to a computed YEAR

    def by_rule(self) -> Conversion:
        found: Conversion = getattr(self, RULES.get((type_class(self.old), type_class(self.new)), "impossible"))()
        return found

    def with_default(self, found: Conversion) -> Conversion:
        """Extend the conversion `found` for a column that becomes NOT NULL. If the source was not strict, NULL becomes
        the implicit default.

        In a TIMESTAMP column, NULL becomes the time of the statement, also in strict mode. In strict mode, MySQL
        refuses such a statement, and MariaDB executes it.
        """
        if self.new.nullable or not self.old.nullable:
            return found
        is_time = self.new.type == "timestamp"
        if self.context.is_strict and not is_time:
            return found
        try:
            value: Value
            if is_time:
                now = replace(self.new, default=f"CURRENT_TIMESTAMP({self.new.fraction_digits})")
                value = default_value(now, self.context)
            else:  # an ENUM gets the error value '', not its first label
                value = "" if self.new.type == "enum" else implicit_default(self.new)
                if keeps_default(self.old, self.new, self.context):
                    both = f"its old DEFAULT {self.old.default} or the implicit default"
                    raise NotComputable(f"NULL of column '{self.new.name}' became {both}; only the source knows which")
            zero = self.literal(value)
            return Conversion(
                expression=written("coalesce({}, {})", found.expression, zero),
                impossible=found.impossible,
                why=found.why,
            )
        except NotComputable as error:
            doubts = either(found.impossible, written("{} IS NULL", self.value))
            return Conversion(expression=found.expression, impossible=doubts, why=found.why or str(error))

    # SQL that differs between the kinds

    @abstractmethod
    def literal(self, value: Value) -> Sql:
        """Return a value of the new column as a literal."""

    @abstractmethod
    def nothing(self) -> Sql:
        """Return SQL of the new value if the two types have no rule. All old values are NULL in this case."""

    @abstractmethod
    def retyped(self) -> Sql:
        """Return SQL that converts a floating-point number to the new column's type."""

    @abstractmethod
    def whole(self, number: Sql) -> Sql:
        """Return SQL that cuts the fraction of the number."""

    @abstractmethod
    def size(self, raw: Sql) -> Sql:
        """Return SQL that computes the number of bytes in a binary value."""

    def text_size(self, text: Sql) -> Sql:
        """Return SQL that computes the number of bytes of a text in UTF-8."""
        return self.size(text)

    @abstractmethod
    def zero_padded(self, raw: Sql, length: int) -> Sql:
        """Return SQL that appends zero bytes to a binary value up to `length` bytes, as BINARY(length) does."""

    @abstractmethod
    def has_comma(self, text: Sql) -> Sql: ...

    @abstractmethod
    def fit_text(self, text: Sql) -> Conversion:
        """Return the conversion of a text into the new CHAR(n), VARCHAR(n) or TEXT column, with its limit of length."""

    @abstractmethod
    def refit_fraction(self, value: Sql, old: int, new: int) -> Conversion:
        """Return the conversion of a time from `old` to `new` digits of a fractional second. Added digits are zeros.
        Surplus digits are cut or rounded, as `rounds_fractions` says.
        """

    @property
    def rounds_fractions(self) -> bool:
        """True if the source rounds surplus digits of a second. By default, MySQL rounds and MariaDB cuts, but sql_mode
        can change this.
        """
        mode = self.context.sql_mode
        return bool(mode & TIME_ROUND_FRACTIONAL if self.context.is_mariadb else not mode & TIME_TRUNCATE_FRACTIONAL)

    @property
    def last_moment(self) -> str:
        """The latest value of the new DATETIME or TIMESTAMP column. Rounding up must not exceed this value."""
        last = self.context.timestamp_range[1] if self.new.type == "timestamp" else "9999-12-31 23:59:59"
        return f"{last}.999999"

    @staticmethod
    def half(digits: int) -> int:
        """Return half a unit of the last digit, in microseconds. The SQL adds this value in order to round. `digits`:
        the number of digits of a fractional second.
        """
        return int(10 ** (6 - digits)) // 2

    # the rules that are the same on all kinds

    def impossible(self) -> Conversion:
        if self.old == self.new:
            return Conversion(expression=self.value)
        what = f"{self.old.type} → {self.new.type} of column '{self.old.name}' cannot be converted exactly"
        return Conversion(expression=self.nothing(), impossible=written("{} IS NOT NULL", self.value), why=what)

    def only(self, expression: Sql, impossible: Sql) -> Conversion:
        if not impossible:
            return Conversion(expression=expression)
        what = f"{self.old.type} → {self.new.type} of column '{self.old.name}' would change a value"
        return Conversion(expression=expression, impossible=impossible, why=what)

    def same(self) -> Conversion:
        return Conversion(expression=self.value)

    def year_to_year(self) -> Conversion:
        """Convert between YEAR(4) and YEAR(2). A YEAR(2) has the numbers 0 to 99 for the years 1970 to 2069."""
        if self.old.length == self.new.length:
            return self.same()
        if self.new.length == 2:
            return Conversion(expression=written("({} % 100){}", self.value, self.small))
        return Conversion(
            expression=written("({} + CASE WHEN {} < 70 THEN 2000 ELSE 1900 END){}", self.value, self.value, self.small)
        )

    def float_to_float(self) -> Conversion:
        new, below = self.new, written("{} < 0", self.value) if self.new.unsigned and not self.old.unsigned else NOTHING
        is_wider = (new.length or 0) >= (self.old.length or 0)
        keeps_digits = new.scale is None or (new.type, new.scale) == (self.old.type, self.old.scale) and is_wider
        if keeps_digits and (new.type == "double" or self.old.type == new.type):
            return self.only(self.retyped(), below)
        return self.only(self.retyped(), either(self.not_whole(self.value, self.most_whole(2**24)), below))

    def most_whole(self, exact: int) -> int:
        """Return the largest integer that the new FLOAT or DOUBLE column stores exactly. `exact` is the limit of the
        type. With (M,D), the limit may be lower, because the server reduces numbers that have too many digits.
        """
        new = self.new
        return exact if new.scale is None else min(exact, 10 ** ((new.length or 0) - new.scale) - 1)

    def not_whole(self, number: Sql, limit: int) -> Sql:
        return written("{} <> {} OR {} NOT BETWEEN -{} AND {}", number, self.whole(number), number, limit, limit)

    def text_to_text(self) -> Conversion:
        fitted = self.fit_text(self.value)
        narrower = self.new.charset != "utf8mb4" and self.new.charset != self.old.charset
        if narrower and not self.context.is_strict:  # the source replaced unknown characters with '?'
            return self.only(fitted.expression, written("{} <> length({})", self.text_size(self.value), self.value))
        return fitted

    def fit_binary(self, raw: Sql) -> Conversion:
        kind, length = self.new.type, self.new.length or 0
        if kind == "binary":
            return self.only(self.zero_padded(raw, length), written("{} > {}", self.size(raw), length))
        limit = length if kind == "varbinary" else BLOB_BYTES[kind]
        known = self.old.length if self.old.type in ("binary", "varbinary") else BLOB_BYTES.get(self.old.type)
        if known is not None and known <= limit:
            return Conversion(expression=raw)
        return self.only(raw, written("{} > {}", self.size(raw), limit))

    def binary_to_binary(self) -> Conversion:
        if self.old.type == self.new.type == "binary" and self.old.length == self.new.length:
            return self.same()
        return self.fit_binary(self.value)

    def enum_to_enum(self) -> Conversion:
        if self._has_wide_labels():
            return self.impossible()
        kept, changed = [], []
        is_exact = (self.new.collation or "").endswith(("_bin", "_cs")) or self.new.charset == "binary"
        by_case = {} if is_exact else {label.casefold(): label for label in self.new.labels}
        for label in self.old.labels:
            if label in self.new.labels:
                kept.append(label)
            elif (respelled := by_case.get(label.casefold())) is not None:
                kept.append(label)
                changed.append(written("WHEN {} THEN {}", self.literal(label), self.literal(respelled)))
        expression = (
            written("CASE {} {} ELSE {} END", self.value, joined(" ", changed), self.value) if changed else self.value
        )
        is_known = self.old.charset == self.new.charset or all(label.isascii() for label in kept)
        if kept == [*self.old.labels] and is_known:
            return self.only(expression, NOTHING)
        # the stored label has a '?' for a character that the old character set lacks
        return self.only(expression, written("{} NOT IN ({})", self.value, self._listed(("", *kept))))

    def _has_wide_labels(self) -> bool:
        """True if the labels are converted to bytes from a character set with two or four bytes per letter. MariaDB
        10.11 then shows other labels, so the values cannot be converted.
        """
        return self.old.charset in ("ucs2", "utf16", "utf16le", "utf32") and self.new.charset in ("binary", None)

    def set_to_set(self) -> Conversion:
        if self._has_wide_labels():
            return self.impossible()
        remaining = iter(self.new.labels)
        if all(label in remaining for label in self.old.labels):  # all old labels remain, in the old order
            return self.same()
        known = self._listed(("", *self.new.labels))
        return self.only(self.value, written("{} OR {} NOT IN ({})", self.has_comma(self.value), self.value, known))

    def text_to_enum(self) -> Conversion:
        return self.only(self.value, written("{} NOT IN ({})", self.value, self._listed(self.new.labels)))

    def enum_to_integer(self) -> Conversion:
        pairs = joined(
            " ", (written("WHEN {} THEN {}", self.literal(label), i) for i, label in enumerate(self.old.labels, 1))
        )
        index = written("CASE WHEN {} IS NOT NULL THEN CASE {} {} ELSE 0 END END", self.value, self.value, pairs)
        high = integer_range(self.new)[1]
        if len(self.old.labels) > high:
            return self.only(index, written("{} IS NOT NULL", self.value))
        if all(label.isascii() for label in self.old.labels):
            return self.only(index, NOTHING)
        return self.only(index, written("{} NOT IN ({})", self.value, self._listed(("", *self.old.labels))))

    def integer_to_year(self) -> Conversion:
        known = written("{} BETWEEN 1901 AND 2155", self.value)
        if self.new.length == 2:
            return self.only(
                written("({} % 100){}", self.value, self.small),
                written("NOT ({} BETWEEN 0 AND 99 OR {})", self.value, known),
            )
        return self.only(written("{}{}", self.value, self.small), written("NOT ({} = 0 OR {})", self.value, known))

    def _listed(self, labels: Iterable[str]) -> Sql:
        return joined(", ", (self.literal(label) for label in labels))

    def same_temporal(self) -> Conversion:
        return self.refit_fraction(self.value, self.old.fraction_digits, self.new.fraction_digits)

    def vector(self) -> Conversion:
        return self.same() if self.old.length == self.new.length else self.impossible()


def either(*conditions: Sql) -> Sql:
    """Return the non-empty conditions, joined with OR."""
    return joined(" OR ", (condition for condition in conditions if condition))


RULES: dict[tuple[str, str], str] = {
    **{(a, b): "number_to_integer" for a in ("integer", "bit", "year") for b in ("integer", "bit")},
    ("year", "year"): "year_to_year", ("integer", "year"): "integer_to_year",
    ("decimal", "decimal"): "decimal_to_decimal", ("decimal", "integer"): "decimal_to_integer",
    ("decimal", "double"): "decimal_to_float", ("decimal", "float"): "decimal_to_float",
    ("integer", "decimal"): "integer_to_decimal",
    **{("integer", b): "integer_to_float" for b in ("float", "double")},
    **{(a, b): "float_to_float" for a in ("float", "double") for b in ("float", "double")},
    **{(a, "integer"): "float_to_integer" for a in ("float", "double")},
    **{(a, b): "integer_to_text" for a in ("integer", "year") for b in ("char", "text")},
    **{(a, "integer"): "text_to_integer" for a in ("char", "text")},
    **{(a, b): "text_to_text" for a in ("char", "text") for b in ("char", "text")},
    **{(a, "binary"): "text_to_binary" for a in ("char", "text", "enum", "set", "decimal")},
    **{("binary", b): "binary_to_text" for b in ("char", "text")},
    ("binary", "binary"): "binary_to_binary", ("enum", "enum"): "enum_to_enum", ("set", "set"): "set_to_set",
    **{(a, "enum"): "text_to_enum" for a in ("char", "text")}, ("enum", "integer"): "enum_to_integer",
    **{(a, b): "text_to_float" for a in ("char", "text") for b in ("float", "double")},
    **{(a, b): "plain_to_text" for b in ("char", "text")
       for a in ("decimal", "enum", "set", "date", "time", "datetime", "uuid", "inet4", "inet6", "json")},
    **{(a, a): "same_temporal" for a in ("time", "datetime", "timestamp")}, ("date", "date"): "same",
    ("date", "datetime"): "date_to_datetime", ("datetime", "date"): "datetime_to_date",
    ("timestamp", "datetime"): "between_zones", ("datetime", "timestamp"): "between_zones",
    **{(a, b): "text_to_datetime" for a in ("char", "text") for b in ("date", "time", "datetime")},
    **{(a, a): "same" for a in ("json", "uuid", "inet4", "inet6", "geometry")}, ("vector", "vector"): "vector",
}  # fmt: skip

assert BINARY_TYPES == {"binary", "varbinary", *BLOB_BYTES}
