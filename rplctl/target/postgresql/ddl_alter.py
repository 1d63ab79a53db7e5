"""Writes the statements of ALTER TABLE for PostgreSQL, which change the table without rebuilding it.

The statements have this order: First, foreign keys and indexes that change are dropped. Then columns are renamed,
dropped, converted and added. At the end, keys, indexes and foreign keys are created. The order of the source's columns
is not kept: a column that the source adds FIRST or AFTER another column becomes the last column here.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.model import TableModel
from rplctl.schema.plan import AlterStep, Catalog
from rplctl.sql_text import NOTHING, NULL, Sql, joined, written
from rplctl.target.ddl_parts import (
    FilledColumn,
    is_enforceable,
    is_required,
    quote,
    rename_columns,
)
from rplctl.target.postgresql import ddl_table as parts
from rplctl.target.postgresql.ddl_type import declared, index_of, table

_PARKED = "rplctl moves"


def alter_table(step: AlterStep, columns: list[FilledColumn], after: Catalog) -> list[Sql]:
    """Return the statements that execute an ALTER TABLE of the source.

    `columns`: the new columns, with their values for existing rows. `after`: the tables after the statement. Raises
    TargetError for a default that PostgreSQL cannot store.
    """
    renames, old = rename_columns(step, table(step.old), _PARKED)
    new = step.new
    survivors = {c.column.name for c in columns if c.origin is not None}
    gone = [column.name for column in old.columns if column.name not in survivors]
    changed = _changed_types(old, columns)
    before, now = parts.indexes(old), parts.indexes(new)
    lost = changed | set(gone)
    affected = {index_of(old, k) for k in old.keys if parts.has_prefix(k) and lost.intersection(k.columns)}
    stale = [name for name, sql in before.items() if now.get(name) != sql or name in affected]
    keys_change = _primary(old) != _primary(new)
    found = [*_foreign_keys_gone(step, old, after, bool(changed or gone or keys_change or stale))]
    found += renames
    found += [parts.drop_index(old, name) for name in stale]
    if keys_change and _primary(old):
        found.append(parts.each_primary_key(old, written("DROP CONSTRAINT %1$I")))
    found += _alter_columns(old, new, columns, gone)
    if keys_change and _primary(new):
        found.append(written("ALTER TABLE {} ADD {}", table(new), _primary(new)))
    found += [sql for name, sql in now.items() if name in stale or name not in before]
    added = {c.column.name for c in columns if c.origin is None}  # new columns have no comment yet
    found += parts.comments(new, replace(old, columns=tuple(c for c in old.columns if c.name not in added)))
    return found + _foreign_keys_come(step, old, after, bool(changed or gone or keys_change or stale))


def _changed_types(old: TableModel, columns: list[FilledColumn]) -> set[str]:
    """Return the names of the columns whose type or values change, except for new columns and dropped columns."""
    found = set()
    for filled in columns:
        was = old.find(filled.column.name) if filled.origin is not None else None
        if was is not None and (declared(was) != declared(filled.column) or not filled.is_unchanged):
            found.add(filled.column.name)
    return found


def _primary(model: TableModel) -> Sql:
    key = model.primary_key
    return NOTHING if key is None or parts.has_prefix(key) else parts.primary_key_sql(key)


def _foreign_keys_gone(step: AlterStep, old: TableModel, after: Catalog, everything: bool) -> list[Sql]:
    """Return statements that drop the foreign keys which the source's statement removes.

    `everything`: True to drop all foreign keys from and to the table. They are created again afterwards.
    """
    kept = set() if everything else {key.name for key in step.new.foreign_keys}
    found = [parts.drop_foreign_key(step.old, key) for key in step.old.foreign_keys if key.name not in kept]
    if everything:
        found += [
            parts.drop_foreign_key(child, key) for child, key in parts.referring(step.old, after) if not _is(child, old)
        ]
    return found


def _foreign_keys_come(step: AlterStep, old: TableModel, after: Catalog, everything: bool) -> list[Sql]:
    new = step.new
    known = set() if everything else {key.name for key in old.foreign_keys}
    found = [
        parts.add_foreign_key(new, key)
        for key in new.foreign_keys
        if key.name not in known and is_enforceable(key, new, after)
    ]
    if everything:
        found += [parts.add_foreign_key(child, key) for child, key in parts.children(new, after) if not _is(child, new)]
    return found


def _is(one: TableModel, other: TableModel) -> bool:
    return one.qualified_name == other.qualified_name


def _alter_columns(old: TableModel, new: TableModel, columns: list[FilledColumn], gone: list[str]) -> list[Sql]:
    """Return the statements that change the columns. `gone`: the names of the columns to drop.

    One ALTER TABLE combines many actions, because PostgreSQL may rewrite all rows for each statement.
    """
    drops, changes, last, numbering = [written("DROP COLUMN {}", quote(name)) for name in gone], [], [], []
    for filled in columns:
        column, name = filled.column, quote(filled.column.name)
        default = parts.default_sql(column)
        was = old.find(column.name) if filled.origin is not None else None
        if was is None:
            changes.append(_add_column(filled))
            if filled.constant is None:
                numbered = written("SELECT ctid AS place, {} AS number FROM {}", filled.expression, table(new))
                sets = written("UPDATE {} AS t SET {} = n.number", table(new), name)
                numbering.append(written("{} FROM ({}) AS n WHERE t.ctid = n.place", sets, numbered))
            if is_required(column):
                last.append(written("ALTER COLUMN {} SET NOT NULL", name))
            last.append(
                written(
                    "ALTER COLUMN {} {}",
                    name,
                    written("SET DEFAULT {}", default) if default else written("DROP DEFAULT"),
                )
            )
            continue
        is_converted = declared(was) != declared(column) or not filled.is_unchanged
        if is_converted or parts.default_sql(was) != default:
            drops.append(written("ALTER COLUMN {} DROP DEFAULT", name))
            last += [written("ALTER COLUMN {} SET DEFAULT {}", name, default)] if default else []
        if is_required(was) and not is_required(column):
            drops.append(written("ALTER COLUMN {} DROP NOT NULL", name))
        elif is_required(column) and not is_required(was):
            last.append(written("ALTER COLUMN {} SET NOT NULL", name))
        if is_converted:
            using = NOTHING if filled.is_unchanged else written(" USING ({})::{}", filled.expression, declared(column))
            changes.append(written("ALTER COLUMN {} TYPE {}{}", name, declared(column), using))
    head = written("ALTER TABLE {} ", table(new))
    found = [written("{}{}", head, joined(", ", part)) for part in (drops, changes) if part] + numbering
    return found + ([written("{}{}", head, joined(", ", last))] if last else [])


def _add_column(filled: FilledColumn) -> Sql:
    """Return the action ADD COLUMN. Its default is the value for existing rows, so PostgreSQL rewrites no rows."""
    head = written("ADD COLUMN {} {}", quote(filled.column.name), declared(filled.column))
    return written("{} DEFAULT {}", head, filled.constant) if filled.constant not in (None, NULL) else head
