"""Spark's Java classes, parsed once per machine and mapped into memory at each start (class data sharing, JEP 310).

Spark loads 8,000 classes out of many jars before it does anything; from an archive it starts in half the time, for half
the CPU. The archive (80 MB) is made in the background by the first `start` that finds none, at the lowest priority: a
Spark that runs one job tells which classes it takes, then a Java writes them down.
Invariant: an archive is whole or not there (made beside, then renamed); one of other jars or of another Java is refused
by the JVM itself, and one that it does not start with twice in a row is given up for a day: a JVM may also have been
killed as it started. Without it everything works, only later.
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

NO_MESSAGES = "-Xlog:disable"  # the JVM tells at length what of an archive it cannot use; Java's own errors still come
BY_SCRIPT = "--by-script"  # the class path is the one of Spark's own script
_GIVEN_UP_S = 86400.0


def archive_path(java: Java, class_path: str) -> Path:
    """Return the path of the archive of this Java, this Spark and this class path, which may not exist yet.

    `class_path`: '' for the one that Spark's own script gives.
    """
    from importlib.metadata import version  # only a process that starts Java needs it

    release = java.runtime / "release"
    said = release.read_bytes() if release.is_file() else b""
    which = hashlib.sha256(
        os.fsencode(java.runtime) + os.fsencode(sys.prefix) + said + os.fsencode(class_path)
    ).hexdigest()[:12]
    return Path(users_cache(), f"spark-{version('pyspark')}-java-{java.version}-{which}.jsa")


def archive_options(path: Path) -> str:
    """Return the JVM options that use the archive; '' while there is none."""
    is_usable = path.is_file() and is_private(path.parent)  # the JVM runs what is in it
    return f'"-XX:SharedArchiveFile={path}" {NO_MESSAGES}' if is_usable else ""


def make_in_background(java_home: str, *, is_direct: bool) -> None:
    """Begin to make the archive; the process ends by itself, and at once if another makes it.

    `is_direct`: for a Java that rplctl starts, and not Spark's script.
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
    """Spark did not start with it; the second time in a row it goes, and no other is made for a day."""
    if not (doubted := _doubted_path(path)).exists():
        doubted.touch()
        return
    failed_path(path).write_text("Spark did not start with it\n")
    path.unlink(missing_ok=True)
    doubted.unlink(missing_ok=True)


def trust(path: Path) -> None:
    """Spark started with it."""
    _doubted_path(path).unlink(missing_ok=True)


def _doubted_path(path: Path) -> Path:
    return path.with_suffix(".doubted")


def failed_path(path: Path) -> Path:
    """Return the path of the file that says why there is no archive."""
    return path.with_suffix(".failed")
