"""Status of a running receiver or applier: one small JSON file per thread, replaced atomically.

`show-status` reads the file (states, errors, lag). No thread starts from a position in it: the repositories are the
authority. The thread's lock (channel.py), not this file, shows if the thread runs. So a write error stops no thread.
On a full disk, the file is overwritten in place, which needs no space. Otherwise, the log reports that the file is out
of date.

Invariant: a live process renews the file's time every PULSE_S, even while its thread is busy, and writes the file
after each change. The exception is an applier that waits for work but does not report it any more. So an old time
means that the process or thread is frozen, hangs, or has ended, not just that nothing happened (design D22,
`silent_since`, `was_killed`).
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
SILENT_S = 5.0  # a few pulses: a live process has written by then
PATIENCE_S = 2.0  # a waiting thread reports every second; after this time without a report, the pulse stops
HUNG_S = 30.0  # for other threads, which report several times per second while they wait for work
NO_EXECUTORS = "Waiting for executors"  # beginning of the applier's state if Spark's cluster gives it none
AWAY = "Waiting to reconnect to the target"  # the applier's state; its last error has the reason
_BLOCK = 4096  # a block of every file system, or a fraction of one: a file's blocks can be overwritten


@dataclass(slots=True, kw_only=True)
class ThreadStatus:
    """The status of a thread; unset numbers are 0, unset texts ''. Timestamps are Unix seconds."""

    state: str = ""  # Slave_IO_State / Slave_SQL_Running_State, MySQL's words
    connected: bool = False  # receiver: Yes (True) or Connecting (False)
    last_errno: int = 0
    last_error: str = ""
    last_hint: str = ""  # an operator's next step after the last error; each alternative is on its own line
    last_error_timestamp: float = 0.0
    updated: float = field(default_factory=time.time)  # time of the process's last write
    worked: float = 0.0  # time of the thread's own last report
    is_waiting: bool = False  # for work: such a thread reports repeatedly, but a working thread may be busy for long
    is_done: bool = False  # stopped because its work is done: UNTIL is reached, or the source's end
    # receiver
    lost: float = 0.0  # start of the time without a connection; 0 while connected
    master_server_id: int = 0
    master_uuid: str = ""
    read_log_name: str = ""  # live view of Read_Master_Log_Pos; MasterInfo is the authority
    read_log_pos: int = 0
    retrieved_gtid_set: str = ""
    clock_difference: float = 0.0  # source's clock minus rplctl's clock, seconds
    clock_error: float = 0.0  # largest error of that difference, seconds; 0: never measured
    read_timestamp: float = 0.0  # of the last received event, by the source's clock
    source_seen: float = 0.0  # time of the last poll of the source (receiver/observer.py); 0: never
    source_log_name: str = ""  # end of the source's log at that poll
    source_log_pos: int = 0
    source_bytes_per_s: float = 0.0  # the source's write rate between the last two polls
    source_keeps_s: float = 0.0  # retention time of a log on the source; 0: no limit
    source_purge_at: float = 0.0  # when the source purges the next log to read, by rplctl's clock; 0: not expected
    relay_disk_full_at: float = 0.0  # at the rate of the last minutes; 0: not expected
    received_heartbeats: int = 0  # since the connection was changed or reset
    heartbeat_timestamp: float = 0.0  # of the last heartbeat, by this machine's clock
    transfer_timestamp: int = 0  # first event of the transaction in transfer, by the source's clock; 0: none
    # applier
    last_applied_timestamp: int = 0  # of the last applied transaction, by the source's clock
    last_event_timestamp: int = 0  # of the current or delayed transaction, by the source's clock; 0: none
    heartbeats: str = ""  # SERVER_ID:SECONDS,... in the target (heartbeat.py); Unix seconds, source's clock
    relay_log_name: str = ""  # position in the relay log: the applier's; for the receiver, that of its read position
    relay_log_pos: int = 0
    exec_log_name: str = ""
    exec_log_pos: int = 0
    target_state: str = ""  # why the target does not belong to the position (commit/belonging.py); '' if it does
    commit_mode: str = ""  # transaction, marker or xa, and why not xa (design D3)
    executed_gtid_set: str = ""
    transactions: int = 0
    row_changes: int = 0
    batches: int = 0
    spark_jobs: int = 0
    small_jobs: int = 0  # decoded in the applier's own process, faster than the start of a Spark job
    rows_by_spark: int = 0  # part of row_changes and of copied rows
    rows_by_driver: int = 0  # the other decoded rows
    spark_workers: int = 0
    spark_job: str = ""
    retried_transactions: int = 0
    passed_over_errors: int = 0
    until_condition: str = "None"
    until_log_name: str = ""
    until_log_pos: int = 0
    remaining_delay: int | None = None
    # a copy of tables (rplctl clone) by the applier, which loads it; the reader also sets clone_moved and clone_step
    clone_tables: int = 0  # 0: no copy, or a finished one
    clone_done: int = 0
    clone_percent: int = 0
    clone_rows: int = 0  # per second
    clone_bytes: int = 0  # per second
    clone_left: int | None = None  # estimated seconds
    clone_moved: float = 0.0  # time at which rows were last sent
    clone_incident: str = ""  # a chunk that is read again, with the number and the reason
    clone_step: str = ""  # the method of its snapshots

    @property
    def cloning(self) -> str:
        """The applier's state while tables are copied; '' otherwise."""
        if not self.clone_tables:
            return ""
        return f"Cloning: {self.clone_done} of {self.clone_tables} tables, {self.clone_percent} %"

    @property
    def read_position(self) -> BinlogPosition:
        return BinlogPosition(self.read_log_name, self.read_log_pos)

    @property
    def has_applied(self) -> bool:
        """True if an applier has reported its position. RESET and CHANGE MASTER remove it."""
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
                log.warning("cannot write %s, so show-status is out of date: %s", path, error.strerror)
            _reported.add(path)
        else:
            _reported.discard(path)


