"""One Spark context per process: how it is started, and nothing of what it runs.

A bare SparkContext is enough for RDD jobs and starts faster than a SparkSession; no Hive, no UI and no warehouse come
with it. Invariant (design D14, D15): in local mode nothing listens but on 127.0.0.1 and in a private folder, and what
listens does nothing for a peer that does not prove to be us; Spark's own files stay in the process's private folder,
and its configuration holds no secret: tasks get bytes and table shapes, never a target's URL.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rplctl.applier.spark.class_archive import (
    archive_options,
    archive_path,
    doubt,
    is_wanted,
    make_in_background,
    trust,
)
from rplctl.applier.spark.cluster import (
    DRIVER_JAVA_OPTIONS,
    EXECUTOR_PYTHON,
    SECRET,
    given_settings,
    is_on_this_machine,
    protection,
)
from rplctl.applier.spark.failure import end_of_java, memory_kills, words_of
from rplctl.applier.spark.java import Java, find_java
from rplctl.applier.spark.own_gateway import StartedJava, class_path, connect, is_configured, start_java
from rplctl.applier.spark.worker_daemon import SOCKET_VARIABLE
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import PRIVATE_FILE, private_folder, replace_file
from rplctl.errors import RplError
from rplctl.own_process import SAFE_PATH

if TYPE_CHECKING:
    from pyspark import SparkContext

    from rplctl.applier.spark.pool import ChannelPool, Pool

WORKERS = f"spark.executorEnv.{SOCKET_VARIABLE}"
LOGGING_FILE = "log4j2.properties"
LOOPBACK = "127.0.0.1"
TASK_ATTEMPTS = 4  # tasks are pure: one whose worker dies is simply run again
# A driver that does little in the JVM: a small collector and no optimising compiler start fastest. Its heap would begin
# with a 64th of the machine's memory, and be filled with what nobody needs any more before that is looked for.
# UsePerfData wakes the JVM 20 times a second, for a file in /tmp that every user may list.
FAST_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xshare:auto -Xms64m -Xmn32m"
_KILLED = frozenset({-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM})  # Java answers SIGTERM by an exit
_END_SECONDS = 1.0  # in which a process whose socket is gone has ended
_opening = threading.Lock()  # a process has one context at a time
_closing = threading.Lock()
_ended_by_us: list[Any] = []  # JVMs that were killed on purpose


# Errors only, on stderr, from the first line on: the applier's log is for the operator.
LOGGING = """\
rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} spark %p %c{1}: %m%n%ex
"""


class ChannelSpark(Protocol):
    """The Spark that one channel's applier runs its jobs on."""

    def open(self) -> SparkContext:
        """Return the channel's Spark, which is opened if needed. Raises ConfigError, RplError."""

    def before_job(self) -> None:
        """Prepare the thread that is about to run a job."""

    def pool(self) -> ChannelPool | None:
        """The tasks that stay, which may not have begun yet; None where each job has its own."""

    def end(self) -> None:
        """End the channel's jobs at once with an error. Called from any thread; a second call has no effect."""

    def serves_others(self) -> bool:
        """True if other channels of the process still work: the process must not end with this channel."""

    def death(self) -> str:
        """Return how the JVM ended, if nobody here ended it; '' while it runs."""


