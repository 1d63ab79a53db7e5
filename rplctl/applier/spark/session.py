"""Starts and ends the one Spark context of a process.

rplctl uses a SparkContext without a SparkSession. This is enough for RDD jobs, and starts faster, without Hive, UI and
warehouse. Invariant (design D14, D15): in local mode, Spark listens only on 127.0.0.1 and in a private folder. It
serves only processes that prove to be of this user. Spark's files stay in the process's private folder. Spark's
configuration contains no secret of a database, because tasks get bytes and table definitions, but never a target's URL.
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
TASK_ATTEMPTS = 4  # tasks are pure, so a task whose worker dies is run again
# The driver does little in the JVM: a small collector and no optimising compiler start fastest. By default, the heap
# would begin with a 64th of the machine's memory, and garbage would fill it before the first collection.
# UsePerfData wakes the JVM 20 times a second, for a file in /tmp that every user may list.
FAST_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xshare:auto -Xms64m -Xmn32m"
_KILLED = frozenset({-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM})  # at SIGTERM, Java exits by itself
_END_SECONDS = 1.0  # a JVM that has closed its socket ends within this time
_opening = threading.Lock()  # a process has one context at a time
_closing = threading.Lock()
_ended_by_us: list[Any] = []  # JVMs that were killed on purpose


# Log only errors, on stderr, from the first line on: the applier's log is for the operator.
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
    """The Spark on which the applier of one channel runs its jobs, alone or together with other channels."""

    def open(self) -> SparkContext:
        """Return the Spark context, which is started if necessary.

        Raises ConfigError if a setting is not valid, and RplError if Spark does not start.
        """

    def before_job(self) -> None:
        """Mark this thread's next Spark job as a job of the channel. Called before each job.

        This has an effect only if the channel shares its process with other channels.
        """

    def pool(self) -> ChannelPool | None:
        """Return the channel's pool of long-running tasks, or None if each job has its own tasks.

        The job of the pool may not have been started yet.
        """

    def end(self) -> None:
        """End the channel's Spark jobs at once, so that their callers get an error.

        Any thread may call this method. A second call has no effect.
        """

    def serves_others(self) -> bool:
        """True if other channels of the process still work, so that the process must not end with this channel."""

    def death(self) -> str:
        """Return a sentence that says how the JVM ended, or '' if it runs or this process has ended it."""


class OwnSpark:
    """A Spark that serves only this channel, which is the default."""

    def __init__(self, config: Config, channel: Channel) -> None:
        self._config, self._channel = config, channel
        self._context: SparkContext | None = None
        self._life = JavaLife()
        self._has_ended = False
        self._pool: Pool | None = None
        self._beginning: Future[SparkContext] | None = None

    def begin(self) -> None:
        """Start Java, fork the process for Python workers, and open Spark in a thread.

        `open` returns the result of this thread, or raises its error. Before this call, the process must have only one
        thread.
        """
        beginning: Future[SparkContext] = Future()
        self._beginning = beginning

        try:
            begun = launch(self._config, self._channel.name, self._channel.run_folder)
            if path := begun.settings.get(WORKERS):
                from rplctl.applier.spark.loaded_daemon import fork  # loads the decoder while Java starts

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
        """Return the Spark context. If the cluster has ended the last context, start a new one.

        If `end` was called meanwhile, the new context is closed.
        """
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
        from rplctl.applier.spark.pool import ChannelPool, Pool  # loads the decoder

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
    """True if one Spark job with its tasks lasts as long as the applier. On a cluster, each batch is a job."""
    return config.spark == "always" and is_on_this_machine(config.spark_master)


class JavaLife:
    """The state of the JVM that this process has started: running, ended, or killed by this process."""

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
    """A JVM that is starting, in which `open_session` will start Spark.

    `settings`: all Spark properties. `more`: the JVM options for the class archive. `is_direct`: True if the JVM was
    started without Spark's script.
    """

    java: Java
    is_direct: bool
    archive: Path
    settings: Mapping[str, str]
    more: str
    started: StartedJava


def path_of_archive(java: Java, *, is_direct: bool) -> Path:
    """Return the path of the class archive for this Java.

    `is_direct`: True if rplctl starts this Java without Spark's script.
    """
    return archive_path(java, class_path() if is_direct else "")


def launch(
    config: Config, name: str, run_folder: Path, java_options: str | None = None, *, may_be_direct: bool = True
) -> Launch:
    """Start the JVM of a session, to which `open_session` then connects. This loads no part of PySpark.

    `java_options`: JVM options instead of those of the class archive, if not None. `open_session` describes the other
    arguments. Raises ConfigError if Java or a setting is not usable, and OSError if the folder or the process cannot be
    created.
    """
    java = find_java(config.java_home, run_folder / "java")
    local_mode = config.spark_master.startswith("local") or not config.spark_master
    given = given_settings(config)
    folder = run_folder / "spark"
    shutil.rmtree(folder, ignore_errors=True)  # a killed applier has left this folder, which a lock protects
    private_folder(folder)
    _set_environment(java, given, local_mode=local_mode)
    if not is_on_this_machine(config.spark_master):
        os.environ["SPARK_LOCAL_DIRS"] = str(folder)  # of the driver: executors have folders of their own
    settings = spark_settings(config, folder, name)
    if local_mode:
        settings |= _short_names(folder, is_own_python=EXECUTOR_PYTHON not in given)
    replace_file(folder / LOGGING_FILE, LOGGING.encode(), durable=False)
    is_direct = may_be_direct and is_on_this_machine(config.spark_master) and not given and not is_configured()
    archive = path_of_archive(java, is_direct=is_direct)
    more = archive_options(archive) if java_options is None else java_options
    settings[DRIVER_JAVA_OPTIONS] += f" {more}"
    shown = {name: value for name, value in settings.items() if name != SECRET}  # every user sees the arguments
    return Launch(java, is_direct, archive, settings, more, start_java(java, shown, folder, is_direct=is_direct))


def open_session(
    config: Config, name: str, run_folder: Path, java_options: str | None = None, begun: Launch | None = None
) -> SparkContext:
    """Start Spark, and return its context. The caller ends Spark with `close_session`.

    If the process ends without this call, Spark ends, too.

    `name`: the name of the channel, or of a process that serves several channels. `run_folder`: the folder of this
    channel, or of one of the channels. `java_options`: JVM options instead of those of the class archive, if not None.
    `begun`: the JVM, if it was already started. Raises ConfigError if no Java is usable, and RplError if Spark does not
    start.
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
    """The error for a JVM that ended before Spark had started in it."""


