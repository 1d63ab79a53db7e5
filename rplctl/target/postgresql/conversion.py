"""What ALTER TABLE … MODIFY makes of stored values in PostgreSQL: `USING` expressions that give what the source has.

The rules are those of SQLite's `conversion`, which has them in a table; here they are written over typed columns.
Where some values cannot be converted exactly, a condition finds them, and the channel stops before anything is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, DdlContext
from rplctl.schema.default_value import NotComputable, implicit_default
from rplctl.schema.model import BLOB_BYTES, TEXT_BYTES, Column
from rplctl.target.conversion import ASCII_CHARSETS, UTF8_CHARSETS, Conversion, family, integer_range, keeps_blanks
from rplctl.target.postgresql.ddl_type import ZERO_DATE, declared, literal, text_literal

_BEYOND_BIGINT = 1 << 63
_CANONICAL_INTEGER = "'^(0|-?[1-9][0-9]{0,29})$'"
_FORMATS = {"date": "YYYY-MM-DD", "datetime": "YYYY-MM-DD HH24:MI:SS", "timestamp": "YYYY-MM-DD HH24:MI:SS"}


@dataclass(frozen=True, slots=True)
class _Case:
    old: Column
    new: Column
    value: str  # SQL of the old value
    context: DdlContext

    @property
    def number(self) -> str:
        """An integer column's value as a number."""
        return bit_number(self.old, self.value) if self.old.type == "bit" else self.value


def convert(old: Column, new: Column, value: str, context: DdlContext) -> Conversion:
    """The conversion of one column's stored values; the identity when nothing changes."""
    rule = _RULES.get((family(old), family(new)), _impossible)
    value = f"rpad({value}, {old.length or 1})" if keeps_blanks(old, new, context) else value
    found = rule(_Case(old, new, value, context))
    if not new.nullable and old.nullable and not context.is_strict:
        try:
            zero = literal(implicit_default(new), new)
            return Conversion(f"coalesce({found.expression}, {zero})", found.impossible, found.why)
        except NotComputable as error:
            return Conversion(found.expression, f"{value} IS NULL", str(error))
    return found


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


def _impossible(case: _Case) -> Conversion:
    if case.old == case.new:
        return Conversion(case.value)
    what = f"{case.old.type} → {case.new.type} of column '{case.old.name}' cannot be converted exactly"
    expression = case.value if declared(case.old) == declared(case.new) else f"NULL::{declared(case.new)}"
    return Conversion(expression, f"{case.value} IS NOT NULL", what)


def _only(case: _Case, expression: str, impossible: str) -> Conversion:
    if not impossible:
        return Conversion(expression)
    what = f"{case.old.type} → {case.new.type} of column '{case.old.name}' would change a value"
    return Conversion(expression, impossible, what)


def _same(case: _Case) -> Conversion:
    return Conversion(case.value)


def _number_to_integer(case: _Case) -> Conversion:
    """Integers, BIT and YEAR."""
    low, high = integer_range(case.new)
    old_low, old_high = (0, 2155) if case.old.type == "year" else integer_range(case.old)
    number = case.number
    limits = [] if low <= old_low else [f"{number} < {low}"]
    if high < old_high:
        limits.append(f"{number} > {high}")
    expression = case.value if declared(case.old) == declared(case.new) else number
    if case.new.type == "bit" and expression == number:
        expression = _to_bits(number, case.new.length or 1, old_high >= _BEYOND_BIGINT)
    return _only(case, expression, " OR ".join(limits))


def _to_bits(number: str, length: int, is_wide: bool) -> str:
    if is_wide:
        number = f"(CASE WHEN {number} >= {_BEYOND_BIGINT} THEN {number} - {2 * _BEYOND_BIGINT} ELSE {number} END)"
    return f"right(({number})::bigint::bit(64)::text, {length})::bit({length})"


