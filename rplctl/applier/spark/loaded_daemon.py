"""The process from which Spark's Python workers are forked.

It has already imported and compiled everything that a task needs, so a worker is ready at once. Spark runs Python's
garbage collector after every task. In this process, the collector ignores the imported objects, which saves 40 ms per
task. The applier forks this process from itself while Java starts, so that everything is loaded only once. Later, Spark
starts its own daemon (worker_daemon.py). Spark's daemon hands over its streams and its environment to the forked
process through a private socket.

Invariants: the process serves only its own user. It ends with the applier and, after the handover, with the JVM.
"""

from __future__ import annotations

import gc
import json
import os
import re
import select
import socket
import sys
import threading
from pathlib import Path
from typing import Final, NoReturn

from rplctl.durable import PRIVATE_FILE

_STREAMS: Final = 3  # standard input, output and errors
_MOST_BYTES: Final = 1 << 20  # the largest size of the environment that is handed over
_lives: list[int] = []  # descriptors whose end tells a forked process that this one has ended


def _is_copy(place: str) -> bool:
    """True if the archive `place` contains a package that is also installed as a folder on the path.

    Python need not load the package from the archive, which would be slower. Such archives are `pyspark.zip` and
    `py4j-0.10-src.zip` in the folder of PySpark.
    """
    path = Path(place)
    if path.suffix != ".zip" or path.parts[-4:-1] != ("pyspark", "python", "lib"):
        return False
    installed = path.parents[3]
    return str(installed) in sys.path and (installed / re.split(r"[-.]", path.name)[0]).is_dir()


# Spark puts its sources first on the path, in archives that Python compiles in each process: 1.4 s of the first job
sys.path[:] = [place for place in sys.path if not _is_copy(place)]

import pyspark.worker  # noqa: E402, F401 - for the workers
from pyspark import daemon  # noqa: E402

import rplctl.applier.spark.pipeline  # noqa: E402, F401
from rplctl.applier.spark.pool_task import peer_of  # noqa: E402
from rplctl.event.warm_up import warm_up  # noqa: E402

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Run a worker for Spark. If the worker's JVM has ended, the worker ends without an error message.

    This is normal, because an applier that stops kills the JVM while tasks run.
    """
    try:
        return _worker(sock, authenticated)
    except ConnectionError:
        os._exit(1)


daemon.worker = worker


def serve() -> None:
    """Fork workers for as long as the JVM lives, in a process that must load everything itself."""
    warm_up()
    gc.collect()
    gc.freeze()
    daemon.manager()


def fork(path: str) -> None:
    """Fork the process, which then waits at the socket `path` for Spark's daemon. The caller has only one thread."""
    warm_up()
    gc.collect()
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC) as listener:
        listener.bind(path)
        os.chmod(path, PRIVATE_FILE)  # before another user can connect
        listener.listen()
        watched, life = os.pipe2(os.O_CLOEXEC)
        if not (process := os.fork()):
            _become(listener, watched)
        os.close(watched)
        _lives.append(life)
    threading.Thread(target=os.waitpid, args=(process, 0), daemon=True, name="rplctl-reaper").start()


def _become(listener: socket.socket, watched: int) -> NoReturn:
    """Wait for the handover in the forked process, and then work as Spark's daemon.

    `watched`: the end of a pipe that closes when the applier ends.
    """
    try:
        os.setpgid(0, 0)  # only the applier handles Ctrl-C
        for name in os.listdir("/proc/self/fd"):  # closes locks, and the JVM's input, whose end ends the JVM
            if int(name) >= _STREAMS and int(name) not in (listener.fileno(), watched):
                _close(int(name))
        if (connection := _accepted(listener, watched)) is not None:
            listener.close()
            os.close(watched)
            _take_over(connection)
            daemon.manager()
    finally:
        os._exit(1)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:  # the descriptor of os.listdir itself
        pass


def _accepted(listener: socket.socket, watched: int) -> socket.socket | None:
    """Return a connection from a process of the same user, or None if the applier has ended before."""
    while True:
        ready, _, _ = select.select([listener.fileno(), watched], [], [])
        if watched in ready:
            return None
        connection, _ = listener.accept()
        if peer_of(connection)[1] == os.geteuid():
            return connection
        connection.close()


def _take_over(connection: socket.socket) -> None:
    """Replace this process's streams, environment and arguments by those that the peer has sent.

    The peer waits at the connection until this process ends.
    """
    data, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, _STREAMS)
    message = json.loads(data)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(message["environment"])
    sys.argv = message["arguments"]
    connection.sendall(b"+")
    _lives.append(connection.detach())
