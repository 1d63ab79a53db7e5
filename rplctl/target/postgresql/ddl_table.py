"""Writes the parts of a table's DDL for PostgreSQL: columns, keys, indexes, comments, foreign keys, names.

A foreign key is created as soon as both of its tables exist, and again if its parent is created again. Existing rows
are not checked then (NOT VALID), as on the source. All statements are written before the first of them runs. So a
statement that may be unnecessary contains its own check (DO … IF).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.model import Column, ForeignKey, Key, TableModel
from rplctl.schema.plan import Catalog
from rplctl.schema.row_key import is_by_time_zone
from rplctl.sql_text import NOTHING, NULL, Sql, joined, percent_doubled, written
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


def create_schema(database: str) -> Sql:
    """Return a statement that creates the schema of a source's database, if the schema is missing.

    CREATE SCHEMA IF NOT EXISTS is not used, because it requires the privilege to create schemas even if the schema
    exists. Raises TargetError 1007 for a reserved name.
    """
    if database.lower() == OWN_SCHEMA or database.startswith("pg_"):
        raise TargetError(
            f"the source's database '{database}' cannot be a schema in PostgreSQL: the name is reserved",
            errno=er.DB_CREATE_EXISTS,
            hint="to rename the database on the target, run: "
            f"rplctl change-filter --replicate-rewrite-db '{database}->copy_of_{database}'; rplctl start",
        )
    name = quote(database)
    return _only_if(written("to_regnamespace({}) IS NULL", text_literal(name)), written("CREATE SCHEMA {}", name))


def _only_if(condition: Sql, statement: Sql) -> Sql:
    return _do(written("BEGIN IF {} THEN {}; END IF; END", condition, statement))


def _do(block: str) -> Sql:
    """Return a DO statement that executes the block, which is a program in PL/pgSQL.

    The block is a string literal and not dollar-quoted. A name in the block could contain the tag that ends the quote.
    """
    return written("DO {}", text_literal(block))


def create_table(model: TableModel, catalog: Catalog) -> list[Sql]:
    """Return statements that create the table, its indexes and comments, and all foreign keys that are now possible.

    `catalog`: the tables after the statement. Raises TargetError for names that PostgreSQL cannot have.
    """
    check_names(model)
    lines = [column_line(column, declared(column), default_sql(column)) for column in model.columns]
    if (primary := model.primary_key) is not None and not has_prefix(primary):
        lines.append(primary_key_sql(primary))
    made = written("CREATE TABLE {} (\n  {}\n)", table(model), joined(",\n  ", lines))
    return [made, *indexes(model).values(), *comments(model), *foreign_keys(model, catalog)]


def default_sql(column: Column) -> Sql:
    """Return the SQL of the column's default, or '' if the column has no default that PostgreSQL can express.

    Only other programs that write to the target use the default, because the source's rows have values for all columns.
    """
    text = (column.default or "").upper()
    if text.startswith(_NOW) and column.type in ("datetime", "timestamp"):
        word = written("CURRENT_TIMESTAMP") if column.type == "timestamp" else written("LOCALTIMESTAMP")
        return written("{}({})", word, column.fraction_digits)
    value = constant_default(column)
    try:
        return NOTHING if value is None or is_odd_date(value, column) else literal(value, column)
    except TargetError:  # PostgreSQL cannot store the text; a row with this text will raise the error
        return NOTHING


def primary_key_sql(key: Key) -> Sql:
    return written("PRIMARY KEY ({})", joined(", ", (quote(part.column) for part in key.parts)))


def add_primary_key(model: TableModel) -> list[Sql]:
    """Return a list with the statement that adds the primary key, if the table has none yet.

    The list is empty if the model has no primary key, or if this key indexes only a prefix of a column.
    """
    if (primary := model.primary_key) is None or has_prefix(primary):
        return []
    is_there = written(
        "EXISTS (SELECT FROM pg_index WHERE indrelid = {}::regclass AND indisprimary)", text_literal(table(model))
    )
    return [
        _only_if(written("NOT {}", is_there), written("ALTER TABLE {} ADD {}", table(model), primary_key_sql(primary)))
    ]


def has_prefix(key: Key) -> bool:
    return any(part.length for part in key.parts)


def indexes(model: TableModel) -> dict[str, Sql]:
    """Return the CREATE INDEX statements of the table's keys, by the names of the indexes.

    If a key has only a prefix of a column, the index has the same prefix, because long texts do not fit into an index.
    """
    found = {}
    columns = {column.name: column for column in model.columns}
    for key in model.keys:
        is_own = key.kind == "primary" and has_prefix(key)  # PostgreSQL's PRIMARY KEY cannot have an expression
        if not (is_own or is_indexed(key)):
            continue
        parts = []
        for part in key.parts:
            text: Sql = quote(part.column)
            if part.length and declared(columns[part.column]) == "bytea":
                text = written("substring({} from 1 for {})", text, part.length)
            elif part.length:
                text = written("left({}, {})", text, part.length)
            parts.append(written("({})", text) if part.length else text)
            parts[-1] = written("{} DESC", parts[-1]) if part.descending else parts[-1]
        unique = written("UNIQUE ") if key.is_unique and not is_by_time_zone(key, model) else NOTHING
        name = index_of(model, key)
        found[name] = written("CREATE {}INDEX {} ON {} ({})", unique, quote(name), table(model), joined(", ", parts))
    return found


def drop_index(model: TableModel, name: str) -> Sql:
    """Return the statement that drops an index if the index exists.

    An operator may already have dropped the index, as the hint of the error about too long keys suggests.
    """
    return written("DROP INDEX IF EXISTS {}.{}", quote(model.database), quote(name))


def comments(model: TableModel, old: TableModel | None = None) -> Iterator[Sql]:
    """Yield COMMENT ON statements for the table's and the columns' comments that differ from those of `old`."""
    if model.comment != (old.comment if old else ""):
        yield written("COMMENT ON TABLE {} IS {}", table(model), _comment(model.comment))
    for column in model.columns:
        before = old.find(column.name) if old else None
        if column.comment != (before.comment if before else ""):
            yield written("COMMENT ON COLUMN {}.{} IS {}", table(model), quote(column.name), _comment(column.comment))


def _comment(text: str) -> Sql:
    return text_literal(text.replace("\0", "")) if text else NULL


def foreign_keys(model: TableModel, catalog: Catalog) -> list[Sql]:
    """Return statements that create foreign keys after the table was created.

    These are the table's own foreign keys to existing parents, and the foreign keys of other tables to this table.
    """
    possible = [key for key in model.foreign_keys if is_enforceable(key, model, catalog)]
    own = [add_foreign_key(model, key, is_new=True) for key in possible]
    others = children(model, catalog)
    return own + [add_foreign_key(child, key) for child, key in others if child.qualified_name != model.qualified_name]


def children(model: TableModel, catalog: Catalog) -> list[tuple[TableModel, ForeignKey]]:
    """Return the foreign keys that reference the table and can exist in the target.

    Each result is a pair (child table, foreign key).
    """
    return [(child, key) for child, key in referring(model, catalog) if is_enforceable(key, child, catalog)]


def referring(model: TableModel, catalog: Catalog) -> Iterator[tuple[TableModel, ForeignKey]]:
    """Yield all foreign keys that reference the table, as pairs (child table, foreign key).

    This includes foreign keys that cannot exist in the target.
    """
    for child in catalog.tables.values():
        for key in child.foreign_keys:
            if (key.ref_database, key.ref_table) == (model.database, model.name):
                yield child, key


def constraint_of(key: ForeignKey) -> Sql:
    return quote(short_name(key.name))


def add_foreign_key(model: TableModel, key: ForeignKey, *, is_new: bool = False) -> Sql:
    """Return a statement that creates a foreign key of the table `model`, if both of its tables exist.

    The foreign key is deferrable to COMMIT, because net changes are applied table by table. RESTRICT becomes NO ACTION,
    because RESTRICT cannot be deferred. `is_new`: True if the table is new, so that no rows need the clause NOT VALID.
    """
    parent = written("{}.{}", quote(key.ref_database), quote(key.ref_table))
    statement = written(
        "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}){} DEFERRABLE{}",
        table(model),
        constraint_of(key),
        _names(key.columns),
        parent,
        _names(key.ref_columns),
        actions(key),
        NOTHING if is_new else written(" NOT VALID"),
    )
    both = written(
        "to_regclass({}) IS NOT NULL AND to_regclass({}) IS NOT NULL", text_literal(table(model)), text_literal(parent)
    )
    return _only_if(both, statement)


def drop_foreign_key(model: TableModel, key: ForeignKey) -> Sql:
    return written("ALTER TABLE IF EXISTS {} DROP CONSTRAINT IF EXISTS {}", table(model), constraint_of(key))


def without_children(model: TableModel, catalog: Catalog) -> list[Sql]:
    """Return statements that drop the foreign keys of other tables to the table `model`, before `model` is dropped.

    DROP TABLE … CASCADE is not used, because it would also drop an operator's views.
    """
    found = children(model, catalog)
    return [drop_foreign_key(child, key) for child, key in found if child.qualified_name != model.qualified_name]


def _names(names: Iterable[str]) -> Sql:
    return joined(", ", (quote(name) for name in names))


def rename_table(old: TableModel, new: TableModel) -> list[Sql]:
    """Return statements that rename a table, and move it to another schema if its database changes.

    A move uses a temporary name, because the old name may exist in the new schema, and the new name in the old one.
    """
    found = []
    if (key := old.primary_key) is not None and has_prefix(key):  # all other indexes keep their names
        name = written("{}.{}", quote(old.database), quote(index_of(old, key)))
        found.append(written("ALTER INDEX IF EXISTS {} RENAME TO {}", name, quote(index_of(new, key))))
    found += [
        _rename_constraint(old, before, after)
        for before, after in zip(old.foreign_keys, new.foreign_keys, strict=True)
        if before.name != after.name
    ]
    if old.database == new.database:
        return [*found, written("ALTER TABLE {} RENAME TO {}", table(old), quote(new.name))]
    return [
        *found,
        create_schema(new.database),
        each_primary_key(old, written("RENAME CONSTRAINT %1$I TO %2$I"), but_ours=True),
        written("ALTER TABLE {} RENAME TO {}", table(old), quote(_PARKED)),
        written("ALTER TABLE {}.{} SET SCHEMA {}", quote(old.database), quote(_PARKED), quote(new.database)),
        written("ALTER TABLE {}.{} RENAME TO {}", quote(new.database), quote(_PARKED), quote(new.name)),
    ]


def _rename_constraint(model: TableModel, before: ForeignKey, after: ForeignKey) -> Sql:
    """Return a statement that gives the foreign key the name of `after`, if the target has the foreign key."""
    return _do(
        written(
            "BEGIN IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = {}::regclass AND conname = {}) THEN "
            "ALTER TABLE {} RENAME CONSTRAINT {} TO {}; END IF; END",
            text_literal(table(model)),
            text_literal(short_name(before.name)),
            table(model),
            constraint_of(before),
            constraint_of(after),
        )
    )


def each_primary_key(model: TableModel, action: Sql, *, but_ours: bool = False) -> Sql:
    """Return a statement that executes ALTER TABLE with `action` for the primary key, whatever the key's name is.

    PostgreSQL or an operator has chosen this name. In `action`, %1$I is this name, and %2$I is a name that is unique in
    all schemas. `but_ours`: True to skip a key that already has the unique name from an earlier move.
    """
    others = written(" AND conname <> 'rplctl_' || conrelid || '_pkey'") if but_ours else NOTHING
    head = text_literal(written("ALTER TABLE {} {}", percent_doubled(table(model)), action))
    regclass = written("{}::regclass", text_literal(table(model)))
    return _do(
        written(
            "DECLARE own name; BEGIN FOR own IN SELECT conname FROM pg_constraint WHERE conrelid = "
            "{} AND contype = 'p'{} LOOP EXECUTE format({}, own, 'rplctl_' || {}::oid || '_pkey'); END "
            "LOOP; END",
            regclass,
            others,
            head,
            regclass,
        )
    )
