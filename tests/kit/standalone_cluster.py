"""A standalone cluster of Spark, for tests: a master and workers in mount namespaces of their own.

A worker does not see the folders it is told to be without; what its executors do is done there, too. The daemons ask
for a secret, which is in a file, and encrypt.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pyspark

from rplctl.applier.spark.java import find_java
from tests.kit.private_server import HOST, free_port
from tests.kit.replica import wait_until

_DAEMON = "org.apache.spark.deploy"
_FAST_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def can_hide_folders() -> bool:
    """Whether this user may make mount namespaces."""
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


class StandaloneCluster:
    """`secret_file`: for rplctl."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.secret_file = folder / "secret"
        self.secret_file.touch(0o600)
        self.secret_file.write_text(secrets.token_hex(16))
        self._properties = folder / "daemons.properties"
        self._properties.write_text(
            f"spark.authenticate true\nspark.network.crypto.enabled true\n"
            f"spark.authenticate.secret {self.secret_file.read_text()}\n"
        )
        self.port = free_port()
        self.master: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []
        self._logs: dict[int, Path] = {}

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self.port}"

    @property
    def start_options(self) -> tuple[str, ...]:
        """Of `rplctl start`."""
        conf = self._driver | {"spark.authenticate.secret": f"file:{self.secret_file}"}
        return "--spark-master", self.url, *(w for item in conf.items() for w in ("--spark-conf", "=".join(item)))

    @property
    def properties(self) -> dict[str, str]:
        """Of another program's Spark."""
        authenticated = dict(line.split() for line in self._properties.read_text().splitlines())
        return self._driver | authenticated | {"spark.master": self.url}

    @property
    def _driver(self) -> dict[str, str]:
        return {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": _FAST_START,
        }

    def executors(self, worker: subprocess.Popen[bytes]) -> list[int]:
        """The process ids of the worker's, which are Java's."""
        found = subprocess.run(["pgrep", "-P", str(worker.pid)], capture_output=True, text=True).stdout.split()
        return [int(pid) for pid in found]

    def start_master(self) -> None:
        """Nothing where it runs."""
        if self.master is not None and self.master.poll() is None:
            return
        self.master = self._start("master.Master", ["--port", str(self.port)])
        wait_until(lambda: "I have been elected leader" in self._log(self.master), timeout_s=120)

    def start_worker(self, hidden: Sequence[Path] = ()) -> subprocess.Popen[bytes]:
        return self.start_workers(1, hidden)[0]

    def start_workers(self, count: int, hidden: Sequence[Path] = ()) -> list[subprocess.Popen[bytes]]:
        """At the same time."""
        begun = []
        for _ in range(count):
            work = self._folder / f"work-{len(self.workers)}"
            words = ["--cores", "1", "--memory", "1g", "--work-dir", str(work), self.url]
            begun.append(self._start("worker.Worker", words, hidden))
            self.workers.append(begun[-1])
        known = "Successfully registered with master"
        wait_until(lambda: all(known in self._log(worker) for worker in begun), timeout_s=120)
        return begun

    def kill(self, daemon: subprocess.Popen[bytes]) -> None:
        """With its executors, at once."""
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()

    def kill_workers(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                self.kill(worker)

    def close(self) -> None:
        self.kill_workers()
        if self.master is not None and self.master.poll() is None:
            self.kill(self.master)

    def _start(self, name: str, words: list[str], hidden: Sequence[Path] = ()) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        java = find_java("", self._folder / "java")
        log = self._folder / f"{name}-{time.monotonic_ns()}.log"
        command = [str(home / "bin/spark-class"), f"{_DAEMON}.{name}", "--host", HOST, "--webui-port", "0",
                   "--properties-file", str(self._properties), *words]  # fmt: skip
        hide = " && ".join([*(f"mount -t tmpfs none '{folder}'" for folder in hidden), 'exec "$@"'])
        environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "JAVA_HOME": str(java.home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_CONF_DIR": str(self._folder),
            "SPARK_DAEMON_JAVA_OPTS": _FAST_START,
        }
        with log.open("wb") as out:
            daemon = subprocess.Popen(
                [*(["unshare", "-m"] if hidden else []), "sh", "-c", hide, "sh", *command],
                stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True,
            )  # fmt: skip
        self._logs[daemon.pid] = log
        return daemon

    def _log(self, daemon: subprocess.Popen[bytes] | None) -> str:
        assert daemon is not None and daemon.poll() is None, "a daemon of Spark's ended"
        return self._logs[daemon.pid].read_text(errors="replace")
