"""The table of `crash-test` against the program: every named point is in it, and every target and mode has cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rplctl
from rplctl.command.selftest.crash_cases import MODES, all_cases, check_names, outcomes
from rplctl.demo.crash_log import KINDS
from rplctl.errors import UsageError
from rplctl.failpoint import CLONE_POINTS, CRASH_POINTS, EXPORT_POINTS, RENAME_POINTS, REPAIR_POINTS

TARGETS = ("sqlite", "mysql", "postgresql")
OF_LAKES = {point for point in CRASH_POINTS if "per_table" in point}
OF_STATEMENTS = {point for point in CRASH_POINTS if "crash_statement" in point}


@pytest.mark.parametrize(("target", "others"), [("mysql", OF_LAKES), ("postgresql", OF_LAKES | OF_STATEMENTS)])
def test_a_server_is_walked_through_every_point_that_it_has(target: str, others: set[str]) -> None:
    assert {case.point for case in all_cases(target)} == CRASH_POINTS - others


def test_a_lake_is_walked_through_its_own_points_with_every_kind_of_rows_and_ddl() -> None:
    walked = {(case.point, case.kind) for case in all_cases("delta") if case.mode.startswith("per-table")}
    assert walked >= {(point, kind) for point in OF_LAKES for kind in KINDS if kind not in ("statement", "exchange")}


def test_the_registry_holds_exactly_the_points_that_the_program_passes() -> None:
    sources = (path.read_text() for path in Path(rplctl.__file__).parent.rglob("*.py"))
    passed = {name for text in sources for name in re.findall(r'(?:crash_point|is_due)\("(\w+)"\)', text)}
    assert passed == CRASH_POINTS | CLONE_POINTS | REPAIR_POINTS | EXPORT_POINTS | RENAME_POINTS


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_mode_is_walked_with_every_kind_on_every_target_that_has_it(target: str, mode: str, kind: str) -> None:
    is_impossible = (target == "sqlite" and mode.startswith("xa")) or (
        kind in ("statement", "exchange") and target != "mysql"
    )
    is_impossible |= mode.startswith("per-table")
    assert bool(outcomes(mode, kind, target)) is not is_impossible
    if not is_impossible and "log_bin" in MODES[mode]:
        assert {"crash_commit_after_log", "crash_commit_before_unlog"} <= set(outcomes(mode, kind, target))


def test_no_case_is_walked_twice() -> None:
    for target in TARGETS:
        cases = [(case.point, case.mode, case.kind) for case in all_cases(target)]
        assert len(cases) == len(set(cases)) > 80


@pytest.mark.parametrize(("points", "modes", "kinds"), [(["no"], [], []), ([], ["no"], []), ([], [], ["no"])])
def test_a_name_that_is_none_is_an_error_which_lists_them(
    points: list[str], modes: list[str], kinds: list[str]
) -> None:
    with pytest.raises(UsageError, match="'no' is not a") as refused:
        check_names(points, modes, kinds)
    assert refused.value.hint.startswith("use one of these: ")
