"""Asking on after a lost answer: until there is one, or with an error that nobody tries again by himself."""

from __future__ import annotations

import pytest

from rplctl.commit.ambiguous_commit import InDoubt, honouring_stop, until_answered
from rplctl.errors import TargetError

AWAY = TargetError("Can't connect", errno=2003, transient=True)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.commit.ambiguous_commit.PAUSE_S", 0.001)


def test_it_asks_until_the_target_is_back(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("rplctl.commit.ambiguous_commit.time.sleep", pauses.append)
    answers = [AWAY, AWAY, None]

    def ask() -> str:
        if error := answers.pop(0):
            raise error
        return "durable"

    assert until_answered(ask) == "durable" and not answers
    assert pauses == [0.001] * 2
    assert [r.getMessage() for r in caplog.records] == [
        "the target became unreachable during COMMIT; its outcome is read again: Can't connect"
    ] * 2


def test_stop_ends_the_asking_inside_its_block_only() -> None:
    asked: list[int] = []

    def ask() -> str:
        asked.append(1)
        if len(asked) < 4:
            raise AWAY
        return "durable"

    with honouring_stop(lambda: len(asked) == 2):
        with pytest.raises(InDoubt):
            until_answered(ask)
        assert len(asked) == 2
    with honouring_stop(lambda: True):
        pass
    assert (until_answered(ask), len(asked)) == ("durable", 4)


def test_a_target_that_stays_away_is_an_error_that_only_the_next_start_settles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.commit.ambiguous_commit.ASKED_FOR_S", 0.05)

    def ask() -> None:
        raise AWAY

    with pytest.raises(TargetError, match="the outcome is unknown: Can't connect") as caught:
        until_answered(ask)
    assert (caught.value.errno, caught.value.transient) == (2003, False) and "rplctl start" in caught.value.hint


def test_an_error_that_is_no_absence_is_not_asked_again() -> None:
    asked = []

    def ask() -> None:
        asked.append(1)
        raise TargetError("no such table", errno=1146)

    with pytest.raises(TargetError) as caught:
        until_answered(ask)
    assert (len(asked), caught.value.errno) == (1, 1146)
