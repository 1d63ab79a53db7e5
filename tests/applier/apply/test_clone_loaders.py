"""Threads that load a copy: what one of them raises reaches the applier, and only when the others have ended."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.applier.apply.clone_loaders import Loaders


def test_an_error_of_one_thread_is_raised_when_all_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that cannot be read is no end of the work: nothing would ever be said of it."""
    numbers = iter(range(3))
    opened = SimpleNamespace(
        loads_alone=False, open_target=lambda _: SimpleNamespace(number=next(numbers), reconnect=lambda: None)
    )
    monkeypatch.setattr("rplctl.applier.apply.clone_loaders.dialect_of", lambda _: opened)
    target: Any = SimpleNamespace(kind="", engine=None)
    loaders = Loaders(target)
    ended = []

    def work(connection: Any) -> None:
        if connection.number == 0:
            raise OSError(5, "Input/output error")
        time.sleep(0.05)
        ended.append(connection.number)

    with pytest.raises(OSError, match="Input/output error"):
        loaders.run(work, 3)
    assert sorted(ended) == [1, 2]
    loaders.close()