def _year_to_year(case: _Case) -> Conversion:
    """YEAR(2) holds 0 to 99, of 1970 to 2069."""
    if case.old.length == case.new.length:
        return _same(case)
    if case.new.length == 2:
        return Conversion(f"({case.value} % 100)::smallint")
    return Conversion(f"({case.value} + CASE WHEN {case.value} < 70 THEN 2000 ELSE 1900 END)::smallint")


def _integer_to_year(case: _Case) -> Conversion:
    number = case.number
    if case.new.length == 2:
        bad = f"NOT ({number} BETWEEN 0 AND 99 OR {number} BETWEEN 1901 AND 2155)"
        return _only(case, f"(({number}) % 100)::smallint", bad)
    return _only(case, f"({number})::smallint", f"NOT ({number} = 0 OR {number} BETWEEN 1901 AND 2155)")


def _integer_to_text(case: _Case) -> Conversion:
    digits = shown(case.old, case.value)
    width = case.old.length or 0
    if case.old.zerofill and width:
        digits = f"CASE WHEN length({digits}) >= {width} THEN {digits} ELSE lpad({digits}, {width}, '0') END"
    return _fit_text(case, digits)


def _text_to_integer(case: _Case) -> Conversion:
    low, high = integer_range(case.new)
    is_number, number = f"{case.value} ~ {_CANONICAL_INTEGER}", f"{case.value}::numeric"
    bad = f"CASE WHEN {is_number} THEN {number} NOT BETWEEN {low} AND {high} ELSE {case.value} IS NOT NULL END"
    expression = number if case.new.type != "bit" else _to_bits(number, case.new.length or 1, True)
    return _only(case, expression, bad)


def _text_to_float(case: _Case) -> Conversion:
    if case.new.scale is not None or case.new.unsigned:
        return _impossible(case)
    return _only(case, *text_to_number(case.value, is_float=case.new.type == "float"))


def text_to_number(value: str, *, is_float: bool) -> tuple[str, str]:
    """SQL of the DOUBLE or FLOAT that a text is, and of the condition that it cannot be told to the bit.

    Servers read a decimal number, blanks around it, and round once; PostgreSQL rounds any number right, and refuses
    what is out of range. A source without strict mode took what other texts began with.
    """
    exponent = "" if is_float else "([eE][+-]?[0-9]{1,2})?"
    number = f"^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+){exponent} *$"
    shown = f"{value}::double precision{'::real' if is_float else ''}"
    return f"CASE WHEN {value} ~ '{number}' THEN {shown} END", f"{value} !~ '{number}' OR length({value}) > 36"


def _integer_to_decimal(case: _Case) -> Conversion:
    return _only(case, f"{case.value}::{declared(case.new)}", _beyond(case))


def _beyond(case: _Case) -> str:
    """Numbers whose whole part is too long for the new DECIMAL."""
    scale = case.new.scale or 0
    bad = f"abs(trunc({case.value}::numeric)) >= 1e{(case.new.length or 10) - scale}"
    return f"{bad} OR {case.value} < 0" if case.new.unsigned and not case.old.unsigned else bad


def _integer_to_float(case: _Case) -> Conversion:
    exact = 2**53 if case.new.type == "double" else 2**24
    return _only(case, f"{case.value}::{declared(case.new)}", f"{case.value} NOT BETWEEN -{exact} AND {exact}")


def _decimal_to_decimal(case: _Case) -> Conversion:
    old, new = case.old.scale or 0, case.new.scale or 0
    bad = [] if (case.new.length or 10) - new >= (case.old.length or 10) - old else [_beyond(case)]
    if not bad and case.new.unsigned and not case.old.unsigned:
        bad.append(f"{case.value} < 0")
    if new < old:
        bad.append(f"{case.value} <> trunc({case.value}, {new})")
    same = declared(case.old) == declared(case.new)
    return _only(case, case.value if same else f"{case.value}::{declared(case.new)}", " OR ".join(bad))


def _decimal_to_integer(case: _Case) -> Conversion:
    low, high = integer_range(case.new)
    bad = f"{case.value} <> trunc({case.value}) OR {case.value} NOT BETWEEN {low} AND {high}"
    number = f"trunc({case.value})"
    return _only(case, number if case.new.type != "bit" else _to_bits(number, case.new.length or 1, True), bad)


