"""What ALTER TABLE … MODIFY makes of stored values: SQLite expressions that give exactly what the source has.

Each rule gives an expression over the old value and, where some values cannot be converted exactly here, a condition
that finds them: the applier stops before it changes anything when a row fits (`ddl.guards`). Pairs without a rule
convert empty tables and NULLs only. A strict source (sql_mode STRICT_…) refused to lose data, so nothing is cut there.

| from → to | value |
|---|---|
| integers, BIT, YEAR among each other | same number; out of the new range: stop |
| integer → text, DECIMAL, FLOAT/DOUBLE | its digits (ZEROFILL kept) · digits and zeros · number, exact to 2^53 / 2^24 |
| text → integer, DOUBLE | only canonical digits · up to 15 digits (FLOAT: whole numbers) |
| DECIMAL → DECIMAL, integer, text | zeros added; digits other than zero cut off: stop · text: same |
| DECIMAL → DOUBLE | to 15 digits |
| FLOAT → DOUBLE | same; DOUBLE → FLOAT and → integer only whole numbers that fit |
| text → text | same, cut to the length; CHAR without trailing blanks (under PAD_CHAR_TO_FULL_LENGTH with them) |
| text ↔ binary | UTF-8 bytes; other charsets only ASCII; BINARY padded with zeros |
| ENUM → ENUM, SET → SET | by label; a label that is gone, a new order of a SET: stop |
| ENUM → text, text → ENUM, ENUM → integer | label · only exact labels · index |
| DATE, DATETIME, TIME among fractions and each other | zeros added; cut (MariaDB) or stop (MySQL rounds) |
| TIMESTAMP ↔ DATETIME | by a fixed session time zone, else stop |
| UUID, INET, JSON → text | same |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rplctl.schema.context import TIME_ROUND_FRACTIONAL, DdlContext
from rplctl.schema.default_value import NotComputable, implicit_default
from rplctl.schema.model import BINARY_TYPES, BLOB_BYTES, TEXT_BYTES, Column
from rplctl.target.conversion import ASCII_CHARSETS, UTF8_CHARSETS, Conversion, family, integer_range, keeps_blanks
from rplctl.target.sqlite.ddl_type import literal, text_literal

_EXACT_DIGITS = 15  # and their power of ten are both exact doubles: one division rounds as the server does


@dataclass(frozen=True, slots=True)
class _Case:
    old: Column
    new: Column
    value: str  # SQL of the old value
    context: DdlContext


def convert(old: Column, new: Column, value: str, context: DdlContext) -> Conversion:
    """The conversion of one column's stored values; the identity when nothing changes."""
    rule = _RULES.get((family(old), family(new)), _impossible)
    case = _Case(old, new, value, context)
    found = rule(case)
    if keeps_blanks(old, new, context):
        found = rule(replace(case, value=_padded(old, value)))
        conditions = f"instr({value}, char(0)) > 0", found.impossible
        found = _only(case, found.expression, " OR ".join(filter(None, conditions)))
    if not new.nullable and old.nullable and not context.is_strict:
        try:
            zero = literal(implicit_default(new))
            return Conversion(f"coalesce({found.expression}, {zero})", found.impossible, found.why)
        except NotComputable as error:
            return Conversion(found.expression, f"{value} IS NULL", str(error))
    return found


def _padded(old: Column, value: str) -> str:
    """A CHAR's value filled up; a NUL in it ends what SQLite counts."""
    width = old.length or 1
    return f"({value} || substr('{' ' * width}', 1, {width} - length({value})))"


def _impossible(case: _Case) -> Conversion:
    if case.old == case.new:
        return Conversion(case.value)
    what = f"{case.old.type} → {case.new.type} of column '{case.old.name}' cannot be converted exactly"
    return Conversion("NULL" if case.new.nullable else case.value, f"{case.value} IS NOT NULL", what)


def _only(case: _Case, expression: str, impossible: str) -> Conversion:
    what = f"{case.old.type} → {case.new.type} of column '{case.old.name}' would change a value"
    return Conversion(expression, impossible, what)


def _same(case: _Case) -> Conversion:
    return Conversion(case.value)


def _number_to_integer(case: _Case) -> Conversion:
    """Integers, BIT and YEAR; an unsigned number above 2^63-1 is text."""
    low, high = integer_range(case.new)
    old_low, old_high = (0, 2155) if case.old.type == "year" else integer_range(case.old)
    if low <= old_low and old_high <= high:
        return Conversion(case.value)
    limits = [] if low <= old_low else [f"{case.value} < {low}"]
    if high < old_high:
        limits.append(f"(typeof({case.value}) = 'text' OR {case.value} > {min(high, 2**63 - 1)})")
    return _only(case, case.value, " OR ".join(limits))