def _context_of(begun: Launch, name: str, run_folder: Path) -> SparkContext:
    """Start Spark in the JVM, and return its context.

    Raises _Ended if the JVM has ended, and RplError with the JVM's text if Spark rejects a setting.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark import SparkConf, SparkContext  # takes 0.15 s, so only appliers import it
    from pyspark.errors import PySparkException

    keep_quiet()
    if (stopped := getattr(SparkContext._gateway, "proc", None)) is not None:
        _end_gateway(stopped)  # an earlier context has left its JVM
    conf = SparkConf(loadDefaults=False).setAll(list(begun.settings.items()))
    try:
        return SparkContext(conf=conf, gateway=connect(begun.started))
    except Py4JJavaError as error:  # Spark rejects a setting, so a start without the archive would fail, too
        words = words_of(error)  # while the JVM can still answer
        _end_gateway(begun.started.process)
        raise _not_started(begun.java, name, run_folder, words) from error
    except (PySparkException, Py4JError, OSError) as error:  # the JVM has ended
        _end_gateway(begun.started.process)
        raise _Ended(str(error)) from error


def _not_started(java: Java, name: str, run_folder: Path, failure: str) -> RplError:
    return RplError(
        f"Spark did not start with Java {java.version} of {java.origin} ({java.runtime}): {failure}",
        channel=name,
        hint=f"see {run_folder / 'applier.log'} and spark_conf. To check Java, run: rplctl doctor",
    )


def keep_quiet() -> None:
    """Silence the messages of py4j and pyspark about interrupted calls, because the caller reports the error."""
    from pyspark import util

    logging.getLogger().addFilter(_is_reported_by_us)  # always the same object, so it is added only once
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    vars(util)["print_exec"] = lambda _stream: None  # it prints pickling errors, also if the JVM has ended


def _is_reported_by_us(record: logging.LogRecord) -> bool:
    return record.name != "root"


def _keep_to_ourselves(context: SparkContext) -> None:
    """Protect the socket of Spark's accumulator server from other users.

    Also silence the errors of this server after the JVM has ended.
    """
    server: Any = context._accumulatorServer
    server.handle_error = lambda *_: None
    if isinstance(server.server_address, str):
        os.chmod(server.server_address, PRIVATE_FILE)


def close_session(context: SparkContext, run_folder: Path) -> None:
    """End Spark at once. Any thread may call this function, and a second call has no effect.

    In local mode, the JVM is killed, because an orderly end would wait seconds for running tasks. The JVM only has
    files of this process. Its Python workers end with it, and a running call raises an error.
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
    """Kill the JVM of this process, and remove the folder with Spark's files."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        if process.poll() is None:
            _ended_by_us.append(process)
        _kill(process)
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    shutil.rmtree(run_folder / "spark", ignore_errors=True)


def _was_killed(process: subprocess.Popen[bytes]) -> bool:
    """True if the JVM was killed by a signal, by rplctl at a stop or by someone else. False if it ended by itself."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
    return process.returncode in _KILLED


