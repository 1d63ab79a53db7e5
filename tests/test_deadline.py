"""A deadline for questions to servers: one that hangs is abandoned, and asked again only when it has answered."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar

import pytest

from rplctl.deadline import Deadline, own_work
from rplctl.errors import SourceError, TargetError
from tests.kit.replica import wait_until

WORD: ContextVar[str] = ContextVar("WORD")


def test_an_answer_and_an_error_reach_the_one_who_asks() -> None:
    deadline = Deadline(5)
    WORD.set("mine")
    assert deadline.ask("the target", TargetError, WORD.get) == "mine"
    with pytest.raises(TimeoutError, match="of the socket"):
        deadline.ask("the target", TargetError, lambda: (_ for _ in ()).throw(TimeoutError("of the socket")).send(None))


def test_a_peer_that_is_late_is_asked_again_only_after_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.deadline.LEAST_S", 0.01)
    deadline, answers, asked = Deadline(0.05), threading.Event(), list[str]()

    def question() -> str:
        asked.append("source")
        answers.wait()
        return "here"

    for _ in range(2):
        with pytest.raises(SourceError, match=r"^the source db1 did not answer within 0.05 s$") as late:
            deadline.ask("the source db1", SourceError, question)
        assert late.value.transient and late.value.errno == 2013
    assert asked == ["source"]
    assert deadline.ask("the target", TargetError, lambda: "other") == "other"
    answers.set()
    wait_until(lambda: all("question" not in thread.name for thread in threading.enumerate()), 10)
    assert deadline.ask("the source db1", SourceError, question) == "here"


def test_modules_that_a_question_loads_are_no_silence_of_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine they take longer than the deadline; the peer has all of it after them."""
    monkeypatch.setattr("rplctl.deadline.LEAST_S", 0.01)
    loaded, silent, answers = threading.Event(), threading.Event(), threading.Event()
    answers.set()

    def question(answer: threading.Event) -> str:
        with own_work():
            loaded.wait(0.3)
        answer.wait()
        return "here"

    deadline = Deadline(0.05)
    assert deadline.ask("the target db1", TargetError, lambda: question(answers)) == "here"
    with pytest.raises(TargetError, match="did not answer"):
        deadline.ask("the target db1", TargetError, lambda: question(silent))
    silent.set()


def test_peers_that_answer_cost_nothing_of_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.deadline.LEAST_S", 0.2)
    deadline, began = Deadline(0.0), time.monotonic()
    assert all(deadline.ask("the target", TargetError, lambda: True) for _ in range(200))
    assert time.monotonic() - began < 20
