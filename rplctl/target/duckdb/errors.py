"""Converts DuckDB's errors to errors with MySQL's number, a text and a hint.

Invariant: every error of the driver is converted. An error ends DuckDB's transaction. These errors are transient:

* Another process has the file open, or another transaction has changed the same rows.
* The disk is full, or reports an I/O error.
* The DuckDB instance is no longer valid after a fatal error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from rplctl import mysql_errors as er
from rplctl.errors import CORRECT_VALUE, OLD_NAME, OR_EXCLUDE, OR_SKIP, TargetError, TargetInUse
from rplctl.schema.model import Column, TableModel
from rplctl.sql_text import written
from rplctl.target.base import RowChange, RowSet, describe_key
from rplctl.target.ddl_parts import quote
from rplctl.target.duckdb.ddl_type import is_odd_date

_SECONDS = len("2024-01-01 10:00:00")
_HOLDER = re.compile(r'lock on file "(.*?)": Conflicting lock is held in (.*?) \(PID (\d+)\)', re.DOTALL)
_ABSENT = re.compile(r"Table with name (\S+) does not exist")
_NOT_NULL = re.compile(r"NOT NULL constraint failed: .*\.(.*)")
_TRY_CHECKING = f"{CORRECT_VALUE}{OR_EXCLUDE}"
_BACKUP = "restore the target from a backup, which also restores the position"
_MEMORY = (
    "give DuckDB more memory in the URL of the option target (duckdb:///FILE?memory_limit=8GB), then run: rplctl "
    "start\n"
    "To use less memory (init changes only this setting), run: rplctl init --max-batch-bytes BYTES; rplctl start"
)
_EXISTS = (
    f"to continue after you have dropped the table on the target, which deletes its rows, run: rplctl start{OR_SKIP}"
)
# (DuckDB's class of errors, MySQL's number, True if transient, hint); the first class that matches decides
_KNOWN: tuple[tuple[type[duckdb.Error], int, bool, str], ...] = (
    (duckdb.InterruptException, er.QUERY_INTERRUPTED, False, ""),
    (
        duckdb.FatalException,
        er.GET_ERRNO,
        True,
        "check the disk of the target's file; the channel then continues by itself",
    ),
    (
        duckdb.TransactionException,
        er.LOCK_WAIT_TIMEOUT,
        True,
        "wait for the other channel of this process; this channel then continues",
    ),
    (duckdb.OutOfMemoryException, er.RECORD_FILE_FULL, False, _MEMORY),
    (duckdb.ConversionException, er.TRUNCATED_WRONG_VALUE_FOR_FIELD, False, _TRY_CHECKING),
    (duckdb.OutOfRangeException, er.WARN_DATA_OUT_OF_RANGE, False, _TRY_CHECKING),
    (duckdb.SerializationException, er.CRASHED_ON_USAGE, False, _BACKUP),
    (
        duckdb.IOException,
        er.GET_ERRNO,
        True,
        "check the disk of the target's file; the channel then continues by itself",
    ),
    (duckdb.ConstraintException, er.CONSTRAINT_FAILED, False, ""),
)


def target_error(error: duckdb.Error) -> TargetError:
    """Convert an error of DuckDB to a TargetError with MySQL's number and a hint for the operator."""
    text = " ".join(str(error).split())
    if (found := _HOLDER.search(str(error))) is not None:
        return held_elsewhere(found[1], found[2], int(found[3]))
    if isinstance(error, duckdb.IOException) and "No space left" in text:
        hint = "free space on the disk of the target; the channel then continues by itself"
        return TargetError(f"the target reports: {text}", errno=er.DISK_FULL, transient=True, hint=hint)
    if "not a valid DuckDB database file" in text:
        return TargetError(
            text, errno=er.CRASHED_ON_USAGE, hint="name a DuckDB file, or a new file, in the URL of the option target"
        )
    if _ABSENT.search(text):
        return TargetError(f"the target reports: {text}", errno=er.NO_SUCH_TABLE)
    if isinstance(error, duckdb.CatalogException) and "already exists" in text:
        return TargetError(f"the target reports: {text}", errno=er.TABLE_EXISTS_ERROR, hint=_EXISTS)
    for kind, errno, transient, hint in _KNOWN:
        if isinstance(error, kind):
            return TargetError(f"the target reports: {text}", errno=errno, transient=transient, hint=hint)
    return TargetError(f"the target reports: {text}", errno=er.UNKNOWN_ERROR)


