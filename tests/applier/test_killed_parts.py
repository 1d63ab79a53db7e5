"""Spark's own parts killed while they decode: a Python worker once or always, the JVM, one executor of two; tasks
without memory, without room for what they spool, with an error that cannot be sent. A real Spark in an applier of its
own process; what it leaves, the next start goes on from.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions
from rplctl.applier.report import WAITING
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.status import read_status
from tests.applier.demo_log import demo_groups
from tests.applier.test_job import channel, rows
from tests.kit.no_spark import without_spark
from tests.kit.replica import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
__all__ = ["channel", "without_spark"]

# The program is the process's __main__, so what it puts in the place of the task travels to the workers whole.
PROGRAM = """
import os, signal, sys
from pathlib import Path
os.environ["RPLCTL_SPARK"] = "auto"  # each batch is a job
from rplctl.applier.spark import pipeline
from rplctl.applier.__main__ import main

folder, what = Path(sys.argv[1]), sys.argv[2]
really_run = pipeline.run_split
pipeline.SMALL_JOB = -1  # all jobs are Spark's
pipeline.Pipeline.begin_beside = lambda made, _: made.has_begun or made.begin()  # also the first

def run_split(split, catalog):
    import os, signal
    from rplctl.applier.spark.split_task import run_split as really_run
    tries = os.open(folder / "tries", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    before = os.fstat(tries).st_size
    os.write(tries, b"x")
    if what == "always" or (what == "once" and before == 0):
        os.kill(os.getpid(), signal.SIGKILL)
    if what in ("jvm", "executor") and before == 0:  # the worker's parent is the daemon, whose parent is the JVM
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
    if what == "memory":
        import resource
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + (1 << 20), -1))
        bytearray(1 << 30)
    if what == "disk":
        with open("/dev/full", "wb") as full:
            full.write(b"x")
    if what == "unpicklable":
        raise ValueError(lambda: 1, open(os.devnull))
    return really_run(split, catalog)

pipeline.run_split = run_split
sys.exit(main([str(folder), "", sys.argv[3]]))
"""


def applied(channel: Channel, what: str, master: str = "") -> tuple[int, str]:
    options = json.dumps({"until_source": str(demo_groups().end_source), "spark_master": master})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(channel.datadir), what, options],
        capture_output=True,
        text=True,
        timeout=800,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return done.returncode, done.stderr


def assert_whole(channel: Channel) -> None:
    end = demo_groups().end_source
    Applier(Config(datadir=channel.datadir), channel, StartOptions(until_source=end)).run()
    assert read_status(channel.status_path("applier")).exec_log_pos == end.log_pos
    assert rows(channel, "orders") > 0


@pytest.mark.long("`crash-test` kills a worker of Spark; tests/applier/spark/test_pool.py loses one in make test.")
def test_a_worker_that_is_killed_once_costs_another_attempt_of_its_task(channel: Channel) -> None:
    code, said = applied(channel, "once")
    assert code == 0, said
    assert len((channel.datadir / "tries").read_bytes()) > 1
    status = read_status(channel.status_path("applier"))
    assert (status.exec_log_pos, status.last_errno) == (demo_groups().end_source.log_pos, 0)


@pytest.mark.torture
def test_an_executor_that_is_killed_leaves_its_tasks_to_the_other(channel: Channel) -> None:
    code, said = applied(channel, "executor", "local-cluster[2,1,1024]")
    assert code == 0, said
    assert read_status(channel.status_path("applier")).exec_log_pos == demo_groups().end_source.log_pos


NAMED = {
    "jvm": "was killed by signal 9 (SIGKILL)",
    "always": "Spark's Python worker died in each attempt at a task",
    "memory": "Spark could not decode a batch",
    "disk": "No space left on device",
    "unpicklable": "Spark could not decode a batch",
}
LONG = [pytest.param(what, marks=pytest.mark.torture) for what in ("always", "memory", "disk", "unpicklable")]


@pytest.mark.long("tests/stories/test_rows_by_spark.py kills a worker and the JVM in make test.")
@pytest.mark.parametrize("what", ["jvm", *LONG])
def test_a_session_that_dies_stops_the_applier_with_an_error_and_the_next_start_goes_on(
    channel: Channel, what: str, without_spark: None
) -> None:
    """The next one without Spark: what it finds is what matters."""
    code, said = applied(channel, what)
    assert code not in (0, -9), said
    status = read_status(channel.status_path("applier"))
    assert status.last_errno and NAMED[what] in status.last_error, said
    assert not status.state and "nothing is lost" in status.last_hint
    assert not list(channel.spool_folder.glob("*"))
    assert_whole(channel)


def children_of(pid: int, word: bytes) -> list[int]:
    """Those whose command line has it. A thread, or a child, may end while it is looked at."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                with suppress(OSError):
                    found += [int(child)] * (word in Path(f"/proc/{child}/cmdline").read_bytes())
    return found


JAVA = b"org.apache.spark"


def tasks_of(applier: int) -> list[int]:
    """Spark's Python workers: forks of a process that the applier has forked from itself."""
    forks = children_of(applier, b"-m\0rplctl.applier\0")
    return [task for fork in forks for task in children_of(fork, b"-m\0rplctl.applier\0")]


@contextmanager
def killed_after_error(process: subprocess.Popen[str]) -> Iterator[None]:
    """Else its end, which never comes, would be waited for."""
    try:
        yield
    except BaseException:
        process.kill()
        raise


@pytest.mark.long("A JVM that is killed while nothing is to be applied is rare.")
def test_an_idle_applier_tells_at_once_that_its_jvm_was_killed(channel: Channel) -> None:
    command = [sys.executable, "-m", "rplctl.applier", str(channel.datadir), "", json.dumps({})]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as applier, killed_after_error(applier):
        path = channel.status_path("applier")
        wait_until(lambda: read_status(path).state == WAITING)

        def java() -> list[int]:
            return children_of(applier.pid, JAVA)

        killed = 0
        while applier.poll() is None:  # one that is just opened is opened again, without its class archive
            for found in java():
                if found != killed and tasks_of(applier.pid):
                    time.sleep(1)  # its opening ends with a job: on a busy machine the second one would be cut, too
                    killed = found
                    os.kill(killed, signal.SIGKILL)
            time.sleep(0.05)
        said = applier.communicate()[1]
    assert applier.returncode == 1, said
    assert f"Spark's Java process (pid {killed}) was killed by signal 9 (SIGKILL)" in read_status(path).last_error
    assert "Traceback" not in said and "py4j" not in said, said
