"""What a running receiver or applier says of itself: one small JSON file per thread, replaced atomically.

It feeds `show-status` (states, errors, lag) and never holds a position that anything starts from: the repositories are
the authority. Whether the thread runs is its lock (channel.py), not this file. So one that cannot be written stops no
thread: on a full disk it is written over in place, which needs no space; else the log tells that it is out of date.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from rplctl.durable import replace_file, write_all

log = logging.getLogger(__name__)
_told: set[Path] = set()  # files that could not be written last time
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_BLOCK = 4096  # of every file system there is, or a multiple: what a file has of it can be written over


@dataclass(slots=True)
class ThreadStatus:
    """Shared by both threads; unset numbers are 0, unset texts ''. Timestamps are Unix seconds."""

    state: str = ""  # Slave_IO_State / Slave_SQL_Running_State, MySQL's words
    connected: bool = False  # receiver: Yes (True) or Connecting (False)
    last_errno: int = 0
    last_error: str = ""
    last_error_timestamp: float = 0.0
    updated: float = field(default_factory=time.time)
    # receiver
    master_server_id: int = 0
    master_uuid: str = ""
    master_version: str = ""
    read_log_name: str = ""  # live view of Read_Master_Log_Pos; MasterInfo is the authority
    read_log_pos: int = 0
    retrieved_gtid_set: str = ""
    clock_difference: float = 0.0  # source's clock minus ours, seconds
    received_heartbeats: int = 0
    # applier
    last_event_timestamp: int = 0  # of the transaction in work or delayed, source's clock; 0 when there is none
    relay_log_name: str = ""
    relay_log_pos: int = 0
    exec_log_name: str = ""
    exec_log_pos: int = 0
    commit_mode: str = ""  # transaction, marker or xa, and why not xa (design D3)
    executed_gtid_set: str = ""
    transactions: int = 0
    row_changes: int = 0
    batches: int = 0
    retried_transactions: int = 0
    passed_over_errors: int = 0
    until_condition: str = "None"
    until_log_name: str = ""
    until_log_pos: int = 0
    remaining_delay: int | None = None

    def write(self, path: Path) -> None:
        self.updated = time.time()
        data = json.dumps(asdict(self), ensure_ascii=True).encode() + b"\n"
        try:
            _put(path, data)
        except OSError as error:
            if path not in _told:
                log.warning("%s cannot be written, show-status is out of date: %s", path, error.strerror)
            _told.add(path)
        else:
            _told.discard(path)


def _put(path: Path, data: bytes) -> None:
    try:
        replace_file(path, data, durable=False)
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if len(data) > -(-os.fstat(descriptor).st_size // _BLOCK) * _BLOCK:
                raise
            write_all(descriptor, data)
            os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)


def read_status(path: Path) -> ThreadStatus:
    """The last status written; an empty one when there is none or it is unreadable. Unknown keys are ignored."""
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return ThreadStatus(updated=0.0)
    known = {f.name for f in fields(ThreadStatus)}
    return ThreadStatus(**{key: value for key, value in stored.items() if key in known})
