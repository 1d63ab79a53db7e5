"""Stores table models for tables that are older than the channel, for the command `load-schema` (design D18).

Invariant: one transaction makes the models valid at the channel's position and creates the tables that the target
lacks. Existing tables keep their rows, and must have the columns of the model.

The new tables are empty, as with `mysqldump --no-data | mysql`. Their models have a mark, because the target lacks the
older rows of the source (`models.tables_made_empty`).
"""

from __future__ import annotations

from functools import partial

from sqlalchemy import Engine, select

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.own_tables.models import mark_made_empty, store_models
from rplctl.own_tables.tables import create_own_tables, table_models
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, CreateStep, DdlPlan
from rplctl.schema.statement import TableName
from rplctl.target import mapped_errors
from rplctl.target.base import Target, committed
from rplctl.target.lake import LakeTarget


def load_catalog(target: Target, channel: str, position: BinlogPosition, catalog: Catalog) -> list[TableName]:
    """Store the models of the catalog, create the tables that the target lacks, and return the names of these tables.

    Raises TargetError 1677 if a table exists with other columns. In this case, nothing is stored.
    """
    create_own_tables(target.engine)
    created: list[TableName] = []
    with committed(target):
        for model in catalog.tables.values():
            if model.holds_rows and not is_there(target, model):
                plan = DdlPlan((), DdlContext(), (CreateStep(model),), {(model.database, model.name): model})
                target.execute_ddl(plan, catalog)
                created.append((model.database, model.name))
        store_models(target.connection, channel, position, catalog.tables, catalog.databases)
        mark_made_empty(target.connection, channel, position, {name: catalog.tables[name] for name in created})
    return created


def needs_models(engine: Engine, channel: str) -> bool:
    """True if the target has no model of this channel yet."""
    create_own_tables(engine)
    table = table_models(engine.dialect.name)
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        return connection.execute(select(table.c.Table_name).where(table.c.Channel_name == channel)).first() is None


def adopt_tables(target: Target, channel: str, position: BinlogPosition, catalog: Catalog) -> list[str]:
    """Store the models of those tables of the catalog that already exist in the target, and return the names of these
    tables.

    They may exist because the operator loaded a backup.
    """
    with committed(target):
        adopts = target.adopts if isinstance(target, LakeTarget) else partial(is_there, target)
        there = {name: model for name, model in catalog.tables.items() if adopts(model)}
        if there:
            store_models(target.connection, channel, position, there, catalog.databases)
    return [model.qualified_name for model in there.values()]


def is_there(target: Target, model: TableModel) -> bool:
    """True if the target has the table with the columns of the model.

    Raises TargetError 1677 if this table has other columns.
    """
    try:
        target.check_table(model)
    except TargetError as error:
        if error.errno != er.NO_SUCH_TABLE:
            raise
        return False
    return True


def stands(target: Target, model: TableModel) -> bool:
    """True if the target has a table with the model's name, whatever columns the table has."""
    try:
        return is_there(target, model)
    except TargetError as error:
        if error.errno != er.SLAVE_CONVERSION_FAILED:
            raise
        return True
