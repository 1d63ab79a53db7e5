"""A Spark of a query's own, as a data engineer starts one.

`python -m tests.kit.spark_query FOLDER [PROPERTY=VALUE…] < CODE`: the code sees `spark` and `tell`, which prints a
value as a line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

EMPTY: Mapping[str, str] = MappingProxyType({})


def query(code: str, folder: Path, properties: Mapping[str, str] = EMPTY, *, timeout: float = 850) -> list[Any]:
    """What the code told. Raises AssertionError with what Spark said when it failed."""
    words = [*command(folder), *map("=".join, properties.items())]
    done = subprocess.run(words, input=code, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-6000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.kit.spark_query", str(folder)]


def _main(folder: Path, *properties: str) -> None:
    from pyspark.sql import SparkSession

    from rplctl.applier.spark.java import find_java
    from rplctl.applier.spark.session import FAST_START  # half of the time of a query that takes seconds

    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"JAVA_HOME": str(find_java("", folder / "java").home), "SPARK_LOCAL_IP": "127.0.0.1"}
    os.environ["SPARK_HOME"] = str(_home_without_archives(folder / "spark-home"))
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.local.dir", str(folder)).config("spark.sql.warehouse.dir", str(folder))
    for name, _, value in (given.partition("=") for given in properties):
        builder = builder.config(name, value)
    options = f"{FAST_START} -Dderby.system.home={folder}"
    spark = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    os.chdir(folder)

    def tell(value: Any) -> None:
        print(json.dumps(value, default=str), flush=True)

    exec(sys.stdin.read(), {"spark": spark, "tell": tell})
    spark.stop()


def _home_without_archives(folder: Path) -> Path:
    """Spark as it is installed, but for the archives of its Python sources, which each of a query's ten Pythons would
    compile anew: the installed ones are compiled.
    """
    import pyspark

    if not folder.exists():
        folder.mkdir()
        for each in ("bin", "jars"):
            (folder / each).symlink_to(Path(pyspark.__file__).parent / each)
    return folder


if __name__ == "__main__":
    _main(Path(sys.argv[1]), *sys.argv[2:])
