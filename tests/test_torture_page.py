"""The page of `make torture` says what was run, and never more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.failpoint import CRASH_POINTS
from tests import torture_page
from tests.torture_page import count_torture, write_page

NONE: dict[str, list[Any]] = {"passed": [], "failed": [], "error": [], "skipped": []}


@pytest.fixture(autouse=True)
def _own_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORTURE", "VIOLATIONS"):
        monkeypatch.setattr(torture_page, name, type(getattr(torture_page, name))())


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
    assert "A PART ONLY: 1 long tests were not run" in said and "skipped: b" in said
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
