"""The error tree: every error of rplctl, with its permanent number and its exit code.

    RplError                         1   the operation failed
    ├── UsageError                   2   a wrong argument, or no terminal on which to ask for a confirmation
    ├── NotRunning                   3   the channel's threads do not run
    ├── NotConfigured                4   the channel does not exist, or CHANGE MASTER never ran
    ├── RepositoryConflict           5   the FILE and the TABLE of a record both have data (WL#2775 REQ-6)
    ├── SourceError                  6   the source rejects rplctl, does not answer or is the wrong server
    ├── TargetError                  7   the target database rejects rplctl or does not answer
    │   └── TargetInUse              7   another process has the target's file open
    ├── DifferentErrors              1   a statement did not end as on the source
    ├── RelayLogError                8   the relay log or its index is damaged
    │   └── BinlogFormatError        8   bytes that are not a known binary log event (design D12)
    ├── WaitTimeout                  9   the timeout of `wait` is over
    ├── StoppedEarly                10   a stop or a signal came before the work was done
    ├── LockBusy                    75   another process holds the lock; cron may try again
    └── ConfigError                 78   an option file or an option value is wrong

An error has these parts. The message states the failure. `channel`, `position` and `table` state where it happened.
`hint` has the next command. `errno` is MySQL's number, or 0 if MySQL has none. `transient` is True if a retry may help
(Connect_Retry). No part of an error contains a password, whoever wrote the text (mask.py).
A function raises an error, and never logs an error to continue after it. A caller catches an RplError only to add
context, to clean up, or to choose another way. All other errors are reported by `cli.app.run`, and by the outermost
functions of the receiver and the applier.
"""

from __future__ import annotations

import errno as codes
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from rplctl import mysql_errors as er
from rplctl.mask import masked

# the errors of MySQL 9's ddl_exist_errors
DDL_EXIST_ERRORS = frozenset(
    {
        er.DB_CREATE_EXISTS,
        er.DB_DROP_EXISTS,
        er.TABLE_EXISTS_ERROR,
        er.BAD_TABLE_ERROR,
        er.BAD_FIELD_ERROR,
        er.DUP_FIELDNAME,
        er.DUP_KEYNAME,
        er.MULTIPLE_PRI_KEY,
        er.CANT_DROP_FIELD_OR_KEY,
        er.NO_SUCH_TABLE,
    }
)


def error_numbers(text: str) -> frozenset[int] | None:
    """Return the error numbers in a value of replica_skip_errors. Return None for `all`, and an empty set for `off`.

    Any other value is a list of numbers, which may include `ddl_exist_errors`. Raises ValueError for another text.
    """
    words = [word.strip().lower() for word in text.split(",")]
    if words in (["off"], ["all"]):
        return None if words == ["all"] else frozenset()
    found: set[int] = set()
    for word in words:
        if word == "ddl_exist_errors":
            found |= DDL_EXIST_ERRORS
        elif word.isascii() and word.isdecimal() and 1 <= int(word) <= 65535:
            found.add(int(word))
        else:
            raise ValueError(word)
    return frozenset(found)


class RplError(Exception):
    """The base class of all errors: an operation failed, but no data was lost."""

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        errno: int = 0,
        channel: str | None = None,
        position: str = "",
        hint: str = "",
        transient: bool = False,
    ) -> None:
        message, hint = masked(message), masked(hint)
        super().__init__(message)
        self.message = message
        self.errno = errno
        self.channel = channel
        self.position = position
        self.hint = hint
        self.transient = transient
        self.table: tuple[str, str] | None = None  # database and name, in the target, of the table that failed

    def hide(self, statement: str) -> None:
        """Mask the passwords of `statement` wherever the message or the hint quotes a part of the statement."""
        self.message, self.hint = masked(self.message, statement), masked(self.hint, statement)
        self.args = (self.message,)


class UsageError(RplError):
    exit_code = 2


class NotRunning(RplError):
    exit_code = 3


class NotConfigured(RplError):
    exit_code = 4


class RepositoryConflict(RplError):
    exit_code = 5


class SourceError(RplError):
    exit_code = 6


class TargetError(RplError):
    exit_code = 7


class DifferentErrors(RplError):
    """Error 3002: the source logged an error of a statement, and the target's result is not the same error.

    `numbers`: the errors on the source and on the target, without 0. If replica_skip_errors lists one of them, servers
    continue.
    """

    numbers: frozenset[int] = frozenset()


class TargetInUse(TargetError):
    """The error for a target's file that another process has open, so that rplctl cannot open it."""

    process_id = 0


class RelayLogError(RplError):
    exit_code = 8


class BinlogFormatError(RelayLogError):
    """The error for bytes that are not a known binary log event. `position` has the file or the offset of the bytes."""


class WaitTimeout(RplError):
    exit_code = 9


class StoppedEarly(RplError):
    exit_code = 10
    by_signal = False  # True if this command stopped the channel because it received a signal


class LockBusy(RplError):
    exit_code = 75


class ConfigError(RplError):
    exit_code = 78


