"""Applies changes to a lake of plain Parquet files. A batch collects the changes in the same way as for Delta Lake."""

from __future__ import annotations

from rplctl.target.delta.place import LakePlace
from rplctl.target.delta.target import DeltaTarget
from rplctl.target.lake import LakeTables
from rplctl.target.parquet.tables import ParquetTables


class ParquetTarget(DeltaTarget):
    kind = "parquet"

    @staticmethod
    def open_tables(place: LakePlace) -> LakeTables:
        return ParquetTables(place)
