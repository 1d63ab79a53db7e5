"""Define the cases of `crash-test` and their expected outcomes (WL#3970).

A case is a crash point in a commit mode, for a kind of transaction, on a kind of target. Invariant: every name in
failpoint.CRASH_POINTS is in a table here. If a transaction of some kind reaches a point in some mode, a case tests this
(tests/command/selftest/test_crash_cases.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rplctl import failpoint
from rplctl.demo.crash_log import KINDS
from rplctl.errors import UsageError
from rplctl.target.registry import dialect_of

PER_TABLE: Final = "per-table"
LOG_BIN: Final = "applied"  # log_bin in the modes that write a binary log
_LOGGED: Final[dict[str, Any]] = {"log_bin": LOG_BIN}
_XA: Final[dict[str, Any]] = {"commit_mode": "xa"}
_PAGES: Final[dict[str, Any]] = {**_XA, "prepared_position": "pages"}
MODES: Final[dict[str, dict[str, Any]]] = {  # → options of the instance; relay_log_info_repository is FILE by default
    "transaction": {"relay_log_info_repository": "TABLE"},
    "marker": {},
    "xa": _XA,
    "xa-pages": _PAGES,
    "transaction+log": {"relay_log_info_repository": "TABLE", **_LOGGED},
    "marker+log": _LOGGED,
    "xa+log": {**_XA, **_LOGGED},
    "xa-pages+log": {**_PAGES, **_LOGGED},
    "xa-binlog": {**_XA, **_LOGGED, "prepared_position": "binlog"},
    PER_TABLE: {"relay_log_info_repository": "TABLE"},  # of lakes
    f"{PER_TABLE}-file": {},
}
ROLLED_BACK, COMMITTED, DECIDED, FETCHED = "rolled back", "committed", "decided", "fetched once"
FINISHED, UNDONE = "finished", "undone"

_BEFORE: Final = ("crash_before_update_pos", "crash_after_apply", "crash_commit_before")
ONE_TRANSACTION: Final = {  # commit.transaction.commit_group
    **dict.fromkeys((*_BEFORE, "crash_after_update_pos_before_apply"), ROLLED_BACK),
    "crash_commit_after": COMMITTED,
    "crash_after_commit_before_update_pos": COMMITTED,
    "crash_after_commit_and_update_pos": COMMITTED,
}
LOG_FOLLOWS: Final = dict.fromkeys(("crash_commit_after_log", "crash_commit_before_unlog"), COMMITTED)  # after COMMIT
TWO_PHASES: Final = {  # commit.two_phase: WL#3970's table
    **dict.fromkeys((*_BEFORE, "crash_commit_after_prepare"), ROLLED_BACK),
    "crash_commit_after_log": COMMITTED,
    "crash_commit_between_engines": COMMITTED,
    "crash_commit_before_unlog": COMMITTED,
    "crash_commit_after": COMMITTED,
    "crash_recovery_between_engines": COMMITTED,  # the first kill is after the decision, the second in the recovery
}
TABLE_BY_TABLE: Final = {  # commit.per_table
    **dict.fromkeys((*_BEFORE, "crash_after_update_pos_before_apply"), ROLLED_BACK),
    "crash_per_table_after_intent": COMMITTED,
    "crash_per_table_after_claim": COMMITTED,
    "crash_per_table_between_tables": COMMITTED,
    "crash_per_table_before_update_pos": COMMITTED,
    "crash_commit_after": COMMITTED,
    "crash_after_commit_before_update_pos": COMMITTED,
    "crash_after_commit_and_update_pos": COMMITTED,
}
POSITION_AFTER: Final = {  # commit.transaction.commit_after, for changes that the target can roll back
    "crash_after_commit_before_update_pos": ROLLED_BACK,
    "crash_commit_after": COMMITTED,
    "crash_after_commit_and_update_pos": COMMITTED,
}
KEPT: Final = {  # the same, for changes that the target cannot roll back
    **POSITION_AFTER,
    "crash_after_commit_before_update_pos": DECIDED,
}
NOTED: Final = {  # commit.noted: DDL
    "crash_statement_after_note": ROLLED_BACK,
    "crash_statement_after_commit": DECIDED,
    **KEPT,
}
SWITCH: Final = {
    "switch_after_journal": UNDONE,
    "switch_after_write": UNDONE,
    "switch_after_mark": FINISHED,
    "switch_after_delete": FINISHED,
}
BESIDES: Final = {  # cases in which no transaction is committed: the kind → its crash points and outcomes
    "receiver": dict.fromkeys(failpoint.RECEIVER_POINTS, FETCHED),
    "recovery": dict.fromkeys(failpoint.RECOVERY_POINTS, FETCHED),
    "purge": dict.fromkeys(failpoint.PURGE_POINTS, FINISHED),
    "task": dict.fromkeys(failpoint.TASK_POINTS, FINISHED),
    "to table": SWITCH,
    "to file": SWITCH,
}
ALL_KINDS: Final = (*KINDS, *BESIDES)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashCase:
    point: str
    mode: str  # a key of MODES; '-' if nothing is applied
    kind: str  # a word of ALL_KINDS
    expected: str


def all_cases(target_kind: str) -> Iterator[CrashCase]:
    """Yield all cases on a target of the given kind. The cases in which the applier commits come first."""
    for mode in MODES:
        for kind in KINDS:
            for point, expected in outcomes(mode, kind, target_kind).items():
                yield CrashCase(point=point, mode=mode, kind=kind, expected=expected)
    for kind, table in BESIDES.items():
        for point, expected in table.items():
            yield CrashCase(point=point, mode="-", kind=kind, expected=expected)


def outcomes(mode: str, kind: str, target_kind: str) -> dict[str, str]:
    """Return the expected outcome for each crash point that a transaction of this kind reaches in this commit mode."""
    is_xa = "commit_mode" in MODES[mode]
    dialect = dialect_of(target_kind)
    if (is_xa and dialect.two_phase is None) or mode.startswith(PER_TABLE) is not dialect.commits_per_table:
        return {}
    if dialect.is_held and "relay_log_info_repository" in MODES[mode]:  # TABLE
        return {}
    log = LOG_FOLLOWS if "log_bin" in MODES[mode] else {}
    if kind in ("statement", "exchange") and not dialect.executes_statements:
        return {}
    if kind == "statement" and not is_xa:
        return {**POSITION_AFTER, **log}
    if dialect.ddl_commits and kind in ("ddl", "exchange", "non-transactional"):
        table = KEPT if kind == "non-transactional" else NOTED
        return {**table, **({"crash_commit_after": DECIDED} if is_xa and not log else {}), **log}
    if dialect.commits_per_table:
        return TABLE_BY_TABLE
    return TWO_PHASES if is_xa else {**ONE_TRANSACTION, **log}


def is_wanted(case: CrashCase, points: Sequence[str], modes: Sequence[str], kinds: Sequence[str]) -> bool:
    chosen = ((case.point, points), (case.mode, modes), (case.kind, kinds))
    return all(not given or value in given for value, given in chosen)


def check_names(points: Sequence[str], modes: Sequence[str], kinds: Sequence[str]) -> None:
    for what, given, names in (
        ("crash point", points, failpoint.CRASH_POINTS),
        ("commit mode", modes, {*MODES, "-"}),
        ("kind", kinds, ALL_KINDS),
    ):
        if wrong := [name for name in given if name not in names]:
            raise UsageError(f"'{wrong[0]}' is not a {what}", hint=f"use one of these: {', '.join(sorted(names))}")