_OF_NO_FILE = frozenset({codes.EMFILE, codes.ENFILE, codes.EFBIG})  # limits of the process or of the machine
_NEXT_STEP = {  # the hint for each error of the system; {folder} is the folder of the file
    codes.EROFS: "to see why the file system of {folder} is read-only, run: dmesg\n"
    "Mount it writable, then run the command again",
    codes.EACCES: "to see the owner of the folder, who must run this command, run: ls -ld {folder}",
    codes.EPERM: "to see the owner of the folder, who must run this command, and the attributes, run: "
    "ls -ld {folder}; lsattr -d {folder}",
    codes.ENOSPC: "to see the free space, run: df {folder}\n"
    "Free disk space, then run the command again; nothing is lost",
    codes.EDQUOT: "to see your quota, run: quota\nFree space in {folder}, then run the command again; nothing is lost",
    codes.EMFILE: "to allow more open files, run: ulimit -n 1024\nThen run the command again",
    codes.ENFILE: "to see the machine's limit of open files, run: sysctl fs.file-max\n"
    "Raise this limit, then run the command again",
    codes.EFBIG: "to allow larger files, run: ulimit -f unlimited\nThen run the command again; nothing is lost",
    codes.EIO: "to check the disk of {folder}, run: dmesg\nTo repair the relay logs after that, run: rplctl recover",
}
_OWNER_AND_MODE = (
    "to see the owner and the mode of {folder}, run: ls -ld {folder}\nCorrect them, then run the command again"
)


def file_error(error: OSError, channel: str | None = None) -> RplError:
    """Return the RplError for an OSError, with the name of the file and a hint. The exit code is 1."""
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
    is_full = error.errno in (codes.ENOSPC, codes.EDQUOT)
    return RplError(
        f"{path}: {error.strerror or error}" if path else str(error.strerror or error),
        errno=er.DISK_FULL if is_full else 0,
        channel=channel,
        hint=_next_step(error.errno or 0, folder if path else ""),
        transient=is_full,
    )


def memory_error() -> RplError:
    """Return the error for a failed memory allocation."""
    return RplError(
        "out of memory",
        errno=er.OUT_OF_RESOURCES,
        hint="to see the programs that use the most memory, run: ps aux --sort=-rss\n"
        "To continue after you have ended some of them, run: rplctl start\n"
        "To lift the memory limit of this shell and start the channel again, run: ulimit -v unlimited; rplctl start",
    )


def _next_step(code: int, folder: str) -> str:
    if not folder and code not in _OF_NO_FILE:
        return ""
    return _NEXT_STEP.get(code, _OWNER_AND_MODE).format(folder=folder)


@contextmanager
def file_errors(channel: str | None = None) -> Iterator[None]:
    """Convert each OSError of the block to an RplError that names the file and has a hint."""
    try:
        yield
    except OSError as error:
        raise file_error(error, channel) from error


def as_rpl_error(error: RplError | OSError) -> RplError:
    """Return the error as an RplError. An OSError is converted by `file_error`."""
    return file_error(error) if isinstance(error, OSError) else error


def no_instance(folder: os.PathLike[str]) -> str:
    """Return the hint for a folder that is not an instance folder, because it is the wrong folder or a new one."""
    return (
        "to use another instance, add to the command: --datadir FOLDER\n"
        f"To create a new instance in this folder, run: rplctl --datadir {shlex.quote(os.fspath(folder))} init"
    )


def target_gone(path: str | os.PathLike[str]) -> str:
    """Return the hint for a target's file that is missing or cannot be opened."""
    folder = os.path.dirname(os.path.abspath(path))
    return (
        "if its file system is not mounted, mount it; the channel then continues by itself\n"
        f"To see who may write to its folder, run: ls -ld {shlex.quote(folder)}"
    )


