"""The files of a folder of binary logs: their names, their order, and the start of each file.

If the folder has exactly one `.index` file, the binary logs are those that it lists. Otherwise, they are all files with
names such as `NAME.NNNNNN`, and all must have the same NAME. They are ordered by number. Relay logs and their index,
which have `relay-bin` in their names, are ignored if there are other logs.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, SourceError
from rplctl.event.header import BINLOG_MAGIC, ENCRYPTED_MAGIC, HEADER_LENGTH, parse_header
from rplctl.event.types import EventType
from rplctl.plain_file import UnfitFile, open_plain, read_plain
from rplctl.position import FIRST_EVENT_POSITION, is_log_name, log_number
from rplctl.source.base import fatal_reading_binlog

_HEAD_BYTES: Final = 4 << 10  # enough for a FORMAT_DESCRIPTION


def log_names(folder: Path) -> list[str]:
    """Return the names of the folder's binary logs, ordered by number.

    Raises SourceError if the folder cannot be read, or if its logs have different base names.
    """
    try:
        entries = sorted(os.listdir(folder))
    except OSError as error:
        raise SourceError(
            f"cannot read the folder of --master-binlog-dir: {error.strerror}: {folder}",
            errno=er.CR_CONN_HOST_ERROR,
            transient=True,
            hint=_unreadable(folder, error),
        ) from error
    indexes = _without_relay_logs([name for name in entries if name.endswith(".index")])
    if len(indexes) == 1:
        try:
            lines = read_plain(folder / indexes[0]).decode("utf-8", "replace").splitlines()
        except UnfitFile as error:
            raise SourceError(
                f"cannot read the index in the folder of --master-binlog-dir: {error.message}",
                errno=er.CR_CONN_HOST_ERROR,
                hint=error.hint,
            ) from error
        names = [Path(line).name for line in lines if line.strip()]
        found = [name for name in names if is_log_name(name)]
    else:
        found = _without_relay_logs([name for name in entries if is_log_name(name) and (folder / name).is_file()])
    bases = {name.rpartition(".")[0] for name in found}
    if len(bases) > 1:
        raise SourceError(
            f"the folder {folder} of --master-binlog-dir has logs with different base names: "
            f"{', '.join(sorted(bases))}",
            errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
            hint="to continue after you have moved the logs of each source into a folder of its own, run: rplctl start",
        )
    return sorted(set(found), key=log_number)


def _unreadable(folder: Path, error: OSError) -> str:
    shown = shlex.quote(str(folder))
    if isinstance(error, PermissionError):
        return (
            f"to see the owners and modes of the folder and its parents, run: namei -l {shown}\n"
            "Let rplctl's account read the folder and enter its parents; the receiver then continues by itself"
        )
    return (
        f"to see the state of the folder, run: ls -ld {shown}\n"
        "Create, mount or repair the folder; the receiver then continues by itself"
    )


def _without_relay_logs(names: list[str]) -> list[str]:
    """Return the names without `relay-bin`, because the data folder of a replica has both kinds of logs.

    If all names contain `relay-bin`, return all of them.
    """
    return [name for name in names if "relay-bin" not in name] or names


def read_head(path: Path) -> bytes:
    """Return the FORMAT_DESCRIPTION event of a log.

    Raises SourceError 1236 if the log is encrypted, or if it is not a readable binary log.
    """
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            magic = file.read(FIRST_EVENT_POSITION)
            start = file.read(_HEAD_BYTES)
    except OSError as error:
        raise fatal_reading_binlog(f"could not open log file '{path.name}': {error.strerror}") from error
    except UnfitFile as error:
        raise fatal_reading_binlog(f"could not open log file '{path.name}': {error.message}") from error
    if magic == ENCRYPTED_MAGIC:
        raise _encrypted(path.name)
    if magic != BINLOG_MAGIC:
        raise fatal_reading_binlog(f"Binlog has bad magic number, fix it: '{path.name}' is not a binary log")
    try:
        header = parse_header(start)
    except BinlogFormatError as error:
        raise fatal_reading_binlog(f"bogus data in log event; {path.name}: {error.message}") from error
    if header.type_code != EventType.FORMAT_DESCRIPTION or header.event_length > len(start):
        raise fatal_reading_binlog(f"Could not find format_description_event in binlog file '{path.name}'")
    following = start[header.event_length :]
    if len(following) > HEADER_LENGTH and following[4] == EventType.START_ENCRYPTION:
        raise _encrypted(path.name)
    return start[: header.event_length]


def _encrypted(name: str) -> SourceError:
    return fatal_reading_binlog(
        f"'{name}' is an encrypted binlog; only the server has its key",
        hint="to replicate from the server, run: rplctl change-master --master-host HOST --master-user USER "
        "--ask-password; rplctl start\n"
        "To write an archive that can be read, run: mysqlbinlog --read-from-remote-server --raw --host HOST FILE",
    )
