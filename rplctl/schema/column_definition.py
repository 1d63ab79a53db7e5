"""Parses one column definition of CREATE or ALTER TABLE into the column and its inline constraints."""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.context import DdlContext
from rplctl.schema.data_type import accept_collation, charset_of, normalize, parse_data_type
from rplctl.schema.default_value import implicit_default
from rplctl.schema.model import BLOB_BYTES, TEXT_BYTES, Check, Column, ForeignKey, Key, KeyPart
from rplctl.schema.statement import AddCheck, AddForeignKey, AddKey
from rplctl.schema.token_stream import TokenStream

Constraint = AddKey | AddForeignKey | AddCheck

_REFERENCES_SINCE = 90000  # MySQL 9.0
_WITHOUT_VALUE = ("COMPRESSED", "WITHOUT SYSTEM VERSIONING", "WITH SYSTEM VERSIONING", "NOT SECONDARY", "VIRTUAL")
_WITH_VALUE = ("COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SRID", "REF_SYSTEM_ID")


def parse_column(tokens: TokenStream, database: str, name: str) -> tuple[Column, tuple[Constraint, ...]]:
    """Parse a column's type and attributes. Return the column `name` with them, and the inline constraints.

    Raises RplError for an attribute that rplctl does not know.
    """
    parsed = parse_data_type(tokens, name)
    column, constraints = parsed.column, list[Constraint]()
    if parsed.is_serial:
        constraints.append(_key(column, "unique"))
    if parsed.is_mariadb_json:
        constraints.append(AddCheck(Check(name, f"json_valid(`{name}`)")))
    said_null = has_on_update = False
    while True:
        if tokens.accept("NULL"):
            said_null = True
            column = replace(column, nullable=True)  # the last of NULL and NOT NULL wins, also after AUTO_INCREMENT
        elif tokens.accept("ON UPDATE"):  # the row images contain its result
            parse_default(tokens)
            has_on_update = True
        elif tokens.accept("SERIAL DEFAULT VALUE"):
            column = replace(column, auto_increment=True, nullable=False)
            constraints.append(_key(column, "unique"))
        elif (changed := _attribute(tokens, column)) is not None:
            column = changed
        elif tokens.is_word("REFERENCES"):
            constraints += _reference(tokens, database, column)
        elif (constraint := _inline_constraint(tokens, column)) is not None:
            constraints.append(constraint)
        else:
            break
    if any(isinstance(constraint, AddKey) and constraint.key.kind == "primary" for constraint in constraints):
        column = replace(column, nullable=False)
    if column.type == "timestamp" and not said_null and not tokens.context.explicit_defaults_for_timestamp:
        column = replace(column, nullable=False)
        if has_on_update and column.default is None:  # the server does not give it CURRENT_TIMESTAMP, too
            column = replace(column, default=f"'{implicit_default(column)!s}'")
    if _takes_no_default(column, tokens.context):
        column = replace(column, default=None)
    return column, tuple(constraints)


def _takes_no_default(column: Column, context: DdlContext) -> bool:
    """True if the server ignored the column's literal default. MySQL does so for TEXT and BLOB without strict mode."""
    is_mysql = bool(context.server_version) and not context.is_mariadb
    return is_mysql and column.type in (*TEXT_BYTES, *BLOB_BYTES) and (column.default or "(")[0] != "("


def _key(column: Column, kind: str) -> AddKey:
    primary = kind == "primary"
    return AddKey(
        Key(name="PRIMARY" if primary else "", kind="primary" if primary else "unique", parts=(KeyPart(column.name),))
    )


def _attribute(tokens: TokenStream, column: Column) -> Column | None:
    """Parse one attribute, and return the column with this attribute, or None if no attribute comes next."""
    if tokens.accept("NOT NULL"):
        return replace(column, nullable=False)
    if tokens.accept("DEFAULT"):
        return replace(column, default=parse_default(tokens))
    if tokens.accept("AUTO_INCREMENT"):
        return replace(column, auto_increment=True, nullable=False)
    if tokens.accept("COMMENT"):
        return replace(column, comment=tokens.string())
    if (collation := accept_collation(tokens)) is not None:
        charset = column.charset or charset_of(collation)
        return normalize(replace(column, collation=collation, charset=charset))
    if tokens.accept("INVISIBLE"):
        return replace(column, invisible=True)
    if tokens.accept("VISIBLE"):
        return replace(column, invisible=False)
    if tokens.accept("GENERATED ALWAYS AS") or tokens.accept("AS"):
        return _generated(tokens, column)
    if any(tokens.accept(phrase) for phrase in _WITHOUT_VALUE):
        if tokens.accept_symbol("="):
            tokens.next()
        return column
    if any(tokens.accept(phrase) for phrase in _WITH_VALUE):
        tokens.skip_value()
        return column
    return None


