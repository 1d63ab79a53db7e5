from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import create_engine

from rplctl.errors import TargetError
from rplctl.target.aborted import abort, is_aborted, watch_connections


class Connection(sqlite3.Connection):
    """One that may be referred to weakly."""


def test_a_severed_engine_makes_no_connection_again() -> None:
    """Who waits for an answer: test_contract.py, on real servers."""
    engine = create_engine("sqlite://", connect_args={"factory": Connection})
    watch_connections(engine)
    with engine.connect():
        assert not is_aborted(engine)
    abort(engine)
    engine.dispose()
    assert is_aborted(engine)
    with pytest.raises(TargetError, match="was terminated") as caught:
        engine.connect()
    assert not caught.value.transient
