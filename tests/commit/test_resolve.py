"""What a crash left between two phases: decided → committed, everything else of ours → rolled back, twice the same."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from rplctl.commit.resolve import resolve_prepared
from rplctl.errors import TargetError
from tests.commit.two_phase_server import TwoPhaseServer

PREFIX = "rplctl:0:0:"
A, B, FOREIGN = f"{PREFIX}aa", f"{PREFIX}bb", "rplctl:1:0:cc"

CASES = list(product([None, A, B], [None, A, B], [(), (A,), (B,), (A, B)]))


class Decided:
    """A participant that holds the decision about one transaction, or none."""

    def __init__(self, xid: str | None) -> None:
        self.xid, self.moved = xid, False

    def recover(self) -> str | None:
        return self.xid

    def commit_by_xid(self, xid: str) -> None:
        assert xid == self.xid
        self.moved, self.xid = True, None

    def rollback_by_xid(self, xid: str) -> None:
        assert xid == self.xid
        self.xid = None


def left_by(*xids: str) -> Any:
    server = TwoPhaseServer()
    server.prepared = {xid: [number] for number, xid in enumerate(xids)}
    return server


@pytest.mark.parametrize(("decision", "logged", "still"), CASES)
def test_what_is_decided_is_committed_and_nothing_else(
    decision: str | None, logged: str | None, still: tuple[str, ...]
) -> None:
    """A decision of the position that the log does not have goes back, unless the target has committed it."""
    server, position = left_by(*still, FOREIGN), Decided(decision)
    resolve_prepared([position, Decided(None)], server, PREFIX, server, logged)  # type: ignore[list-item]
    goes_back = logged is not None and decision in still and decision != logged
    committed = {xid for xid in still if xid == logged or (xid == decision and not goes_back)}
    assert set(server.said) == {
        *(f"commit_prepared {xid}" for xid in committed),
        *(f"rollback_prepared {xid}" for xid in still if xid not in committed),
    }
    assert list(server.prepared) == [FOREIGN]
    assert (position.xid, position.moved) == (None, decision is not None and not goes_back)


def test_a_decision_is_forgotten_last() -> None:
    """Cut off before the target has it all, it is found again."""
    server, position = left_by(A), Decided(A)
    server.failures = {"commit_prepared": [TargetError("Lost connection", errno=2013)]}
    with pytest.raises(TargetError):
        resolve_prepared([position], server, PREFIX, server)  # type: ignore[list-item]
    assert (position.xid, list(server.prepared)) == (A, [A])
    resolve_prepared([position], server, PREFIX, server)  # type: ignore[list-item]
    assert (position.moved, server.rows) == (True, [0])