class OwnSpark:
    """The default: a Spark for this channel alone."""

    def __init__(self, config: Config, channel: Channel) -> None:
        self._config, self._channel = config, channel
        self._context: SparkContext | None = None
        self._life = JavaLife()
        self._has_ended = False
        self._pool: Pool | None = None
        self._beginning: Future[SparkContext] | None = None

    def begin(self) -> None:
        """Start Java, fork the process that workers come from, and open Spark on a thread; `open` returns what that
        ends with. The process has one thread until then.
        """
        beginning: Future[SparkContext] = Future()
        self._beginning = beginning

        try:
            begun = launch(self._config, self._channel.name, self._channel.run_folder)
            if path := begun.settings.get(WORKERS):
                from rplctl.applier.spark.loaded_daemon import fork  # load what decodes rows while Java starts

                fork(path)
        except (RplError, OSError) as error:
            beginning.set_exception(error)
            return

        def begin() -> None:
            try:
                beginning.set_result(self._open(begun))
            except Exception as error:  # noqa: BLE001 - the thread boundary: `open` raises it
                beginning.set_exception(error)

        threading.Thread(target=begin, daemon=True, name="rplctl-java").start()

    def open(self) -> SparkContext:
        """Again where the cluster has given up the one before. What `end` did not see yet ends here."""
        beginning, self._beginning = self._beginning, None
        return beginning.result() if beginning is not None else self._open()

    def _open(self, begun: Launch | None = None) -> SparkContext:
        with _opening:
            if self._context is not None:
                end_java(self._channel.run_folder)
            self._context = open_session(self._config, self._channel.name, self._channel.run_folder, begun=begun)
            self._life.begins()
            if self._has_ended:
                close_session(self._context, self._channel.run_folder)
            return self._context

    def before_job(self) -> None:
        pass

    def pool(self) -> ChannelPool | None:
        if not keeps_tasks(self._config):
            return None
        from rplctl.applier.spark.pool import ChannelPool, Pool  # load what decodes rows

        name = self._channel.name
        self._pool = self._pool or Pool(self._channel.run_folder, f"channel '{name}'")
        return ChannelPool(self._pool, name, takes_all=True)

    def end(self) -> None:
        self._has_ended = True
        if self._pool is not None:
            self._pool.close()
        if self._context is not None:
            close_session(self._context, self._channel.run_folder)

    def serves_others(self) -> bool:
        return False

    def death(self) -> str:
        return self._life.death()


def keeps_tasks(config: Config) -> bool:
    """True if one job of Spark stays for as long as the applier. On other machines each batch is a job."""
    return config.spark == "always" and is_on_this_machine(config.spark_master)


class JavaLife:
    """The JVM of the session that this process has opened, as its parent sees it."""

    def __init__(self) -> None:
        self._kills_before = 0
        self._process: Any = None

    def begins(self) -> None:
        from pyspark import SparkContext

        self._kills_before = memory_kills()
        self._process = getattr(SparkContext._gateway, "proc", None)

    def death(self) -> str:
        return "" if self._process in _ended_by_us else end_of_java(self._process, self._kills_before)


@dataclass(frozen=True, slots=True)
class Launch:
    """A Spark whose JVM starts. `settings`: every property; `more`: options of the JVM for its class archive.

    `is_direct`: its Java was started without Spark's script.
    """

    java: Java
    is_direct: bool
    archive: Path
    settings: Mapping[str, str]
    more: str
    started: StartedJava


def path_of_archive(java: Java, *, is_direct: bool) -> Path:
    """Return the path of the class archive for a Java that is started by us, or by Spark's script."""
    return archive_path(java, class_path() if is_direct else "")


def launch(
    config: Config, name: str, run_folder: Path, java_options: str | None = None, *, may_be_direct: bool = True
) -> Launch:
    """Start the JVM of a session, which `open_session` connects to. Loads nothing of PySpark. Raises ConfigError,
    OSError; arguments as there. `java_options` None: those that make it use the archive of its classes.
    """
    java = find_java(config.java_home, run_folder / "java")
    local_mode = config.spark_master.startswith("local") or not config.spark_master
    given = given_settings(config)
    folder = run_folder / "spark"
    shutil.rmtree(folder, ignore_errors=True)  # a killed applier's: the place is ours alone, by a lock
    private_folder(folder)
    _set_environment(java, given, local_mode=local_mode)
    if not is_on_this_machine(config.spark_master):
        os.environ["SPARK_LOCAL_DIRS"] = str(folder)  # of the driver; executors have folders of their own
    settings = spark_settings(config, folder, name)
    if local_mode:
        settings |= _short_names(folder, is_own_python=EXECUTOR_PYTHON not in given)
    replace_file(folder / LOGGING_FILE, LOGGING.encode(), durable=False)
    is_direct = may_be_direct and is_on_this_machine(config.spark_master) and not given and not is_configured()
    archive = path_of_archive(java, is_direct=is_direct)
    more = archive_options(archive) if java_options is None else java_options
    settings[DRIVER_JAVA_OPTIONS] += f" {more}"
    shown = {name: value for name, value in settings.items() if name != SECRET}  # who looks at processes sees it
    return Launch(java, is_direct, archive, settings, more, start_java(java, shown, folder, is_direct=is_direct))


