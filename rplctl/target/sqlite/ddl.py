"""Translates a DdlPlan into SQLite statements, which are executed in the transaction that stores the position.

`PRAGMA foreign_keys` must be OFF in this transaction. The `guards` are executed first. They are SELECTs that must find
no row. If a guard finds a row, the channel stops, because the result would differ from the source.

A change that does not affect SQLite's table needs no statement (VARCHAR(10) → VARCHAR(300)). Columns that are renamed
or added at the end are changed in place. All other changes rebuild the table: create a new table, INSERT … SELECT with
conversions, drop the old table, rename the new one.

These things are not created in the target:

* CHECK constraints, because the source has checked the rows, and collations differ
* expression, FULLTEXT and SPATIAL keys
* a changed default of an existing column; only the table model has it
* generated columns; they are plain columns, because the source's rows have their values
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from typing import Final

from rplctl.errors import OTHER_KIND, TargetError, another_way
from rplctl.schema import plan as steps
from rplctl.schema.context import DdlContext
from rplctl.schema.model import INTEGER_BITS, Column, ForeignKey, TableModel
from rplctl.schema.naming import fold, index_name, physical_name
from rplctl.schema.plan import AlterStep, Catalog, DdlPlan, Step
from rplctl.schema.row_key import is_by_time_zone
from rplctl.schema.value import Value
from rplctl.sql_text import NOTHING, NULL, Sql, joined, written
from rplctl.target.computed_columns import Arithmetic
from rplctl.target.computed_text import TextFunctions
from rplctl.target.ddl import Ddl
from rplctl.target.ddl_parts import (
    FilledColumn,
    actions,
    column_line,
    constant_default,
    is_enforceable,
    is_in_order,
    is_indexed,
    may_be_alike,
    new_tables,
    quote,
    rename_columns,
    steps_here,
)
from rplctl.target.known_values import ValueSql
from rplctl.target.sqlite.conversion import convert
from rplctl.target.sqlite.ddl_type import affinity, literal, stored_value

_REBUILT = "rplctl rebuild"  # the source's tables have other names here, with a double underscore
_DAY = "CAST(julianday(substr({0}, 1, 10)) - 1721059.5 AS INTEGER)"  # TO_DAYS


def table(model: TableModel) -> Sql:
    """Return the table's quoted name in SQLite, "db__t" for MySQL's table `db`.`t`."""
    return quote(physical_name(model.database, model.name))


def printed(column: Column, value: Sql) -> Sql:
    """Return an SQL expression for the column's value as the source prints it, for example a YEAR with four digits."""
    if column.type != "year":
        return value
    return written("substr('0000' || {}, -{})", value, column.length or 4)


class SqliteDdl(Ddl):
    arithmetic = Arithmetic(partial(written, "{}"), partial(written, "typeof({}) = 'real' OR "))
    functions = TextFunctions(
        octets=partial(written, "length(CAST({} AS BLOB))"),
        printed=printed,
        has_nul=partial(written, "instr({}, char(0)) > 0"),
    )
    values = ValueSql(
        key=lambda _, value: value,
        literal=literal,
        read=lambda column, found: int(found) if column.type in INTEGER_BITS or column.type == "bit" else found,
        typed=lambda _, value: value,
        size=lambda _, value: written("length({})", value),
    )
    always = written("1")
    row_number = written("ROW_NUMBER()")
    differs = written("IS NOT")
    table = staticmethod(table)
    partition_functions = {
        "YEAR": partial(written, "CAST(substr({}, 1, 4) AS INTEGER)"),
        "TO_DAYS": partial(written, _DAY),
        "TO_SECONDS": partial(written, f"({_DAY} * 86400 + strftime('%s', '1970-01-01 ' || substr({{0}}, 12, 8)))"),
        "UNIX_TIMESTAMP": partial(written, "CAST(strftime('%s', substr({}, 1, 19)) AS INTEGER)"),
    }
    convert = staticmethod(convert)

    def emit(self, plan: DdlPlan, catalog: Catalog) -> list[Sql]:
        after = catalog.after(plan)
        for model in new_tables(plan, catalog):
            _check_name(model, after)
        return [statement for step in steps_here(plan) for statement in _statements(step, after, plan.context)]

    def literal(self, value: Value, column: Column) -> Sql:
        return literal(value)

    def with_value(self, column: Column, value: Value) -> FilledColumn:
        text = literal(stored_value(column, value))
        lasting = column.default is None or "CURRENT" not in column.default.upper()
        return FilledColumn(column=column, origin=None, expression=text, constant=text if lasting else None)

    def ordered(self, column: Column, name: Sql) -> tuple[Sql, Sql]:
        if column.is_unsigned_64:
            return name, written("typeof({}) = 'text'", name)
        return name, NOTHING if is_in_order(column) else written("{} GLOB '*[^0-9a-z]*'", name)


