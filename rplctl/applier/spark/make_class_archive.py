"""`python -m rplctl.applier.spark.make_class_archive JAVA_HOME [--by-script]`: creates the archive of class_archive.py.

First, a Spark that runs one job lists the classes that it loads. Then a Java process writes these classes to the
archive. This process has the lowest priority, and only one process at a time creates an archive.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rplctl.applier.spark.class_archive import BY_SCRIPT, failed_path, is_wanted
from rplctl.applier.spark.java import Java, find_java
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.session import launch, open_session, path_of_archive
from rplctl.config import Config
from rplctl.durable import replace_file
from rplctl.errors import RplError
from rplctl.locks import FileLock

MAKING_TIMEOUT_S = 600.0
LOWEST_PRIORITY = 19


def make(java_home: str = "", *, is_direct: bool = True) -> Path | None:
    """Create the class archive for the Java that `java_home` and the environment select, and return its path.

    Return None if an archive exists already, if another process is creating it, or if it cannot be created.
    `is_direct`: True if rplctl starts this Java without Spark's script.
    """
    with tempfile.TemporaryDirectory(prefix="rplctl-") as name:
        java = find_java(java_home, Path(name) / "java")
        path = path_of_archive(java, is_direct=is_direct)
        lock = FileLock(path.with_name(f"{path.name}.lock"))
        try:
            if not lock.acquire(patience_s=0) or not is_wanted(path):
                return None
            replace_file(path, _dumped(java, java_home, Path(name), is_direct=is_direct))
            return path
        except (RplError, OSError, subprocess.SubprocessError) as error:  # everything works without the archive
            failed_path(path).write_text(f"{type(error).__name__}: {error}\n")
            return None
        finally:
            lock.close()


def _dumped(java: Java, java_home: str, folder: Path, *, is_direct: bool) -> bytes:
    classes, class_path = _classes_of_a_job(java_home, folder, is_direct=is_direct)
    made = folder / "archive"
    options = [
        "-Xshare:dump",
        "-XX:+UseSerialGC",  # the collector in session.py, because an archive is valid for one collector only
        f"-XX:SharedClassListFile={classes}",
        f"-XX:SharedArchiveFile={made}",
    ]
    command = [str(java.runtime / "bin" / "java"), *options, "-cp", class_path]
    subprocess.run(command, capture_output=True, timeout=MAKING_TIMEOUT_S, check=True)
    return made.read_bytes()


def _classes_of_a_job(java_home: str, folder: Path, *, is_direct: bool) -> tuple[Path, str]:
    """Run a Spark with one job. Return the path of a list of the loaded classes, and the class path of the JVM."""
    classes = folder / "classes"
    config = Config(datadir=folder, java_home=java_home, spark_master="local[1]")
    options = f'"-XX:DumpLoadedClassList={classes}"'
    begun = launch(config, "", folder / "run", options, may_be_direct=is_direct)
    context = open_session(config, "", folder / "run", options, begun)
    Pipeline(lambda: context).begin()
    class_path = str(context._jvm.java.lang.System.getProperty("java.class.path"))  # type: ignore[union-attr]
    context.stop()
    return classes, class_path


if __name__ == "__main__":
    os.nice(LOWEST_PRIORITY)
    make(sys.argv[1], is_direct=BY_SCRIPT not in sys.argv[2:])
