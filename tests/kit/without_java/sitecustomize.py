"""Python imports this when it starts with this folder on its PYTHONPATH (`Replica(…, spark=False)`): the tasks of the
applier's pool are then forked from the applier, and no Java starts them.

For tests whose promise is not the start of Spark, which costs three seconds of CPU time. Everything else is what an
operator has: the pool, its socket, the tasks in processes of their own, and what they do. Invariant: the tasks end with
the applier, because their socket does.
"""

from __future__ import annotations

import sys

if "rplctl.applier" in sys.orig_argv:
    import os
    import pickle
    import socket
    from collections.abc import Callable
    from types import SimpleNamespace
    from typing import Any

    from rplctl.applier import job
    from rplctl.applier.spark import session

    TASKS = 2
    ATTEMPTS = 4
    LONGEST_ORDER = 1 << 16  # bytes: where the pool's socket is, and its token

    def fork_tasks(orders: socket.socket) -> None:
        """Fork the tasks of each order, and answer when all of them have ended: Spark's daemon without Spark."""
        keep_only(orders)
        while order := orders.recv(LONGEST_ORDER):
            serve = pickle.loads(order)
            alive = {fork_task(serve, index): (index, 1) for index in range(TASKS)}
            while alive:
                process, status = os.wait()
                index, attempt = alive.pop(process)
                if status and attempt < ATTEMPTS:
                    alive[fork_task(serve, index)] = (index, attempt + 1)
            orders.send(b"+")

    def keep_only(orders: socket.socket) -> None:
        """Close what belongs to the applier: its locks, and the descriptors by which others see that it has ended."""
        for number in {*map(int, os.listdir("/proc/self/fd"))} - {0, 1, 2, orders.fileno()}:
            try:
                os.close(number)
            except OSError:  # that of the listing itself
                continue

    def fork_task(serve: Callable[[int, tuple[()]], object], index: int) -> int:
        if process := os.fork():
            return process
        try:
            list(serve(index, ()))  # type: ignore[call-overload]
        finally:
            os._exit(0)

    class Context:
        """The part of a SparkContext that a pool uses. Its one job is the pool's."""

        defaultParallelism = TASKS
        _jsc = None

        def __init__(self, orders: socket.socket) -> None:
            self._orders = orders

        def setJobGroup(self, *_: object) -> None: ...

        def setLocalProperty(self, *_: object) -> None: ...

        def getConf(self) -> dict[str, str]:
            return {}

        def accumulator(self, value: int) -> Any:
            return SimpleNamespace(value=value, add=lambda term: None)

        def parallelize(self, *_: object) -> Any:
            return SimpleNamespace(
                mapPartitionsWithIndex=lambda serve: SimpleNamespace(collect=lambda: self._run(serve))
            )

        def _run(self, serve: Any) -> None:
            self._orders.send(pickle.dumps(serve.func))
            self._orders.recv(1)

    class ForkedSpark(session.OwnSpark):
        def begin(self) -> None:
            """Fork the process that forks the tasks, while this process has one thread."""
            import rplctl.applier.spark.pool_task  # noqa: F401 - for the tasks
            from rplctl.event.warm_up import warm_up

            warm_up()
            self._orders, orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if os.fork() == 0:
                try:
                    os.setpgid(0, 0)  # only the applier handles Ctrl-C
                    fork_tasks(orders)
                finally:  # the applier has been killed: nobody takes the answer
                    os._exit(0)
            orders.close()

        def open(self) -> Any:
            return Context(self._orders)

    vars(session).update(OwnSpark=ForkedSpark)
    vars(job).update(OwnSpark=ForkedSpark)
