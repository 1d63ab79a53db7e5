"""Questions that many channels share."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, create_engine

from rplctl.target.asked_once import answer, asked_once, is_answered


class Question:
    """Counts how often it was asked; the first `failures` times it has no answer."""

    def __init__(self, failures: int = 0) -> None:
        self.failures, self.asked = failures, 0

    def __call__(self) -> int:
        self.asked += 1
        if self.asked <= self.failures:
            raise LookupError
        return self.asked


@pytest.fixture
def engine() -> Engine:
    return create_engine("sqlite://")


def test_outside_of_a_block_each_question_is_asked(engine: Engine) -> None:
    question = Question()
    assert [answer(engine, "q", question) for _ in range(3)] == [1, 2, 3]


def test_inside_of_a_block_a_question_is_asked_once_of_each_target(engine: Engine) -> None:
    question, other = Question(), create_engine("sqlite://")
    with asked_once():
        assert [answer(engine, "q", question) for _ in range(3)] == [1, 1, 1]
        assert [answer(engine, "another", question), answer(other, "q", question)] == [2, 3]


def test_an_answer_ends_with_its_block(engine: Engine) -> None:
    question = Question()
    for expected in (1, 2):
        with asked_once():
            assert answer(engine, "q", question) == expected
    assert answer(engine, "q", question) == 3


def test_a_question_that_failed_is_asked_again(engine: Engine) -> None:
    question = Question(failures=1)
    with asked_once():
        with pytest.raises(LookupError):
            answer(engine, "q", question)
        assert [answer(engine, "q", question) for _ in range(2)] == [2, 2]


def test_what_was_not_asked_is_not_taken_for_an_answer(engine: Engine) -> None:
    assert not is_answered(engine, "q", by=False)
    with asked_once():
        assert not is_answered(engine, "q", by=False)
        answer(engine, "q", lambda: False)
        assert is_answered(engine, "q", by=False) and not is_answered(engine, "q", by=True)
    assert not is_answered(engine, "q", by=False)
