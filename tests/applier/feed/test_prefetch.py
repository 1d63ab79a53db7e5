"""What is prepared ahead of its turn is used only for exactly that turn."""

from __future__ import annotations

import threading

import pytest

from rplctl.applier.feed.prefetch import Prefetch


def test_what_was_begun_is_there_when_its_turn_comes_and_only_once() -> None:
    ahead: Prefetch[str] = Prefetch()
    ahead.begin("next", lambda: "done")
    assert ahead.take("next") == "done"
    assert ahead.take("next") is None
    ahead.close()


def test_something_else_than_was_asked_for_is_never_given() -> None:
    ahead: Prefetch[str] = Prefetch()
    ahead.begin("this", lambda: "this")
    assert ahead.take("that") is None
    ahead.close()


def test_an_expected_error_leaves_the_work_to_its_turn_and_a_defect_is_raised() -> None:
    ahead: Prefetch[int] = Prefetch(ZeroDivisionError)
    ahead.begin(1, lambda: 1 // 0)
    assert ahead.take(1) is None
    ahead.begin(2, lambda: int("x"))
    with pytest.raises(ValueError, match="x"):
        ahead.take(2)
    ahead.close()


def test_work_goes_on_while_the_caller_does_something_else() -> None:
    ahead: Prefetch[bool] = Prefetch()
    gate = threading.Event()
    ahead.begin("waits", lambda: gate.wait(180))
    gate.set()
    assert ahead.take("waits") is True
    ahead.close()
