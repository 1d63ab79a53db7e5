"""Reports failures of Spark in words for an operator, and ends jobs that Spark would repeat forever.

Invariants: the report of a failed job names the process that died, its signal, and a lack of memory. No job repeats its
tasks forever. Spark ends a job if a task fails `spark.task.maxFailures` times, but does not count all failures. It
omits tasks that an executor refuses, and the tasks of a lost executor (seen: 56,624 attempts in 25 s, no error).
`limited_attempts` counts these tasks, too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any

from rplctl.channel import Channel
from rplctl.errors import RplError, file_error
from rplctl.own_process import signal_name

if TYPE_CHECKING:
    from subprocess import Popen

    from pyspark import SparkContext

    from rplctl.applier.spark.cluster import Cluster

WATCH_SECONDS = 1.0
DYING_SECONDS = 10.0
MOST_ATTEMPTS = 16  # for each task, on average over its stage, because executors of a cluster come and go
_WORKER_DIED = ("Python worker exited unexpectedly", "Python worker process terminated")
_NOT_INSTALLED = ("No module named 'rplctl", "No module named rplctl", "Cannot run program")
_NOT_BEGUN = (
    "from rplctl.applier.spark.worker_daemon's stdout"  # part of Spark's text for a Python process that ended at once
)
MEMORY_HINT = (
    "add memory to the machine, or set a smaller max_batch_bytes (rplctl init --max-batch-bytes BYTES); to see the "
    "memory and the kills, run: free -m; dmesg"
)


class TasksFailed(Exception):
    """The error for a job that Spark could not run, even after repeated attempts.

    Its text was read while the JVM could still answer.
    """


def words_of(error: Exception) -> str:
    """Return an error's text without its stack trace.

    Call this function while the JVM runs, because the text of a Java error is lost with the JVM.
    """
    from py4j.protocol import Py4JError

    try:
        lines = str(error).splitlines()
    except (OSError, Py4JError):
        return "the JVM has ended"
    return "; ".join(line for line in lines if line and not line[0].isspace())[:500]


def memory_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory. Return 0 if the count cannot be read.

    If the kernel counts for this process's control group, the result is the count of this group. Otherwise, the result
    is the count of the machine.
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
    """Return a clause for a message if the kernel has killed a process for lack of memory, or else ''.

    `before`: an earlier result of `memory_kills`.
    """
    return "; the kernel has killed a process for lack of memory (OOM)" if memory_kills() > before else ""


def end_of_java(process: Popen[Any] | None, kills_before: int) -> str:
    """Return a sentence that says how Spark's Java process has ended.

    Return '' while the process runs, or if this process has not started it. `kills_before`: the result of
    `memory_kills` at the start. If the kernel has killed a process since, the sentence says so.
    """
    code = process.poll() if process is not None else None
    if process is None or code is None:
        return ""
    java, killed = f"Spark's Java process (pid {process.pid})", _kills_since(kills_before)
    if code >= 0:
        return f"{java} ended by itself with exit code {code}{killed}"
    name = signal_name(-code)
    return f"{java} was killed by signal {-code} ({name}){killed}"


def await_end_of_java(error: Exception) -> None:
    """Wait until the JVM has ended, if `error` means that it does not answer.

    When a JVM dies, its sockets close before its parent can see its exit code. If the applier killed the JVM between
    these two moments, the exit code would not show the real cause.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    is_silent = isinstance(error, ConnectionError | EOFError | Py4JError) and not isinstance(error, Py4JJavaError)
    if process is not None and is_silent:
        with suppress(TimeoutExpired):
            process.wait(DYING_SECONDS)


def in_words(failure: str, kills_before: int) -> tuple[str, str]:
    """Return (error text, hint) for an operator. `failure`: the text of a TasksFailed.

    `kills_before`: how many processes the kernel had killed for lack of memory when Spark started.
    """
    again = "nothing is lost; to try again, run: rplctl start"
    if any(words in failure for words in _WORKER_DIED):
        died = "Spark's Python worker died in each attempt at a task (it was killed, or it crashed)"
        return f"{died}{_kills_since(kills_before)}: {failure}", f"{MEMORY_HINT}; {again}"
    if any(words in failure for words in (*_NOT_INSTALLED, _NOT_BEGUN)):
        ended = f", or its Python ended at once{_kills_since(kills_before)}" if _NOT_BEGUN in failure else ""
        return f"an executor has no rplctl to work with{ended}: {failure}", (
            "install the same rplctl on the executor's machine, in the same folder as here or in the folder that "
            "--spark-conf spark.pyspark.python=PATH names (man 7 rplctl-cluster), then run: rplctl start"
        )
    return f"Spark could not decode a batch{_kills_since(kills_before)}: {failure}", again


def failure_of(error: Exception, death: str, kills_before: int, channel: Channel) -> RplError:
    """Return the RplError to report if the applier ended with an error of another class.

    `death`: the sentence about the end of Spark's JVM, or ''. The report has this sentence in place of the text of
    `error`, which only says that the JVM's sockets are closed.
    `kills_before`: how many processes the kernel had killed for lack of memory when the run began. An error with a
    known cause gets no traceback.
    """
    if isinstance(error, OSError) and error.filename and not death:
        failure = file_error(error, channel.name)
        failure.__suppress_context__ = True
        return failure
    again = "nothing is lost; to try again, run: rplctl start"
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
    """Watch the job that runs in the block, and end it if its tasks fail too often.

    Yield a list, which is empty. If the job is ended, the list gets the reason. `cluster`: the cluster whose executors
    are checked meanwhile.
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
        except (OSError, Py4JError, AttributeError):  # the session has ended, and the job with it
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
    """Return the error of the stage's first failed attempt as a clause, or '' if Spark does not know it any more."""
    from py4j.protocol import Py4JError

    with suppress(Py4JError, IndexError):  # statusStore is not a public interface
        tasks = context._jsc.sc().statusStore().taskList(stage, 0, 50)
        for number in range(tasks.size()):
            message = tasks.apply(number).errorMessage()
            if message.isDefined():
                return f": {str(message.get()).splitlines()[0][:300]}"
    return ""
