"""Spark looks into every module called `pyspark_…` for a `DefaultSource`: the wheel puts this one beside `rplctl`."""

from rplctl.data_source.source import BinlogDataSource as DefaultSource

__all__ = ["DefaultSource"]