def _year_to_year(case: _Case) -> Conversion:
    """YEAR(2) holds 0 to 99, of 1970 to 2069."""
    if case.old.length == case.new.length:
        return _same(case)
    if case.new.length == 2:
        return Conversion(f"({case.value} % 100)")
    return Conversion(f"({case.value} + CASE WHEN {case.value} < 70 THEN 2000 ELSE 1900 END)")


def _integer_to_year(case: _Case) -> Conversion:
    if case.new.length == 2:
        bad = f"NOT ({case.value} BETWEEN 0 AND 99 OR {case.value} BETWEEN 1901 AND 2155)"
        return _only(case, f"({case.value} % 100)", bad)
    return _only(case, case.value, f"NOT ({case.value} = 0 OR {case.value} BETWEEN 1901 AND 2155)")


def _integer_to_text(case: _Case) -> Conversion:
    digits = f"CAST({case.value} AS TEXT)"
    width = case.old.length or 0
    if case.old.type == "year":
        return Conversion(f"printf('%0{width or 4}d', {case.value})")
    if case.old.zerofill and width:
        zeros = text_literal("0" * width)
        padded = f"substr({zeros} || {digits}, -{width})"
        digits = f"CASE WHEN length({digits}) >= {width} THEN {digits} ELSE {padded} END"
    return _fit_text(case, digits)


def _text_to_integer(case: _Case) -> Conversion:
    low, high = integer_range(case.new)
    number = f"CAST({case.value} AS INTEGER)"
    bad = f"CAST({number} AS TEXT) <> {case.value} OR {number} < {low} OR {number} > {min(high, 2**63 - 1)}"
    return _only(case, number, bad)


def _text_to_float(case: _Case) -> Conversion:
    if case.new.scale is not None or case.new.unsigned:
        return _impossible(case)
    number, bad = text_to_number(case.value)
    return _only(case, number, bad if case.new.type == "double" else f"{bad} OR {_not_whole(number, 2**24)}")


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


def _integer_to_decimal(case: _Case) -> Conversion:
    digits, scale = f"CAST({case.value} AS TEXT)", case.new.scale or 0
    tail = f" || '.{'0' * scale}'" if scale else ""
    whole = (case.new.length or 10) - scale
    sign = f" OR ltrim({digits}, '-') <> {digits}" if case.new.unsigned else ""
    return _only(case, f"({digits}{tail})", f"length(ltrim({digits}, '-')) > {whole}{sign}")


def _integer_to_float(case: _Case) -> Conversion:
    exact = 2**53 if case.new.type == "double" else 2**24
    bad = f"typeof({case.value}) = 'text' OR {case.value} NOT BETWEEN -{exact} AND {exact}"
    return _only(case, f"CAST({case.value} AS REAL)", bad)


def _decimal_to_decimal(case: _Case) -> Conversion:
    old, new, value = case.old.scale or 0, case.new.scale or 0, case.value
    whole = f"substr({value}, 1, instr({value} || '.', '.') - 1)"
    bad = [f"length(ltrim({whole}, '-')) > {max((case.new.length or 10) - new, 1)}"]
    if case.new.unsigned and not case.old.unsigned:
        bad.append(f"{value} LIKE '-%'")
    expression = value
    if new > old:
        expression = f"({value} || '{'' if old else '.'}{'0' * (new - old)}')"
    elif new < old:
        cut = old - new + (1 if new == 0 else 0)
        bad.append(f"ltrim(substr({value}, -{cut}), '.0') <> ''")
        expression = f"substr({value}, 1, length({value}) - {cut})"
    if (case.new.length or 10) - new >= (case.old.length or 10) - old:
        bad = bad[1:]  # the whole part always fits
    return _only(case, expression, " OR ".join(bad)) if bad else Conversion(expression)


def _decimal_to_integer(case: _Case) -> Conversion:
    whole = f"CAST({case.value} AS INTEGER)"
    low, high = integer_range(case.new)
    scale = case.old.scale or 0
    bad = f"ltrim(substr({case.value}, -{scale}), '0') <> '' OR " if scale else ""
    digits = f"length(ltrim(substr({case.value}, 1, instr({case.value} || '.', '.') - 1), '-')) > 18"
    return _only(case, whole, f"{bad}{digits} OR {whole} < {low} OR {whole} > {min(high, 2**63 - 1)}")


def _decimal_to_float(case: _Case) -> Conversion:
    """Digits and power of ten are both exact floats up to 15 digits, so one division rounds as the server does."""
    if case.new.type == "float" or (case.old.length or 10) > 15:
        return _impossible(case)
    return Conversion(f"CAST(replace({case.value}, '.', '') AS INTEGER) / 1e{case.old.scale or 0}")