class StatusFile:
    """A running thread's status and its file.

    Within `pulse`, the file stays fresh even while the thread is busy. With `patience_s`, it stays fresh only as long
    as a thread that waits for work reports this.
    """

    def __init__(self, path: Path, status: ThreadStatus, patience_s: float = float("inf")) -> None:
        self.path = path
        self.status = status
        self._patience_s = patience_s
        self._alive = time.monotonic()  # time of the thread's last call
        self._lock = threading.Lock()  # the pulse and the thread share one temporary file
        self._said = self._written = 0.0  # time.monotonic() of the thread's last write, and of any last write
        self._content: object = None  # the last written content

    def write(self) -> None:
        """Write the status, as the thread's own report."""
        self.status.worked, self._said = time.time(), time.monotonic()
        self._alive = self._said
        self._write()

    def write_if_changed(self) -> None:
        """Write the thread's own report, unless the file has the same content."""
        self._alive = time.monotonic()
        if _content_of(self.status) != self._content:
            self.write()

    def write_if_older(self, seconds: float) -> bool:
        """Write only if the thread's last report is older; True if it was."""
        self._alive = time.monotonic()
        if self._alive - self._said < seconds:
            return False
        self.write()
        return True

    @contextmanager
    def pulse(self) -> Iterator[None]:
        """Let another thread show, during the block, that the process is alive."""
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
    """One thread for all status files of the process, as long as there is a file."""

    def __init__(self) -> None:
        self._files: list[StatusFile] = []
        self._changed = threading.Condition()

    def add(self, file: StatusFile) -> None:
        with self._changed:
            self._files.append(file)
            if len(self._files) == 1:
                threading.Thread(target=self._run, args=(self._files,), name="rplctl-pulse", daemon=True).start()

    def remove(self, file: StatusFile) -> None:
        """Stop the pulse of this file."""
        with self._changed:
            self._files.remove(file)
            if not self._files:
                self._files = []  # ends the thread of the old list
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
    """Return the last written status, with the file's own time as `updated`.

    The status is empty if the file is missing or unreadable. Unknown keys are ignored.
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
    if example is None:  # seconds or None
        return value is None or type(value) is int
    if isinstance(example, float):
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LATEST
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return False
    return type(value) is type(example)


def silent_since(status: ThreadStatus, started: float, now: float) -> float | None:
    """Return the time of the last sign of life of a thread, if that was too long ago; else None.

    The thread holds its lock since `started`. A time in the future, after the clock was set back, also counts as too
    long ago: a live process replaces it within a second.
    """
    heard = max(status.updated, started)
    if abs(now - heard) > SILENT_S:
        return heard
    is_here = status.updated >= started  # a report of this run, not of the last one
    if is_here and status.is_waiting and status.worked and abs(now - status.worked) > HUNG_S:
        return status.worked
    return None


def was_killed(status: ThreadStatus) -> bool:
    """True if a stopped thread has no stop message, which a normal end writes."""
    return bool(status.state)
