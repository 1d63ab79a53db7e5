"""How Spark fails, in words for an operator; and that it fails at all: a job is not tried for ever.

Invariant: what ends a job has a name: which process died, of which signal, whether the kernel was short of memory. And
each job ends: Spark counts a task's failures up to `spark.task.maxFailures`, but neither tasks that an executor refuses
nor those of one that is lost (seen: 56,624 attempts in 25 s, no error). The watch here counts those, too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any

from rplctl.channel import Channel
from rplctl.errors import RplError
from rplctl.own_process import signal_name

if TYPE_CHECKING:
    from subprocess import Popen

    from pyspark import SparkContext

    from rplctl.applier.spark.cluster import Cluster

WATCH_SECONDS = 1.0
DYING_SECONDS = 10.0
MOST_ATTEMPTS = 16  # of a task, by the average of its stage: on a cluster, executors come and go
_WORKER_DIED = ("Python worker exited unexpectedly", "Python worker process terminated")
_NOT_INSTALLED = ("No module named 'rplctl", "No module named rplctl", "Cannot run program")
_NOT_BEGUN = "from rplctl.applier.spark.worker_daemon's stdout"  # Spark's words for a Python that ended at once
MEMORY_HINT = "free -m; see dmesg; give the machine more memory or set a smaller max_batch_bytes"


class TasksFailed(Exception):
    """Spark could not carry a job out, however often it tried. Its words are asked for while its JVM can answer."""


def words_of(error: Exception) -> str:
    """Return an error's text without its stack trace. The text of a JVM's error is lost once the JVM has ended."""
    from py4j.protocol import Py4JError

    try:
        lines = str(error).splitlines()
    except (OSError, Py4JError):
        return "the JVM has ended"
    return "; ".join(line for line in lines if line and not line[0].isspace())[:500]


def memory_kills() -> int:
    """The kernel's count of processes that it killed for want of memory: in our control group, else on the machine; 0
    where it cannot be read.
    """
    try:
        own = Path("/proc/self/cgroup").read_text().rpartition("0::")[2].strip().lstrip("/")
        places = [Path("/sys/fs/cgroup", own, "memory.events"), Path("/proc/vmstat")]
    except (OSError, ValueError):
        places = [Path("/proc/vmstat")]
    for place in places:
        try:
            counters = dict(line.split()[:2] for line in place.read_text().splitlines())
            return int(counters["oom_kill"])
        except (OSError, ValueError, KeyError):
            continue
    return 0


def _kills_since(before: int) -> str:
    """Return what to add to a sentence if `memory_kills` is above `before` by now; else ''."""
    return "; the kernel killed a process for want of memory (OOM) meanwhile" if memory_kills() > before else ""


def end_of_java(process: Popen[Any] | None, kills_before: int) -> str:
    """Return how Spark's Java process ended, as a sentence; '' while it runs, or if it is not our process."""
    code = process.poll() if process is not None else None
    if process is None or code is None:
        return ""
    java, killed = f"Spark's Java process (pid {process.pid})", _kills_since(kills_before)
    if code >= 0:
        return f"{java} ended by itself with exit code {code}{killed}"
    name = signal_name(-code)
    return f"{java} was killed by signal {-code} ({name}){killed}"


def await_end_of_java(error: Exception) -> None:
    """Where `error` says that the JVM does not answer: its sockets close before its parent sees it dead, and a JVM that
    we end meanwhile would pass for one that had lived.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    is_silent = isinstance(error, ConnectionError | EOFError | Py4JError) and not isinstance(error, Py4JJavaError)
    if process is not None and is_silent:
        with suppress(TimeoutExpired):
            process.wait(DYING_SECONDS)


def in_words(failure: str, kills_before: int) -> tuple[str, str]:
    """(what a TasksFailed tells the operator, hint)."""
    again = "nothing is lost, rplctl start tries again"
    if any(words in failure for words in _WORKER_DIED):
        died = "Spark's Python worker died in each attempt at a task (it was killed, or it crashed)"
        return f"{died}{_kills_since(kills_before)}: {failure}", f"{MEMORY_HINT}; {again}"
    if any(words in failure for words in (*_NOT_INSTALLED, _NOT_BEGUN)):
        ended = f", or its Python ended at once{_kills_since(kills_before)}" if _NOT_BEGUN in failure else ""
        return f"an executor has no rplctl to work with{ended}: {failure}", (
            "install the same rplctl there, in the same folder as here or in the one that --spark-conf "
            "spark.pyspark.python=PATH names; see man 7 rplctl-cluster"
        )
    return f"Spark could not decode a batch{_kills_since(kills_before)}: {failure}", again


def failure_of(error: Exception, death: str, kills_before: int, channel: Channel) -> RplError:
    """An applier's end by an error that is not ours. `death`: how Spark's JVM died, whose callers see sockets close. An
    error that is told by its cause needs no traceback.
    """
    again = "nothing is lost, rplctl start tries again"
    if death:
        message, hint = death, f"{MEMORY_HINT}; {again}"
    elif isinstance(error, TasksFailed):
        message, hint = in_words(str(error), kills_before)
    else:
        message = f"the applier failed unexpectedly: {type(error).__name__}: {words_of(error)}"
        hint = f"see {channel.log_path('applier')}; {again}"
    failure = RplError(message, channel=channel.name, hint=hint)
    failure.__suppress_context__ = bool(death) or isinstance(error, TasksFailed)
    return failure


@contextmanager
def limited_attempts(context: SparkContext, cluster: Cluster | None = None) -> Iterator[list[str]]:
    """A job runs in the block. What the watch ended it for is then in the list, else it is empty. `cluster` is
    looked at meanwhile.
    """
    done = threading.Event()
    ended: list[str] = []
    threading.Thread(target=_watch, args=(context, done, ended, cluster), daemon=True, name="rplctl-attempts").start()
    try:
        yield ended
    finally:
        done.set()


def _watch(context: SparkContext, done: threading.Event, ended: list[str], cluster: Cluster | None) -> None:
    from py4j.protocol import Py4JError

    while not done.wait(WATCH_SECONDS):
        try:
            _end_hopeless(context, ended)
            if cluster is not None:
                cluster.has_executors(context)
        except (OSError, Py4JError, AttributeError):  # the session ends; so does the job
            return


def _end_hopeless(context: SparkContext, ended: list[str]) -> None:
    tracker = context.statusTracker()
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        if info is None or info.numFailedTasks <= MOST_ATTEMPTS * max(1, info.numTasks):
            continue
        words = f"{info.numFailedTasks} attempts at {info.numTasks} tasks failed{_reason(context, stage)}"
        ended.append(words)
        context._jsc.sc().cancelStage(stage, words)


def _reason(context: SparkContext, stage: int) -> str:
    """Return the error of the first attempt that failed, as far as Spark still knows it; else ''."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, IndexError):  # statusStore is no public interface
        tasks = context._jsc.sc().statusStore().taskList(stage, 0, 50)
        for number in range(tasks.size()):
            message = tasks.apply(number).errorMessage()
            if message.isDefined():
                return f": {str(message.get()).splitlines()[0][:300]}"
    return ""
