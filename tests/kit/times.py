"""Where the time of a test run goes: `make test TIMES=1` prints a table by test file, TIMES=tests one by test.

The CPU seconds of a row are those of the worker that runs it and of every process that carries the run's and the
worker's name in its environment, sampled while they live: a process that ends sooner than a sample counts as
started, not its CPU.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NAME = "rplctl-times"
COLUMNS = ("wall", "cpu", "processes", "spark", "servers")
SAMPLE_S = 0.2
SERVERS = {"mariadbd", "mysqld", "postgres"}
SHOWN = {"files": 60, "tests": 400}
_TICK = os.sysconf("SC_CLK_TCK")
_WORKER = ("PYTEST_XDIST_TESTRUNUID", "PYTEST_XDIST_WORKER")  # another run on the machine has workers of these names


def install(config: pytest.Config) -> None:
    """Register the sampler in a worker, and the printer of the table in the process that collects the results."""
    if os.environ.get("TIMES"):
        plugin: object = Sampler(config) if hasattr(config, "workerinput") else Printer()
        config.pluginmanager.register(plugin, NAME)


class Sampler:
    """The measurements of one worker."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._marks = {f"{name}={os.environ[name]}".encode() for name in _WORKER}
        self._times: defaultdict[str, dict[str, float]] = defaultdict(_nothing)
        self._row = ""
        self._own_cpu = time.process_time()
        self._cpu: dict[int, float] = {}  # of each living process of ours, when it was seen last
        self._strangers: set[int] = set()
        self._kinds: dict[int, str] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        sys.addaudithook(self._on_audit)
        threading.Thread(target=self._run, name=NAME, daemon=True).start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._row = item.nodeid if os.environ["TIMES"] == "tests" else item.nodeid.partition("::")[0]
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self._sample()
            self._times[self._row]["wall"] += time.monotonic() - began

    def pytest_sessionfinish(self) -> None:
        self._stopped.set()
        table = {row: dict(counted) for row, counted in self._times.items() if row}
        self._config.workeroutput["times"] = table  # type: ignore[attr-defined]

    def _on_audit(self, event: str, _arguments: object) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            self._times[self._row]["processes"] += 1

    def _run(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        with self._lock:
            counted = self._times[self._row]
            own = time.process_time()
            counted["cpu"] += own - self._own_cpu
            self._own_cpu = own
            living = {int(path.name) for path in Path("/proc").glob("[0-9]*")} - {os.getpid()}
            for pid in living - self._strangers:
                with contextlib.suppress(OSError, ValueError, IndexError):
                    self._look_at(pid, counted)
            self._strangers &= living
            self._cpu = {pid: cpu for pid, cpu in self._cpu.items() if pid in living}

    def _look_at(self, pid: int, counted: dict[str, float]) -> None:
        if pid not in self._cpu and not self._marks <= {*Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")}:
            self._strangers.add(pid)
            return
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
        fields = rest.split()
        if pid not in self._cpu:
            counted["spark"] += name == "java"
            counted["servers"] += name in SERVERS and _name_of(int(fields[1])) not in SERVERS
        cpu = (int(fields[11]) + int(fields[12])) / _TICK
        counted["cpu"] += max(0.0, cpu - self._cpu.get(pid, 0.0))
        self._cpu[pid] = cpu


class Printer:
    """The table of all workers together."""

    def __init__(self) -> None:
        self._table: defaultdict[str, dict[str, float]] = defaultdict(_nothing)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for row, counted in getattr(node, "workeroutput", {}).get("times", {}).items():
            _add(self._table[row], counted)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        by = os.environ["TIMES"] if os.environ["TIMES"] in SHOWN else "files"
        terminalreporter.section(f"times by {by}, in seconds")
        write: Callable[[str], None] = terminalreporter.write_line
        write("".join(f"{name:>11}" for name in COLUMNS) + f"  {by}")
        total = _nothing()
        for counted in self._table.values():
            _add(total, counted)
        rows = sorted(self._table.items(), key=lambda row: -row[1]["cpu"])
        for name_of_row, counted in [*rows[: SHOWN[by]], (f"all {len(rows)} {by}", total)]:
            write(
                "".join(f"{counted[name]:11.1f}" for name in COLUMNS[:2])
                + "".join(f"{counted[name]:11.0f}" for name in COLUMNS[2:])
                + f"  {name_of_row}"
            )


def _nothing() -> dict[str, float]:
    return dict.fromkeys(COLUMNS, 0.0)


def _add(total: dict[str, float], counted: dict[str, float]) -> None:
    for name in COLUMNS:
        total[name] += counted[name]


def _name_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""
