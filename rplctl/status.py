"""Status of a running receiver or applier: one small JSON file per thread, replaced atomically.

It feeds `show-status` (states, errors, lag) and never holds a position that anything starts from: the repositories are
the authority. Whether the thread runs is its lock (channel.py), not this file. So one that cannot be written stops no
thread: on a full disk it is written over in place, which needs no space; else the log tells that it is out of date.

Invariant: a live process gives it a new time every PULSE_S, whatever its thread is busy with, and writes it when
something in it changed; but not for an applier that waits for work and does not come by any more. So an old one is told
apart from an old piece of news: its process or thread is frozen, hangs, or is gone (design D22, `silent_since`,
`was_killed`).
"""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from operator import attrgetter
from pathlib import Path

from rplctl.durable import replace_file, write_all
from rplctl.errors import RplError
from rplctl.plain_file import closing_descriptor, parsed_json, read_plain
from rplctl.position import BinlogPosition

log = logging.getLogger(__name__)
_reported: set[Path] = set()  # files that could not be written last time
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
PULSE_S = 1.0
SILENT_S = 5.0  # a few pulses: a process that lives has written by then
PATIENCE_S = 2.0  # with a thread that says each second that it waits, before its file is not kept fresh any more
HUNG_S = 30.0  # of other threads, which wait for work and say so several times a second
NO_EXECUTORS = "Waiting for executors"  # the applier's state begins so where Spark's cluster gives it none
AWAY = "Waiting to reconnect to the target"  # the applier's state; its last error says why
_BLOCK = 4096  # of every file system there is, or a multiple: what a file has of it can be written over


