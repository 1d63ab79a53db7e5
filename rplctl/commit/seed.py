"""Table models for tables that exist before a channel starts: `load-schema` (design D18).

Invariant: in one transaction the models become valid at the channel's position and the tables that the target lacks are made,
empty, as `mysqldump --no-data | mysql` would. Tables that are there keep their rows and must have the model's columns.
"""

from __future__ import annotations

from rplctl.commit.models import store_models
from rplctl.commit.tables import create_own_tables
from rplctl.errors import TargetError
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, CreateStep, DdlPlan
from rplctl.target.base import Target

_NO_SUCH_TABLE = 1146


def load_catalog(target: Target, channel: str, position: BinlogPosition, catalog: Catalog) -> list[str]:
    """Store the catalog's models and create missing tables; the names of those created.

    Raises TargetError 1677 when a table is there with other columns; then nothing is stored.
    """
    create_own_tables(target.engine)
    created: list[str] = []
    target.begin(foreign_keys=False)
    try:
        for model in catalog.tables.values():
            if not model.is_sequence and not _is_there(target, model):
                plan = DdlPlan((), DdlContext(), (CreateStep(model),), {(model.database, model.name): model})
                target.execute_ddl(plan, catalog)
                created.append(model.qualified_name)
        store_models(target.connection, channel, position, catalog.tables, catalog.databases)
    except BaseException:
        target.rollback()
        raise
    target.commit()
    return created


def _is_there(target: Target, model: TableModel) -> bool:
    try:
        target.check_table(model)
    except TargetError as error:
        if error.errno != _NO_SUCH_TABLE:
            raise
        return False
    return True