def _float_to_float(case: _Case) -> Conversion:
    new, below = case.new, f"{case.value} < 0" if case.new.unsigned and not case.old.unsigned else ""
    if (new.scale is None or new.scale == case.old.scale) and (new.type == "double" or case.old.type == new.type):
        return _only(case, case.value, below)
    return _only(case, case.value, " OR ".join(part for part in (_not_whole(case.value, 2**24), below) if part))


def _float_to_integer(case: _Case) -> Conversion:
    low, high = integer_range(case.new)
    whole = f"CAST({case.value} AS INTEGER)"
    bad = f"{_not_whole(case.value, 2**53)} OR {whole} < {low} OR {whole} > {min(high, 2**63 - 1)}"
    return _only(case, whole, bad)


def _not_whole(value: str, limit: int) -> str:
    return f"{value} <> CAST({value} AS INTEGER) OR {value} NOT BETWEEN -{limit} AND {limit}"


def _fit_text(case: _Case, text: str) -> Conversion:
    """Into CHAR(n), VARCHAR(n) or a TEXT of limited bytes."""
    kind, length = case.new.type, case.new.length
    if kind in ("char", "varchar"):
        known = case.old.length if case.old.type in ("char", "varchar", "binary", "varbinary") else None
        grows = known is not None and length is not None and known <= length
        fitted = text if grows else f"substr({text}, 1, {length})"
        if kind == "char":
            fitted = f"rtrim({fitted}, ' ')"
        if grows or family(case.old) not in ("char", "text", "binary"):
            return Conversion(fitted)
        return _only(case, fitted, f"instr({text}, char(0)) > 0")  # SQLite's substr ends at a NUL
    if case.old.type in TEXT_BYTES and TEXT_BYTES[case.old.type] > TEXT_BYTES[kind]:
        return _only(case, text, f"length(CAST({text} AS BLOB)) > {TEXT_BYTES[kind]}")
    return Conversion(text)


def _text_to_text(case: _Case) -> Conversion:
    fitted = _fit_text(case, case.value)
    narrower = case.new.charset != "utf8mb4" and case.new.charset != case.old.charset
    if narrower and not case.context.is_strict:  # what the new charset lacks became '?' on the source
        return _only(case, fitted.expression, f"length(CAST({case.value} AS BLOB)) <> length({case.value})")
    return fitted


def _text_to_binary(case: _Case) -> Conversion:
    charset = case.old.charset or ""
    if charset not in ASCII_CHARSETS:
        return _impossible(case)
    bad = "" if charset in UTF8_CHARSETS else f"length(CAST({case.value} AS BLOB)) <> length({case.value})"
    fitted = _fit_binary(case, f"CAST({case.value} AS BLOB)")
    bad = " OR ".join(part for part in (bad, fitted.impossible) if part)
    return _only(case, fitted.expression, bad) if bad else fitted


def _fit_binary(case: _Case, raw: str) -> Conversion:
    kind, length = case.new.type, case.new.length or 0
    if kind == "binary":
        padded = f"CAST(substr(CAST({raw} || zeroblob({length}) AS BLOB), 1, {length}) AS BLOB)"
        return _only(case, padded, f"length({raw}) > {length}")
    limit = length if kind == "varbinary" else BLOB_BYTES[kind]
    known = case.old.length if case.old.type in ("binary", "varbinary") else BLOB_BYTES.get(case.old.type)
    if known is not None and known <= limit:
        return Conversion(raw)
    return _only(case, raw, f"length({raw}) > {limit}")


def _binary_to_binary(case: _Case) -> Conversion:
    if case.old.type == case.new.type == "binary" and case.old.length == case.new.length:
        return Conversion(case.value)
    return _fit_binary(case, case.value)


def _binary_to_text(case: _Case) -> Conversion:
    text = f"CAST({case.value} AS TEXT)"
    fitted = _fit_text(case, text)
    if case.new.charset in UTF8_CHARSETS and case.context.is_strict:
        return fitted
    if case.new.charset in ASCII_CHARSETS:
        return _only(case, fitted.expression, f"length({text}) <> length({case.value})")
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
    return _only(case, expression, f"{case.value} IN ({', '.join(gone)})") if gone else Conversion(expression)


def _set_to_set(case: _Case) -> Conversion:
    remaining = iter(case.new.labels)
    if all(label in remaining for label in case.old.labels):  # the old labels are there, in the old order
        return Conversion(case.value)
    several = f"instr({case.value}, ',') > 0"
    known = ", ".join(text_literal(label) for label in ("", *case.new.labels))
    return _only(case, case.value, f"{several} OR {case.value} NOT IN ({known})")


def _text_to_enum(case: _Case) -> Conversion:
    labels = ", ".join(text_literal(label) for label in case.new.labels)
    return _only(case, case.value, f"{case.value} NOT IN ({labels})")


