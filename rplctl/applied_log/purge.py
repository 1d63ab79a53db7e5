"""Removing binary logs: up to one, before a time, or older than `binlog_expire_logs_seconds`.

Invariant: the last log stays: it says where the log ends. Register, index and order are the relay log's
(relay_log.purge), so a kill at any point neither loses a listed file nor brings one back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from rplctl import mysql_errors as er
from rplctl.applied_log.files import BinaryLogFiles
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.locks import InstanceLock
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.purge import finish_purge, purge_names


def logs_before(files: BinaryLogFiles, name: str) -> list[str]:
    """PURGE BINARY LOGS TO: the logs before that one. Raises UsageError 1373."""
    names = RelayLogIndex(files).names()
    if name not in names:
        raise UsageError("Target log not found in binlog index", errno=er.UNKNOWN_TARGET_BINLOG, channel=files.name)
    return names[: names.index(name)]


def logs_older_than(files: BinaryLogFiles, moment: float) -> list[str]:
    """PURGE BINARY LOGS BEFORE: the logs last written before that time, up to the first that was not."""
    index = RelayLogIndex(files)
    found = []
    for name in index.names()[:-1]:
        path = index.path(name)
        if path.exists() and path.stat().st_mtime >= moment:
            break
        found.append(name)
    return found


def remove_logs(files: BinaryLogFiles, names: Sequence[str]) -> None:
    """Those of the names that are still listed and not the last."""
    index = RelayLogIndex(files)
    with index.lock():
        finish_purge(files)
        gone = [name for name in index.names()[:-1] if name in names]
        if gone:
            purge_names(files, gone)


def expire(files: BinaryLogFiles, config: Config) -> list[str]:
    """After a rotation; nothing while the instance is locked for a backup. The names removed."""
    if not config.binlog_expire_logs_seconds:
        return []
    names = logs_older_than(files, time.time() - config.binlog_expire_logs_seconds)
    with closing(InstanceLock(config.datadir)) as lock:
        if not names or not lock.acquire_verb(0):
            return []
        remove_logs(files, names)
    return names
