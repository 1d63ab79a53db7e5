"""Spark's Python workers are forked from this process, which has imported and compiled all that a task needs.

So a worker is ready at once, however many a machine has cores, and Python's garbage collector, which Spark runs after
every task, does not look at what was imported (40 ms a task). (Setting `spark.python.daemon.module`.)
"""

from __future__ import annotations

import gc

import pyspark.worker  # noqa: F401 - for the workers
from pyspark.daemon import manager

import rplctl.applier.pipeline  # noqa: F401
from rplctl.demo.warm_up import warm_up

if __name__ == "__main__":
    warm_up()
    gc.collect()
    gc.freeze()
    manager()
