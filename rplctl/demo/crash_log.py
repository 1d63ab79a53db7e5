"""The recorded log of `crash-test` (demo/crash, from tests/tools/record_crash_log.py), and the states of its source.

Invariant: `states()` comes from the source itself: the position and a digest of all rows after each transaction. So a
target can be compared at any position that it reports.
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
# Kinds of groups: WL#3970's matrix ((d): non-transactional; (e1): statement), and the kinds that differ in rplctl;
# exchange: DDL that succeeds twice
KINDS: Final = ("transaction", "batch", "ddl", "keyless", "non-transactional", "statement", "exchange")


@dataclass(frozen=True, slots=True)
class State:
    """The state after one transaction of the source."""

    kind: str  # the kind of the transaction; '' = none of KINDS
    log_name: str
    log_pos: int
    digest: str


def states() -> list[State]:
    return [State(*state) for state in json.loads((FOLDER / "states.json").read_text())]


def states_without_statements() -> list[State]:
    """Return the states before the first statement: the states of a target that cannot execute statements."""
    found = states()
    return found[: next(n for n, state in enumerate(found) if state.kind == "statement")]


def digest_of(rows: Mapping[str, Sequence[Sequence[Any]]]) -> str:
    """Return the digest of all rows by table, independent of their order; missing tables are skipped."""
    text = {name: sorted(json.dumps(list(row)) for row in found) for name, found in sorted(rows.items())}
    return hashlib.sha256(json.dumps(text).encode()).hexdigest()[:16]