def _decimal_to_float(case: _Case) -> Conversion:
    if case.new.type == "float" or (case.old.length or 10) > 15:
        return _impossible(case)
    return Conversion(f"{case.value}::double precision")


def _float_to_float(case: _Case) -> Conversion:
    new, below = case.new, f"{case.value} < 0" if case.new.unsigned and not case.old.unsigned else ""
    expression = case.value if case.old.type == new.type else f"{case.value}::{declared(new)}"
    if (new.scale is None or new.scale == case.old.scale) and (new.type == "double" or case.old.type == new.type):
        return _only(case, expression, below)
    return _only(case, expression, " OR ".join(part for part in (_not_whole(case.value, 2**24), below) if part))


def _float_to_integer(case: _Case) -> Conversion:
    low, high = integer_range(case.new)
    bad = f"{_not_whole(case.value, 2**53)} OR {case.value} < {low} OR {case.value} > {high}"
    return _only(case, f"{case.value}::numeric", bad)


def _not_whole(value: str, limit: int) -> str:
    return f"{value} <> trunc({value}) OR {value} NOT BETWEEN -{limit} AND {limit}"


def _fit_text(case: _Case, text: str) -> Conversion:
    """Into CHAR(n), VARCHAR(n) or a TEXT of limited bytes."""
    kind, length = case.new.type, case.new.length
    if kind == "char":
        return Conversion(f"rtrim(left({text}, {length}), ' ')")
    if kind == "varchar":
        known = case.old.length if case.old.type in ("char", "varchar") else None
        grows = known is not None and length is not None and known <= length
        return Conversion(text if grows else f"left({text}, {length})")
    if case.old.type in TEXT_BYTES and TEXT_BYTES[case.old.type] > TEXT_BYTES[kind]:
        return _only(case, text, f"octet_length({text}) > {TEXT_BYTES[kind]}")
    return Conversion(text)


def _text_to_text(case: _Case) -> Conversion:
    fitted = _fit_text(case, case.value)
    narrower = case.new.charset != "utf8mb4" and case.new.charset != case.old.charset
    if narrower and not case.context.is_strict:  # what the new charset lacks became '?' on the source
        return _only(case, fitted.expression, f"octet_length({case.value}) <> length({case.value})")
    return fitted


def _text_to_binary(case: _Case) -> Conversion:
    charset, text = case.old.charset or "", f"{case.value}::text"
    if charset not in ASCII_CHARSETS and case.old.type != "decimal":
        return _impossible(case)
    is_utf8 = charset in UTF8_CHARSETS or case.old.type == "decimal"
    bad = "" if is_utf8 else f"octet_length({text}) <> length({text})"
    fitted = _fit_binary(case, f"convert_to({text}, 'UTF8')")
    bad = " OR ".join(part for part in (bad, fitted.impossible) if part)
    return _only(case, fitted.expression, bad)


def _fit_binary(case: _Case, raw: str) -> Conversion:
    kind, length = case.new.type, case.new.length or 0
    if kind == "binary":
        padding = f"decode(repeat('00', greatest({length} - octet_length({raw}), 0)), 'hex')"
        return _only(case, f"({raw} || {padding})", f"octet_length({raw}) > {length}")
    limit = length if kind == "varbinary" else BLOB_BYTES[kind]
    known = case.old.length if case.old.type in ("binary", "varbinary") else BLOB_BYTES.get(case.old.type)
    if known is not None and known <= limit:
        return Conversion(raw)
    return _only(case, raw, f"octet_length({raw}) > {limit}")


def _binary_to_binary(case: _Case) -> Conversion:
    if case.old.type == case.new.type == "binary" and case.old.length == case.new.length:
        return Conversion(case.value)
    return _fit_binary(case, case.value)


