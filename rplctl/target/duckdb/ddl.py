"""Translates a DDL plan into DuckDB statements. The applier executes them in the transaction that stores the position.

First, the `guards` run: SELECTs that must find no row. If a guard finds a row, the channel stops, because the result
would differ. A change that does not affect DuckDB's table needs no statement (VARCHAR(10) → VARCHAR(300)). Columns
at the end are added in place. All other changes rebuild the table: CREATE, INSERT … SELECT with conversions, DROP,
RENAME. A unique key is an index, and an index blocks ALTER. So the index is dropped first and created again afterwards.

DuckDB's table has no keys that are not unique (DuckDB scans instead), and no expression, FULLTEXT or SPATIAL keys. It
has no CHECKs (the source has checked the rows) and no defaults. Foreign keys are rows of a table (`foreign_keys`).
Generated columns are plain columns, because the logged rows contain their values. Names are compared without case.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import EXCLUDE, OTHER_KIND, TargetError, another_way
from rplctl.schema import plan as steps
from rplctl.schema.context import DdlContext
from rplctl.schema.model import BINARY_TYPES, Column, Key, TableModel
from rplctl.schema.naming import fold, index_name
from rplctl.schema.plan import AlterStep, Catalog, DdlPlan, Step
from rplctl.schema.row_key import is_by_time_zone
from rplctl.schema.value import Value
from rplctl.sql_text import NOTHING, NULL, Sql, joined, written
from rplctl.target.computed_columns import Arithmetic
from rplctl.target.computed_text import TextFunctions
from rplctl.target.ddl import Ddl
from rplctl.target.ddl_parts import (
    FilledColumn,
    column_line,
    is_in_order,
    may_be_alike,
    new_tables,
    quote,
    steps_here,
    text_literal,
)
from rplctl.target.dialect import OWN_SCHEMA
from rplctl.target.duckdb.conversion import convert, shown, value_key
from rplctl.target.duckdb.ddl_type import CATALOG, declared, is_odd_date, literal, table
from rplctl.target.duckdb.foreign_keys import keep_foreign_keys
from rplctl.target.known_values import ValueSql, value_of_text

_REBUILT: Final = "rplctl rebuild"
_DAY: Final = "({0}::DATE - DATE '0001-01-01' + 366)"  # TO_DAYS


def size_of(column: Column, value: Sql) -> Sql:
    """Return SQL that computes the number of bytes in a text or a binary value of the column."""
    if column.type in BINARY_TYPES:
        return written("octet_length({})", value)
    return written("strlen(CAST({} AS VARCHAR))", value)


class DuckdbDdl(Ddl):
    arithmetic = Arithmetic(partial(written, "CAST({} AS HUGEINT)"), partial(written, ""))
    functions = TextFunctions(octets=partial(written, "strlen({})"), printed=shown, has_nul=lambda _: NOTHING)
    values = ValueSql(
        key=value_key,
        literal=text_literal,
        read=value_of_text,
        typed=lambda column, value: written("CAST({} AS {})", value, declared(column)),
        size=size_of,
    )
    always = written("TRUE")
    row_number = written("row_number()")
    zone = "+00"
    unknown_constant = NULL
    table = staticmethod(table)
    partition_functions = {
        "YEAR": partial(written, "year({})"),
        "TO_DAYS": partial(written, f"CASE WHEN isfinite({{0}}) THEN {_DAY} END"),
        "TO_SECONDS": partial(
            written,
            f"CASE WHEN isfinite({{0}}) THEN {_DAY} * 86400::BIGINT"
            " + (epoch_us({0}) - epoch_us({0}::DATE::TIMESTAMP)) // 1000000 END",
        ),
        "UNIX_TIMESTAMP": partial(written, "CASE WHEN isfinite({0}) THEN epoch_us({0}) // 1000000 ELSE 0 END"),
    }
    convert = staticmethod(convert)
    literal = staticmethod(literal)

    def emit(self, plan: DdlPlan, catalog: Catalog) -> list[Sql]:
        found: list[Sql] = []
        for database, defaults in plan.database_changes.items():
            if defaults is not None:
                found.append(_create_schema(database))
        after = catalog.after(plan)
        created = new_tables(plan, catalog)
        if created or found:
            _check_databases(after)
        for model in created:
            _check_name(model, after)
        for step in steps_here(plan):
            found += _statements(step, plan.context)
        found += keep_foreign_keys(plan, catalog, after)
        gone = (database for database, defaults in plan.database_changes.items() if defaults is None)
        found += [
            written("DROP SCHEMA IF EXISTS {}", _schema(database)) for database in gone if database.lower() != "main"
        ]
        return found

    def with_value(self, column: Column, value: Value) -> FilledColumn:
        if is_odd_date(value, column):
            why = f"existing rows get '{value!s}' in column '{column.name}', a date that DuckDB cannot store"
            return FilledColumn(
                column=column, origin=None, expression=NULL, impossible=self.always, why=why, constant=NULL
            )
        text = literal(value, column)
        return FilledColumn(column=column, origin=None, expression=text, constant=text)

    def ordered(self, column: Column, name: Sql) -> tuple[Sql, Sql]:
        text = written("CAST({} AS VARCHAR)", name)
        return name, NOTHING if is_in_order(column) else written("{} ~ '[^0-9a-z]'", text)


DDL: Final = DuckdbDdl()


def _check_databases(catalog: Catalog) -> None:
    """Raise TargetError if a database cannot become a schema in DuckDB (D10). Either it has the name of rplctl's own
    schema, or its name differs from another database's name only in case, which DuckDB ignores.
    """
    schemas: dict[str, str] = {}
    for database in dict.fromkeys([*catalog.databases, *[database for database, _ in catalog.tables]]):
        if fold(database) == OWN_SCHEMA:
            raise TargetError(f"database '{database}' has the same name as the schema of rplctl's tables",
                              hint="to rename the database on the target, run: "
                              f"rplctl change-filter --replicate-rewrite-db '{database}->copy_of_{database}'; "
                              "rplctl start")  # fmt: skip
        if (other := schemas.setdefault(fold(database), database)) != database:
            raise _alike(f"databases '{database}' and '{other}'", f"--replicate-ignore-db {shlex.quote(database)}")


def _check_name(model: TableModel, catalog: Catalog) -> None:
    """Raise TargetError if the name of another table differs only in case from the model's name (D10), because DuckDB
    ignores case.
    """
    for other in may_be_alike(model, catalog):
        if (fold(other.database), fold(other.name)) == (fold(model.database), fold(model.name)):
            what = f"tables {model.qualified_name} and {other.qualified_name}"
            raise _alike(what, f"--replicate-ignore-table {shlex.quote(model.qualified_name)}")


def _alike(what: str, option: str) -> TargetError:
    return TargetError(
        f"{what} would share a name in the target: DuckDB compares names without case",
        hint=f"to exclude one of them, which then receives no changes, run: rplctl change-filter {option}; rplctl start"
        f"{another_way(OTHER_KIND)}",
    )


def _schema(database: str) -> Sql:
    return written("{}.{}", quote(CATALOG), quote(database))


def _create_schema(database: str) -> Sql:
    return written("CREATE SCHEMA IF NOT EXISTS {}", _schema(database))


def _statements(step: Step, context: DdlContext) -> list[Sql]:
    match step:
        case steps.CreateStep(model):
            return create_table(model)
        case steps.DropStep(model):
            return [written("DROP TABLE {}", table(model))]
        case steps.TruncateStep(model):
            return [written("DELETE FROM {}", table(model))]
        case steps.RenameStep(old, new):
            return list(_rename(old, new))
        case AlterStep():
            return _alter(step, context)
        case steps.AddKeysStep(before, model):
            there = _indexes(before)
            return [sql for name, sql in _indexes(model).items() if name not in there]
        case steps.DeletePartitionsStep() | steps.DeleteHistoryStep() | steps.MoveRowsStep():
            return DDL.rows_gone(step, context)


def create_table(model: TableModel) -> list[Sql]:
    """Return the statements that create the schema if it is missing, the table, and its unique keys."""
    return [_create_schema(model.database), _create_sql(model, table(model)), *_indexes(model).values()]


def _create_sql(model: TableModel, name: Sql) -> Sql:
    lines = [column_line(column, declared(column), NOTHING) for column in model.columns]
    if (primary := model.primary_key) is not None and not _has_interval(model, primary):
        lines.append(written("PRIMARY KEY ({})", joined(", ", (quote(part.column) for part in primary.parts))))
    if not lines:
        raise TargetError(
            f"DuckDB cannot create the source's table {model.qualified_name}, which has no columns",
            errno=er.TABLE_MUST_HAVE_COLUMNS,
            hint=EXCLUDE,
        )
    return written("CREATE TABLE {} (\n  {}\n)", name, joined(",\n  ", lines))


def _has_interval(model: TableModel, key: Key) -> bool:
    """True if the key has a TIME column, which is an INTERVAL in DuckDB. DuckDB cannot index an INTERVAL, but it can
    index an expression over an INTERVAL.
    """
    return any(column.type == "time" and column.name in key.columns for column in model.columns)


def _indexes(model: TableModel) -> dict[str, Sql]:
    """Return the CREATE INDEX statement for each unique key, by the name of the index. For a key over a prefix of a
    column, the index has the whole values, which are unique, too.
    """
    found = {}
    types = {column.name: column.type for column in model.columns}
    for key in model.keys:
        is_primary = key.kind == "primary" and _has_interval(model, key)
        if is_primary or (key.kind == "unique" and not key.has_expression and not is_by_time_zone(key, model)):
            names = (quote(part.column) for part in key.parts)
            parts = (
                written("(epoch_us({}))", name) if types[part.column] == "time" else name
                for part, name in zip(key.parts, names, strict=True)
            )
            name = index_name(model, key)
            found[name] = written("CREATE UNIQUE INDEX {} ON {} ({})", quote(name), table(model), joined(", ", parts))
    return found


def _drop_indexes(model: TableModel) -> Iterator[Sql]:
    return (written("DROP INDEX {}.{}", _schema(model.database), quote(name)) for name in _indexes(model))


def _rename(old: TableModel, new: TableModel) -> Iterator[Sql]:
    """Yield the statements that rename a table. Indexes would block the rename, so they are dropped and created again.
    A move to another schema copies the table.
    """
    if old.database != new.database:
        names = joined(", ", (quote(column.name) for column in new.columns))
        yield from create_table(new)
        yield written("INSERT INTO {} ({}) SELECT {} FROM {}", table(new), names, names, table(old))
        yield written("DROP TABLE {}", table(old))
        return
    yield from _drop_indexes(old)
    name = table(old)
    if fold(old.name) == fold(new.name):  # the names differ only in case, so a third name is needed
        yield written("ALTER TABLE {} RENAME TO {}", name, quote(_REBUILT))
        name = _rebuilt(old)
    yield written("ALTER TABLE {} RENAME TO {}", name, quote(new.name))
    yield from _indexes(new).values()


def _rebuilt(model: TableModel) -> Sql:
    return written("{}.{}", _schema(model.database), quote(_REBUILT))


def _alter(step: AlterStep, context: DdlContext) -> list[Sql]:
    old, new = step.old, step.new
    columns = DDL.filled_columns(step, context, original_names=True)
    before, now = _indexes(old), _indexes(new)
    count = len(old.columns)
    is_kept = all(c.origin == c.column.name and c.is_unchanged for c in columns[:count]) and len(columns) >= count
    first = (
        TableModel(database=new.database, name=new.name, columns=new.columns[:count], keys=new.keys) if is_kept else new
    )
    if is_kept and _create_sql(old, written("t")) == _create_sql(first, written("t")):
        added = columns[count:]
        if not added:
            dropped = (
                written("DROP INDEX {}.{}", _schema(old.database), quote(n))
                for n, sql in before.items()
                if now.get(n) != sql
            )
            return [*dropped, *(sql for n, sql in now.items() if before.get(n) != sql)]
        if all(c.origin is None and c.constant is not None and not c.impossible for c in added):
            lines = (column_line(c.column, declared(c.column), c.constant or NULL) for c in added)
            return [
                *_drop_indexes(old),
                *(written("ALTER TABLE {} ADD COLUMN {}", table(old), line) for line in lines),
                *now.values(),
            ]
    return [*_anew(old, new, columns), *now.values()]


def _anew(old: TableModel, new: TableModel, columns: Iterable[FilledColumn]) -> Iterator[Sql]:
    names = joined(", ", (quote(column.name) for column in new.columns))
    values = joined(", ", (written("CAST({} AS {})", c.expression, declared(c.column)) for c in columns))
    yield _create_sql(new, _rebuilt(new))
    yield written("INSERT INTO {} ({}) SELECT {} FROM {}", _rebuilt(new), names, values, table(old))
    yield written("DROP TABLE {}", table(old))
    yield written("ALTER TABLE {} RENAME TO {}", _rebuilt(new), quote(new.name))
