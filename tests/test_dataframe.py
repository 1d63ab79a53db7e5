"""The documented way to a DataFrame works in a session that nobody has prepared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.recorded_state import unpacked_log

PLAIN = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
{register}
logs = spark.read.format("binlog").load({folder!r})
tables = logs.where("database = 'sbtest'").groupBy("table").count().collect()
print(len(tables), min(row["count"] for row in tables) > 0)
"""
REGISTER = "import rplctl.dataframe; rplctl.dataframe.register(spark)"


@pytest.mark.long("The JVM of a plain session takes half a minute; tests/data_source/test_walk.py reads the same rows.")
@pytest.mark.spark
@pytest.mark.parametrize(("register", "has_own_python_on_path"), [("", True), (REGISTER, False)])
def test_a_plain_session_reads_binary_logs(tmp_path: Path, register: str, has_own_python_on_path: bool) -> None:
    """No property is set; without our Python on the PATH, Spark's `python3` is another, and `register` names ours."""
    logs = tmp_path / "logs"
    logs.mkdir()
    unpacked_log("ma1011-sysbench-mix-small", logs)
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
    folders = [str(Path(sys.executable).parent)] if has_own_python_on_path else []
    done = subprocess.run(
        [sys.executable, "-c", PLAIN.format(register=register, folder=str(logs))],
        env=kept | {"PATH": os.pathsep.join([*folders, "/usr/bin", "/bin"]), "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.stdout.split() == ["4", "True"], done.stderr[-3000:]
