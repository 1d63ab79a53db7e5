"""The archive of Spark's Java classes, parsed once per machine and mapped into memory at each start.

Java calls this class data sharing (JEP 310). Spark loads 8,000 classes from many jars before it does anything. With an
archive, it starts in half the time, with half the CPU time. The first `rplctl start` that finds no archive (80 MB)
creates one in the background, with the lowest priority. For this, one process of Spark lists the classes that a job
loads, and a second Java process writes them to the archive.

Invariant: an archive is complete or absent, because it is renamed into place. The JVM itself refuses an archive for
other jars or for another Java. If a JVM fails to start with the archive twice in a row, rplctl removes the archive for
a day. A single failure is ignored, because the JVM may have been killed during its start. Without the archive
everything works, only more slowly.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

from rplctl.applier.spark.java import Java
from rplctl.event.kernel_cache import is_private, users_cache
from rplctl.own_process import start_beside

NO_MESSAGES = "-Xlog:disable"  # silences the JVM's messages about unusable parts of an archive, but not Java's errors
BY_SCRIPT = "--by-script"  # use the class path of Spark's own script
_GIVEN_UP_S = 86400.0


def archive_path(java: Java, class_path: str) -> Path:
    """Return the path of the archive for this Java, Spark and class path. The file may not exist yet.

    `class_path`: '' for the class path of Spark's own script.
    """
    from importlib.metadata import version  # only a process that starts Java needs it

    release = java.runtime / "release"
    said = release.read_bytes() if release.is_file() else b""
    which = hashlib.sha256(
        os.fsencode(java.runtime) + os.fsencode(sys.prefix) + said + os.fsencode(class_path)
    ).hexdigest()[:12]
    return Path(users_cache(), f"spark-{version('pyspark')}-java-{java.version}-{which}.jsa")


def archive_options(path: Path) -> str:
    """Return the JVM options that use the archive, or '' if there is no usable archive."""
    is_usable = path.is_file() and is_private(path.parent)  # the JVM runs code from the archive
    return f'"-XX:SharedArchiveFile={path}" {NO_MESSAGES}' if is_usable else ""


def make_in_background(java_home: str, *, is_direct: bool) -> None:
    """Start a process that creates the archive. The process ends at once if another process is creating the archive.

    `is_direct`: True if rplctl starts this Java without Spark's script.
    """
    start_beside(["-m", "rplctl.applier.spark.make_class_archive", java_home, *([] if is_direct else [BY_SCRIPT])])


def is_wanted(path: Path) -> bool:
    if path.exists() or not is_private(path.parent):
        return False
    try:
        return time.time() - failed_path(path).stat().st_mtime > _GIVEN_UP_S
    except FileNotFoundError:
        return True


def doubt(path: Path) -> None:
    """Note that Spark did not start with the archive. After two notes in a row, remove the archive for a day."""
    if not (doubted := _doubted_path(path)).exists():
        doubted.touch()
        return
    failed_path(path).write_text("Spark did not start with it\n")
    path.unlink(missing_ok=True)
    doubted.unlink(missing_ok=True)


def trust(path: Path) -> None:
    """Note that Spark started with the archive, so that an earlier failure no longer counts."""
    _doubted_path(path).unlink(missing_ok=True)


def _doubted_path(path: Path) -> Path:
    return path.with_suffix(".doubted")


def failed_path(path: Path) -> Path:
    """Return the path of the file that says why there is no archive."""
    return path.with_suffix(".failed")
