"""Binary logs as DataFrames for a program's own Spark session (man rplctl-dataframe(7)).

This module registers the format `binlog` with a session. Invariant: after `register(spark)`, the session's Python
workers use the program's Python, which has rplctl, unless PYSPARK_PYTHON sets another one.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rplctl.data_source.source import BinlogDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register `spark.read.format("binlog")` with the session.

    Without this call, Spark finds the format if PYSPARK_PYTHON, or `python3` in its PATH, is the Python with rplctl.
    Executors on other machines use the Python of their cluster.
    """
    is_local = (spark.conf.get("spark.master") or "").startswith("local")
    if is_local and "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable
    spark.dataSource.register(BinlogDataSource)
