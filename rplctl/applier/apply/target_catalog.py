"""Table models that are read from the target when they are first needed, on MySQL and MariaDB targets (design D18).

Invariant: a model in the catalog describes the current table of the target. Every statement other than a change of rows
removes the models that it may have changed. The next rows of these tables then make rplctl read the models again. The
models are stored nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.parse import parse_ddl
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import (
    AlterDatabase,
    CreateDatabase,
    DdlAction,
    DropDatabase,
    Move,
    TableName,
    moves_of,
    tables_of,
)
from rplctl.target.base import StatementTarget


class LiveCatalog:
    """The models of the target's tables that were read so far.

    `catalog` is a new object after each change. Models that have not changed remain the same objects.
    """

    def __init__(self, target: StatementTarget) -> None:
        self._target = target
        self._models: dict[TableName, TableModel] = {}
        self._wanted: set[TableName] = set()  # known tables that a statement changed, which `load` reads again
        self.catalog = Catalog()

    def load(self, names: Iterable[TableName]) -> bool:
        """Read the models of the tables `names` that are not in the catalog.

        Also read the models that `forget` has removed since the last call. Return True if a model of one of `names` was
        read, which shows that this table exists.
        """
        asked = set(names)
        found = {}
        for name in asked | self._wanted:
            if name not in self._models and (model := self._target.table_model(*name)) is not None:
                found[name] = model
        self._wanted.clear()
        if found:
            self._models |= found
            self.catalog = Catalog(dict(self._models))
        return bool(asked & found.keys())

    def forget(self, sql: str, database: str, context: DdlContext, charset: str = "") -> list[Move]:
        """Forget the models that an executed statement may have changed.

        Return the tables that the statement moved with all their rows. A statement that cannot be parsed may have
        changed all models. `sql`: the bytes of the statement, decoded as latin-1. `charset`: the real character set of
        these bytes.
        """
        moves: list[Move] = []
        try:
            actions = parse_ddl(sql, database, context, charset)
            moves = [move for action in actions for move in moves_of(action)]
            names = self._changed(actions)
        except RplError:
            names = set(self._models)
        if names:
            self.remade(names)
        return moves

    def remade(self, names: set[TableName]) -> None:
        """Forget the models of these tables, because their definitions have changed.

        Also forget the models of tables with foreign keys to them.
        """
        names |= {
            name
            for name, model in self._models.items()
            if any((key.ref_database, key.ref_table) in names for key in model.foreign_keys)
        }
        self._wanted |= names
        self._models = {name: model for name, model in self._models.items() if name not in names}
        self.catalog = Catalog(dict(self._models))

    def _changed(self, actions: list[DdlAction]) -> set[TableName]:
        names = {name for action in actions for name in tables_of(action)}
        databases = {a.name for a in actions if isinstance(a, DropDatabase | CreateDatabase | AlterDatabase)}
        return names.union(name for name in self._models if name[0] in databases)
