"""Converts SQLite's errors to MySQL's errors, with number, text and hint.

Invariant: every error of the driver is converted. Only these errors are transient: a lock of another program, an I/O
error, a full disk, and a file that cannot be opened.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rplctl import mysql_errors as er
from rplctl.errors import OR_EXCLUDE, OR_SKIP, OTHER_KIND, TargetError
from rplctl.schema.model import TableModel
from rplctl.target.base import RowChange
from rplctl.target.value_form import no_text

_TOO_WIDE = f"{OTHER_KIND}{OR_EXCLUDE}"
_TOO_BIG = f"{OTHER_KIND}{OR_EXCLUDE}\nSQLite allows rows of at most 1,000,000,000 bytes"
_LOCKED = (er.LOCK_WAIT_TIMEOUT, True, "end the program that locks the target; the channel then continues")
GONE = "mount the file system of the target, or make its folder writable; the channel then continues by itself"
_AS_CODE = {
    sqlite3.SQLITE_IOERR_SHMSIZE: sqlite3.SQLITE_FULL,  # no space for the file -shm
    sqlite3.SQLITE_READONLY_DBMOVED: sqlite3.SQLITE_CANTOPEN,  # the open file was moved or removed
}
# SQLite's code → (MySQL's number, is transient, hint)
_KNOWN: dict[int, tuple[int, bool, str]] = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: (er.DISK_FULL, True, "free space on the target's disk; the channel then continues"),
    sqlite3.SQLITE_READONLY: (er.OPTION_PREVENTS_STATEMENT, False, "to continue after you have made the target file "
                              "and its folder writable, run: rplctl start"),
    sqlite3.SQLITE_IOERR: (er.GET_ERRNO, True, "check the target's disk; the channel then continues by itself"),
    sqlite3.SQLITE_CORRUPT: (er.CRASHED_ON_USAGE, False, "restore the target from a backup, which also "
                             "restores the position"),
    sqlite3.SQLITE_NOTADB: (er.CRASHED_ON_USAGE, False, "name a SQLite file, or a new file, in the URL of the "
    "option target"),
    sqlite3.SQLITE_TOOBIG: (er.DATA_TOO_LONG, False, _TOO_BIG),
    sqlite3.SQLITE_CANTOPEN: (er.FILE_NOT_FOUND, True, GONE),
}  # fmt: skip

# SQLite has the same code for all of these errors
_WORDS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"^no such table"), er.NO_SUCH_TABLE),
    (re.compile(r"^UNIQUE constraint failed"), er.DUP_ENTRY),
    (re.compile(r"duplicate column name: [^:]*$"), er.DUP_FIELDNAME),
    (re.compile(r"^no such column|^table .* has no column named "), er.BAD_FIELD_ERROR),
    (re.compile(r"^index .* already exists$"), er.DUP_KEYNAME),
    (re.compile(r"^no such index"), er.CANT_DROP_FIELD_OR_KEY),
    (re.compile(r"^table .* already exists$|^there is already (another table|an index) "), er.TABLE_EXISTS_ERROR),
)


def target_error(error: sqlite3.Error | UnicodeEncodeError) -> TargetError:
    """Convert an error of the driver to a TargetError with MySQL's error number and a hint.

    The attribute `transient` of the result is True if another attempt may succeed, for example after a lock.
    """
    if isinstance(error, UnicodeEncodeError):
        return no_text(error.object)
    text = str(error)
    extended = getattr(error, "sqlite_errorcode", 0)
    code = _AS_CODE.get(extended, extended & 0xFF)
    if text.startswith("too many columns"):
        return TargetError(f"Too many columns: {text}; SQLite allows 2000", errno=er.TOO_MANY_FIELDS, hint=_TOO_WIDE)
    errno, transient, hint = _KNOWN.get(code, (er.UNKNOWN_ERROR, False, ""))
    errno = next((number for pattern, number in _WORDS if pattern.search(text)), errno)
    if errno == er.TABLE_EXISTS_ERROR:
        hint = (
            "to continue after you have dropped the table on the target, which deletes its rows, run: rplctl start"
            f"{OR_SKIP}"
        )
    return TargetError(f"the target reports: {text}", errno=errno, transient=transient, hint=hint)


def integrity_error(error: sqlite3.IntegrityError, change: RowChange, model: TableModel) -> TargetError:
    text = str(error)
    image = change.after or change.before
    if "UNIQUE" in text or "PRIMARY" in text:
        columns = [part.strip().rpartition(".")[2] for part in text.partition(": ")[2].split(",")]
        names = {column.name: i for i, column in enumerate(model.columns)}
        assert image is not None
        at = {column: i for i, column in enumerate(image.columns)}
        entry = "-".join(str(image.rows[0][at[names[c]]]) for c in columns if c in names and names[c] in at)
        return TargetError(f"Duplicate entry '{entry}' for key '{_key_name(model, columns)}'", errno=er.DUP_ENTRY)
    if "FOREIGN KEY" in text:
        return TargetError(
            "Cannot add or update a child row: a foreign key constraint fails", errno=er.NO_REFERENCED_ROW_2
        )
    if "NOT NULL" in text:
        return TargetError(f"Column '{text.rpartition('.')[2]}' cannot be null", errno=er.BAD_NULL_ERROR)
    return TargetError(f"the target reports: {text}", errno=er.CONSTRAINT_FAILED)


def _key_name(model: TableModel, columns: Iterable[str]) -> str:
    """Return MySQL's name of the unique key over these columns: PRIMARY, or the name of the index.

    Without such a key, return the names of the columns.
    """
    wanted = list(columns)
    for key in model.keys:
        if key.kind in ("primary", "unique") and [part.column for part in key.parts] == wanted:
            return "PRIMARY" if key.kind == "primary" else key.name
    return ", ".join(wanted)


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Convert errors of the driver or SQLAlchemy to TargetError."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, sqlite3.IntegrityError):
            raise TargetError(
                "Cannot add or update a child row: a foreign key constraint fails", errno=er.NO_REFERENCED_ROW_2
            ) from error
        raise target_error(cause) if isinstance(cause, sqlite3.Error) else TargetError(str(cause)) from error
