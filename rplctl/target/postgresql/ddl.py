"""Translates a DdlPlan into PostgreSQL statements, which are executed in the transaction that stores the position.

The `guards` are executed first. They are SELECTs that must find no row. If a guard finds a row, the channel stops,
because the result would differ from the source. A database of the source is a schema, and names keep their case.
Tables are never rebuilt, so only the order of columns may differ from the source (`ddl_alter`).

These things are not created in the target:

* CHECK constraints, because the source has checked the rows
* FULLTEXT, SPATIAL, VECTOR and expression keys
* the counter of AUTO_INCREMENT
* generated columns; they are plain columns, because the source's rows have their values
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rplctl.schema import plan as steps
from rplctl.schema.context import DdlContext
from rplctl.schema.model import Column
from rplctl.schema.plan import AlterStep, Catalog, DdlPlan, Step
from rplctl.schema.value import Value
from rplctl.sql_text import NOTHING, NULL, Sql, written
from rplctl.target.computed_columns import Arithmetic
from rplctl.target.computed_text import TextFunctions
from rplctl.target.ddl import Ddl
from rplctl.target.ddl_parts import FilledColumn, is_in_order, quote, steps_here
from rplctl.target.known_values import ValueSql, value_of_text
from rplctl.target.postgresql.conversion import convert, shown, value_key
from rplctl.target.postgresql.ddl_alter import alter_table
from rplctl.target.postgresql.ddl_table import (
    add_primary_key,
    children,
    create_schema,
    create_table,
    indexes,
    rename_table,
    without_children,
)
from rplctl.target.postgresql.ddl_type import check_names, declared, is_odd_date, literal, table, text_literal

# MySQL's TO_DAYS. For the zero date (here -infinity), MySQL has NULL, UNIX_TIMESTAMP is 0, and YEAR is the lowest year
_DAY = "({0}::date - DATE '0001-01-01' + 366)"


class PostgresqlDdl(Ddl):
    arithmetic = Arithmetic(partial(written, "{}::numeric"), partial(written, ""))
    functions = TextFunctions(octets=partial(written, "octet_length({})"), printed=shown, has_nul=lambda _: NOTHING)
    values = ValueSql(
        key=value_key,
        literal=text_literal,
        read=value_of_text,
        typed=lambda column, value: written("CAST({} AS {})", value, declared(column)),
        size=lambda column, value: written("octet_length({})", value_key(column, value)),
    )
    always = written("TRUE")
    row_number = written("row_number()")
    zone = "+00"
    unknown_constant = NULL
    table = staticmethod(table)
    partition_functions = {
        "YEAR": partial(written, "EXTRACT(year FROM {})"),
        "TO_DAYS": partial(written, f"CASE WHEN isfinite({{0}}) THEN {_DAY} END"),
        "TO_SECONDS": partial(
            written,
            f"CASE WHEN isfinite({{0}}) THEN {_DAY} * 86400::bigint + floor(EXTRACT(epoch FROM {{0}}::time)) END",
        ),
        "UNIX_TIMESTAMP": partial(written, "CASE WHEN isfinite({0}) THEN floor(EXTRACT(epoch FROM {0})) ELSE 0 END"),
    }
    convert = staticmethod(convert)
    literal = staticmethod(literal)

    def emit(self, plan: DdlPlan, catalog: Catalog) -> list[Sql]:
        found: list[Sql] = []
        for database, defaults in plan.database_changes.items():
            if defaults is not None:
                found.append(create_schema(database))
        after = catalog.after(plan)
        for step in steps_here(plan):
            if isinstance(step, AlterStep):
                check_names(step.new)
                found += alter_table(step, self.filled_columns(step, plan.context, original_names=False), after)
            else:
                found += _statements(step, catalog, after, plan.context)
        gone = (database for database, defaults in plan.database_changes.items() if defaults is None)
        found += [written("DROP SCHEMA IF EXISTS {}", quote(database)) for database in gone]
        return found

    def with_value(self, column: Column, value: Value) -> FilledColumn:
        if is_odd_date(value, column):
            why = f"existing rows get '{value!s}' in column '{column.name}', a date that PostgreSQL cannot store"
            return FilledColumn(
                column=column, origin=None, expression=NULL, impossible=self.always, why=why, constant=NULL
            )
        text = literal(value, column)
        return FilledColumn(column=column, origin=None, expression=text, constant=text)

    def ordered(self, column: Column, name: Sql) -> tuple[Sql, Sql]:
        is_text = declared(column) == "text" or declared(column).startswith("varchar")
        doubt = NOTHING if is_in_order(column) else written("{}::text ~ '[^0-9a-z]'", name)
        return written('{} COLLATE "C"', name) if is_text else name, doubt


DDL: Final = PostgresqlDdl()


def _statements(step: Step, before: Catalog, after: Catalog, context: DdlContext) -> list[Sql]:
    match step:
        case steps.CreateStep(model):
            return [create_schema(model.database), *create_table(model, after)]
        case steps.DropStep(model):
            return [*without_children(model, before), written("DROP TABLE {}", table(model))]
        case steps.TruncateStep(model):
            # PostgreSQL cannot truncate a table that a foreign key references, not even an empty table
            is_parent = any(child != model for child, _ in children(model, before))
            return [
                written("DELETE FROM {}", table(model)) if is_parent else written("TRUNCATE TABLE {}", table(model))
            ]
        case steps.RenameStep(old, new):
            check_names(new)
            return rename_table(old, new)
        case steps.AddKeysStep(old, model):
            there = indexes(old)
            primary = add_primary_key(model) if old.primary_key is None else []
            return primary + [sql for name, sql in indexes(model).items() if name not in there]
        case steps.DeletePartitionsStep() | steps.DeleteHistoryStep() | steps.MoveRowsStep():
            return DDL.rows_gone(step, context)
        case AlterStep():
            raise AssertionError("altered by ddl_alter")
