"""Table models read from the target itself, when they are first needed (MySQL and MariaDB targets; design D18 note).

Invariant: a model in the catalog is the target's table as it is: every statement that is not one of rows forgets the
models it may have changed, and the next rows of those tables read them again. Nothing is stored: the target is.
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
    """`catalog` is a new object whenever a model came or went; the models that stayed are the same objects."""

    def __init__(self, target: StatementTarget) -> None:
        self._target = target
        self._models: dict[TableName, TableModel] = {}
        self._wanted: set[TableName] = set()  # were known before a statement changed them: read with the next ones
        self.catalog = Catalog()

    def load(self, names: Iterable[TableName]) -> bool:
        """Read these tables, and those that a statement made us forget. True when one of `names` was found."""
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
        """A statement was executed: drop the models it may have changed; all of them when it is not understood. Where
        it took whole tables. `charset`: `sql` is its bytes, decoded as latin-1.
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
        """These tables are others now."""
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
