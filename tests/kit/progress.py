"""What a person sees of a test run by several workers: progress, failures, and what was not tested.

On a terminal one line shows the test that runs, how many of how many, and the time spent and left. In a pipe or in CI
each test file is one line, printed when its last test has ended. A failure is printed at once, with the command that
repeats only that test. `-v` switches to pytest's own lines.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

NAME = "rplctl-progress"
REPEAT = ".venv/bin/python -m pytest -n 0"
MISSING_PROGRAM = ("not installed", "cannot be fetched", "apt-get install")  # skip reasons that name a program
SLOWEST = 10
RUNNING = Column(no_wrap=True, overflow="ellipsis", ratio=1)


@dataclass
class _File:
    """One test file: how many of its tests are still to come, and the results so far."""

    to_come: int = 0
    seconds: float = 0.0
    results: Counter[str] = field(default_factory=Counter)


def install(config: pytest.Config) -> None:
    """Register the plugin in the process that collects the results of several workers."""
    is_controller = not hasattr(config, "workerinput") and bool(getattr(config.option, "numprocesses", None))
    if is_controller and config.option.verbose == 0:
        config.option.reportchars = config.option.reportchars.replace("s", "")  # skips get a section of their own
        config.pluginmanager.register(ProgressReport(), NAME)


class ProgressReport:
    """The listener to the reports of all workers."""

    def __init__(self) -> None:
        self._files: defaultdict[str, _File] = defaultdict(_File)
        self._total = self._done = 0
        self._began = time.monotonic()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._skips: Counter[str] = Counter()
        self._running: dict[str, None] = {}
        self._results: dict[str, str] = {}
        self._console = Console()
        self._progress = Progress(
            TextColumn("{task.percentage:>3.0f} %"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            TextColumn("[red]{task.fields[failed]}[/red]"),
            TextColumn("{task.fields[running]}", style="dim", markup=False, table_column=RUNNING),
            console=self._console,
            transient=True,
            expand=True,
            disable=not self._console.is_terminal,
        )
        self._bar = self._progress.add_task("tests", total=None, failed="", running="collecting")

    # what pytest and its workers report

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if self._total:
            return  # each worker collects the same tests
        self._total = len(ids)
        for nodeid in ids:
            self._files[_file(nodeid)].to_come += 1
        self._began = time.monotonic()
        self._progress.update(self._bar, total=self._total)
        self._progress.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Count as pytest does, but print no letters."""
        if report.failed:
            return ("error" if report.when in ("setup", "teardown") else "failed"), "", ""
        if report.skipped:
            return "skipped", "", ""
        return ("passed" if report.when == "call" else ""), "", ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = None
        self._show()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._results[report.nodeid] = "failed"
            self._print_failure(report)
        elif report.skipped:
            self._results[report.nodeid] = "skipped"
            self._skips[_skip_reason(report)] += 1
        if report.when not in ("setup", "call"):  # its teardown, or the end of its worker
            self._count(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self) -> None:
        if self._done >= self._total:
            self._progress.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._progress.stop()

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        slowest = sorted(self._seconds.items(), key=lambda test: -test[1])[:SLOWEST]
        terminalreporter.section("slowest tests")
        for nodeid, seconds in slowest:
            terminalreporter.write_line(f"{seconds:7.1f} s  {nodeid}")
        missing = {reason for reason in self._skips if any(word in reason for word in MISSING_PROGRAM)}
        for title, reasons in (
            ("skipped", self._skips.keys() - missing),
            ("not tested, because a program is missing", missing),
        ):
            if reasons:
                terminalreporter.section(title)
                for reason in sorted(reasons, key=lambda reason: -self._skips[reason]):
                    terminalreporter.write_line(f"{self._skips[reason]:5}  {reason}")

    # what is printed

    def _count(self, nodeid: str) -> None:
        """One test has ended; the last of its file prints the file's line where there is no terminal."""
        self._running.pop(nodeid, None)
        self._done += 1
        path = _file(nodeid)
        file = self._files[path]
        file.to_come -= 1
        file.seconds += self._seconds[nodeid]
        file.results[self._results.get(nodeid, "passed")] += 1
        self._show()
        if file.to_come == 0 and not self._console.is_terminal:
            results = ", ".join(f"{number} {result}" for result, number in sorted(file.results.items()))
            place, now = f"{self._done}/{self._total}", time.monotonic() - self._began
            self._print(f"{place:>11} {now:6.0f} s  {path}: {results} ({file.seconds:.1f} s)")

    def _show(self) -> None:
        failed = sum(result == "failed" for result in self._results.values())
        self._progress.update(
            self._bar,
            completed=self._done,
            failed=f"{failed} failed" if failed else "",
            running=next(iter(self._running), "").removeprefix("tests/"),
        )

    def _print_failure(self, report: pytest.TestReport) -> None:
        crash = getattr(report.longrepr, "reprcrash", None)
        lines = str(getattr(crash, "message", report.longrepr)).splitlines() or [""]
        text = f"FAILED {report.nodeid} ({report.when})\n  {lines[0][:300]}\n  to repeat: {REPEAT} '{report.nodeid}'"
        self._print(text, style="red")

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _skip_reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ").replace(os.linesep, " ")[:200]