_OF_A_CHANNEL = (
    "change-filter change-master check clone crash-test export-info flush-relay-logs heartbeat load-schema "
    "purge-binary-logs purge-relay-logs recover repair reset show-changes show-clone show-relaylog-events show-status "
    "skip start stop switch-repo verify wait"
)
# Parts of hints. The code that reports the error replaces DB.TABLE by the table. A hint OR_… is a second way, which is
# on a line of its own.
OR_SKIP = "\nTo skip the whole transaction, whose changes the target then lacks, run: rplctl skip --yes; rplctl start"
OR_EXCLUDE = (
    "\nTo exclude the table, which then receives no more changes, run: "
    "rplctl change-filter --replicate-ignore-table DB.TABLE; rplctl start"
)
EXCLUDE = (
    "to exclude the table, which then receives no more changes, run: "
    "rplctl change-filter --replicate-ignore-table DB.TABLE; rplctl start"
)
SHOW_TRANSACTION = "to see the tables, rows and statement of the transaction, run: rplctl skip --dry-run"
BY_HAND = (
    f"{SHOW_TRANSACTION}\n"
    "To skip the whole transaction after you have made all its changes on the target by hand, run: rplctl skip --yes; "
    "rplctl start"
)
# only for row events, because `repair` then copies the rows of the skipped transaction from the source
SKIP_AND_REPAIR = (
    "to skip the whole transaction, and to repair the rows that then differ from the source, run: rplctl skip --yes; "
    "rplctl start --until-synced; rplctl verify; rplctl repair; rplctl verify; rplctl start"
)
SKIP_AND_COPY = (
    "to skip the whole transaction and to copy its tables again, run: rplctl skip --yes; "
    "rplctl clone --tables DB.TABLE --replace --yes; rplctl start"
)
# The applier skips the table's events in the log up to the position of the new copy.
COPY_TABLE = (
    "(the copy replaces all its rows in the target), run: rplctl clone --tables DB.TABLE --replace --yes; rplctl start"
)
CORRECT_VALUE = (
    "to copy the table again after you have corrected the value on the source, because the log keeps the old value "
    f"{COPY_TABLE}"
)
OLD_NAME = f"because the log keeps the old name {COPY_TABLE}"
IN_ROW_FORMAT = (
    f"{SHOW_TRANSACTION}\n"
    "To skip the whole transaction and to copy its tables again, run: rplctl skip --yes; "
    "rplctl clone --tables DB.TABLE --replace --yes; rplctl start\n"
    "To log row events instead of statements in sessions that connect later, run on the source: "
    "SET GLOBAL binlog_format=ROW"
)
# for a target that has other rows, or that is of another kind
NEW_TARGET = (
    "rplctl stop; rplctl reset --all --yes; rplctl init --target URL; "
    "rplctl change-master --master-host HOST --master-user USER --ask-password"
)
# what `reset --all` deletes: part of a hint with NEW_TARGET
LOSES_CHANNEL = (
    "(this deletes the channel's position, relay logs, filters and settings; the old target keeps its tables)"
)
# `clone` starts both threads if neither runs. After an error of the applier, the receiver runs, so `start` follows
COPY_ALL = f"{NEW_TARGET}; rplctl clone; rplctl start"
OTHER_KIND = f"to copy all tables into another kind of target {LOSES_CHANNEL}, run: {COPY_ALL}"
NAME_CHANNEL = "add --channel NAME to the command. To list the names, run: rplctl show-channels"
_REFETCH = (
    "fetch the relay log from the source again, if it is damaged, run: rplctl stop; rplctl recover --refetch; "
    "rplctl start"
)
OR_REFETCH = f"\nTo {_REFETCH}"
# for a part of an event that rplctl does not know
UNKNOWN_FORM = (
    f"to {_REFETCH}\n"
    "To install the newest rplctl, if the source is newer than this rplctl, run: pip install --upgrade rplctl; "
    "rplctl start"
)
UPGRADE = "to install the newest version of rplctl, run: pip install --upgrade rplctl; rplctl start"
_COMMAND = re.compile(rf"\brplctl ({'|'.join(_OF_A_CHANNEL.split())})(?![\w-])((?:(?!\brplctl )[^;&`\n])*)")
_OF_ALL = re.compile(r"--channel|--for-channel|--group|(?<!reset )--all\b")  # `reset --all` concerns one channel


def for_channel(hint: str, channel: str | None) -> str:
    """Return the hint with the option `--channel` in each of its commands that can have this option.

    In an instance with several channels, a command without `--channel` would be rejected, or act on all channels. For
    the default channel ('' or None), the hint is unchanged.
    """

    def named(found: re.Match[str]) -> str:
        verb, rest = found.groups()
        if _OF_ALL.search(f"{verb}{rest}"):
            return found[0]
        return f"rplctl {verb} --channel {shlex.quote(channel or '')}{rest}"

    return _COMMAND.sub(named, hint) if channel else hint


def another_way(hint: str) -> str:
    """Return the hint on a line of its own, to append it to another hint as a second way.

    Return '' for an empty hint.
    """
    return f"\n{hint[:1].upper()}{hint[1:]}" if hint else ""


def in_one_line(hint: str) -> str:
    """Return the hint in one line. Each line of several is a way or a step, and gets a number."""
    ways = hint.split("\n")
    if len(ways) == 1:
        return hint
    return "; ".join(f"{number}. {way}" for number, way in enumerate(ways, 1))


_MUST_STOP = {  # role ('' = both) → MySQL's name of the thread, and the error number
    "": ("", er.SLAVE_CHANNEL_MUST_STOP),
    "receiver": ("io", er.SLAVE_CHANNEL_IO_THREAD_MUST_STOP),
    "applier": ("sql", er.SLAVE_CHANNEL_SQL_THREAD_MUST_STOP),
}


def must_stop(channel: str, role: str = "") -> UsageError:
    """Return MySQL's error for a command that requires stopped threads.

    `role`: the thread that must stop first; '' means both. The error is 3021 (receiver), 3085 (applier) or 3081 (both).
    """
    thread, errno = _MUST_STOP[role]
    hint = for_channel(f"to stop it, run: rplctl stop{f' --{role}' if role else ''}", channel)
    return UsageError(er.must_stop(channel, thread), errno=errno, channel=channel, hint=hint)
