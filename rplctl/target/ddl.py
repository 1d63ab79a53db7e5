"""The base class `Ddl`, which translates a DDL plan into SQL of a target that is not MySQL or MariaDB.

A guard is a query that must find no row before the plan's statements run. Guards run before columns are renamed, so
they use the old names of columns (`original_names=True`). The SQL that fills a new table may use the new names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.default_value import default_value
from rplctl.schema.model import Column, TableModel
from rplctl.schema.plan import (
    AlterStep,
    Catalog,
    DdlPlan,
    DeleteHistoryStep,
    DeletePartitionsStep,
    MoveRowsStep,
    Step,
)
from rplctl.schema.structure import END_OF_TIME, LATER_END_OF_TIME, ROW_END, row_end
from rplctl.schema.value import NotComputable, Value
from rplctl.sql_text import NULL, Sql, joined, number, written
from rplctl.target.computed_columns import Arithmetic, calculated_anew, computed, operands
from rplctl.target.computed_text import TextFunctions
from rplctl.target.conversion import Conversion
from rplctl.target.ddl_parts import (
    FilledColumn,
    Guard,
    clustered_key,
    is_in_known_order,
    model_of,
    numbered_by_source,
    quote,
    steps_here,
    text_literal,
)
from rplctl.target.known_values import ValueSql, known_rows, value_of_added, with_known_rows
from rplctl.target.partition import partition_condition


class Ddl(ABC):
    """The DDL of a kind of target. Each kind has one object of a subclass: `DDL` in the module `ddl` of its folder."""

    arithmetic: ClassVar[Arithmetic]
    functions: ClassVar[TextFunctions]
    always: ClassVar[Sql]  # the condition that holds for every row
    row_number: ClassVar[Sql]
    differs: ClassVar[Sql] = written("IS DISTINCT FROM")
    zone: ClassVar[str] = ""  # suffix that marks the text of a TIMESTAMP as UTC
    partition_functions: ClassVar[Mapping[str, Callable[[Sql], Sql]]]  # function of a partition → SQL for a column
    values: ClassVar[ValueSql]
    unknown_constant: ClassVar[Sql | None] = None  # `constant` for a column whose values only the source knows

    @abstractmethod
    def emit(self, plan: DdlPlan, catalog: Catalog) -> list[Sql]:
        """Return the SQL statements that execute a plan. `catalog`: the tables before the plan. Raises TargetError if
        the target does not allow a name, and RplError if it is unknown which rows a partition contains.
        """

    @abstractmethod
    def table(self, model: TableModel) -> Sql:
        """Return the table's quoted name."""

    @abstractmethod
    def literal(self, value: Value, column: Column) -> Sql: ...

    @abstractmethod
    def convert(self, old: Column, new: Column, value: Sql, context: DdlContext) -> Conversion: ...

    @abstractmethod
    def with_value(self, column: Column, value: Value) -> FilledColumn:
        """Return the definition of an added column that has the same value in every row."""

    @abstractmethod
    def ordered(self, column: Column, name: Sql) -> tuple[Sql, Sql]:
        """Return an ORDER BY expression for the column `name` that compares texts byte by byte. Also return a condition
        for values that the source may sort differently, or '' if there are no such values.
        """

    def guards(self, plan: DdlPlan) -> list[Guard]:
        """Return the guards of the plan: queries that must find no row before the plan's statements run."""
        return [guard for step in steps_here(plan) for guard in self._guards(step, plan.context)]

    def carry_out(self, plan: DdlPlan, catalog: Catalog, execute: Callable[[Sql], Any]) -> None:
        """Run the guards of a plan (queries that must find no row), then execute the plan's statements. `execute` runs
        SQL in the open transaction and returns a cursor. Raises TargetError if a guard finds a row. The plan has then
        changed nothing.
        """
        plan = self.with_known_values(plan, execute)
        for guard in self.guards(plan):
            if execute(guard.query).fetchone() is not None:
                raise TargetError(guard.message, errno=er.ALTER_OPERATION_NOT_SUPPORTED_REASON, hint=guard.hint)
        for statement in self.emit(plan, catalog):
            execute(statement)

    def with_known_values(self, plan: DdlPlan, execute: Callable[[Sql], Any]) -> DdlPlan:
        """Find values that the target's SQL cannot convert exactly, compute them by the source's rules, and return the
        plan with the results as constants.
        """
        steps = [self._with_known(step, plan.context, execute) for step in plan.steps]
        return replace(plan, steps=tuple(steps))

    def _with_known(self, step: Step, context: DdlContext, execute: Callable[[Sql], Any]) -> Step:
        if not isinstance(step, AlterStep) or not (step.old.holds_rows and step.new.holds_rows):
            return step
        guarded = [
            filled
            for filled in self.filled_columns(step, context, original_names=True)
            if filled.impossible and (filled.origin is not None or filled.column.generated is not None)
        ]
        table, known = self.table(step.old), {}
        for filled in guarded:
            readable: dict[str, tuple[Column, Column]] = {}
            if filled.column.generated is not None:
                # PostgreSQL fills an added column after it has changed the types of other columns
                readable = operands(step, context, converts=filled.origin is not None)
            found = known_rows(self.values, step, filled, readable, table, context, execute)
            if found is not None:
                known[filled.column.name] = found
        return replace(step, known=known) if known else step

    def _guards(self, step: object, context: DdlContext) -> Iterator[Guard]:
        if isinstance(step, AlterStep):
            for column in self.filled_columns(step, context, original_names=True):
                if column.impossible:
                    query = written("SELECT 1 FROM {} WHERE {} LIMIT 1", self.table(step.old), column.impossible)
                    yield Guard(query=query, message=f"ALTER TABLE {step.old.qualified_name}: {column.why}")
        elif isinstance(step, MoveRowsStep) and step.must_fit:
            # WITHOUT VALIDATION allows rows in the wrong partition, and the target could not find such rows later
            fits = self.partition_condition(step.new, (step.must_fit,), context)
            why = f"rows of {step.old.qualified_name} do not belong to the partition '{step.must_fit}'"
            query = written("SELECT 1 FROM {} WHERE ({}) IS NOT TRUE LIMIT 1", self.table(step.old), fits)
            yield Guard(query=query, message=f"ALTER TABLE {step.new.qualified_name}: {why}")

    def partition_condition(self, model: TableModel, names: tuple[str, ...], context: DdlContext) -> Sql:
        return partition_condition(model, names, context, self.partition_functions, self.literal)

    @property
    def ends(self) -> Sql:
        """The values of row_end, as a list, that current rows of a system-versioned table have."""
        return joined(", ", (text_literal(end + self.zone) for end in (END_OF_TIME, LATER_END_OF_TIME)))

    def rows_gone(
        self, step: DeletePartitionsStep | DeleteHistoryStep | MoveRowsStep, context: DdlContext
    ) -> list[Sql]:
        """Return statements that delete or move rows. The source deleted or moved these rows with a partition or with a
        table's history, and did not log them.
        """
        model = model_of(step)
        if isinstance(step, DeleteHistoryStep):
            end = quote(row_end(model) or ROW_END)
            return [written("DELETE FROM {} WHERE {} NOT IN ({})", self.table(model), end, self.ends)]
        found = self.partition_condition(model, step.names, context)
        rows = written("FROM {} WHERE {}", self.table(model), found) if found else written("FROM {}", self.table(model))
        if isinstance(step, DeletePartitionsStep):
            return [written("DELETE {}", rows)]
        names = joined(", ", (quote(column.name) for column in model.columns))
        return [
            written("INSERT INTO {} ({}) SELECT {} {}", self.table(step.new), names, names, rows),
            written("DELETE {}", rows),
        ]

    def filled_columns(self, step: AlterStep, context: DdlContext, *, original_names: bool) -> list[FilledColumn]:
        """Return each column of the new table with the value that existing rows get. The value can be the old value, a
        converted value, a computed value, or a number of AUTO_INCREMENT.
        """
        found, anew = [], calculated_anew(step, context)
        for column, origin in zip(step.new.columns, step.origins, strict=True):
            old = step.old.find(origin) if origin is not None else None
            if old is None or column.name.casefold() in anew:
                added = replace(self._added(column, step, context, original_names=original_names), origin=origin)
                found.append(self._with_rows(added, step, original_names=original_names))
                continue
            value = quote(old.name if original_names else column.name)
            made = self.convert(old, column, value, context)
            if column.auto_increment and not old.auto_increment:
                made = _numbered_by_source(made, column, value, context)
            same = made.expression == value
            filled = FilledColumn(
                column=column,
                origin=origin,
                expression=made.expression,
                impossible=made.impossible,
                why=made.why,
                is_unchanged=same,
            )
            found.append(self._with_rows(filled, step, original_names=original_names))
        return found

    def _with_rows(self, filled: FilledColumn, step: AlterStep, *, original_names: bool) -> FilledColumn:
        known = step.known.get(filled.column.name)
        if known is None:
            return filled
        renamed = dict(zip(step.origins, step.new.columns, strict=True))
        olds = [column for name in known.columns if (column := step.old.find(name)) is not None]
        names = [quote(old.name if original_names else renamed[old.name].name) for old in olds]
        return with_known_rows(self.values, filled, known, olds, names, self.with_value)

    def _added(self, column: Column, step: AlterStep, context: DdlContext, *, original_names: bool) -> FilledColumn:
        if column.auto_increment:
            return self._numbered(column, step, context, original_names=original_names)
        try:
            if column.generated is None:
                return self.with_value(column, default_value(column, context))
            with suppress(NotComputable):
                return self.with_value(column, value_of_added(column, step, context))
            raise NotComputable(f"column '{column.name}' is generated from other columns")
        except NotComputable as error:
            text, how = column.generated or column.default or "", self.arithmetic
            made = computed(
                column, text, step, context, original_names=original_names, arithmetic=how, functions=self.functions
            )
            if made is not None:
                doubts = [made.impossible] if made.impossible else []
                if not column.nullable:  # without strict mode, the source stores another value for NULL
                    doubts.append(written("({}) IS NULL", made.expression))
                return FilledColumn(
                    column=column,
                    origin=None,
                    expression=made.expression,
                    impossible=joined(" OR ", doubts),
                    why=f"column '{column.name}': {error}",
                )
            why = f"existing rows get values that only the source knows: {error}"
            return FilledColumn(
                column=column,
                origin=None,
                expression=NULL,
                impossible=self.always,
                why=why,
                constant=self.unknown_constant,
            )

    def _numbered(self, column: Column, step: AlterStep, context: DdlContext, *, original_names: bool) -> FilledColumn:
        """Return the column that ADD COLUMN … AUTO_INCREMENT adds, with numbers in the order of the clustered key.

        rplctl can reproduce the source's order for key columns of integers, dates, times and bytes without a prefix
        length. The same holds for texts of digits and lower-case letters under a collation without digraphs. With
        another key, the channel stops if the table has more than one row.

        If the table already had an AUTO_INCREMENT counter, the channel stops unless the table is empty, because only
        the source knows the counter. It also stops if the session's auto_increment_increment or auto_increment_offset
        is not 1. The first number then depends on whether the server altered the table in place or copied it (MariaDB
        10.11, MySQL 9.7).
        """
        steps = context.auto_increment_increment, context.auto_increment_offset
        why = f"existing rows are numbered in an order that only the source knows (column '{column.name}')"
        has_counter = any(old.auto_increment for old in step.old.columns)
        if has_counter or steps != (1, 1):
            why = f"existing rows get numbers that only the source knows (column '{column.name}')"
            return FilledColumn(column=column, origin=None, expression=number(1), impossible=self.always, why=why)
        first = step.first_number or 1
        key = clustered_key(step.old)
        if key is None or not is_in_known_order(step.old, key, context):
            return FilledColumn(
                column=column,
                origin=None,
                expression=number(first),
                impossible=written("(SELECT count(*) FROM {}) > 1", self.table(step.old)),
                why=why,
            )
        pairs = zip(step.origins, step.new.columns, strict=True)
        renamed = {origin: new.name for origin, new in pairs if origin is not None}
        order: list[Sql] = []
        doubts: list[Sql] = []
        for part in key.parts:
            old = step.old.find(part.column)
            assert old is not None, "keys name columns of their table"
            name = quote(part.column if original_names else renamed.get(part.column, part.column))
            text, doubt = self.ordered(old, name)
            order.append(written("{} DESC", text) if part.descending else text)
            doubts.append(doubt)
        numbered = written("{} + {} OVER (ORDER BY {}) - 1", first, self.row_number, joined(", ", order))
        return FilledColumn(
            column=column, origin=None, expression=numbered, impossible=joined(" OR ", filter(None, doubts)), why=why
        )


def _numbered_by_source(made: Conversion, column: Column, value: Sql, context: DdlContext) -> Conversion:
    """Return the conversion `made` with a wider condition `impossible`. The column becomes AUTO_INCREMENT, so the
    source numbers rows with 0 or NULL, and only the source knows these numbers.
    """
    zeros, nulls = numbered_by_source(column, context)
    doubts = [made.impossible] if made.impossible else []
    if zeros:
        doubts.append(written("{} = 0", made.expression))
    if nulls:
        doubts.append(written("{} IS NULL", value))
    why = f"existing rows get numbers that only the source knows (column '{column.name}')"
    return replace(made, impossible=joined(" OR ", doubts), why=made.why or why) if doubts else made