def _binary_to_text(case: _Case) -> Conversion:
    digits, fitted = f"encode({case.value}, 'hex')", _fit_text(case, f"convert_from({case.value}, 'UTF8')").expression
    has_nul = f"{digits} ~ '^(..)*00'"  # text has no NUL here
    if case.new.charset in UTF8_CHARSETS and case.context.is_strict:
        return _only(case, fitted, has_nul)
    if case.new.charset in ASCII_CHARSETS:
        return _only(case, fitted, f"{has_nul} OR {digits} ~ '^(..)*[89a-f]'")
    return _impossible(case)


def _enum_to_enum(case: _Case) -> Conversion:
    gone, changed = [], []
    by_case = {label.casefold(): label for label in case.new.labels}
    for label in case.old.labels:
        if label not in case.new.labels:
            if (respelled := by_case.get(label.casefold())) is not None:
                changed.append(f"WHEN {text_literal(label)} THEN {text_literal(respelled)}")
            else:
                gone.append(text_literal(label))
    expression = f"CASE {case.value} {' '.join(changed)} ELSE {case.value} END" if changed else case.value
    return _only(case, expression, f"{case.value} IN ({', '.join(gone)})" if gone else "")


def _set_to_set(case: _Case) -> Conversion:
    remaining = iter(case.new.labels)
    if all(label in remaining for label in case.old.labels):  # the old labels are there, in the old order
        return Conversion(case.value)
    known = ", ".join(text_literal(label) for label in ("", *case.new.labels))
    return _only(case, case.value, f"strpos({case.value}, ',') > 0 OR {case.value} NOT IN ({known})")


def _text_to_enum(case: _Case) -> Conversion:
    labels = ", ".join(text_literal(label) for label in case.new.labels)
    return _only(case, case.value, f"{case.value} NOT IN ({labels})")


def _enum_to_integer(case: _Case) -> Conversion:
    pairs = " ".join(f"WHEN {text_literal(label)} THEN {i}" for i, label in enumerate(case.old.labels, 1))
    index = f"CASE WHEN {case.value} IS NOT NULL THEN CASE {case.value} {pairs} ELSE 0 END END"
    high = integer_range(case.new)[1]
    return _only(case, index, f"{case.value} IS NOT NULL" if len(case.old.labels) > high else "")


def _refit_fraction(case: _Case, value: str, old: int, new: int) -> Conversion:
    """Digits after the second: fewer are cut by MariaDB, rounded by MySQL. Cut first: the cast would round."""
    if new >= old:
        same = declared(case.old) == declared(case.new) and value == case.value
        return Conversion(value if same else f"({value})::{declared(case.new)}")
    rest = f"(coalesce(EXTRACT(microseconds FROM {value}), 0)::bigint % {10 ** (6 - new)})"
    if case.old.type != "time":
        rest = f"(CASE WHEN isfinite({value}) THEN EXTRACT(microseconds FROM {value})::bigint % {10 ** (6 - new)} END)"
    cut = f"({value} - coalesce({rest}, 0) * interval '1 microsecond')::{declared(case.new)}"
    if case.context.is_mariadb and not case.context.sql_mode & TIME_ROUND_FRACTIONAL:
        return Conversion(cut)
    return _only(case, cut, f"{rest} <> 0")


def _same_temporal(case: _Case) -> Conversion:
    return _refit_fraction(case, case.value, case.old.fraction_digits, case.new.fraction_digits)


def _date_to_datetime(case: _Case) -> Conversion:
    return Conversion(f"{case.value}::{declared(case.new)}")


def _datetime_to_date(case: _Case) -> Conversion:
    day = f"{case.value}::date"
    if case.context.is_mariadb or not case.old.fraction_digits:
        return Conversion(day)
    return _only(case, day, f"isfinite({case.value}) AND {case.value} <> date_trunc('second', {case.value})")