def _end_gateway(process: subprocess.Popen[bytes]) -> None:
    """End a JVM in which Spark did not start or has stopped. The next attempt then gets a new JVM."""
    from pyspark import SparkContext

    _kill(process)
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def spark_settings(config: Config, folder: Path, name: str) -> dict[str, str]:
    """Return all Spark properties for a context, which has `name` in its own name.

    Spark and its JVM write only to `folder`.
    """
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
        "spark.scheduler.mode": "FAIR",  # for the channels that share the context
        "spark.speculation": "false",  # a second copy of a task would only write a second spool file
        "spark.task.maxFailures": str(TASK_ATTEMPTS),
        DRIVER_JAVA_OPTIONS: java_options,
        "spark.local.dir": str(folder),
        "spark.python.daemon.module": "rplctl.applier.spark.worker_daemon",
        f"spark.executorEnv.{SAFE_PATH}": "1",  # other users may write to an executor's folder
    }
    if keeps_tasks(config):  # one job leaves nothing to clean up, but the cleaner would wake ten times a second
        settings["spark.cleaner.referenceTracking"] = "false"
    if master.startswith("local"):
        settings |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    if not is_on_this_machine(master):
        del settings["spark.local.dir"]
        settings["spark.driver.maxResultSize"] = "0"  # the size of jobs is already limited
    return settings | given | protection(master, given, is_insecure=config.insecure_cluster)


def _short_names(folder: Path, *, is_own_python: bool) -> dict[str, str]:
    """Return the settings with which the JVM talks to Python workers through Unix sockets in `folder`.

    By TCP, each task would wait 40 ms for a delayed ACK. A socket's path has at most 107 bytes, and Spark treats a
    comma in a path as a separator. Therefore the path names the folder by a descriptor, which stays open as long as
    this process runs.
    """
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    short = f"/proc/{os.getpid()}/fd/{descriptor}"
    sockets = "spark.python.unix.domain.socket"
    settings = {f"{sockets}.enabled": "true", f"{sockets}.dir": short}
    settings |= {"spark.local.dir": short} if "," in str(folder) else {}
    return settings | ({WORKERS: f"{short}/python.sock"} if is_own_python else {})


def _set_environment(java: Java, given: Mapping[str, str], *, local_mode: bool) -> None:
    """Set the environment variables that pyspark and its launcher script read."""
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ[SAFE_PATH] = "1"  # Spark starts Python with -m
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = given.get(EXECUTOR_PYTHON, sys.executable)
    if local_mode:
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
