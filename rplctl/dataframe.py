"""Registers the format `binlog`, so that a Spark session reads binary logs as DataFrames (man rplctl-dataframe(7)).

Invariant: after `register(spark)`, the Python workers of a local session run the Python of the calling program. This
Python has rplctl. Only the environment variable PYSPARK_PYTHON can select another Python.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rplctl.data_source.source import BinlogDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register the format of `spark.read.format("binlog")` with the session.

    Without this call, Spark finds the format only if its Python workers run a Python with rplctl. Spark takes this
    Python from PYSPARK_PYTHON, or uses `python3` in the PATH. Executors on other machines use the Python of their
    cluster.
    """
    is_local = (spark.conf.get("spark.master") or "").startswith("local")
    if is_local and "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable
    spark.dataSource.register(BinlogDataSource)