def _between_zones(case: _Case) -> Conversion:
    """TIMESTAMP is kept in UTC, DATETIME in the session's time zone of the ALTER."""
    offset = case.context.utc_offset()
    if offset is None:
        return _impossible(case)
    seconds = int(offset.total_seconds()) * (1 if case.old.type == "timestamp" else -1)
    moved = f"({case.value} AT TIME ZONE 'UTC')"
    if seconds:
        moved = f"({moved} + interval '{seconds} seconds')"
    found = _refit_fraction(case, moved, case.old.fraction_digits, case.new.fraction_digits)
    if case.new.type == "datetime":
        return found
    first, last = (f"'{limit}+00'" for limit in case.context.timestamp_range)
    bad = f"{case.value} <> '-infinity' AND date_trunc('second', {moved}) NOT BETWEEN {first} AND {last}"
    return _only(case, found.expression, " OR ".join(part for part in (found.impossible, bad) if part))


def _plain_to_text(case: _Case) -> Conversion:
    return _fit_text(case, shown(case.old, case.value) if case.old.type not in ("enum", "set") else case.value)


def _text_to_datetime(case: _Case) -> Conversion:
    shape = {"date": "#{4}-#{2}-#{2}", "time": "#{2}:#{2}:#{2}", "datetime": "#{4}-#{2}-#{2} #{2}:#{2}:#{2}"}
    pattern = shape[case.new.type] + (f"[.]#{{{case.new.fraction_digits}}}" if case.new.fraction_digits else "")
    value = case.value
    if case.new.type != "time":
        value = f"CASE WHEN {value} ~ '^[0:. -]+$' THEN '{ZERO_DATE}' ELSE {value} END"
    bad = f"{case.value} !~ '^{pattern.replace('#', '[0-9]')}$'"
    return _only(case, f"({value})::{declared(case.new)}", bad)


def _vector(case: _Case) -> Conversion:
    return Conversion(case.value) if case.old.length == case.new.length else _impossible(case)


_Rule = Callable[[_Case], Conversion]
_RULES: dict[tuple[str, str], _Rule] = {
    **{(a, b): _number_to_integer for a in ("integer", "bit", "year") for b in ("integer", "bit")},
    ("year", "year"): _year_to_year, ("integer", "year"): _integer_to_year,
    ("decimal", "decimal"): _decimal_to_decimal, ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "double"): _decimal_to_float, ("decimal", "float"): _decimal_to_float,
    ("integer", "decimal"): _integer_to_decimal,
    **{("integer", b): _integer_to_float for b in ("float", "double")},
    **{(a, b): _float_to_float for a in ("float", "double") for b in ("float", "double")},
    **{(a, "integer"): _float_to_integer for a in ("float", "double")},
    **{(a, b): _integer_to_text for a in ("integer", "year") for b in ("char", "text")},
    **{(a, "integer"): _text_to_integer for a in ("char", "text")},
    **{(a, b): _text_to_text for a in ("char", "text") for b in ("char", "text")},
    **{(a, "binary"): _text_to_binary for a in ("char", "text", "enum", "set", "decimal")},
    **{("binary", b): _binary_to_text for b in ("char", "text")},
    ("binary", "binary"): _binary_to_binary, ("enum", "enum"): _enum_to_enum, ("set", "set"): _set_to_set,
    **{(a, "enum"): _text_to_enum for a in ("char", "text")}, ("enum", "integer"): _enum_to_integer,
    **{(a, b): _plain_to_text for b in ("char", "text")
       for a in ("decimal", "enum", "set", "date", "time", "datetime", "uuid", "inet4", "inet6", "json")},
    **{(a, a): _same_temporal for a in ("time", "datetime", "timestamp")}, ("date", "date"): _same,
    ("date", "datetime"): _date_to_datetime, ("datetime", "date"): _datetime_to_date,
    ("timestamp", "datetime"): _between_zones, ("datetime", "timestamp"): _between_zones,
    **{(a, b): _text_to_float for a in ("char", "text") for b in ("float", "double")},
    **{(a, b): _text_to_datetime for a in ("char", "text") for b in ("date", "time", "datetime")},
    **{(a, a): _same for a in ("json", "uuid", "inet4", "inet6", "geometry")}, ("vector", "vector"): _vector,
}  # fmt: skip
