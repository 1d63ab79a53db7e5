"""What Spark's workers load, and what they do when the JVM that they work for is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

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


LOADED = """
import sys
import rplctl.applier.spark.worker_daemon
files = {name: getattr(module, "__file__", "") or "" for name, module in sys.modules.items()}
print(*(name for name, file in files.items() if ".zip" in file))
print(*(place for place in sys.path if place.endswith(".zip")))
"""


def test_spark_and_py4j_are_loaded_compiled_where_both_are_installed(tmp_path: Path) -> None:
    """Spark puts archives of their sources first; what is of another Spark stays where it stands."""
    installed = Path(pyspark.__file__).parent / "python" / "lib"
    archives = [str(path) for path in (*installed.glob("*.zip"), tmp_path / "spark/python/lib/pyspark.zip")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*archives[:-1], *sys.path, archives[-1]])}
    done = subprocess.run([sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True, timeout=280)
    loaded, places = done.stdout.splitlines()
    assert (done.returncode, loaded) == (0, ""), done.stderr
    assert len(archives) > 2 and archives[-1] in places.split() and not set(archives[:-1]) & set(places.split())
