"""Converts errors to the numbers and texts of one vendor, where a command reports them in the words of the other."""

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
    """Return the error as MariaDB reports it; `error` itself if MariaDB reports it in the same way as MySQL."""
    if error.errno not in _ERRORS:
        return error
    errno, text = _ERRORS[error.errno]
    return RplError(text(error.channel or ""), errno=errno, channel=error.channel, hint=error.hint)


def notes_as_mariadb(notes: tuple[Note, ...]) -> tuple[Note, ...]:
    return tuple(_NOTES.get(note.errno, note) for note in notes)


@contextmanager
def mysql_gtid_errors(text: str, front: Front | None = None) -> Iterator[None]:
    """Report a text that is not a GTID as MySQL's 1772 instead of MariaDB's 1941, unless `front` is MariaDB's."""
    try:
        yield
    except UsageError as error:
        if error.errno != er.INCORRECT_GTID_STATE or (front is not None and front.is_mariadb):
            raise
        message = f"Malformed GTID set specification '{text[:200]}'."
        raise UsageError(message, errno=er.MALFORMED_GTID_SET_SPECIFICATION, hint=error.hint) from None
