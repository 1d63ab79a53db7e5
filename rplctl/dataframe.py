"""Binary logs as DataFrames for a program's own Spark session (man rplctl-dataframe(7)).

Owns the registration of the format `binlog` with a session. Invariant: after `register(spark)` the session's Python
workers run on the program's Python, which has rplctl, unless the operator chose one with PYSPARK_PYTHON.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rplctl.data_source.source import BinlogDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("binlog")` known to the session.

    Spark finds the format without this call where the `python3` of its PATH, or PYSPARK_PYTHON, is the Python that
    rplctl is installed in. Executors on other machines keep the Python that their cluster gives them.
    """
    is_local = (spark.conf.get("spark.master") or "").startswith("local")
    if is_local and "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable
    spark.dataSource.register(BinlogDataSource)
