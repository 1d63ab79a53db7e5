"""The page of `make torture` says what was run, and never more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.failpoint import CRASH_POINTS
from tests.kit import torture_page
from tests.kit.torture_page import count_torture, walk, write_page

NONE: dict[str, list[Any]] = {"passed": [], "failed": [], "error": [], "skipped": []}


@pytest.fixture(autouse=True)
def _own_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORTURE", "VIOLATIONS", "CHOSEN", "OF"):
        monkeypatch.setattr(torture_page, name, type(getattr(torture_page, name))())
    monkeypatch.setenv("EVERY", "4")
    monkeypatch.setenv("SEED", "1")


def page(collected: str, **outcomes: str) -> str:
    lines: list[str] = []
    reports = {name: [SimpleNamespace(nodeid=nodeid) for nodeid in ids.split()] for name, ids in outcomes.items()}
    write_page(lines.append, collected.split(), {**NONE, **reports})
    return "\n".join(lines)


def test_a_whole_run_without_a_fault() -> None:
    for point in CRASH_POINTS:
        count_torture("crash-test", point, 0)
    count_torture("power cuts", "FILE", 0)
    said = page("a b", passed="a b not-long")
    count = len(CRASH_POINTS)
    assert f"{count + 1} cases, {count} of {count} crash points hit, 7 invariants checked, zero violations" in said
    assert "2 long tests: 2 passed, 0 failed" in said
    assert "A PART ONLY" not in said and "not hit" not in said
    assert f"I5 {count:7}  a record reads" in said and f"I1 {count + 1:7}  the rows" in said


def test_a_part_says_what_it_left_out() -> None:
    count_torture("commit matrix", "crash_commit_after", 0)
    said = page("a b c", passed="a", skipped="b")
    assert "A PART ONLY: 1 long tests were not run" in said and "skipped: b" in said and "not run: c" in said
    listed = next(line for line in said.splitlines() if line.startswith("crash points not hit in this run: "))
    assert set(listed.partition(": ")[2].split(", ")) == CRASH_POINTS - {"crash_commit_after"}


@pytest.mark.parametrize("outcome", ["failed", "error"])
def test_a_test_that_failed_is_never_zero_violations(outcome: str) -> None:
    count_torture("power cuts", "FILE", 0)
    said = page("a b", passed="a", **{outcome: "b"})
    assert "zero" not in said and "0 violations, 1 tests NOT PASSED" in said and f"{outcome}: b" in said


def test_a_violation_is_counted_where_it_was_found() -> None:
    count_torture("system calls", "receiver: write", 2)
    said = page("a", passed="a")
    assert "zero" not in said and "2 violations" in said and "system calls: 1 cases, 2 violations, I4 I5" in said


def test_successive_runs_walk_all_cases_of_a_matrix_and_the_page_says_how_many_of_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases, seen = range(103), set[int]()
    for seed in range(40):
        monkeypatch.setenv("SEED", str(seed))
        chosen = walk("commit matrix", "xa", cases)
        assert 25 <= len(chosen) <= 26 and chosen == walk("commit matrix", "xa", cases)
        assert [b - a for a, b in zip(chosen, chosen[1:], strict=False)] == [4] * (len(chosen) - 1)
        seen.update(chosen)
    assert seen == set(cases)
    torture_page.CHOSEN.clear()
    torture_page.OF.clear()
    chosen = walk("commit matrix", "xa", cases)
    said = page("a", passed="a")
    assert f"walked of commit matrix, xa: {len(chosen)} of 103" in said and "make torture EVERY=4 SEED=39" in said
    monkeypatch.setenv("EVERY", "1")
    assert walk("commit matrix", "xa", cases) == list(cases) and walk("commit matrix", "xa", []) == []
    assert "every case of the matrices" in page("a", passed="a")


def test_a_matrix_smaller_than_the_step_has_one_case() -> None:
    assert [len(walk("system calls", f"{length}", range(length))) for length in (1, 2, 3, 4)] == [1] * 4


LONG_TESTS = """
import os
import pytest
from tests.kit.torture_page import count_torture, walk

pytestmark = pytest.mark.torture

@pytest.mark.parametrize("number", range(6))
def test_of_a_matrix(number):
    for case in walk("commit matrix", "xa", range(20)):
        count_torture("commit matrix", "crash_commit_after", 0)
    count_torture("commit matrix", "crash_commit_before", int(number == 5))

def test_that_fails():
    count_torture("power cuts", "FILE", 0)
    raise AssertionError

def test_that_kills_its_worker():
    os._exit(1)

def test_not_wanted():
    pass
"""


@pytest.mark.long("The page is only printed by make torture; the other tests of this file hold its text.")
@pytest.mark.slow
def test_of_several_workers_there_is_one_page(tmp_path: Path) -> None:
    """What each of them counted, also the one that died, and every long test by its name."""
    root = Path(__file__).parents[2]
    (tmp_path / "test_long.py").write_text(LONG_TESTS)
    where = ["-c", str(root / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    how = ["-p", "tests.conftest", "-m", "torture", "-k", "not wanted", "-n", "2", "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", *where, *how, str(tmp_path / "test_long.py")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=800, check=False)
    for line in (
        "37 cases, 2 of 36 crash points hit, 7 invariants checked, 1 violations, 2 tests NOT PASSED",
        "each 4th case of the matrices that take hours: make torture EVERY=4 SEED=1",
        "9 long tests: 6 passed, 2 failed, 0 error, 0 skipped",
        "    failed: test_long.py::test_that_fails",
        "    failed: test_long.py::test_that_kills_its_worker",
        "A PART ONLY: 1 long tests were not run",
        "    not run: test_long.py::test_not_wanted",
        "    crash_commit_after 30, crash_commit_before 6",
        "walked of commit matrix, xa: 30 of 120",
    ):
        assert line in done.stdout.splitlines(), done.stdout + done.stderr


def test_what_a_test_has_to_say_is_on_the_page_wherever_it_ran() -> None:
    lines: list[str] = []
    report = SimpleNamespace(nodeid="a::b", user_properties=[("torture page", ["SURVIVED x", "1 mutants"])])
    write_page(lines.append, ["a::b"], {**NONE, "passed": [report]})
    assert {"SURVIVED x", "1 mutants"} <= set(lines)
