"""The dialect of plain Parquet files. They form a lake like Delta Lake, but its tables have no transaction log."""

from __future__ import annotations

from sqlalchemy import Engine

from rplctl.target.delta.dialect import DeltaDialect
from rplctl.target.delta.target import PLACE
from rplctl.target.lake import LakeTables
from rplctl.target.parquet.place import ParquetPlace, place_of
from rplctl.target.parquet.target import ParquetTarget


class ParquetDialect(DeltaDialect):
    name = "parquet"
    title = "Parquet"
    packages = ("pyarrow",)

    def place(self, url: str) -> ParquetPlace:
        return place_of(url)

    def open_target(self, engine: Engine) -> ParquetTarget:
        return ParquetTarget(engine)

    def lake_tables(self, engine: Engine) -> LakeTables:
        return ParquetTarget.open_tables(engine.get_execution_options()[PLACE])


DIALECT = ParquetDialect()