def _generated(tokens: TokenStream, column: Column) -> Column:
    for phrase in ("ROW START", "ROW END"):  # MariaDB has explicit columns of a system-time period
        if tokens.accept(phrase):
            return replace(column, nullable=False, default=f"({phrase})")
    expression = tokens.skip_group()
    stored = tokens.accept_any("STORED", "PERSISTENT") is not None
    return replace(column, generated=expression, stored=stored)


def _inline_constraint(tokens: TokenStream, column: Column) -> Constraint | None:
    """Parse a key or check in the column's definition, or return None if none of them comes next."""
    if tokens.accept("PRIMARY KEY") or tokens.accept("PRIMARY"):
        return _key(column, "primary")
    if tokens.accept("UNIQUE"):
        tokens.accept("KEY")
        return _key(column, "unique")
    if tokens.accept("KEY"):
        return _key(column, "primary")
    if tokens.is_word("CONSTRAINT") or tokens.is_word("CHECK"):
        symbol = ""
        if tokens.accept("CONSTRAINT") and not tokens.is_word("CHECK"):
            symbol = tokens.identifier()
        return parse_check(tokens, symbol or (column.name if tokens.context.is_mariadb else ""))
    return None


def _reference(tokens: TokenStream, database: str, column: Column) -> list[Constraint]:
    """Parse REFERENCES in a column's definition, and return the foreign key if the source obeys it."""
    empty = ForeignKey(name="", columns=(column.name,), ref_database="", ref_table="", ref_columns=())
    key = AddForeignKey(parse_references(tokens, database, empty))
    return [key] if has_references(tokens.context) else []


def has_references(context: DdlContext) -> bool:
    """True if the source obeys REFERENCES in a column's definition. MySQL 5.7, 8.0 and 8.4 ignore it."""
    is_mysql = bool(context.server_version) and not context.is_mariadb
    return not is_mysql or context.version_number >= _REFERENCES_SINCE


def parse_check(tokens: TokenStream, name: str) -> AddCheck:
    """Parse `CHECK (expression) [[NOT] ENFORCED]`. Targets do not use the check, because the source has checked the
    rows. The model stores only its name and expression.
    """
    tokens.expect("CHECK")
    check = AddCheck(Check(name, tokens.skip_group()))
    _ = tokens.accept("NOT ENFORCED") or tokens.accept("ENFORCED")
    return check


def parse_references(tokens: TokenStream, database: str, key: ForeignKey) -> ForeignKey:
    """Parse `REFERENCES t (a, b) [MATCH …] [ON DELETE …] [ON UPDATE …]`, and return `key` with this reference.

    If the clause names no columns, it references the primary key of t.
    """
    tokens.expect("REFERENCES")
    ref_database, ref_table = tokens.table_name(database)
    ref_columns = tokens.in_parentheses(tokens.identifier) if tokens.is_symbol("(") else ()
    key = replace(key, ref_database=ref_database, ref_table=ref_table, ref_columns=ref_columns)
    while True:
        if tokens.accept("MATCH"):
            tokens.next()
        elif tokens.accept("ON DELETE"):
            key = replace(key, on_delete=_reference_option(tokens))
        elif tokens.accept("ON UPDATE"):
            key = replace(key, on_update=_reference_option(tokens))
        else:
            return key


def _reference_option(tokens: TokenStream) -> str:
    for option in ("CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"):
        if tokens.accept(option):
            return option
    tokens.refuse()


def parse_default(tokens: TokenStream) -> str:
    """Return the text of a DEFAULT: a literal, `(expression)`, a function call, or a fixed text for `NEXT
    VALUE FOR s`.
    """
    start = tokens.token.start
    end = start
    if tokens.is_symbol("("):
        return f"({tokens.skip_group()})"
    _ = tokens.accept_symbol("-") or tokens.accept_symbol("+")
    if tokens.token.kind == "string" or tokens.ahead().kind == "string":
        introducer = tokens.token.kind == "word"
        if introducer and not tokens.token.value.startswith("_"):
            tokens.next()  # DATE'…', TIME'…', TIMESTAMP'…'
            return tokens.text[start : tokens.next().end]
        while tokens.token.kind == "string" or introducer:
            introducer = False
            end = tokens.next().end
        return tokens.text[start:end]
    if tokens.accept("NEXT VALUE FOR"):
        tokens.table_name("-")
        return "(NEXT VALUE FOR a sequence)"
    end = tokens.next().end
    while tokens.is_symbol("."):  # a database comes before a stored function or a sequence
        tokens.next()
        end = tokens.next().end
    if tokens.is_symbol("("):
        body = tokens.skip_group()
        return f"{tokens.text[start:end]}({body})"
    return tokens.text[start:end]