def open_session(
    config: Config, name: str, run_folder: Path, java_options: str | None = None, begun: Launch | None = None
) -> SparkContext:
    """Start a Spark. Raises ConfigError without a Java, RplError when Spark does not start.

    `name`: of the channel, or of what it serves; `run_folder`: its own. `java_options`: for its JVM, in place of those
    that make it use the archive of its classes. `begun`: its JVM, where that starts already.
    The caller ends it with `close_session`; Spark dies with this process in any case.
    """
    begun = begun or launch(config, name, run_folder, java_options)
    uses_archive = bool(begun.more) and java_options is None
    try:
        context = _context_of(begun, name, run_folder)
    except _Ended as ended:
        if not uses_archive:
            raise _not_started(begun.java, name, run_folder, str(ended)) from ended
        if not _was_killed(begun.started.process):
            doubt(begun.archive)
        uses_archive = False
        try:
            context = _context_of(launch(config, name, run_folder, ""), name, run_folder)
        except _Ended as again:
            raise _not_started(begun.java, name, run_folder, str(again)) from again
    if uses_archive:
        trust(begun.archive)
    _keep_to_ourselves(context)
    if java_options is None and is_wanted(begun.archive):
        make_in_background(config.java_home, is_direct=begun.is_direct)
    return context


class _Ended(Exception):
    """The JVM ended before Spark had started in it."""


def _context_of(begun: Launch, name: str, run_folder: Path) -> SparkContext:
    """Raises _Ended; RplError with the JVM's words."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkConf, SparkContext  # 0.15 s: only who applies pays for it
    from pyspark.errors import PySparkException

    keep_quiet()
    if (stopped := getattr(SparkContext._gateway, "proc", None)) is not None:
        _end_gateway(stopped)  # a context before this one has left its JVM
    conf = SparkConf(loadDefaults=False).setAll(list(begun.settings.items()))
    try:
        return SparkContext(conf=conf, gateway=connect(begun.started))
    except Py4JJavaError as error:  # what the operator says of Spark does not suit it: no other archive helps
        words = words_of(error)  # while its JVM answers
        _end_gateway(begun.started.process)
        raise _not_started(begun.java, name, run_folder, words) from error
    except (PySparkException, Py4JError, OSError) as error:  # it ended meanwhile
        _end_gateway(begun.started.process)
        raise _Ended(str(error)) from error


def _not_started(java: Java, name: str, run_folder: Path, failure: str) -> RplError:
    return RplError(
        f"Spark did not start with Java {java.version} of {java.origin} ({java.runtime}): {failure}",
        channel=name,
        hint=f"see {run_folder / 'applier.log'} and spark_conf, then rplctl doctor",
    )


def keep_quiet() -> None:
    """Silence what py4j and pyspark print about each call that is cut off: the caller has the error."""
    from pyspark import util

    logging.getLogger().addFilter(_is_reported_by_us)  # the same one each time that a context begins: it is there once
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    vars(util)["print_exec"] = lambda _stream: None  # of what cannot be pickled, also because the JVM has just ended


def _is_reported_by_us(record: logging.LogRecord) -> bool:
    return record.name != "root"


def _keep_to_ourselves(context: SparkContext) -> None:
    """Its socket for counters, which is a file; and what pyspark would print when the JVM has ended."""
    server: Any = context._accumulatorServer
    server.handle_error = lambda *_: None
    if isinstance(server.server_address, str):
        os.chmod(server.server_address, PRIVATE_FILE)


def close_session(context: SparkContext, run_folder: Path) -> None:
    """End Spark at once, from any thread, again without effect: nobody waits for results any more.

    An orderly end waits for running tasks, seconds long. A local JVM holds nothing but files of ours: it is killed, its
    Python workers end with it, and a call in work raises.
    """
    from pyspark import SparkContext

    with _closing:
        if context._jsc is None:
            return
        gateway = SparkContext._gateway
        process = getattr(gateway, "proc", None)
        if process is None or not str(context.master).startswith("local"):
            context.stop()
            return
        context._jsc = None
        end_java(run_folder)


def end_java(run_folder: Path) -> None:
    """Kill the JVM of this process and remove the folder of its Spark."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        if process.poll() is None:
            _ended_by_us.append(process)
        _kill(process)
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    shutil.rmtree(run_folder / "spark", ignore_errors=True)


