"""ALTER TABLE for PostgreSQL: columns renamed, dropped, converted and added in place; what hangs on them around it.

The order of the source's columns is not kept: a column that is added FIRST or AFTER another stands at the end here.
Order: foreign keys and indexes that change go, columns change, keys, indexes and foreign keys come.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.context import DdlContext
from rplctl.schema.default_value import NotComputable, default_value
from rplctl.schema.model import INTEGER_BITS, Column, ForeignKey, Key, TableModel
from rplctl.schema.naming import index_name
from rplctl.schema.plan import AlterStep, Catalog
from rplctl.target.computed_columns import Arithmetic, computed, is_calculated_anew
from rplctl.target.ddl_parts import FilledColumn, clustered_key, is_enforceable, quote
from rplctl.target.postgresql.conversion import convert
from rplctl.target.postgresql.ddl_table import (
    add_foreign_key,
    children,
    comments,
    default_sql,
    drop_foreign_key,
    drop_index,
    each_primary_key,
    has_prefix,
    indexes,
    primary_key_sql,
)
from rplctl.target.postgresql.ddl_type import declared, index_of, is_odd_date, literal, table

_PARKED = "rplctl moves"
_ARITHMETIC = Arithmetic("{}::numeric", "")


def filled_columns(step: AlterStep, context: DdlContext, *, original_names: bool) -> list[FilledColumn]:
    """One per column of the new table, over the old names (`ddl.guards`, before renaming) or the new ones."""
    found = []
    for column, origin in zip(step.new.columns, step.origins, strict=True):
        if origin is None:
            found.append(_added(column, step, context, original_names=original_names))
            continue
        old = step.old.find(origin)
        assert old is not None, "an origin names a column of the old table"
        if is_calculated_anew(column, old, step, context):
            found.append(replace(_added(column, step, context, original_names=original_names), origin=origin))
            continue
        value = quote(origin if original_names else column.name)
        made = convert(old, column, value, context)
        is_unchanged = made.expression == value
        found.append(
            FilledColumn(column, origin, made.expression, made.impossible, made.why, is_unchanged=is_unchanged)
        )
    return found


def _added(column: Column, step: AlterStep, context: DdlContext, *, original_names: bool) -> FilledColumn:
    if column.auto_increment:
        return _numbered(column, step, context, original_names=original_names)
    try:
        default = default_value(column, context)
        if isinstance(default, str) and is_odd_date(default, column):
            why = f"existing rows get '{default}' in column '{column.name}', and PostgreSQL has no such date"
            return FilledColumn(column, None, "NULL", "TRUE", why, constant="NULL")
        value = literal(default, column)
    except NotComputable as error:
        text = column.generated or column.default or ""
        made = computed(column, text, step, context, original_names=original_names, arithmetic=_ARITHMETIC)
        if made is not None:
            return FilledColumn(column, None, made.expression, made.impossible, f"column '{column.name}': {error}")
        why = f"existing rows get values that only the source knows: {error}"
        return FilledColumn(column, None, "NULL", "TRUE", why, constant="NULL")
    return FilledColumn(column, None, value, constant=value)


def _numbered(column: Column, step: AlterStep, context: DdlContext, *, original_names: bool) -> FilledColumn:
    """ADD COLUMN … AUTO_INCREMENT numbers the rows in the order of the old clustered key (see SQLite's `rebuild`)."""
    width, first = context.auto_increment_increment, context.auto_increment_offset
    key = clustered_key(step.old)
    why = f"existing rows are numbered in an order that only the source knows (column '{column.name}')"
    if key is None:
        return FilledColumn(column, None, str(first), f"(SELECT count(*) FROM {table(step.old)}) > 1", why)
    renamed = {o: c.name for o, c in zip(step.origins, step.new.columns, strict=True) if o is not None}
    order, doubts = [], []
    for part in key.parts:
        key_column = step.old.find(part.column)
        assert key_column is not None, "keys name columns of their table"
        name = quote(part.column if original_names else renamed.get(part.column, part.column))
        is_text = declared(key_column) == "text" or declared(key_column).startswith("varchar")
        order.append(name + (' COLLATE "C"' if is_text else "") + (" DESC" if part.descending else ""))
        if key_column.type not in (*INTEGER_BITS, "year", "date", "datetime", "timestamp", "binary", "varbinary"):
            doubts.append(f"({name}::text ~ '[^0-9a-z]' AND {name}::text ~ '[^0-9A-Z]')")
    number = f"{first} + {width} * (row_number() OVER (ORDER BY {', '.join(order)}) - 1)"
    return FilledColumn(column, None, number, " OR ".join(doubts), why)


def alter_table(step: AlterStep, after: Catalog, context: DdlContext) -> list[str]:
    """The statements. Raises TargetError for a default that PostgreSQL cannot hold."""
    renames, old = _rename_columns(step)
    new, columns = step.new, filled_columns(step, context, original_names=False)
    survivors = {c.column.name for c in columns if c.origin is not None}
    gone = [column.name for column in old.columns if column.name not in survivors]
    changed = _changed_types(old, columns)
    before, now = indexes(old), indexes(new)
    touched = _indexes_over(old, changed | set(gone))
    stale = [name for name, sql in before.items() if now.get(name) != sql or name in touched]
    keys_change = _primary(old) != _primary(new)
    found = [*_foreign_keys_gone(step, old, after, bool(changed or gone or keys_change or stale))]
    found += renames
    found += [drop_index(old, name) for name in stale]
    if keys_change and _primary(old):
        found.append(each_primary_key(old, "DROP CONSTRAINT %1$I"))
    found += _alter_columns(old, new, columns, gone)
    if keys_change and _primary(new):
        found.append(f"ALTER TABLE {table(new)} ADD {_primary(new)}")
    found += [sql for name, sql in now.items() if name in stale or name not in before]
    found += comments(new, _as_commented(old, columns))
    return found + _foreign_keys_come(step, old, after, bool(changed or gone or keys_change or stale))


def _changed_types(old: TableModel, columns: list[FilledColumn]) -> set[str]:
    """New names of kept columns whose type or values change."""
    found = set()
    for filled in columns:
        was = old.find(filled.column.name) if filled.origin is not None else None
        if was is not None and (declared(was) != declared(filled.column) or not filled.is_unchanged):
            found.add(filled.column.name)
    return found


def _indexes_over(model: TableModel, columns: set[str]) -> set[str]:
    return {index_of(model, key) for key in model.keys if has_prefix(key) and columns.intersection(key.columns)}


def _primary(model: TableModel) -> str:
    key = model.primary_key
    return "" if key is None or has_prefix(key) else primary_key_sql(key)


def _foreign_keys_gone(step: AlterStep, old: TableModel, after: Catalog, everything: bool) -> list[str]:
    """Those that the statement drops; `everything`: and those that hang on what changes, to come back after it."""
    kept = set() if everything else {key.name for key in step.new.foreign_keys}
    found = [drop_foreign_key(step.old, key) for key in step.old.foreign_keys if key.name not in kept]
    if everything:
        found += [drop_foreign_key(child, key) for child, key in _referring(step.old, after) if not _is(child, old)]
    return found


def _foreign_keys_come(step: AlterStep, old: TableModel, after: Catalog, everything: bool) -> list[str]:
    new = step.new
    known = set() if everything else {key.name for key in old.foreign_keys}
    found = [
        add_foreign_key(new, key)
        for key in new.foreign_keys
        if key.name not in known and is_enforceable(key, new, after)
    ]
    if everything:
        found += [add_foreign_key(child, key) for child, key in children(new, after) if not _is(child, new)]
    return found


def _referring(model: TableModel, catalog: Catalog) -> list[tuple[TableModel, ForeignKey]]:
    """Every foreign key of another table that points here, whether it could be had or not."""
    return [
        (child, key)
        for child in catalog.tables.values()
        for key in child.foreign_keys
        if (key.ref_database, key.ref_table) == (model.database, model.name)
    ]


def _is(one: TableModel, other: TableModel) -> bool:
    return one.qualified_name == other.qualified_name


def _rename_columns(step: AlterStep) -> tuple[list[str], TableModel]:
    """RENAME COLUMN for each that changed its name (by way of a free name when they swap), and the model after it.

    PostgreSQL carries the new names into indexes and foreign keys. A dropped column whose name is taken gives it up.
    """
    old = step.old
    pairs = [(o, c.name) for o, c in zip(step.origins, step.new.columns, strict=True) if o is not None and o != c.name]
    kept = {o for o in step.origins if o is not None}
    names = {column.name for column in step.new.columns}
    in_the_way = [c.name for c in old.columns if c.name not in kept and c.name in names]
    pairs += [(name, f"{_PARKED} old {i}") for i, name in enumerate(in_the_way)]
    taken = {column.name for column in old.columns}
    first, second = [], []
    for number, (name, new_name) in enumerate(pairs):
        if new_name in taken:
            parked = f"{_PARKED} {number}"
            first.append(_rename_column(old, name, parked))
            second.append(_rename_column(old, parked, new_name))
        else:
            first.append(_rename_column(old, name, new_name))
    final = dict(pairs)
    columns = tuple(replace(c, name=final.get(c.name, c.name)) for c in old.columns)
    keys = tuple(_renamed_key(old, key, final) for key in old.keys)
    foreign_keys = tuple(replace(k, columns=tuple(final.get(n, n) for n in k.columns)) for k in old.foreign_keys)
    return first + second, replace(old, columns=columns, keys=keys, foreign_keys=foreign_keys)


def _renamed_key(model: TableModel, key: Key, final: dict[str, str]) -> Key:
    parts = tuple(replace(part, column=final.get(part.column, part.column)) for part in key.parts)
    return replace(key, parts=parts, stored_as=key.stored_as if key.kind == "primary" else index_name(model, key))


def _rename_column(model: TableModel, name: str, new_name: str) -> str:
    return f"ALTER TABLE {table(model)} RENAME COLUMN {quote(name)} TO {quote(new_name)}"


def _as_commented(old: TableModel, columns: list[FilledColumn]) -> TableModel:
    """What has which comment before comments are written: added columns have none."""
    added = {c.column.name for c in columns if c.origin is None}
    return replace(old, columns=tuple(c for c in old.columns if c.name not in added))


def _alter_columns(old: TableModel, new: TableModel, columns: list[FilledColumn], gone: list[str]) -> list[str]:
    """One ALTER TABLE that converts, one that adds: PostgreSQL goes through the rows once for each at most."""
    drops, changes, last, numbering = [f"DROP COLUMN {quote(name)}" for name in gone], [], [], []
    for filled in columns:
        column, name = filled.column, quote(filled.column.name)
        default = default_sql(column)
        was = old.find(column.name) if filled.origin is not None else None
        if was is None:
            changes.append(_add_column(filled))
            if filled.constant is None:
                numbering.append(_number_rows(new, filled))
            if not column.nullable and column.generated is None:
                last.append(f"ALTER COLUMN {name} SET NOT NULL")
            last.append(f"ALTER COLUMN {name} {f'SET DEFAULT {default}' if default else 'DROP DEFAULT'}")
            continue
        is_converted = declared(was) != declared(column) or not filled.is_unchanged
        if is_converted or default_sql(was) != default:
            drops.append(f"ALTER COLUMN {name} DROP DEFAULT")
            last += [f"ALTER COLUMN {name} SET DEFAULT {default}"] if default else []
        if _is_required(was) and not _is_required(column):
            drops.append(f"ALTER COLUMN {name} DROP NOT NULL")
        elif _is_required(column) and not _is_required(was):
            last.append(f"ALTER COLUMN {name} SET NOT NULL")
        if is_converted:
            using = "" if filled.is_unchanged else f" USING ({filled.expression})::{declared(column)}"
            changes.append(f"ALTER COLUMN {name} TYPE {declared(column)}{using}")
    head = f"ALTER TABLE {table(new)} "
    found = [head + ", ".join(part) for part in (drops, changes) if part] + numbering
    return found + ([head + ", ".join(last)] if last else [])


def _is_required(column: Column) -> bool:
    return not column.nullable and column.generated is None


def _add_column(filled: FilledColumn) -> str:
    """With the value that existing rows get as its default: PostgreSQL need not write them."""
    head = f"ADD COLUMN {quote(filled.column.name)} {declared(filled.column)}"
    return f"{head} DEFAULT {filled.constant}" if filled.constant not in (None, "NULL") else head


def _number_rows(model: TableModel, filled: FilledColumn) -> str:
    return (
        f"UPDATE {table(model)} AS t SET {quote(filled.column.name)} = n.number"
        f" FROM (SELECT ctid AS place, {filled.expression} AS number FROM {table(model)}) AS n WHERE t.ctid = n.place"
    )
