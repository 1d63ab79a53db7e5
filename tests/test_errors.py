"""Errors: every class of the tree has its own exit code, and says what, where and what next."""

from __future__ import annotations

from collections.abc import Iterator

from rplctl import errors
from rplctl.errors import BinlogFormatError, RelayLogError, RplError


def tree(root: type[RplError]) -> Iterator[type[RplError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def test_exit_codes_are_those_of_the_design() -> None:
    assert {c.__name__: c.exit_code for c in tree(RplError) if c.__module__ == errors.__name__} == {
        "RplError": 1,
        "UsageError": 2,
        "NotRunning": 3,
        "NotConfigured": 4,
        "RepositoryConflict": 5,
        "SourceError": 6,
        "TargetError": 7,
        "TargetInUse": 7,
        "DifferentErrors": 1,
        "RelayLogError": 8,
        "BinlogFormatError": 8,
        "WaitTimeout": 9,
        "StoppedEarly": 10,
        "LockBusy": 75,
        "ConfigError": 78,
    }


def test_an_error_carries_where_and_what_next() -> None:
    error = BinlogFormatError("torn", errno=1594, channel="c", position="b.000001:4", hint="rplctl recover")
    assert isinstance(error, RelayLogError)
    assert (str(error), error.errno, error.channel, error.position, error.hint) == (
        "torn",
        1594,
        "c",
        "b.000001:4",
        "rplctl recover",
    )