@dataclass(slots=True)
class ThreadStatus:
    """Shared by both threads; unset numbers are 0, unset texts ''. Timestamps are Unix seconds."""

    state: str = ""  # Slave_IO_State / Slave_SQL_Running_State, MySQL's words
    connected: bool = False  # receiver: Yes (True) or Connecting (False)
    last_errno: int = 0
    last_error: str = ""
    last_hint: str = ""  # what an operator can do about the last error; a second way is a line of its own
    last_error_timestamp: float = 0.0
    updated: float = field(default_factory=time.time)  # when the process last wrote this
    worked: float = 0.0  # when the thread itself last said something
    is_waiting: bool = False  # for work: it says so again and again, while one that works may be busy for long
    is_done: bool = False  # stopped because all that it was started for is done: UNTIL, or what the source had
    # receiver
    lost: float = 0.0  # since when there is no connection; 0 while there is one
    master_server_id: int = 0
    master_uuid: str = ""
    read_log_name: str = ""  # live view of Read_Master_Log_Pos; MasterInfo is the authority
    read_log_pos: int = 0
    retrieved_gtid_set: str = ""
    clock_difference: float = 0.0  # source's clock minus ours, seconds
    clock_error: float = 0.0  # how wrong that can be, seconds; 0: it was never measured
    read_timestamp: float = 0.0  # of the last event that was read, by the source's clock
    source_seen: float = 0.0  # when the source was looked at (receiver/observer.py); 0: never
    source_log_name: str = ""  # where its log ended then
    source_log_pos: int = 0
    source_bytes_per_s: float = 0.0  # what it wrote between the last two looks
    source_keeps_s: float = 0.0  # how long it keeps a log; 0: any time
    source_purge_at: float = 0.0  # when it purges what is read next, by our clock; 0: not in sight
    relay_disk_full_at: float = 0.0  # at the rate of the last minutes; 0: not in sight
    received_heartbeats: int = 0
    transfer_timestamp: int = 0  # of the first event of the transaction in transfer, source's clock; 0: there is none
    # applier
    last_applied_timestamp: int = 0  # of the last transaction that was applied, source's clock
    last_event_timestamp: int = 0  # of the transaction in work or delayed, source's clock; 0 when there is none
    heartbeats: str = ""  # SERVER_ID:SECONDS,... as the target has them (heartbeat.py); Unix seconds, source's clock
    relay_log_name: str = ""  # how far it is in the relay log: the applier; the receiver with its read position
    relay_log_pos: int = 0
    exec_log_name: str = ""
    exec_log_pos: int = 0
    target_state: str = ""  # why the target does not belong to the position (commit/belonging.py); '' while it does
    commit_mode: str = ""  # transaction, marker or xa, and why not xa (design D3)
    executed_gtid_set: str = ""
    transactions: int = 0
    row_changes: int = 0
    batches: int = 0
    spark_jobs: int = 0
    small_jobs: int = 0  # decoded in the applier's own process, sooner than a job of Spark begins
    rows_by_spark: int = 0  # of row_changes and of the rows of copies
    rows_by_driver: int = 0  # the others that were decoded
    spark_workers: int = 0
    spark_job: str = ""
    retried_transactions: int = 0
    passed_over_errors: int = 0
    until_condition: str = "None"
    until_log_name: str = ""
    until_log_pos: int = 0
    remaining_delay: int | None = None
    # a copy of tables (rplctl clone): the applier's, which loads it; clone_moved and clone_step also the reading end's
    clone_tables: int = 0  # 0: there is none, or it is done
    clone_done: int = 0
    clone_percent: int = 0
    clone_rows: int = 0  # a second
    clone_bytes: int = 0  # a second
    clone_left: int | None = None  # seconds, as far as that can be told
    clone_moved: float = 0.0  # when rows last went on their way
    clone_incident: str = ""  # a chunk that is read again, how often and why
    clone_step: str = ""  # how its snapshots know their place

    @property
    def cloning(self) -> str:
        """The applier's state while tables are copied; '' while none are."""
        if not self.clone_tables:
            return ""
        return f"Cloning: {self.clone_done} of {self.clone_tables} tables, {self.clone_percent} %"

    @property
    def read_position(self) -> BinlogPosition:
        return BinlogPosition(self.read_log_name, self.read_log_pos)

    @property
    def has_applied(self) -> bool:
        """True if an applier has said where it is. RESET and CHANGE MASTER remove what it said."""
        return bool(self.exec_log_name or self.executed_gtid_set)

    @property
    def exec_position(self) -> BinlogPosition:
        return BinlogPosition(self.exec_log_name, self.exec_log_pos)

    def write(self, path: Path) -> None:
        self.updated = time.time()
        data = json.dumps(asdict(self), ensure_ascii=True).encode() + b"\n"
        try:
            _put(path, data)
        except OSError as error:
            if path not in _reported:
                log.warning("%s cannot be written, show-status is out of date: %s", path, error.strerror)
            _reported.add(path)
        else:
            _reported.discard(path)


class StatusFile:
    """A running thread's status and its file. Within `pulse` it is kept fresh also while the thread is busy, and, where
    there is a `patience_s`, as long as a thread that waits for work says so.
    """

    def __init__(self, path: Path, status: ThreadStatus, patience_s: float = float("inf")) -> None:
        self.path = path
        self.status = status
        self._patience_s = patience_s
        self._alive = time.monotonic()  # when the thread itself last came by
        self._lock = threading.Lock()  # the pulse and the thread itself have one temporary file
        self._said = self._written = 0.0  # time.monotonic(), by the thread itself and by anyone
        self._content: object = None  # what was written last

    def write(self) -> None:
        """The thread's own word."""
        self.status.worked, self._said = time.time(), time.monotonic()
        self._alive = self._said
        self._write()

    def write_if_changed(self) -> None:
        """The thread's own word, where the file does not say it yet."""
        self._alive = time.monotonic()
        if _content_of(self.status) != self._content:
            self.write()

    def write_if_older(self, seconds: float) -> bool:
        """Write only if the thread's own status is older; return True if it was."""
        self._alive = time.monotonic()
        if self._alive - self._said < seconds:
            return False
        self.write()
        return True

    @contextmanager
    def pulse(self) -> Iterator[None]:
        """From another thread, for the block: the process is alive."""
        _pulse.add(self)
        try:
            yield
        finally:
            _pulse.remove(self)

    def beat(self) -> None:
        """Write the changed status, or only renew the file's time."""
        now = time.monotonic()
        if now - self._written < PULSE_S or (self.status.is_waiting and now - self._alive > self._patience_s):
            return
        if _content_of(self.status) != self._content:
            return self._write()
        moment = time.time()
        try:
            os.utime(self.path, (moment, moment))
        except OSError:
            self._write()

    def _write(self) -> None:
        with self._lock:
            self._written, self._content = time.monotonic(), _content_of(self.status)
            self.status.write(self.path)