DDL: Final = SqliteDdl()


def _check_name(model: TableModel, after: Catalog) -> None:
    """Raise TargetError if another table has the same name on the target, or if SQLite reserves the name (D10)."""
    name = fold(physical_name(model.database, model.name))
    if name.startswith("sqlite_"):
        raise TargetError(f"table {model.qualified_name} cannot be named '{name}' in SQLite: the prefix is reserved")
    for other in may_be_alike(model, after):
        if fold(physical_name(other.database, other.name)) == name:
            raise TargetError(
                f"tables {model.qualified_name} and {other.qualified_name} would share the name '{name}' in the target",
                hint="to exclude one table, which then receives no changes, run: "
                f"rplctl change-filter --replicate-ignore-table {shlex.quote(model.qualified_name)}; rplctl start"
                f"{another_way(OTHER_KIND)}",
            )


def _statements(step: Step, after: Catalog, context: DdlContext) -> list[Sql]:
    match step:
        case steps.CreateStep(model):
            return create_table(model, after)
        case steps.DropStep(model):
            return [written("DROP TABLE {}", table(model))]
        case steps.TruncateStep(model):
            return [written("DELETE FROM {}", table(model))]
        case steps.RenameStep(old, new):
            if fold(physical_name(old.database, old.name)) != fold(physical_name(new.database, new.name)):
                return [written("ALTER TABLE {} RENAME TO {}", table(old), table(new))]
            # SQLite regards two names that differ only in case as equal
            parked = quote(_REBUILT)
            return [
                written("ALTER TABLE {} RENAME TO {}", table(old), parked),
                written("ALTER TABLE {} RENAME TO {}", parked, table(new)),
            ]
        case AlterStep():
            return alter_table(step, DDL.filled_columns(step, context, original_names=False), after)
        case steps.AddKeysStep(before, model):
            there = _indexes(before)
            return [sql for name, sql in _indexes(model).items() if name not in there]
        case steps.DeletePartitionsStep() | steps.DeleteHistoryStep() | steps.MoveRowsStep():
            return DDL.rows_gone(step, context)


def create_table(model: TableModel, catalog: Catalog) -> list[Sql]:
    """Return the statements that create the table and its indexes.

    `catalog`: the tables after the statement, which decide which foreign keys are possible.
    """
    return [_create_sql(model, physical_name(model.database, model.name), catalog), *_indexes(model).values()]


def _create_sql(model: TableModel, name: str, catalog: Catalog, *, defaults: bool = True) -> Sql:
    lines = [
        column_line(column, affinity(column), _default(column) if defaults else NOTHING) for column in model.columns
    ]
    if (primary := model.primary_key) is not None:
        lines.append(written("PRIMARY KEY ({})", joined(", ", (quote(part.column) for part in primary.parts))))
    lines += [_foreign_key_sql(key) for key in model.foreign_keys if is_enforceable(key, model, catalog)]
    return written("CREATE TABLE {} (\n  {}\n)", quote(name), joined(",\n  ", lines))


def _default(column: Column) -> Sql:
    """Return the column's default as an SQL literal, or '' if the column has no constant default.

    The default only informs readers of the schema, because the source's rows have values for all columns.
    """
    value = constant_default(column)
    return NOTHING if value is None else literal(stored_value(column, value))


def _foreign_key_sql(key: ForeignKey) -> Sql:
    own, theirs = (joined(", ", map(quote, names)) for names in (key.columns, key.ref_columns))
    parent = quote(physical_name(key.ref_database, key.ref_table))
    return written("FOREIGN KEY ({}) REFERENCES {} ({}){}", own, parent, theirs, actions(key))


