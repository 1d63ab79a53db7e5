"""Creates and drops the tables of a copy, on targets whose DDL rplctl plans, in the transaction of the caller.

On a server target, the source's own statements create the tables instead (clone_load.py). Invariant: the *late keys*,
which the loading of rows does not need, are created after the rows are loaded (clone/late_keys.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from rplctl.applier.apply.clone_rows import reporting_foreign_rows
from rplctl.clone.late_keys import late_keys, without
from rplctl.clone.table_groups import parents_first
from rplctl.own_tables.initial_models import stands
from rplctl.schema.context import DdlContext
from rplctl.schema.model import Key as TableKey, TableModel
from rplctl.schema.naming import choose_index_names
from rplctl.schema.plan import AddKeysStep, Catalog, CreateStep, DatabaseModel, DdlPlan, DropStep
from rplctl.schema.statement import TableName
from rplctl.target.base import Target
from rplctl.target.registry import dialect_of


def make_tables(
    target: Target, catalog: Catalog, models: Mapping[TableName, TableModel], defaults: Mapping[str, DatabaseModel]
) -> None:
    """Create the tables empty, without their late keys. Existing tables with the same names are dropped first."""
    there = [catalog.tables.get(name, model) for name, model in models.items() if stands(target, model)]
    dropped = _drop_plan(there)
    target.execute_ddl(dropped, catalog)
    others = {**catalog.tables, **models}.values()
    bare = [without(model, _late(target, model, others)) for model in parents_first(models)]
    made = DdlPlan((), DdlContext(), tuple(map(CreateStep, bare)), {**models}, {**defaults})
    target.execute_ddl(made, catalog.after(dropped))


def with_free_index_names(catalog: Catalog, models: Iterable[TableModel]) -> dict[TableName, TableModel]:
    """Return the models by name, with index names that no index of another table has.

    A renamed table keeps its index names, which the new table with its old name would get (schema/naming.py).
    """
    new = {(model.database, model.name): model for model in models}
    known = {name: model for name, model in catalog.tables.items() if name not in new}
    for name, model in new.items():
        known[name] = choose_index_names(model, known.values())
    return {name: known[name] for name in new}


def make_keys(target: Target, catalog: Catalog, models: Sequence[TableModel], *, primary_alone: bool = False) -> None:
    """Create the late keys, which `make_tables` has omitted. Raises TargetError if the target cannot create a key.

    `primary_alone`: True to create only the primary keys.
    """
    for model in models:
        late = _late(target, model, catalog.tables.values())
        rest = [key for key in late if primary_alone and key.kind != "primary"]
        step = AddKeysStep(without(model, late), without(model, rest))
        with reporting_foreign_rows((model.database, model.name)):
            target.execute_ddl(DdlPlan((), DdlContext(), (step,)), catalog)


def drop_tables(
    target: Target, catalog: Catalog, models: Collection[TableModel | None]
) -> dict[TableName, TableModel | None]:
    """Drop the tables that exist on the target. Return the names of these tables, each with None as its new model."""
    plan = _drop_plan([model for model in models if model is not None and stands(target, model)])
    if plan.steps:
        target.execute_ddl(plan, catalog)
    return plan.model_changes


def _drop_plan(models: Sequence[TableModel]) -> DdlPlan:
    gone: dict[TableName, TableModel | None] = {(model.database, model.name): None for model in models}
    return DdlPlan((), DdlContext(), tuple(map(DropStep, reversed(models))), gone)


def _late(target: Target, model: TableModel, others: Iterable[TableModel]) -> tuple[TableKey, ...]:
    return late_keys(model, others, primary=dialect_of(target.kind).makes_primary_keys_late)