class _Pulse:
    """One thread for all status files of the process, as long as there is one."""

    def __init__(self) -> None:
        self._files: list[StatusFile] = []
        self._changed = threading.Condition()

    def add(self, file: StatusFile) -> None:
        with self._changed:
            self._files.append(file)
            if len(self._files) == 1:
                threading.Thread(target=self._run, args=(self._files,), name="rplctl-pulse", daemon=True).start()

    def remove(self, file: StatusFile) -> None:
        """It is not written to by the pulse any more."""
        with self._changed:
            self._files.remove(file)
            if not self._files:
                self._files = []  # the thread of the old list ends
                self._changed.notify_all()

    def _run(self, files: list[StatusFile]) -> None:
        with self._changed:
            while files:
                for file in files:
                    file.beat()
                self._changed.wait(PULSE_S / 2)


_pulse = _Pulse()
_content_of = attrgetter(*(each.name for each in fields(ThreadStatus) if each.name not in ("updated", "worked")))
_BLANK = asdict(ThreadStatus())
_LATEST = 1e11  # Unix seconds: a clock in the year 5138


def _put(path: Path, data: bytes) -> None:
    try:
        replace_file(path, data, durable=False)
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        with closing_descriptor(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)) as descriptor:
            if len(data) > -(-os.fstat(descriptor).st_size // _BLOCK) * _BLOCK:
                raise
            write_all(descriptor, data)
            os.ftruncate(descriptor, len(data))


def read_status(path: Path) -> ThreadStatus:
    """The last status written, `updated` by the file's own time; an empty one when there is none or it is unreadable.
    Unknown keys are ignored.
    """
    try:
        beaten = path.stat().st_mtime
        stored = parsed_json(read_plain(path))
    except (OSError, ValueError, RplError):
        return ThreadStatus(updated=0.0)
    if not isinstance(stored, dict):
        return ThreadStatus(updated=0.0)
    found = ThreadStatus(**{key: value for key, value in stored.items() if _is_fit(key, value)})
    found.updated = max(found.updated, min(beaten, _LATEST))
    return found


def _is_fit(name: str, value: object) -> bool:
    """True if the name is a field and the value has the field's type."""
    if name not in _BLANK:
        return False
    example = _BLANK[name]
    if example is None:  # seconds, or none
        return value is None or type(value) is int
    if isinstance(example, float):
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LATEST
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return False
    return type(value) is type(example)


def silent_since(status: ThreadStatus, started: float, now: float) -> float | None:
    """When a thread that holds its lock since `started` last gave a sign of life, if that is too long ago; else None.

    A sign from the future, after the clock was set back, is none: a live process replaces it within a second.
    """
    heard = max(status.updated, started)
    if abs(now - heard) > SILENT_S:
        return heard
    is_here = status.updated >= started  # it is this run's word, not that of the one before
    if is_here and status.is_waiting and status.worked and abs(now - status.worked) > HUNG_S:
        return status.worked
    return None


def was_killed(status: ThreadStatus) -> bool:
    """True if a thread that does not run ended without a stop message, which a normal end writes."""
    return bool(status.state)
