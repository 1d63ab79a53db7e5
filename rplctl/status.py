"""The status of a running receiver or applier: one small JSON file per thread, which is replaced atomically.

`rplctl show-status` shows the states, errors and times in the file. Replication does not depend on the file: a thread
starts from the position in the repositories, and the thread's lock (channel.py) shows if the thread runs. So an error
while the file is written stops no thread. On a full disk, the file is overwritten in place, which needs no space. After
any other error, the log reports that the file is out of date.

Invariant: a live process updates the file's modification time every PULSE_S, even while its thread is busy. It writes
the file after each change. So an old time does not mean that nothing happened. It means that the process is frozen or
has ended. While an applier waits, the waiting code updates the time, so an old time can also mean that this code hangs
(design D22). `silent_since` and `was_killed` use this rule.
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
_reported: set[Path] = set()  # files whose last write failed, which the log has reported
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
PULSE_S = 1.0
SILENT_S = 5.0  # a live process has updated the file within this time, because it is longer than some pulses
PATIENCE_S = 2.0  # an applier that waits reports every second; after this time without a report, its pulse stops
HUNG_S = 30.0  # a thread that waits for work, and has not reported this for so long, hangs
NO_EXECUTORS = "Waiting for executors"  # the first words of the applier's state if Spark's cluster provides no executor
AWAY = "Waiting to reconnect to the target"  # the applier's state; its last error has the reason
_BLOCK = 4096  # bytes; the blocks of every file system have this size or a multiple of it


@dataclass(slots=True, kw_only=True)
class ThreadStatus:
    """The status of one thread. Numbers without a value are 0, texts without a value are ''.

    Timestamps are Unix times in seconds.
    """

    state: str = ""  # Slave_IO_State / Slave_SQL_Running_State, MySQL's words
    connected: bool = False  # receiver: Yes (True) or Connecting (False)
    last_errno: int = 0
    last_error: str = ""
    last_hint: str = ""  # the hint of the last error; each alternative is on a line of its own
    last_error_timestamp: float = 0.0
    updated: float = field(default_factory=time.time)  # time of the process's last write
    worked: float = 0.0  # time of the thread's own last report
    is_waiting: bool = False  # True if the thread waits for work and reports this again and again
    is_done: bool = False  # True if the thread stopped because it reached UNTIL or the source's end
    # receiver
    lost: float = 0.0  # when the connection was lost; 0 while connected
    master_server_id: int = 0
    master_uuid: str = ""
    read_log_name: str = ""  # the present read position; MasterInfo has the one from which a start continues
    read_log_pos: int = 0
    retrieved_gtid_set: str = ""
    clock_difference: float = 0.0  # source's clock minus rplctl's clock, seconds
    clock_error: float = 0.0  # the largest possible error of that difference, seconds; 0 = never measured
    read_timestamp: float = 0.0  # the time of the last received event, by the source's clock
    source_seen: float = 0.0  # time of the last poll of the source (receiver/observer.py); 0 = never
    source_log_name: str = ""  # the end of the source's log at that poll
    source_log_pos: int = 0
    source_bytes_per_s: float = 0.0  # the write rate of the source's log between the last two polls
    source_keeps_s: float = 0.0  # seconds for which the source retains a log; 0 = no limit
    source_purge_at: float = 0.0  # when the source purges the next log to read, by rplctl's clock; 0 = not expected
    relay_disk_full_at: float = 0.0  # when the disk is full, at the rate of the last minutes; 0 = not expected
    received_heartbeats: int = 0  # the number since the connection was changed or reset
    heartbeat_timestamp: float = 0.0  # the time of the last heartbeat, by this machine's clock
    transfer_timestamp: int = 0  # of the first event of the transaction in transfer, by the source's clock; 0 = none
    # applier
    last_applied_timestamp: int = 0  # the time of the last applied transaction, by the source's clock
    last_event_timestamp: int = 0  # the time of the current or delayed transaction, by the source's clock; 0 = none
    heartbeats: str = ""  # SERVER_ID:UNIX_TIME,... from the heartbeat table in the target, by the source's clock
    relay_log_name: str = ""  # the executed position in the relay log; for the receiver, the read position there
    relay_log_pos: int = 0
    exec_log_name: str = ""
    exec_log_pos: int = 0
    target_state: str = ""  # why the target does not belong to the position (commit/belonging.py); '' if it belongs
    commit_mode: str = ""  # the commit mode, and the reason if the mode xa is not possible (design D3)
    executed_gtid_set: str = ""
    transactions: int = 0
    row_changes: int = 0
    batches: int = 0
    spark_jobs: int = 0
    small_jobs: int = 0  # batches that the applier decoded in its own process, because they were small
    rows_by_spark: int = 0  # rows that Spark tasks decoded; includes copied rows
    rows_by_driver: int = 0  # rows that the applier's own process decoded
    spark_workers: int = 0
    spark_job: str = ""
    retried_transactions: int = 0
    passed_over_errors: int = 0
    skip_counter: int = 0  # the number of transactions that the applier will still skip
    until_condition: str = "None"
    until_log_name: str = ""
    until_log_pos: int = 0
    remaining_delay: int | None = None
    # A copy of tables (rplctl clone). The applier sets these values. The cloner, which reads the source, has a status
    # file of its own, in which it sets only clone_moved and clone_step.
    clone_tables: int = 0  # 0 = no copy, or a finished one
    clone_done: int = 0
    clone_percent: int = 0
    clone_rows: int = 0  # per second
    clone_bytes: int = 0  # per second
    clone_left: int | None = None  # estimated seconds
    clone_moved: float = 0.0  # the time at which rows were copied last
    clone_incident: str = ""  # a chunk that is read again, with its number and the reason
    clone_step: str = ""  # the method by which the copy opens its snapshots

    @property
    def cloning(self) -> str:
        """The applier's state in words while tables are copied. The value is '' at other times."""
        if not self.clone_tables:
            return ""
        return f"Cloning: {self.clone_done} of {self.clone_tables} tables, {self.clone_percent} %"

    @property
    def read_position(self) -> BinlogPosition:
        return BinlogPosition(self.read_log_name, self.read_log_pos)

    @property
    def has_applied(self) -> bool:
        """True if an applier has reported its position. RESET and CHANGE MASTER remove the position."""
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
    """The status of a running thread, and the file that shows it.

    During `pulse`, the file's modification time is updated even while the thread is busy. But if the thread waits for
    work and has not reported this for `patience_s` seconds, the updates stop.
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
        """Write the status to the file. The thread itself calls this, so the call also counts as a sign of its work."""
        self.status.worked, self._said = time.time(), time.monotonic()
        self._alive = self._said
        self._write()

    def write_if_changed(self) -> None:
        """Call `write` if the status differs from the file. Each call shows that the thread itself is alive."""
        self._alive = time.monotonic()
        if _content_of(self.status) != self._content:
            self.write()

    def write_if_older(self, seconds: float) -> bool:
        """Call `write` if the last `write` was at least `seconds` ago. Return True if the status was written."""
        self._alive = time.monotonic()
        if self._alive - self._said < seconds:
            return False
        self.write()
        return True

    @contextmanager
    def pulse(self) -> Iterator[None]:
        """Make a background thread update the file during the block, which shows that the process is alive."""
        _pulse.add(self)
        try:
            yield
        finally:
            _pulse.remove(self)

    def beat(self) -> None:
        """Write the status if it has changed, or else update the file's modification time.

        The background thread of `pulse` calls this. Do nothing if the last write is more recent than PULSE_S, or if the
        thread waits for work and has not reported this for `patience_s` seconds.
        """
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
    """The background thread that keeps all status files of the process up to date.

    The thread starts with the first file and ends with the last one.
    """

    def __init__(self) -> None:
        self._files: list[StatusFile] = []
        self._changed = threading.Condition()

    def add(self, file: StatusFile) -> None:
        with self._changed:
            self._files.append(file)
            if len(self._files) == 1:
                threading.Thread(target=self._run, args=(self._files,), name="rplctl-pulse", daemon=True).start()

    def remove(self, file: StatusFile) -> None:
        """Stop the updates of this file."""
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
    """Return the status in the file, with the file's modification time as `updated`.

    The status is empty if the file is missing or unreadable. Keys and values that do not fit are ignored.
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
    """True if `name` is a field of ThreadStatus, and the value has the type and the range of this field."""
    if name not in _BLANK:
        return False
    example = _BLANK[name]
    if example is None:  # the field has seconds or None
        return value is None or type(value) is int
    if isinstance(example, float):
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LATEST
    if isinstance(value, int) and abs(value) >= 1 << 64:
        return False
    return type(value) is type(example)


def silent_since(status: ThreadStatus, started: float, now: float) -> float | None:
    """Return the time of a thread's last sign of life, if the thread or its process hangs. Otherwise, return None.

    `started`: the time since which the thread holds its lock. `now`: the present time. A status from the future also
    counts as a hang. It was written before the clock was set back, and a live process replaces it within a second.
    """
    heard = max(status.updated, started)
    if abs(now - heard) > SILENT_S:
        return heard
    is_here = status.updated >= started  # the status is from this run, not from the last one
    if is_here and status.is_waiting and status.worked and abs(now - status.worked) > HUNG_S:
        return status.worked
    return None


def was_killed(status: ThreadStatus) -> bool:
    """True if a stopped thread was killed in its last run.

    A thread that ends by itself writes a status with an empty state.
    """
    return bool(status.state)
