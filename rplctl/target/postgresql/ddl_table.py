"""Parts of a table's DDL for PostgreSQL: columns, keys, indexes, comments, foreign keys, names.

A foreign key is made as soon as both its tables are there, and again when its parent comes back; existing rows are not
checked again (NOT VALID), as the source does not either.
Statements never hang on what a run before left behind: those that may be needless ask first (DO … IF).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.model import Column, ForeignKey, Key, TableModel
from rplctl.schema.plan import Catalog
from rplctl.target.ddl_parts import actions, column_line, constant_default, is_enforceable, is_indexed, quote
from rplctl.target.dialect import OWN_SCHEMA
from rplctl.target.postgresql.ddl_type import (
    check_names,
    declared,
    index_of,
    is_odd_date,
    literal,
    short_name,
    table,
    text_literal,
)

_PARKED = "rplctl renames this"
_NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")


def create_schema(database: str) -> str:
    """CREATE SCHEMA, unless it is there: IF NOT EXISTS would want the right to create it all the same."""
    if database.lower() == OWN_SCHEMA or database.startswith("pg_"):
        raise TargetError(
            f"The source's database '{database}' cannot be a schema of that name in PostgreSQL: it is reserved",
            errno=er.DB_CREATE_EXISTS,
            hint=f'give it another name here: replicate_rewrite_db = "{database}->{database.strip("_")}_copy"',
        )
    name = quote(database)
    return _only_if(f"to_regnamespace({text_literal(name)}) IS NULL", f"CREATE SCHEMA {name}")


def _only_if(condition: str, statement: str) -> str:
    return _do(f"BEGIN IF {condition} THEN {statement}; END IF; END")


def _do(block: str) -> str:
    """As a literal and not between dollars: a name of the source may hold the word that would end it."""
    return f"DO {text_literal(block)}"


def create_table(model: TableModel, catalog: Catalog) -> list[str]:
    """CREATE TABLE, its indexes and comments, and the foreign keys that it makes possible."""
    check_names(model)
    lines = [column_line(column, declared(column), default_sql(column)) for column in model.columns]
    if (primary := model.primary_key) is not None and not has_prefix(primary):
        lines.append(primary_key_sql(primary))
    found = [f"CREATE TABLE {table(model)} (\n  " + ",\n  ".join(lines) + "\n)"]
    return [*found, *indexes(model).values(), *comments(model), *foreign_keys(model, catalog)]


def default_sql(column: Column) -> str:
    """The default that a writer on the target would get; '' for none. Rows of the source bring all their values."""
    text = (column.default or "").upper()
    if text.startswith(_NOW) and column.type in ("datetime", "timestamp"):
        word = "CURRENT_TIMESTAMP" if column.type == "timestamp" else "LOCALTIMESTAMP"
        return f"{word}({column.fraction_digits})"
    value = constant_default(column)
    try:
        return "" if value is None or is_odd_date(value, column) else literal(value, column)
    except TargetError:  # a text that PostgreSQL has not: rows that hold it will say so
        return ""


def primary_key_sql(key: Key) -> str:
    return f"PRIMARY KEY ({', '.join(quote(part.column) for part in key.parts)})"


def add_primary_key(model: TableModel) -> list[str]:
    """Unless it is there; none where it is an index of ours (`indexes`), or the model has none."""
    if (primary := model.primary_key) is None or has_prefix(primary):
        return []
    is_there = f"EXISTS (SELECT FROM pg_index WHERE indrelid = {text_literal(table(model))}::regclass AND indisprimary)"
    return [_only_if(f"NOT {is_there}", f"ALTER TABLE {table(model)} ADD {primary_key_sql(primary)}")]


def has_prefix(key: Key) -> bool:
    return any(part.length for part in key.parts)


def indexes(model: TableModel) -> dict[str, str]:
    """Index name → CREATE INDEX. A prefix is indexed as that: long texts do not fit into an index here."""
    found = {}
    columns = {column.name: column for column in model.columns}
    for key in model.keys:
        is_own = key.kind == "primary" and has_prefix(key)  # a PRIMARY KEY of ours would have no expression
        if not (is_own or is_indexed(key)):
            continue
        parts = []
        for part in key.parts:
            text: str = quote(part.column)
            if part.length and declared(columns[part.column]) == "bytea":
                text = f"substring({text} from 1 for {part.length})"
            elif part.length:
                text = f"left({text}, {part.length})"
            parts.append(f"({text})" if part.length else text)
            parts[-1] += " DESC" if part.descending else ""
        unique = "UNIQUE " if key.is_unique else ""
        name = index_of(model, key)
        found[name] = f"CREATE {unique}INDEX {quote(name)} ON {table(model)} ({', '.join(parts)})"
    return found


def drop_index(model: TableModel, name: str) -> str:
    """An operator may have dropped it already: the channel's hint for values too long for it says so."""
    return f"DROP INDEX IF EXISTS {quote(model.database)}.{quote(name)}"


