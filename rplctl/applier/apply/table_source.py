"""Provides the models of the target's tables, from one of two sources (design D18).

    StoredModels   made from the source's DDL and stored in the target, which takes only rows and planned DDL
    LiveTables     read from a target that executes the source's own statements (MySQL, MariaDB; live_tables.py)

Invariant: `catalog` has the models that are valid at the applier's position, and changes only after a COMMIT.
"""

from __future__ import annotations

from collections.abc import Collection

from rplctl.applier.apply.foreign_key_checks import mixes_foreign_key_checks
from rplctl.applier.apply.live_tables import TableSource
from rplctl.applier.spark.pipeline import UnknownTables
from rplctl.decode.row_stream import EventRun
from rplctl.own_tables.models import load_models
from rplctl.position import BinlogPosition
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import TableName
from rplctl.target import mapped_errors
from rplctl.target.base import Target


class StoredModels(TableSource):
    """The models of the source's tables, as the target has stored them for one position."""

    def __init__(self, catalog: Catalog) -> None:
        self.committed(catalog)

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    @classmethod
    def open(cls, target: Target, channel: str, position: BinlogPosition) -> StoredModels:
        """Load the models that are valid at that position from the target.

        Raises TargetError if the target cannot be read.
        """
        with mapped_errors(target.engine.dialect.name), target.engine.connect() as connection:
            return cls(load_models(connection, channel, position))

    def find(self, unknown: UnknownTables) -> Catalog:
        raise unknown

    def cascading_parents(self) -> Collection[TableName]:
        """Return the tables to which a foreign key with an action (CASCADE, SET NULL) refers."""
        return self._parents

    def can_share(self, run: EventRun) -> bool:
        return not mixes_foreign_key_checks(run)

    def committed(self, catalog: Catalog) -> None:
        self._catalog = catalog
        keys = (key for model in catalog.tables.values() for key in model.foreign_keys)
        self._parents = {(key.ref_database, key.ref_table) for key in keys if key.acts}
