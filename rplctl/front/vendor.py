"""Converts errors and notes between the numbers and texts of MySQL and those of MariaDB.

The functions of rplctl's commands report most errors as MySQL does, but malformed GTIDs as MariaDB does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rplctl import mysql_errors as er
from rplctl.command.channel.context import Note
from rplctl.errors import RplError, UsageError
from rplctl.front.front import Front


def _no_connection(name: str) -> str:
    return f"There is no master connection '{name}'"


def _must_stop(name: str) -> str:
    return f"This operation cannot be performed as you have a running slave '{name}'; run STOP SLAVE '{name}' first"


_ERRORS: Final[dict[int, tuple[int, Callable[[str], str]]]] = {
    er.SLAVE_CHANNEL_DOES_NOT_EXIST: (er.WARN_NO_MASTER_INFO, _no_connection),
    er.SLAVE_CHANNEL_MUST_STOP: (er.SLAVE_MUST_STOP, _must_stop),
    er.SLAVE_CHANNEL_IO_THREAD_MUST_STOP: (er.SLAVE_MUST_STOP, _must_stop),
    er.SLAVE_CHANNEL_SQL_THREAD_MUST_STOP: (er.SLAVE_MUST_STOP, _must_stop),
}
_NOTES: Final = {
    er.SLAVE_CHANNEL_WAS_RUNNING: Note("Slave is already running", er.SLAVE_WAS_RUNNING),
    er.SLAVE_CHANNEL_WAS_NOT_RUNNING: Note("Slave already has been stopped", er.SLAVE_WAS_NOT_RUNNING),
}


def as_mariadb(error: RplError) -> RplError:
    """Return MySQL's `error` in MariaDB's form. If both vendors report it in the same way, return `error` itself."""
    if error.errno not in _ERRORS:
        return error
    errno, text = _ERRORS[error.errno]
    return RplError(text(error.channel or ""), errno=errno, channel=error.channel, hint=error.hint)


def notes_as_mariadb(notes: tuple[Note, ...]) -> tuple[Note, ...]:
    return tuple(_NOTES.get(note.errno, note) for note in notes)


@contextmanager
def mysql_gtid_errors(text: str, front: Front | None = None) -> Iterator[None]:
    """Convert MariaDB's error 1941 of the block, for a text that is not a GTID, to MySQL's error 1772.

    If `front` has the flavor of MariaDB, the error is unchanged. `text`: the text, for the message.
    """
    try:
        yield
    except UsageError as error:
        if error.errno != er.INCORRECT_GTID_STATE or (front is not None and front.is_mariadb):
            raise
        message = f"Malformed GTID set specification '{text[:200]}'."
        raise UsageError(message, errno=er.MALFORMED_GTID_SET_SPECIFICATION, hint=error.hint) from None
