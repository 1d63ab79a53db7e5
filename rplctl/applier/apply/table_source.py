"""Where the models of the target's tables come from: two sources behind one protocol (design D18).

    StoredModels   made from the source's DDL and kept in the target, which takes rows and planned DDL alone
    LiveTables     read from a target that executes the source's own statements (MySQL, MariaDB; live_tables.py)

Invariant: `catalog` holds the models that are valid at the applier's position; it moves only after a COMMIT.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from rplctl.applier.apply.in_order import mixes_foreign_key_checks
from rplctl.applier.apply.live_tables import LiveTables
from rplctl.applier.decode.row_stream import EventRun
from rplctl.applier.spark.pipeline import UnknownTables
from rplctl.errors import TargetError
from rplctl.own_tables.models import load_models
from rplctl.position import BinlogPosition
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import Move, TableName
from rplctl.target import mapped_errors
from rplctl.target.base import Target


class TableSource(Protocol):
    """`statements`: who executes the source's own; None for a target that only takes rows and planned DDL."""

    @property
    def catalog(self) -> Catalog: ...

    @property
    def statements(self) -> LiveTables | None: ...

    def know(self, names: Iterable[TableName]) -> Catalog:
        """The catalog with these tables in it, if the target has them, and with all that a statement made forget."""

    def find(self, unknown: UnknownTables) -> Catalog:
        """As `know`, of the tables that a task did not know. Raises the error where only DDL brings models."""

    def check_bulk(self, models: Sequence[TableModel]) -> None:
        """Raises NotTransactional, or Inconsistent for tables whose rows must be applied in the source's order."""

    def cascading_parents(self) -> Collection[TableName]:
        """Tables whose changes the target follows by itself with others, as far as `check_bulk` lets them through."""

    def introduce(self, run: EventRun) -> Catalog:
        """Before the transaction of a group; the catalog with the tables whose rows it changes."""

    def can_share(self, run: EventRun) -> bool:
        """Whether the several transactions of the run may be one of the target's."""

    def position_follows(self, run: EventRun, *, in_xa: bool) -> bool:
        """Whether the run may commit by itself, so that its position is written behind it (`commit_after`)."""

    def begin_group(self, run: EventRun) -> None:
        """In its transaction, before the first event."""

    def take_moves(self) -> list[Move]:
        """Where the group's statements took whole tables."""

    def replay_from_now(self, error: TargetError, run: EventRun, changes: int) -> bool:
        """After an error of a run that was rolled back: whether it is tried again, its rows applied by the server."""

    def committed(self, catalog: Catalog) -> None:
        """The planned DDL of a run was: this is the catalog from now on."""


class StoredModels:
    """The models that the target keeps of the source's tables, as of a position."""

    statements = None

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    @classmethod
    def open(cls, target: Target, channel: str, position: BinlogPosition) -> StoredModels:
        """Those valid at that position. Raises TargetError."""
        with mapped_errors(target.engine.dialect.name), target.engine.connect() as connection:
            return cls(load_models(connection, channel, position))

    def know(self, names: Iterable[TableName]) -> Catalog:
        """Nothing is learned: DDL alone brings models."""
        return self.catalog

    def find(self, unknown: UnknownTables) -> Catalog:
        raise unknown

    def check_bulk(self, models: Sequence[TableModel]) -> None:
        """All may go: these targets have transactions, and `cascading_parents` are told."""

    def cascading_parents(self) -> Collection[TableName]:
        """A foreign key with an action points at them."""
        keys = (key for model in self.catalog.tables.values() for key in model.foreign_keys)
        return {(key.ref_database, key.ref_table) for key in keys if key.acts}

    def introduce(self, run: EventRun) -> Catalog:
        return self.catalog

    def can_share(self, run: EventRun) -> bool:
        return not mixes_foreign_key_checks(run)

    def position_follows(self, run: EventRun, *, in_xa: bool) -> bool:
        return False

    def begin_group(self, run: EventRun) -> None:
        """Nothing waits for a statement."""

    def take_moves(self) -> list[Move]:
        return []  # those of planned DDL are its plan's

    def replay_from_now(self, error: TargetError, run: EventRun, changes: int) -> bool:
        return False

    def committed(self, catalog: Catalog) -> None:
        self.catalog = catalog