def change_error(error: duckdb.Error, change: RowChange, model: TableModel) -> TargetError:
    """Convert the error of a row change that DuckDB refused to a TargetError, which names the row by its key."""
    image = change.after or change.before
    assert image is not None
    if (found := _NOT_NULL.search(str(error))) is not None:
        return TargetError(f"Column '{found[1]}' cannot be null", errno=er.BAD_NULL_ERROR)
    if isinstance(error, duckdb.ConversionException) and (odd := _odd_dates(image, model, str(error))):
        column, text = odd[0]
        name = f"{quote(model.database)}.{quote(model.name)}"
        ways = [f"ALTER TABLE {name} ALTER COLUMN {quote(c.name)} TYPE VARCHAR{_using(c)}" for c, _ in odd]
        return TargetError(
            f"Incorrect {column.type} value: '{text}' for column '{column.name}': DuckDB cannot store this date",
            errno=er.TRUNCATED_WRONG_VALUE,
            position=describe_key(image, model),
            hint="to let DuckDB open the target, run: rplctl stop\n"
            f"To store dates as text, run in DuckDB on the target: {'; '.join(ways)}\n"
            "To continue after that, run: rplctl start",
        )
    made = target_error(error)
    if isinstance(error, duckdb.ConstraintException) and "Duplicate key" in str(error):
        made = TargetError(f"Duplicate entry: {' '.join(str(error).split())}", errno=er.DUP_ENTRY)
    made.position = made.position or describe_key(image, model)
    return made


def _using(column: Column) -> str:
    """Return the clause with which ALTER COLUMN … TYPE VARCHAR gives the existing values the form of the row events."""
    if column.type == "date":
        return ""
    moment = quote(column.name) if column.type == "datetime" else written("{} AT TIME ZONE 'UTC'", quote(column.name))
    if not column.fraction_digits:
        return f" USING strftime({moment}, '%Y-%m-%d %H:%M:%S')"
    return f" USING left(strftime({moment}, '%Y-%m-%d %H:%M:%S.%f'), {_SECONDS + 1 + column.fraction_digits})"


def hidden_numbers(model: TableModel, why: str) -> TargetError:
    """Return the error for a table with a column named rowid. Such a column hides DuckDB's row numbers, which have the
    same name. `why`: the reason why rplctl needs row numbers.
    """
    return TargetError(
        f"Incorrect column name 'rowid' in {model.qualified_name}: DuckDB's row numbers, which rplctl needs "
        f"because {why}, have the same name",
        errno=er.WRONG_COLUMN_NAME,
        hint=f"to copy the table again after you have renamed the column on the source, {OLD_NAME}{OR_EXCLUDE}",
    )


def _odd_dates(image: RowSet, model: TableModel, said: str) -> list[tuple[Column, str]]:
    """Return the columns of the row image with a date that DuckDB cannot store, with their text.

    `said`: DuckDB's error. If it has the text of some of these dates, only these are returned, because a column
    with another one may be text already. The list is empty if DuckDB can store all dates of the image.
    """
    pairs = [(model.columns[c], v) for c, v in zip(image.columns, image.rows[0], strict=True)]
    odd = [(column, v) for column, v in pairs if isinstance(v, str) and is_odd_date(v, column)]
    return [(column, text) for column, text in odd if f'"{text}"' in said] or odd[:1]


def held_elsewhere(path: str, program: str, pid: int) -> TargetInUse:
    """Return the error for a DuckDB file that another process has open. `program`: the path of that process's program.
    `pid`: the id of the process.
    """
    ours = _rplctl_of(pid)
    who = f"`{ours}` (process {pid})" if ours else f"{program} (process {pid})"
    way = "if this command runs too long, to end it" if ours else "to end that program"
    error = TargetInUse(
        f"the target {path} is open in {who}: one process at a time can open a DuckDB file, even to read it",
        errno=er.LOCK_WAIT_TIMEOUT,
        transient=True,
        hint=f"{way}, run: kill {pid}\nTo see how other programs can read the rows, run: man 7 rplctl-duckdb",
    )
    error.process_id = pid
    return error


def _rplctl_of(pid: int) -> str:
    """Return the rplctl command that a process executes, in the form that a user types, or '' for another program."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    at = next((n for n, word in enumerate(words) if word.split("/")[-1].startswith("rplctl")), None)
    if at is None:
        return ""
    return " ".join([words[at].split("/")[-1], *filter(None, words[at + 1 : at + 3])])


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Convert errors that DuckDB's driver or SQLAlchemy raises in a `with` block to TargetError."""
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except duckdb.Error as error:
        raise target_error(error) from error
    except DBAPIError as error:
        cause = error.orig
        raise target_error(cause) if isinstance(cause, duckdb.Error) else TargetError(str(cause)) from error
