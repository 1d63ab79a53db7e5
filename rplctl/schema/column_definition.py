"""One column definition of CREATE or ALTER TABLE → the column, and what constraints it declares inline."""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.cursor import Cursor
from rplctl.schema.data_type import accept_collation, charset_of, normalize, parse_data_type
from rplctl.schema.model import Check, Column, ForeignKey, Key, KeyPart
from rplctl.schema.statement import AddCheck, AddForeignKey, AddKey

Constraint = AddKey | AddForeignKey | AddCheck

_WITHOUT_VALUE = ("COMPRESSED", "WITHOUT SYSTEM VERSIONING", "WITH SYSTEM VERSIONING", "NOT SECONDARY", "VIRTUAL")
_WITH_VALUE = ("COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "SRID", "REF_SYSTEM_ID")


def parse_column(cursor: Cursor, database: str, name: str) -> tuple[Column, tuple[Constraint, ...]]:
    """Read a definition from its type on. Raises RplError for an attribute rplctl does not know."""
    parsed = parse_data_type(cursor, name)
    column, constraints = parsed.column, list[Constraint]()
    if parsed.is_serial:
        constraints.append(_key(column, "unique"))
    if parsed.is_mariadb_json:
        constraints.append(AddCheck(Check(name, f"json_valid(`{name}`)")))
    said_null = False
    while True:
        if cursor.accept("NULL"):
            said_null = True
        elif (changed := _attribute(cursor, column)) is not None:
            column = changed
        elif (constraint := _inline_constraint(cursor, database, column)) is not None:
            constraints.append(constraint)
        else:
            break
    if any(isinstance(constraint, AddKey) and constraint.key.kind == "primary" for constraint in constraints):
        column = replace(column, nullable=False)
    if column.type == "timestamp" and not said_null and not cursor.context.explicit_defaults_for_timestamp:
        column = replace(column, nullable=False)
    return column, tuple(constraints)


def _key(column: Column, kind: str) -> AddKey:
    primary = kind == "primary"
    return AddKey(Key("PRIMARY" if primary else "", "primary" if primary else "unique", (KeyPart(column.name),)))


def _attribute(cursor: Cursor, column: Column) -> Column | None:
    """One attribute that changes the column itself; None when none comes next."""
    if cursor.accept("NOT NULL"):
        return replace(column, nullable=False)
    if cursor.accept("DEFAULT"):
        return replace(column, default=parse_default(cursor))
    if cursor.accept("AUTO_INCREMENT"):
        return replace(column, auto_increment=True, nullable=False)
    if cursor.accept("COMMENT"):
        return replace(column, comment=cursor.string())
    if (collation := accept_collation(cursor)) is not None:
        charset = column.charset or charset_of(collation)
        return normalize(replace(column, collation=collation, charset=charset))
    if cursor.accept("INVISIBLE"):
        return replace(column, invisible=True)
    if cursor.accept("VISIBLE"):
        return replace(column, invisible=False)
    if cursor.accept("ON UPDATE"):  # no meaning on a replica: the row images carry what it made
        parse_default(cursor)
        return column
    if cursor.accept("GENERATED ALWAYS AS") or cursor.accept("AS"):
        return _generated(cursor, column)
    if any(cursor.accept(phrase) for phrase in _WITHOUT_VALUE):
        if cursor.accept_symbol("="):
            cursor.next()
        return column
    if any(cursor.accept(phrase) for phrase in _WITH_VALUE):
        cursor.accept_symbol("=")
        cursor.next()
        return column
    return None


def _generated(cursor: Cursor, column: Column) -> Column:
    for phrase in ("ROW START", "ROW END"):  # MariaDB's explicit columns of a system period
        if cursor.accept(phrase):
            return replace(column, nullable=False, default=f"({phrase})")
    expression = cursor.skip_group()
    stored = cursor.accept_any("STORED", "PERSISTENT") is not None
    return replace(column, generated=expression, stored=stored)


def _inline_constraint(cursor: Cursor, database: str, column: Column) -> Constraint | None:
    """A key, check or reference written with the column; None when none comes next."""
    if cursor.accept("SERIAL DEFAULT VALUE"):
        return _key(column, "unique")
    if cursor.accept("PRIMARY KEY") or cursor.accept("PRIMARY"):
        return _key(column, "primary")
    if cursor.accept("UNIQUE"):
        cursor.accept("KEY")
        return _key(column, "unique")
    if cursor.accept("KEY"):
        return _key(column, "primary")
    if cursor.is_word("CONSTRAINT") or cursor.is_word("CHECK"):
        symbol = ""
        if cursor.accept("CONSTRAINT") and not cursor.is_word("CHECK"):
            symbol = cursor.identifier()
        return parse_check(cursor, symbol or (column.name if cursor.context.is_mariadb else ""))
    if cursor.is_word("REFERENCES"):
        return AddForeignKey(parse_references(cursor, database, ForeignKey("", (column.name,), "", "", ())))
    return None


def parse_check(cursor: Cursor, name: str) -> AddCheck:
    """`CHECK (expression) [[NOT] ENFORCED]`: kept in the model only, the source has checked the rows."""
    cursor.expect("CHECK")
    check = AddCheck(Check(name, cursor.skip_group()))
    _ = cursor.accept("NOT ENFORCED") or cursor.accept("ENFORCED")
    return check


def parse_references(cursor: Cursor, database: str, key: ForeignKey) -> ForeignKey:
    """`REFERENCES t (a, b) [MATCH …] [ON DELETE …] [ON UPDATE …]`; without columns those of the primary key."""
    cursor.expect("REFERENCES")
    ref_database, ref_table = cursor.table_name(database)
    ref_columns = cursor.names_in_parentheses() if cursor.is_symbol("(") else ()
    key = replace(key, ref_database=ref_database, ref_table=ref_table, ref_columns=ref_columns)
    while True:
        if cursor.accept("MATCH"):
            cursor.next()
        elif cursor.accept("ON DELETE"):
            key = replace(key, on_delete=_reference_option(cursor))
        elif cursor.accept("ON UPDATE"):
            key = replace(key, on_update=_reference_option(cursor))
        else:
            return key


def _reference_option(cursor: Cursor) -> str:
    for option in ("CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT", "NO ACTION"):
        if cursor.accept(option):
            return option
    cursor.refuse()


def parse_default(cursor: Cursor) -> str:
    """The text of a DEFAULT: a literal, `(expression)`, a function call, `NEXT VALUE FOR s`."""
    start = cursor.token.start
    end = start
    if cursor.is_symbol("("):
        return f"({cursor.skip_group()})"
    _ = cursor.accept_symbol("-") or cursor.accept_symbol("+")
    if cursor.token.kind == "string" or cursor.ahead().kind == "string":
        introducer = cursor.token.kind == "word"
        if introducer and not cursor.token.value.startswith("_"):
            # a keyword value (DEFAULT NULL COMMENT 'x' has the string two tokens on; TRUE 'x' does not occur)
            token = cursor.next()
            return cursor.text[start : token.end]
        while cursor.token.kind == "string" or introducer:
            introducer = False
            end = cursor.next().end
        return cursor.text[start:end]
    if cursor.accept("NEXT VALUE FOR"):
        cursor.table_name("-")
        return "(NEXT VALUE FOR a sequence)"
    end = cursor.next().end
    while cursor.is_symbol("."):  # a function of a database, or a sequence
        cursor.next()
        end = cursor.next().end
    if cursor.is_symbol("("):
        body = cursor.skip_group()
        return f"{cursor.text[start:end]}({body})"
    return cursor.text[start:end]