def _enum_to_integer(case: _Case) -> Conversion:
    pairs = " ".join(f"WHEN {text_literal(label)} THEN {i}" for i, label in enumerate(case.old.labels, 1))
    index = f"CASE WHEN {case.value} IS NULL THEN NULL ELSE CASE {case.value} {pairs} ELSE 0 END END"
    high = integer_range(case.new)[1]
    return _only(case, index, f"{case.value} IS NOT NULL") if len(case.old.labels) > high else Conversion(index)


def _refit_fraction(case: _Case, text: str, old: int, new: int) -> Conversion:
    """Digits after the second: more are zeros; fewer are cut by MariaDB, rounded by MySQL."""
    if new >= old:
        zeros = ("" if old else ".") + "0" * (new - old)
        return Conversion(f"({text} || '{zeros}')" if new > old else text)
    cut = old - new + (1 if new == 0 else 0)
    shorter = f"substr({text}, 1, length({text}) - {cut})"
    if case.context.is_mariadb and not case.context.sql_mode & TIME_ROUND_FRACTIONAL:
        return Conversion(shorter)
    return _only(case, shorter, f"ltrim(substr({text}, -{cut}), '.0') <> ''")


def _same_temporal(case: _Case) -> Conversion:
    return _refit_fraction(case, case.value, case.old.fraction_digits, case.new.fraction_digits)


def _date_to_datetime(case: _Case) -> Conversion:
    return _refit_fraction(case, f"({case.value} || ' 00:00:00')", 0, case.new.fraction_digits)


def _datetime_to_date(case: _Case) -> Conversion:
    day = f"substr({case.value}, 1, 10)"
    if case.context.is_mariadb or not case.old.fraction_digits:
        return Conversion(day)
    return _only(case, day, f"ltrim(substr({case.value}, 21), '0') <> ''")


def _between_zones(case: _Case) -> Conversion:
    """TIMESTAMP is kept in UTC, DATETIME in the session's time zone of the ALTER."""
    offset = case.context.utc_offset()
    if offset is None:
        return _impossible(case)
    seconds = int(offset.total_seconds()) * (1 if case.old.type == "timestamp" else -1)
    moved, zero = case.value, f"{case.value} LIKE '0000-00-00%'"
    if seconds:
        moved = f"datetime(substr({case.value}, 1, 19), '{seconds:+d} seconds') || substr({case.value}, 20)"
        moved = f"CASE WHEN {zero} THEN {case.value} ELSE {moved} END"
    found = _refit_fraction(case, moved, case.old.fraction_digits, case.new.fraction_digits)
    if case.new.type == "datetime":
        return found
    first, last = case.context.timestamp_range
    no_day = f"{case.value} LIKE '_____00%' OR {case.value} LIKE '________00%'"
    bad = f"NOT {zero} AND ({no_day} OR substr({moved}, 1, 19) NOT BETWEEN '{first}' AND '{last}')"
    return _only(case, found.expression, " OR ".join(part for part in (found.impossible, bad) if part))


def _plain_to_text(case: _Case) -> Conversion:
    return _fit_text(case, case.value)


def _text_to_datetime(case: _Case) -> Conversion:
    shape = {"date": "####-##-##", "time": "##:##:##", "datetime": "####-##-## ##:##:##"}[case.new.type]
    if digits := case.new.fraction_digits:
        shape += "." + "#" * digits
    return _only(case, case.value, f"{case.value} NOT GLOB '{shape.replace('#', '[0-9]')}'")


def _vector(case: _Case) -> Conversion:
    return Conversion(case.value) if case.old.length == case.new.length else _impossible(case)


_Rule = Callable[[_Case], Conversion]
_RULES: dict[tuple[str, str], _Rule] = {
    **{(a, b): _number_to_integer for a in ("integer", "bit", "year") for b in ("integer", "bit")},
    ("bit", "integer"): _number_to_integer, ("year", "year"): _year_to_year, ("integer", "year"): _integer_to_year,
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
    **{(a, b): _text_to_float for a in ("char", "text") for b in ("float", "double")},
    **{(a, b): _plain_to_text for b in ("char", "text")
       for a in ("decimal", "enum", "set", "date", "time", "datetime", "uuid", "inet4", "inet6", "json")},
    **{(a, a): _same_temporal for a in ("time", "datetime", "timestamp")}, ("date", "date"): _same,
    ("date", "datetime"): _date_to_datetime, ("datetime", "date"): _datetime_to_date,
    ("timestamp", "datetime"): _between_zones, ("datetime", "timestamp"): _between_zones,
    **{(a, b): _text_to_datetime for a in ("char", "text") for b in ("date", "time", "datetime")},
    **{(a, a): _same for a in ("json", "uuid", "inet4", "inet6", "geometry")}, ("vector", "vector"): _vector,
}  # fmt: skip

assert BINARY_TYPES == {"binary", "varbinary", *BLOB_BYTES}
