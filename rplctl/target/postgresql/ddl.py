"""DdlPlan → PostgreSQL statements, to run in order inside the position's transaction.

`guards` first: SELECTs that must find nothing, else the change would not give what the source has: the channel stops.
A source's database is a schema, names keep their case. Nothing is rebuilt by us: what ALTER TABLE cannot do here is the
order of columns (`ddl_alter`).
Not carried over: CHECKs (the source has checked), FULLTEXT, SPATIAL, VECTOR and expression keys, AUTO_INCREMENT's
counter. Generated columns are plain: their values come in the rows.
"""

from __future__ import annotations

from rplctl.schema.context import DdlContext
from rplctl.schema.plan import (
    AlterStep,
    Catalog,
    CreateStep,
    DdlPlan,
    DeleteHistoryStep,
    DeletePartitionsStep,
    DropStep,
    MoveRowsStep,
    RenameStep,
    Step,
    TruncateStep,
)
from rplctl.target.ddl_parts import Guard, history_condition, model_of, move_rows, quote, rows_that_fit
from rplctl.target.postgresql.ddl_alter import alter_table, filled_columns
from rplctl.target.postgresql.ddl_table import children, create_schema, create_table, rename_table, without_children
from rplctl.target.postgresql.ddl_type import check_names, table
from rplctl.target.postgresql.partition import partition_condition


def emit(plan: DdlPlan, catalog: Catalog) -> list[str]:
    """The statements of a plan; `catalog` is the one before it. Raises TargetError for names PostgreSQL has not."""
    found: list[str] = []
    for database, defaults in plan.database_changes.items():
        if defaults is not None:
            found.append(create_schema(database))
    after = catalog.after(plan)
    for step in plan.steps:
        if model_of(step).is_sequence:
            continue
        if isinstance(step, AlterStep):
            check_names(step.new)
            found += alter_table(step, after, plan.context)
        else:
            found += _statements(step, catalog, after, plan.context)
    gone = (database for database, defaults in plan.database_changes.items() if defaults is None)
    return found + [f"DROP SCHEMA IF EXISTS {quote(database)}" for database in gone]


def guards(plan: DdlPlan) -> list[Guard]:
    """What must hold of the rows that are there."""
    found = []
    for step in plan.steps:
        if isinstance(step, AlterStep) and not step.new.is_sequence:
            for column in filled_columns(step, plan.context, original_names=True):
                if column.impossible:
                    query = f"SELECT 1 FROM {table(step.old)} WHERE {column.impossible} LIMIT 1"
                    found.append(Guard(query, f"ALTER TABLE {step.old.qualified_name}: {column.why}"))
        elif isinstance(step, MoveRowsStep) and step.must_fit:
            condition = partition_condition(step.new, (step.must_fit,), plan.context)
            found.append(rows_that_fit(step, table(step.old), condition))
    return found


def _statements(step: Step, before: Catalog, after: Catalog, context: DdlContext) -> list[str]:
    match step:
        case CreateStep(model):
            return [create_schema(model.database), *create_table(model, after)]
        case DropStep(model):
            return [*without_children(model, before), f"DROP TABLE {table(model)}"]
        case TruncateStep(model):
            # PostgreSQL truncates no parent of a foreign key, not even an empty one
            is_parent = any(child != model for child, _ in children(model, before))
            return [f"DELETE FROM {table(model)}" if is_parent else f"TRUNCATE TABLE {table(model)}"]
        case RenameStep(old, new):
            check_names(new)
            return rename_table(old, new)
        case DeletePartitionsStep(model, names):
            condition = partition_condition(model, names, context)
            return [f"DELETE FROM {table(model)}" + (f" WHERE {condition}" if condition else "")]
        case MoveRowsStep(old, new, names):
            condition = partition_condition(old, names, context)
            return move_rows(table(old), table(new), old.columns, condition)
        case DeleteHistoryStep(model):
            return [f"DELETE FROM {table(model)} WHERE {history_condition(model, '+00')}"]
        case AlterStep():
            raise AssertionError("altered by ddl_alter")
