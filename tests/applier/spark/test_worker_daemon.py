"""Where Spark's workers come from, what they load, and what they do when the JVM that they work for is gone."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pyspark
import pytest

from rplctl.applier.spark.worker_daemon import SOCKET_VARIABLE
from tests.kit.replica import wait_until

WORKER = """
import os, socket
import pyspark.worker
from rplctl.applier.spark import loaded_daemon

os.environ["PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"] = "1"  # as Spark sets it
pyspark.worker.main = lambda _, outfile: outfile.write(b"a task's result")
mine, of_the_jvm = socket.socketpair()
of_the_jvm.close()
loaded_daemon.daemon.worker(mine, True)
print("went on")
"""


@pytest.mark.long("`crash-test` kills a JVM; this one looks for words on the terminal.")
def test_a_worker_whose_jvm_was_killed_ends_without_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


LOADED = """
import sys
import rplctl.applier.spark.loaded_daemon
files = {name: getattr(module, "__file__", "") or "" for name, module in sys.modules.items()}
print(*(name for name, file in files.items() if ".zip" in file))
print(*(place for place in sys.path if place.endswith(".zip")))
"""


@pytest.mark.long("It is about half a second of a start; nothing depends on it.")
def test_spark_and_py4j_are_loaded_compiled_where_both_are_installed(tmp_path: Path) -> None:
    """Spark puts archives of their sources first; what is of another Spark stays where it stands."""
    installed = Path(pyspark.__file__).parent / "python" / "lib"
    archives = [str(path) for path in (*installed.glob("*.zip"), tmp_path / "spark/python/lib/pyspark.zip")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*archives[:-1], *sys.path, archives[-1]])}
    done = subprocess.run([sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True, timeout=280)
    loaded, places = done.stdout.splitlines()
    assert (done.returncode, loaded) == (0, ""), done.stderr
    assert len(archives) > 2 and archives[-1] in places.split() and not set(archives[:-1]) & set(places.split())


APPLIER = """
import os, sys
from rplctl.applier.spark.loaded_daemon import fork
lock = open(sys.argv[2], "w")
fork(sys.argv[1])
print(open(f"/proc/self/task/{os.getpid()}/children").read(), flush=True)
sys.stdin.read()
"""


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def has_ended(pid: int) -> bool:
    path = Path(f"/proc/{pid}/stat")
    return not path.exists() or path.read_text().rpartition(")")[2].split()[0] == "Z"


def files_of(pid: int) -> set[str]:
    files = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            files.add(os.readlink(file))
    return files


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path leaves room for the name of a socket; the 107 bytes of one do not hold a worker's folder."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_worker_is_forked_from_the_process_that_the_applier_has_loaded(short: Path) -> None:
    """What Spark starts hands over to that process, which holds no lock of the applier's and ends with its JVM."""
    place, lock = short / "python.sock", short / "lock"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", APPLIER, str(place), str(lock)], **pipes) as applier:  # type: ignore[call-overload]
        loaded = int(applier.stdout.readline())
        assert place.stat().st_mode & 0o777 == 0o600
        wait_until(lambda: str(lock) not in files_of(loaded))  # it closes them once it is forked
        sparks = {"PYTHON_UNIX_DOMAIN_ENABLED": "true", "PYTHON_WORKER_FACTORY_SOCK_DIR": str(short)}
        environment = {**os.environ, **sparks, SOCKET_VARIABLE: str(place)}
        command = [sys.executable, "-m", "rplctl.applier.spark.worker_daemon", "pyspark.worker"]
        with subprocess.Popen(command, env=environment, **pipes) as daemon:  # type: ignore[call-overload]
            (length,) = struct.unpack(">i", daemon.stdout.read(4))
            with closing(socket.socket(socket.AF_UNIX)) as connection:
                connection.connect(daemon.stdout.read(length).decode())
                (worker,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
                assert parent_of(worker) == loaded != daemon.pid
            daemon.stdin.close()
        wait_until(lambda: has_ended(loaded) and has_ended(worker))
        applier.stdin.close()


@pytest.mark.long("test_a_worker_is_forked_from_the_process_that_the_applier_has_loaded starts the same process.")
def test_the_process_that_waits_for_spark_ends_with_the_applier(short: Path) -> None:
    command = [sys.executable, "-c", APPLIER, str(short / "python.sock"), str(short / "lock")]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=280, check=True)
    wait_until(lambda: has_ended(int(done.stdout)))