def _was_killed(process: subprocess.Popen[bytes]) -> bool:
    """True if somebody, we on STOP, has ended the JVM."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
    return process.returncode in _KILLED


def _end_gateway(process: subprocess.Popen[bytes]) -> None:
    """End a JVM whose Spark did not start: the next try is another JVM's."""
    from pyspark import SparkContext

    _kill(process)
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def spark_settings(config: Config, folder: Path, name: str) -> dict[str, str]:
    """Every Spark property we set; `folder` takes all that Spark and its JVM write."""
    logging = folder / LOGGING_FILE
    places = f'"-Djava.io.tmpdir={folder}" "-XX:ErrorFile={folder.parent}/java-error-%p.log"'
    java_options = f"{FAST_START} -Dlog4j2.configurationFile={logging.as_uri()} {places}"
    master = config.spark_master or f"local[{os.cpu_count() or 1},{TASK_ATTEMPTS}]"
    given = given_settings(config)
    java_options = f"{java_options} {given.pop(DRIVER_JAVA_OPTIONS, '')}".strip()
    settings = {
        "spark.master": master,
        "spark.app.name": f"rplctl applier '{name}'",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",  # among the channels that share it
        "spark.speculation": "false",  # a second copy of a task would only write a second spool file
        "spark.task.maxFailures": str(TASK_ATTEMPTS),
        DRIVER_JAVA_OPTIONS: java_options,
        "spark.local.dir": str(folder),
        "spark.python.daemon.module": "rplctl.applier.spark.worker_daemon",
        f"spark.executorEnv.{SAFE_PATH}": "1",  # an executor's folder belongs to others as well
    }
    if keeps_tasks(config):  # one job leaves nothing to clean up, and the cleaner wakes ten times a second
        settings["spark.cleaner.referenceTracking"] = "false"
    if master.startswith("local"):
        settings |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    if not is_on_this_machine(master):
        del settings["spark.local.dir"]
        settings["spark.driver.maxResultSize"] = "0"  # jobs are as large as they may be already
    return settings | given | protection(master, given, is_insecure=config.insecure_cluster)


def _short_names(folder: Path, *, is_own_python: bool) -> dict[str, str]:
    """The JVM talks to our workers through files of `folder`: by TCP, each task waits 40 ms for a delayed ACK.

    A socket's name has room for 107 bytes, and Spark takes a comma in a folder's name for two folders: where that
    matters ours is named by a descriptor, which stays open as long as this process.
    """
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    short = f"/proc/{os.getpid()}/fd/{descriptor}"
    sockets = "spark.python.unix.domain.socket"
    settings = {f"{sockets}.enabled": "true", f"{sockets}.dir": short}
    settings |= {"spark.local.dir": short} if "," in str(folder) else {}
    return settings | ({WORKERS: f"{short}/python.sock"} if is_own_python else {})


def _set_environment(java: Java, given: Mapping[str, str], *, local_mode: bool) -> None:
    """Set the environment that pyspark and its launcher script read."""
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ[SAFE_PATH] = "1"  # Spark starts Python with -m
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = given.get(EXECUTOR_PYTHON, sys.executable)
    if local_mode:
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