def comments(model: TableModel, old: TableModel | None = None) -> Iterator[str]:
    """COMMENT ON for what differs from `old`."""
    if model.comment != (old.comment if old else ""):
        yield f"COMMENT ON TABLE {table(model)} IS {_comment(model.comment)}"
    for column in model.columns:
        before = old.find(column.name) if old else None
        if column.comment != (before.comment if before else ""):
            yield f"COMMENT ON COLUMN {table(model)}.{quote(column.name)} IS {_comment(column.comment)}"


def _comment(text: str) -> str:
    return text_literal(text.replace("\0", "")) if text else "NULL"


def foreign_keys(model: TableModel, catalog: Catalog) -> list[str]:
    """Its own ones whose parents are there, and those of its children: they waited for it."""
    possible = [key for key in model.foreign_keys if is_enforceable(key, model, catalog)]
    own = [add_foreign_key(model, key, is_new=True) for key in possible]
    others = children(model, catalog)
    return own + [add_foreign_key(child, key) for child, key in others if child.qualified_name != model.qualified_name]


def children(model: TableModel, catalog: Catalog) -> list[tuple[TableModel, ForeignKey]]:
    """(table, its foreign key) of every one that points at the table and can be had here."""
    return [(child, key) for child, key in referring(model, catalog) if is_enforceable(key, child, catalog)]


def referring(model: TableModel, catalog: Catalog) -> Iterator[tuple[TableModel, ForeignKey]]:
    """The same of all that point at it, whether they could be had or not."""
    for child in catalog.tables.values():
        for key in child.foreign_keys:
            if (key.ref_database, key.ref_table) == (model.database, model.name):
                yield child, key


def constraint_of(key: ForeignKey) -> str:
    return quote(short_name(key.name))


def add_foreign_key(model: TableModel, key: ForeignKey, *, is_new: bool = False) -> str:
    """Deferrable: net changes come table by table. RESTRICT as NO ACTION, which alone can wait for the COMMIT."""
    parent = f"{quote(key.ref_database)}.{quote(key.ref_table)}"
    statement = (
        f"ALTER TABLE {table(model)} ADD CONSTRAINT {constraint_of(key)} FOREIGN KEY ({_names(key.columns)})"
        f" REFERENCES {parent} ({_names(key.ref_columns)}){actions(key)} DEFERRABLE{'' if is_new else ' NOT VALID'}"
    )
    both = f"to_regclass({text_literal(table(model))}) IS NOT NULL AND to_regclass({text_literal(parent)}) IS NOT NULL"
    return _only_if(both, statement)


def drop_foreign_key(model: TableModel, key: ForeignKey) -> str:
    return f"ALTER TABLE IF EXISTS {table(model)} DROP CONSTRAINT IF EXISTS {constraint_of(key)}"


def without_children(model: TableModel, catalog: Catalog) -> list[str]:
    """Before a parent is dropped: not by CASCADE, which would take an operator's views along."""
    found = children(model, catalog)
    return [drop_foreign_key(child, key) for child, key in found if child.qualified_name != model.qualified_name]


def _names(names: Iterable[str]) -> str:
    return ", ".join(quote(name) for name in names)


def rename_table(old: TableModel, new: TableModel) -> list[str]:
    """By way of a name of ours when the schema changes too: both half-way names may be taken."""
    found = []
    if (key := old.primary_key) is not None and has_prefix(key):  # all other indexes keep their names
        name = f"{quote(old.database)}.{quote(index_of(old, key))}"
        found.append(f"ALTER INDEX IF EXISTS {name} RENAME TO {quote(index_of(new, key))}")
    if old.database == new.database:
        return [*found, f"ALTER TABLE {table(old)} RENAME TO {quote(new.name)}"]
    return [
        *found,
        create_schema(new.database),
        each_primary_key(old, "RENAME CONSTRAINT %1$I TO %2$I"),
        f"ALTER TABLE {table(old)} RENAME TO {quote(_PARKED)}",
        f"ALTER TABLE {quote(old.database)}.{quote(_PARKED)} SET SCHEMA {quote(new.database)}",
        f"ALTER TABLE {quote(new.database)}.{quote(_PARKED)} RENAME TO {quote(new.name)}",
    ]


def each_primary_key(model: TableModel, action: str) -> str:
    """ALTER TABLE for the primary key by whatever name: PostgreSQL chose it, or an operator who made the table.

    `action` with %1$I for that name, %2$I for one that no other table has, in whatever schema.
    """
    head = text_literal(f"ALTER TABLE {table(model).replace('%', '%%')} {action}")
    regclass = f"{text_literal(table(model))}::regclass"
    return _do(
        f"DECLARE own name; BEGIN FOR own IN SELECT conname FROM pg_constraint WHERE conrelid = {regclass}"
        f" AND contype = 'p' LOOP EXECUTE format({head}, own, 'rplctl_' || {regclass}::oid || '_pkey'); END LOOP; END"
    )
