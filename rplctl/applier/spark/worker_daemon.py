"""Spark's Python workers are forked from this process, which has imported and compiled all that a task needs.

So a worker is ready at once, however many a machine has cores, and Python's garbage collector, which Spark runs after
every task, does not look at what was imported (40 ms a task). (Setting `spark.python.daemon.module`.)
"""

from __future__ import annotations

import gc
import os
import socket

import pyspark.worker  # noqa: F401 - for the workers
from pyspark import daemon

import rplctl.applier.spark.pipeline  # noqa: F401
from rplctl.demo.warm_up import warm_up

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
