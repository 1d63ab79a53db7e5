"""Purges binary logs: up to one log, before a time, or older than `binlog_expire_logs_seconds`.

Invariant: the last log is never purged, because it has the end of the log. The purge register, the index and the order
of the steps are those of relay logs (relay_log.purge). So a kill at any point neither loses a listed file nor restores
a purged one. While a replica reads a log, this log and all later ones are not purged. The reader has a shared lock on a
separate file, which blocks no commit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import takewhile
from pathlib import Path

from rplctl import mysql_errors as er
from rplctl.applied_log.files import BinaryLogFiles
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.errors import UsageError
from rplctl.locks import InstanceLock, flock
from rplctl.plain_file import closing_descriptor, open_plain
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.purge import finish_purge, purge_names


def logs_before(files: BinaryLogFiles, name: str) -> list[str]:
    """Return the names of the logs before the named one, for PURGE BINARY LOGS TO.

    Raises UsageError 1373 if the index does not list the named log.
    """
    names = RelayLogIndex(files).names()
    if name not in names:
        raise UsageError(
            "Target log not found in binlog index",
            errno=er.UNKNOWN_TARGET_BINLOG,
            channel=files.name,
            hint=f"name one of the logs {names[0]} to {names[-1]}" if names else "",
        )
    return names[: names.index(name)]


def logs_older_than(files: BinaryLogFiles, moment: float) -> list[str]:
    """Return the names of the oldest logs up to the first one that was written after `moment`, for PURGE BINARY LOGS
    BEFORE.

    `moment`: seconds since 1970. The last log is never returned.
    """
    index = RelayLogIndex(files)
    found = []
    for name in index.names()[:-1]:
        path = index.path(name)
        if path.exists() and path.stat().st_mtime >= moment:
            break
        found.append(name)
    return found


def remove_logs(files: BinaryLogFiles, names: Sequence[str]) -> list[str]:
    """Remove the named logs, and return the names of those that were removed.

    The last log is never removed. If a replica reads one of the logs, this log and all later logs are not removed,
    either.
    """
    index = RelayLogIndex(files)
    with index.lock():
        finish_purge(files)
        gone = unread([name for name in index.names()[:-1] if name in names], files)
        if gone:
            purge_names(files, gone)
            for name in gone:
                _reader_path(files, name).unlink(missing_ok=True)
        return gone


def unread(names: Sequence[str], files: BinaryLogFiles) -> list[str]:
    """Return those of `names` that come before the first log that a replica reads at the moment."""
    return list(takewhile(lambda name: not _is_read(files, name), names))


def _is_read(files: BinaryLogFiles, name: str) -> bool:
    try:
        with closing_descriptor(open_plain(_reader_path(files, name), os.O_RDWR, follow=False)) as descriptor:
            return not flock(descriptor, wait=False)
    except FileNotFoundError:
        return False


@contextmanager
def kept_from_purge(files: BinaryLogFiles, name: str) -> Iterator[None]:
    """Protect this log and all later ones from a purge by any process during the block, because a replica reads them.

    Raises OSError if the lock file cannot be opened or locked.
    """
    private_folder(files.run_folder)
    path = _reader_path(files, name)
    with closing_descriptor(open_plain(path, os.O_RDWR | os.O_CREAT, follow=False)) as descriptor:
        flock(descriptor, shared=True)
        yield


def _reader_path(files: BinaryLogFiles, name: str) -> Path:
    return files.lock_path(f"read-{name}")


def expire(files: BinaryLogFiles, config: Config) -> list[str]:
    """Purge the logs that are older than `binlog_expire_logs_seconds`, and return their names.

    This does nothing while a backup locks the instance. A rotation calls it.
    """
    if not config.binlog_expire_logs_seconds:
        return []
    names = logs_older_than(files, time.time() - config.binlog_expire_logs_seconds)
    with closing(InstanceLock(config.datadir)) as lock:
        if not names or not lock.acquire_verb(0):
            return []
        return remove_logs(files, names)
