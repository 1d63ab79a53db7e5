"""Read the recorded states of a source, with which `rplctl crash-test` compares the target.

tests/tools/record_crash_log.py recorded these states and the source's log (demo/crash). Invariant: the source itself
computed the states. `states()` returns a position and a digest of all rows for each transaction. So a target can be
compared at any position that the target reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "crash"
DATABASE: Final = "rplctl_crash_test"
TABLES: Final = ("probe", "keyless", "plain", "counted")
# The kinds of groups in WL#3970's matrix ((d): non-transactional; (e1): statement), and those that differ in rplctl.
# An exchange is DDL that would also succeed a second time.
KINDS: Final = ("transaction", "batch", "ddl", "keyless", "non-transactional", "statement", "exchange")


@dataclass(frozen=True, slots=True)
class State:
    """The state of the source after one transaction: the position, and a digest of all rows."""

    kind: str  # the kind of the transaction, or '' if it is none of KINDS
    log_name: str
    log_pos: int
    digest: str


def states() -> list[State]:
    return [State(*state) for state in json.loads((FOLDER / "states.json").read_text())]


def states_without_statements() -> list[State]:
    """Return the states before the first transaction that was logged as a statement.

    A target that cannot execute statements reaches only these states.
    """
    found = states()
    return found[: next(n for n, state in enumerate(found) if state.kind == "statement")]


def digest_of(rows: Mapping[str, Sequence[Sequence[Any]]]) -> str:
    """Return a digest of the rows of all tables, which does not depend on the order of rows and tables.

    `rows` maps the name of each table to its rows. A missing table has no effect.
    """
    text = {name: sorted(json.dumps(list(row)) for row in found) for name, found in sorted(rows.items())}
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()[:16]
