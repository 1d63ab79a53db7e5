"""Attempts within a limited time: at least one, and one after the end."""

from __future__ import annotations

import time

import pytest

from rplctl.attempts import attempts


def test_without_time_there_is_one_attempt_after_the_first() -> None:
    assert len(list(attempts(0.0, 0.001))) in (1, 2)
    assert len(list(attempts(-1.0, 60.0))) == 1, "no pause after the last attempt"


def test_the_last_attempt_begins_after_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that comes true during the last pause is seen."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    begun = [now[0] for _ in attempts(1.0, 0.4)]
    assert begun == pytest.approx([100.0, 100.4, 100.8, 101.2])
