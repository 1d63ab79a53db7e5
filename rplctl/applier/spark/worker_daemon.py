"""Spark's Python workers are forked from this process, which has imported and compiled all that a task needs.

So a worker is ready at once, however many a machine has cores, and Python's garbage collector, which Spark runs after
every task, does not look at what was imported (40 ms a task). (Setting `spark.python.daemon.module`.)
"""

from __future__ import annotations

import gc
import os
import re
import socket
import sys
from pathlib import Path


def _is_copy(place: str) -> bool:
    """Whether this archive (`pyspark.zip`, `py4j-0.10-src.zip`) is of a package that lies open on the path, too."""
    path = Path(place)
    if path.suffix != ".zip" or path.parts[-4:-1] != ("pyspark", "python", "lib"):
        return False
    installed = path.parents[3]
    return str(installed) in sys.path and (installed / re.split(r"[-.]", path.name)[0]).is_dir()


# Spark puts its own sources first, in archives that Python compiles anew in each process: 1.4 s of the first job
sys.path[:] = [place for place in sys.path if not _is_copy(place)]

import pyspark.worker  # noqa: E402, F401 - for the workers
from pyspark import daemon  # noqa: E402

import rplctl.applier.spark.pipeline  # noqa: E402, F401
from rplctl.demo.warm_up import warm_up  # noqa: E402

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """A worker that ends without a word when its JVM is gone: an applier that stops kills it amid a task."""
    try:
        return _worker(sock, authenticated)
    except ConnectionError:
        os._exit(1)


daemon.worker = worker

if __name__ == "__main__":
    warm_up()
    gc.collect()
    gc.freeze()
    daemon.manager()
