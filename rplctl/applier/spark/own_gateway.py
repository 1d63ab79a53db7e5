"""Starts the JVM of this process, and connects to it. No other process is ever used instead of this JVM.

rplctl starts the Java of Spark's gateway directly if Spark runs on this machine and the operator has not configured
Spark. Spark's own script takes a second of CPU time more. It runs a shell and another Java to compute the command line,
and then reads configuration and searches for applications.

py4j proves by a token to the JVM who we are, but the JVM proves nothing to us. After the JVM has died, any local user
may listen on its port. This is dangerous, because answers from the port name files whose content is unpickled.
Invariant: each connection is to a socket on which this user listens. A port belongs to one user as long as a process
listens on it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shlex
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from rplctl.applier.spark.java import Java
from rplctl.attempts import attempts
from rplctl.own_process import OWN_UMASK

GATEWAY: Final = "org.apache.spark.api.python.PythonGatewayServer"
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_HEAP: Final = "-Xmx1g"  # the value in Spark's script
_ANSWER: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"  # the variable for the file in which the gateway writes its port
_CONFIGURED: Final = ("SPARK_", "HADOOP_", "YARN_")  # variables that Spark's scripts read
_OURS: Final = frozenset(
    {"SPARK_LOCAL_IP", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
)  # PySpark sets two of them
_OPENED: Final = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    "sun.util.calendar",
)
# The options that Spark's launcher gives to every Java, except those of MLlib and Kerberos. A test compares the two.
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
_PACKAGES: Final = ("SparkConf", "api.java.*", "api.python.*", "resource.*")  # names that PySpark imports
# SQL, Hive, machine learning, graphs, streams, other kinds of clusters, and the jars that only those use. No class of
# Spark's core refers to these jars, and Java opens each jar of its class path when log4j searches for its plugins.
_NEEDLESS_JARS: Final = (
    *("spark-catalyst", "spark-connect", "spark-graphx", "spark-hive", "spark-kubernetes", "spark-mllib"),
    *("spark-pipelines", "spark-repl", "spark-sql", "spark-streaming", "spark-yarn", "arrow-", "hive-", "orc-"),
    *("parquet-", "datanucleus-", "derby", "antlr", "janino", "commons-compiler", "univocity", "datasketches", "jts-"),
    *("joda-time", "kubernetes-", "volcano-", "vertx-", "algebra", "arpack", "blas", "breeze", "cats-", "lapack"),
    *("JTransforms", "spire", "jline", "scala-compiler"),
)
_POLL_S: Final = 0.01
LONGEST_START_S = 120.0  # a start takes a second, but a JVM that cannot write its port (full disk) never ends by itself
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)
_libc: Final = ctypes.CDLL(None)
_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"


class ForeignListener(ConnectionRefusedError):
    """The error if another user listens on the port on which this process's JVM has listened."""


class OwnSocket(socket.socket):
    """A socket that connects only to processes of this user.

    `connect` raises ForeignListener if another user listens on the port.
    """

    def connect(self, address: Any) -> None:
        super().connect(address)
        if listeners(address[1]) - {os.geteuid()}:
            self.close()
            raise ForeignListener(f"another user listens on port {address[1]} of Spark's Java process")


class _OwnSockets:
    """A substitute for py4j's TLS context. It replaces each of py4j's sockets by an OwnSocket before py4j connects."""

    def wrap_socket(self, plain: socket.socket, server_hostname: str) -> OwnSocket:
        timeout = plain.gettimeout()
        own = OwnSocket(plain.family, plain.type, plain.proto, plain.detach())
        own.settimeout(timeout)
        return own


_started: list[subprocess.Popen[bytes]] = []


class JavaEnded(OSError):
    """The error for a JVM that ended before it had a gateway, or that has no gateway in time."""


@dataclass(frozen=True, slots=True)
class StartedJava:
    """A JVM that is starting. `answer`: the file to which the JVM will write its port and token."""

    process: subprocess.Popen[bytes]
    answer: Path


