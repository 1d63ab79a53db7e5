"""What Spark's workers do when the JVM that they work for is gone."""

from __future__ import annotations

import subprocess
import sys

WORKER = """
import os, socket
import pyspark.worker
from rplctl.applier.spark import worker_daemon

os.environ["PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"] = "1"  # as Spark sets it
pyspark.worker.main = lambda _, outfile: outfile.write(b"a task's result")
mine, of_the_jvm = socket.socketpair()
of_the_jvm.close()
worker_daemon.daemon.worker(mine, True)
print("went on")
"""


def test_a_worker_whose_jvm_was_killed_ends_without_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