def _indexes(model: TableModel) -> dict[str, Sql]:
    """Return the CREATE INDEX statements of the table's keys, by the names of the indexes.

    If a key of the source indexes only a prefix of a column, its index here has the complete values. If the prefixes
    are unique, so are the values.
    """
    found = {}
    for key in model.keys:
        if is_indexed(key):
            parts = joined(
                ", ",
                (
                    written("{} DESC", quote(part.column)) if part.descending else quote(part.column)
                    for part in key.parts
                ),
            )
            unique = written("UNIQUE ") if key.kind == "unique" and not is_by_time_zone(key, model) else NOTHING
            name = index_name(model, key)
            found[name] = written("CREATE {}INDEX {} ON {} ({})", unique, quote(name), table(model), parts)
    return found


def alter_table(step: AlterStep, columns: list[FilledColumn], after: Catalog) -> list[Sql]:
    """Return the statements that execute an ALTER TABLE of the source, with a rebuild of the table only if necessary.

    `columns`: the new columns, with their values for existing rows. `after`: the tables after the statement.
    """
    renames, old = rename_columns(step, table(step.old), _REBUILT, str.casefold)
    before, now = _indexes(old), _indexes(step.new)
    dropped = [written("DROP INDEX {}", quote(name)) for name, sql in before.items() if now.get(name) != sql]
    created = [sql for name, sql in now.items() if before.get(name) != sql]
    same = [_create_sql(model, "t", after, defaults=False) for model in (old, step.new)]
    children = _children_anew(old, after)
    if same[0] == same[1] and all(c.origin is not None and c.is_unchanged for c in columns):
        return [*renames, *dropped, *created, *children]
    added = _added_in_place(old, step.new, columns, after)
    if added is not None:
        return [*renames, *dropped, *added, *created, *children]
    values = [column.expression for column in columns]
    return [*renames, *_rebuild(old, step.new, values, after), *children]


def _children_anew(parent: TableModel, after: Catalog) -> list[Sql]:
    """Return statements that rebuild the child tables of `parent` whose foreign keys must be added or removed.

    A foreign key must reference the columns of a key of `parent`, and a statement has added or dropped such a key.
    If a foreign key references other columns, SQLite refuses all changes of both tables. `parent`: the model before
    the statement.
    """
    before = replace(after, tables={**after.tables, (parent.database, parent.name): parent})
    statements: list[Sql] = []
    for child in [child for child in after.tables.values() if child.foreign_keys]:
        keys = [k for k in child.foreign_keys if (k.ref_database, k.ref_table) == (parent.database, parent.name)]
        if any(is_enforceable(key, child, before) != is_enforceable(key, child, after) for key in keys):
            statements += _rebuild(child, child, [quote(column.name) for column in child.columns], after)
    return statements


def _added_in_place(old: TableModel, new: TableModel, columns: list[FilledColumn], after: Catalog) -> list[Sql] | None:
    """Return statements that add columns at the end of the table, or None if the table must be rebuilt.

    Columns can be added in place if existing rows get a constant value, and if nothing else changes.
    """
    count = len(old.columns)
    kept, added = columns[:count], columns[count:]
    shortened = replace(new, columns=new.columns[:count])
    if len(kept) < count or any(c.origin is None or not c.is_unchanged for c in kept):
        return None
    if any(c.origin is not None or c.constant is None for c in added):
        return None
    if _create_sql(old, "t", after, defaults=False) != _create_sql(shortened, "t", after, defaults=False):
        return None
    statements = []
    for filled in added:
        default = NOTHING if filled.constant in (None, NULL) else filled.constant or NOTHING
        line = column_line(filled.column, affinity(filled.column), default)
        statements.append(written("ALTER TABLE {} ADD COLUMN {}", table(old), line))
    return statements


def _rebuild(old: TableModel, new: TableModel, values: list[Sql], after: Catalog) -> list[Sql]:
    """Return the statements that rebuild a table, by the procedure in SQLite's manual.

    `values`: the SQL expression for each column of the new table. With legacy_alter_table, RENAME does not change the
    foreign keys of other tables, so these keys refer to the rebuilt table, which has the same name.
    """
    names = joined(", ", (quote(column.name) for column in new.columns))
    return [
        _create_sql(new, _REBUILT, after),
        written("INSERT INTO {} ({}) SELECT {} FROM {}", quote(_REBUILT), names, joined(", ", values), table(old)),
        written("DROP TABLE {}", table(old)),
        written("PRAGMA legacy_alter_table=ON"),
        written("ALTER TABLE {} RENAME TO {}", quote(_REBUILT), table(new)),
        written("PRAGMA legacy_alter_table=OFF"),
        *_indexes(new).values(),
    ]
