"""Spark's Java classes, parsed once per machine and mapped into memory at each start (class data sharing, JEP 310).

Spark loads 8,000 classes out of 250 jars before it does anything; from an archive it starts in half the time, for half
the CPU. The archive (80 MB) is made in the background by the first `start` that finds none, at the lowest priority: a
Spark that runs one job tells which classes it takes, then a Java writes them down.
Invariant: an archive is whole or not there (made beside, then renamed); one of other jars or of another Java is refused
by the JVM itself, and one that it does not start with is given up. Without it everything works, only later.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from importlib.metadata import version
from pathlib import Path

from rplctl.applier.spark.java import Java, find_java
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import private_folder, replace_file
from rplctl.errors import RplError
from rplctl.event.kernel_cache import users_cache

NO_MESSAGES = "-Xlog:disable"  # the JVM tells at length what of an archive it cannot use; Java's own errors still come
MAKING_TIMEOUT_S = 600.0
LOWEST_PRIORITY = 19


def archive_path(java: Java) -> Path:
    """Where the archive of this Java and this Spark lies, if it was made."""
    release = java.runtime / "release"
    said = release.read_bytes() if release.is_file() else b""
    which = hashlib.sha256(os.fsencode(java.runtime) + os.fsencode(sys.prefix) + said).hexdigest()[:12]
    return Path(users_cache(), f"spark-{version('pyspark')}-java-{java.version}-{which}.jsa")


def archive_options(java: Java) -> str:
    """What makes the JVM use the archive; '' while there is none."""
    path = archive_path(java)
    return f'"-XX:SharedArchiveFile={path}" {NO_MESSAGES}' if path.is_file() else ""


def make_in_background(java_home: str) -> None:
    """Begin to make the archive; the process ends by itself, and at once if another makes it."""
    null = subprocess.DEVNULL
    command = [sys.executable, "-m", "rplctl.applier.spark.class_archive", java_home]
    child = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True, cwd="/")
    threading.Thread(target=child.wait, name="rplctl-archive", daemon=True).start()  # leaves no zombie


def is_wanted(java: Java) -> bool:
    path = archive_path(java)
    return not path.exists() and not _failed(path).exists()


def make(java_home: str = "") -> Path | None:
    """Make the archive of the Java that `java_home` and the environment lead to. None when there is one, when another
    process makes it, or when it cannot be made."""
    with tempfile.TemporaryDirectory(prefix="rplctl-") as name:
        java = find_java(java_home, Path(name) / "java")
        path = archive_path(java)
        lock = private_folder(path.parent) / f"{path.name}.lock"
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not is_wanted(java):
                return None
            replace_file(path, _dumped(java, java_home, Path(name)))
            return path
        except BlockingIOError:
            return None
        except (RplError, OSError, subprocess.SubprocessError) as error:  # all works without
            _failed(path).write_text(f"{type(error).__name__}: {error}\n")
            return None
        finally:
            os.close(descriptor)


def _dumped(java: Java, java_home: str, folder: Path) -> bytes:
    classes, class_path = _classes_of_a_job(java_home, folder)
    made = folder / "archive"
    options = [
        "-Xshare:dump",
        "-XX:+UseSerialGC",  # as it is used: an archive holds for one collector
        f"-XX:SharedClassListFile={classes}",
        f"-XX:SharedArchiveFile={made}",
    ]
    command = [str(java.runtime / "bin" / "java"), *options, "-cp", class_path]
    subprocess.run(command, capture_output=True, timeout=MAKING_TIMEOUT_S, check=True)
    return made.read_bytes()


def give_up(java: Java) -> None:
    """Spark did not start with the archive: it goes, and no other is made."""
    path = archive_path(java)
    _failed(path).write_text("Spark did not start with it\n")
    path.unlink(missing_ok=True)


def _failed(path: Path) -> Path:
    """Why there is no archive."""
    return path.with_suffix(".failed")


def _classes_of_a_job(java_home: str, folder: Path) -> tuple[Path, str]:
    """(list of the classes that a Spark loads which runs a job, its class path)."""
    from rplctl.applier.spark.pipeline import Pipeline
    from rplctl.applier.spark.session import open_session

    classes = folder / "classes"
    config = Config(datadir=folder, java_home=java_home, spark_master="local[1]")
    context = open_session(config, Channel("", folder), f'"-XX:DumpLoadedClassList={classes}"')
    Pipeline(context)
    class_path = str(context._jvm.java.lang.System.getProperty("java.class.path"))  # type: ignore[union-attr]
    context.stop()
    return classes, class_path


if __name__ == "__main__":
    os.nice(LOWEST_PRIORITY)
    make(sys.argv[1])