def connect(started: StartedJava) -> Any:
    """Wait until the JVM has a gateway, and return py4j's connection to it.

    Raises JavaEnded if the JVM ends or does not write its port in time, and Py4JError or OSError if the connection
    fails.
    """
    from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
    from py4j.java_gateway import java_import
    from py4j.protocol import INPUT_CONVERTER
    from pyspark.serializers import UTF8Deserializer, read_int

    for _ in attempts(LONGEST_START_S, _POLL_S):
        if started.answer.is_file():
            break
        if started.process.poll() is not None:
            raise JavaEnded(f"Spark's Java process ended with exit code {started.process.returncode}")
    else:
        raise JavaEnded(f"Spark's Java process did not write {started.answer} within {LONGEST_START_S:g} s")
    with started.answer.open("rb") as file:
        port, token = read_int(file), UTF8Deserializer().loads(file)  # type: ignore[no-untyped-call]
    started.answer.unlink()
    gateway: Any = ClientServer(
        java_parameters=JavaParameters(port=port, auth_token=token, auto_convert=True, ssl_context=_OwnSockets()),
        python_parameters=PythonParameters(port=0, eager_load=False),
    )
    gateway.proc = started.process
    # PySpark's own converters are for NumPy values and dates, which rplctl does not send. They would load
    # pyspark.testing and pandas, which takes memory, and 0.1 s in the middle of a batch
    own = [converter for converter in INPUT_CONVERTER if type(converter).__module__.startswith("py4j.")]
    gateway._gateway_client.converters = own
    for name in _PACKAGES:
        java_import(gateway.jvm, f"org.apache.spark.{name}")
    return gateway


def start_java(java: Java, settings: Mapping[str, str], folder: Path, *, is_direct: bool) -> StartedJava:
    """Start the JVM, which will end with this process.

    `settings`: Spark's settings without the secret. `folder`: a private folder. `is_direct`: False to start the JVM by
    Spark's script. The JVM writes its port to a file next to the folder, not in it, because the next applier removes
    the folder. A JVM that cannot write its port would never end by itself.
    """
    answer = folder.with_name("spark-gateway")
    for old in (answer, *folder.parent.glob("connection*.info")):  # the second is the answer's temporary name
        old.unlink(missing_ok=True)
    is_main = threading.current_thread() is threading.main_thread()
    process = subprocess.Popen(
        direct_command(java, settings[JAVA_OPTIONS]) if is_direct else _submit(settings),
        stdin=subprocess.PIPE,  # the JVM ends when this pipe is closed
        env={**os.environ, _ANSWER: str(answer), "SPARK_CONNECT_MODE": "0"},
        process_group=0,  # only this process handles Ctrl-C
        umask=OWN_UMASK,
        preexec_fn=partial(_end_with, os.getpid()) if is_main else None,
    )
    _started.append(process)
    return StartedJava(process, answer)


def _end_with(parent: int) -> None:
    """Make the kernel kill this process, which is about to become the JVM, when its parent ends.

    A JVM ends by itself when its input is closed, but not if it could not write its port. The kernel watches the thread
    of the parent that has started the process. So this function is only for a JVM that the main thread starts.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the call
        os.kill(os.getpid(), signal.SIGKILL)


def kill_started() -> None:
    """Kill every JVM that this process has started. Called if the process ends before it has connected to the JVM."""
    for process in _started:
        process.kill()


def is_configured(environment: Mapping[str, str] = os.environ) -> bool:
    """True if Spark's script may read configuration, so that rplctl must start the JVM by this script.

    The configuration may be in variables, in files of Spark's folder, or from Spark's vendor.
    """
    named = any(name.startswith(_CONFIGURED) and name not in _OURS for name in environment)
    return named or (_spark_home() / "conf").exists() or not (_spark_home() / "jars").is_dir()


def direct_command(java: Java, java_options: str) -> list[str]:
    """Return the command with which Spark's launcher would start its gateway, but with fewer jars."""
    options = [_HEAP, *MODULE_OPTIONS, *shlex.split(java_options)]
    return [str(java.runtime / "bin" / "java"), "-cp", class_path(), *options, GATEWAY]


def class_path() -> str:
    """Return the launcher's class path without unused jars, in a fixed order, on which the class archive depends."""
    home = _spark_home()
    jars = sorted(jar for jar in home.glob("jars/*.jar") if not jar.name.startswith(_NEEDLESS_JARS))
    return ":".join(map(str, [home / "conf", *jars]))


def _submit(settings: Mapping[str, str]) -> list[str]:
    """Return the command that starts Spark's script.

    The command contains no secret, because every user can see the arguments of processes.
    """
    from pyspark.find_spark_home import _find_spark_home

    named = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return [os.path.join(_find_spark_home(), "bin", "spark-submit"), *named, "pyspark-shell"]


def _spark_home() -> Path:
    """Return the folder in which PySpark is installed, without loading PySpark."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


def listeners(port: int) -> set[int]:
    """Return the user ids of the processes that listen on this TCP port of this machine."""
    found = set()
    for table in _TABLES:
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:  # no IPv6
            continue
        for line in lines:
            _, local, _, state, _, _, _, user, *_ = line.split()
            if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                found.add(int(user))
    return found
