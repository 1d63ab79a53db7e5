"""What is made ready ahead: it is given to whom it was made for, with what went wrong, and never runs on beside him."""

from __future__ import annotations

import threading
import time

import pytest

from rplctl.applier.apply.clone_ahead import Ahead


def test_what_was_begun_is_given_once_with_its_error() -> None:
    ahead: Ahead[int] = Ahead()
    assert ahead.take("a") is None
    ahead.begin("a", lambda: 7)
    assert (ahead.take("a"), ahead.take("a")) == (7, None)

    def fails() -> int:
        raise OSError(5, "Input/output error")

    ahead.begin("b", fails)
    with pytest.raises(OSError, match="Input/output error"):
        ahead.take("b")
    ahead.begin("c", fails)
    assert ahead.take("d") is None  # nobody asks for c any more
    ahead.close()


def test_nothing_is_in_work_once_a_chunk_is_taken_or_all_is_closed() -> None:
    ahead: Ahead[None] = Ahead()
    ended = threading.Event()

    def slow() -> None:
        time.sleep(0.1)
        ended.set()

    ahead.begin("a", slow)
    assert ahead.take("b") is None and ended.is_set()
    ended.clear()
    ahead.begin("c", slow)
    ahead.close()
    assert ended.is_set()
