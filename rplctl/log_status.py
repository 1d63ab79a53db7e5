"""Collects the row of `rplctl log-status`: a consistent snapshot of positions, GTIDs and the logs of target servers.

The snapshot is taken while receivers and appliers run (WL#9452). Its parts are called resources: each channel, the
GTIDs, and each target. A collection has these steps, like make_row in WL#9452:

    1. check the privilege, connect, and execute each statement once, because these steps are slow
    2. take the lock `log_status` (locks.py)
    3. take the channel map (locks.py)
    4. lock all resources in this order: channels, GTIDs, targets
    5. collect the values of all resources
    6. unlock the resources in reverse order, even after an error
    7. compute the GTID sets

If a resource cannot be collected, the collection ends with error 3722, which names the column. If a resource cannot be
locked without waiting, all locks except `log_status` are released, and the next round begins at step 3. So nobody waits
for longer than one round (`Collected.held_s`). At each flush of MasterInfo, the receiver stores the end of the relay
log together with the read position. The row has this stored end. So the relay log position and the read position of a
channel are from the same moment.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rplctl import mysql_errors as er
from rplctl.applied_log.files import binary_log_files, existing_names
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.locks import PATIENCE_S, FileLock, channel_map, collector_lock, gtid_map, lock_wait_timeout
from rplctl.relay_log.index import RelayLogIndex
from rplctl.repository import list_channels, open_master_info
from rplctl.repository.channels import EngineOf, TargetKey, target_key
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO
from rplctl.repository.snapshot_reader import RecordsAtOnce, open_records

if TYPE_CHECKING:
    from rplctl.repository.table import TableReader
    from rplctl.target.engine_log import EngineLog

MASTER, CHANNELS, STORAGE_ENGINES = "MASTER", "CHANNELS", "STORAGE_ENGINES"
TARGETS = "targets"  # key in STORAGE_ENGINES
ROUND_PATIENCE_S = 0.003  # the wait for a lock in the first round; it grows with each round, to get a busy lock, too
LONGEST_PATIENCE_S = 1.0
_PAUSE_S = 0.005
_BREATH_S = 0.002  # a sleep before the locks, because a busy machine does not preempt a process directly after a sleep
_MAX_TEXT = 192

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogResource:
    """One part of the snapshot that can be locked and collected (Instance_log_resource in WL#9452).

    `lock` gets a time in seconds, and returns True if the lock was taken within this time. `collect` stores the values
    of the part; it raises RplError, OSError or ValueError. `column`: the column that an error names.
    """

    column: str
    lock: Callable[[float], bool]
    collect: Callable[[], None]
    unlock: Callable[[], None]


@dataclass(frozen=True, slots=True)
class TargetLog:
    """The log of one target server, and the channels whose transactions are applied to this target.

    The log is for example the redo log of InnoDB, or the WAL of PostgreSQL. `is_default`: True for the target in the
    common options.
    """

    log: EngineLog
    channels: tuple[str, ...] = ()
    is_default: bool = True


@dataclass(slots=True, kw_only=True)
class ChannelLog:
    """One channel in the snapshot: its MasterInfo, and the end of its relay log at the last flush of this record."""

    name: str
    master_info: MasterInfo | None = None
    relay_log_file: str = ""
    relay_log_position: int = 0
    relay_logs: tuple[str, ...] = ()  # the logs in the index up to relay_log_file
    binary_log_file: str = ""  # the log of applied transactions; '' without one
    binary_log_position: int = 0
    binary_logs: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Collected:
    """The collected row, and the times of the collection in seconds.

    `held_s`: the longest time for which a round blocked receivers and appliers. `map_held_s`: the longest time for
    which a round blocked commands on channels. `waited_s`: the time before the last round.
    """

    executed: list[RelayLogInfo] = field(default_factory=list)
    channels: list[ChannelLog] = field(default_factory=list)
    storage_engines: Document = field(default_factory=dict)
    held_s: float = 0.0
    map_held_s: float = 0.0
    waited_s: float = 0.0

    @property
    def gtid_executed(self) -> str:
        return executed_by_all(self.executed)

    @property
    def master(self) -> Document:
        """The column MASTER in the form of a server: the GTIDs, and the position in the binary log if there is one.

        If several channels have a binary log, `binary_logs` lists all of them.
        """
        logs = [log for log in self.channels if log.binary_log_file]
        found: Document = {"gtid_executed": self.gtid_executed}
        if logs:
            found |= _binary_log(logs[0])
        if len(logs) > 1:
            found["binary_logs"] = [{"channel_name": log.name, **_binary_log(log)} for log in logs]
        return found


def _binary_log(log: ChannelLog) -> Document:
    return {"binary_log_file": log.binary_log_file, "binary_log_position": log.binary_log_position}


def _channel_resource(
    channel: Channel, records: RecordsAtOnce[MasterInfo], into: ChannelLog, opened: ExitStack
) -> LogResource:
    index, lock = RelayLogIndex(channel), FileLock(channel.lock_path("data"))
    names_in = lru_cache(1)(index.names_in)  # an unchanged index is not parsed again
    opened.callback(lock.close)  # even if no round used it
    lock.open()
    names_in(index.read())

    def collect() -> None:
        info = records.find(into.name)
        names = names_in(index.read())
        into.master_info = info
        if info is None or info.flushed_relay_log_name not in names:
            return  # nothing was received yet, or recovery has removed the log and it is received again
        size = index.path(info.flushed_relay_log_name).stat().st_size
        into.relay_log_file = info.flushed_relay_log_name
        into.relay_log_position = min(info.flushed_relay_log_pos, size)  # smaller if recovery truncated a torn end
        into.relay_logs = tuple(names[: names.index(info.flushed_relay_log_name) + 1])

    return LogResource(
        column=CHANNELS, lock=lambda patience_s: lock.acquire(patience_s=patience_s), collect=collect, unlock=lock.close
    )


def gtid_resource(
    datadir: Path, configs: Mapping[str, Config], records: RecordsAtOnce[RelayLogInfo], into: Collected
) -> LogResource:
    lock = gtid_map(datadir)
    found = [(log, binary_log_files(configs[log.name], Channel(log.name, datadir))) for log in into.channels]
    binary_logs = [(log, files) for log, files in found if files is not None]

    def collect() -> None:
        stored = [records.find(log.name) for log in into.channels]
        into.executed = [info for info in stored if info is not None and RELAY_LOG_INFO.has_data(info)]
        for log, files in binary_logs:  # written only under this lock
            if names := existing_names(files):
                log.binary_logs, log.binary_log_file = tuple(names), names[-1]
                log.binary_log_position = RelayLogIndex(files).path(names[-1]).stat().st_size

    return LogResource(column=MASTER, lock=lock.acquire_exclusive, collect=collect, unlock=lock.close)


def _engine_resource(target: TargetLog, into: Document) -> LogResource:
    """Return the resource of a target's log. When it is collected, it stores the figures of the log in `into`.

    To unlock the resource does not end the snapshot of the log. The owner of the log closes this snapshot.
    """

    def lock(_: float) -> bool:
        target.log.lock()
        return True

    def collect() -> None:
        """Store the figures of the log in `into`. For another target than the default one, store them under TARGETS."""
        figures = {target.log.name: target.log.collect()}
        if target.is_default:
            into.update(figures)
        else:
            into.setdefault(TARGETS, []).append({"channel_names": list(target.channels), **figures})

    return LogResource(column=STORAGE_ENGINES, lock=lock, collect=collect, unlock=lambda: None)


def executed_by_all(records: Sequence[RelayLogInfo]) -> str:
    """Return the applied GTIDs of all channels: the union of MySQL's sets, a comma, the union of MariaDB's positions.

    A part without GTIDs is omitted.
    """
    mysql, mariadb = MysqlGtidSet(), MariadbGtidState()
    for record in records:
        text = record.gtid_executed
        if ":" in text:
            mysql = mysql.union(MysqlGtidSet.parse(text))
        elif text:
            mariadb = mariadb.union(MariadbGtidState.parse(text))
    return ",".join(filter(None, (str(mysql), str(mariadb))))


def collect_log_status(
    config: Callable[[str], Config], engine_of: EngineOf, logs: Sequence[TargetLog], patience_s: float = PATIENCE_S
) -> Collected:
    """Collect one row of log-status.

    `config` returns the options of a channel. `logs`: the logs of the targets, whose privileges the caller has checked.
    After the call, a log may keep a snapshot of its target open, which shows the target at the moment of the row.
    Raises RplError 3722 if a part cannot be collected, and LockBusy 1205 if a lock is not free within `patience_s`
    seconds.
    """
    datadir = config("").datadir
    list_channels(config(""), engine_of)  # connects if a repository is a TABLE: before the locks
    began = time.monotonic()
    deadline = began + patience_s
    held, map_held = 0.0, 0.0
    patience = ROUND_PATIENCE_S
    with closing(collector_lock(datadir)) as collector:
        if not collector.acquire(patience_s=patience_s):
            raise lock_wait_timeout("another log-status runs", "rplctl log-status")
        while True:
            with _map_held(datadir, deadline):
                round_began = time.monotonic()
                collected, held_s = _round(config, engine_of, logs, patience)
                held, map_held = max(held, held_s), max(map_held, time.monotonic() - round_began)
            if collected is not None:
                collected.held_s, collected.map_held_s, collected.waited_s = held, map_held, round_began - began
                return collected
            if time.monotonic() > deadline:
                raise lock_wait_timeout("a receiver or applier keeps its lock", "rplctl show-status")
            patience = min(patience * 1.3, LONGEST_PATIENCE_S)
            time.sleep(_PAUSE_S)


@contextmanager
def _map_held(datadir: Any, deadline: float) -> Iterator[None]:
    with closing(channel_map(datadir)) as channels:
        if not channels.acquire_exclusive(max(0.0, deadline - time.monotonic())):
            raise lock_wait_timeout("a command on a channel runs", "rplctl log-status")
        yield


def _round(
    config: Callable[[str], Config], engine_of: EngineOf, logs: Sequence[TargetLog], patience: float
) -> tuple[Collected | None, float]:
    """Make one attempt to collect the row, and return the row and the seconds for which locks were held.

    The row is None if a lock was busy. The caller holds the channel map.
    """
    collected = Collected()
    with ExitStack() as opened:
        resources = _resources(config, engine_of, logs, collected, opened)
        time.sleep(_BREATH_S)
        began = time.monotonic()
        is_complete = _collect(resources, patience)
        return collected if is_complete else None, time.monotonic() - began


def _resources(
    config: Callable[[str], Config], engine_of: EngineOf, logs: Sequence[TargetLog], into: Collected, opened: ExitStack
) -> list[LogResource]:
    """Return all resources in the order in which they are locked, with open connections and files.

    `opened`: the caller's stack, which closes the connections and files. `into` receives the collected values.
    """
    datadir = config("").datadir

    readers: dict[TargetKey, TableReader] = {}

    def reader(options: Config) -> TableReader:
        from rplctl.repository.table import open_reader

        key = target_key(options)
        if key not in readers:
            readers[key] = opened.enter_context(open_reader(engine_of(options)()))
        return readers[key]

    with _named(CHANNELS):
        into.channels = [ChannelLog(name=name) for name in list_channels(config(""), engine_of)]
        configs = {log.name: config(log.name) for log in into.channels}
        masters = open_records(MASTER_INFO, configs, reader)
        for name, options in configs.items():
            if masters.find(name) is None:
                open_master_info(options, Channel(name, datadir), engine_of(options)).read()  # raises the reason
        channels = [_channel_resource(Channel(log.name, datadir), masters, log, opened) for log in into.channels]
    with _named(MASTER):
        gtids = gtid_resource(datadir, configs, open_records(RELAY_LOG_INFO, configs, reader), into)
    masters.expire()
    return [*channels, gtids, *(_engine_resource(target, into.storage_engines) for target in logs)]


def _collect(resources: Sequence[LogResource], patience: float) -> bool:
    """Lock, collect and unlock all resources, and return True. Return False if a lock was busy.

    All locks are released in any case.
    """
    collects_garbage = gc.isenabled()
    gc.disable()
    try:
        with ExitStack() as locked:
            for resource in resources:
                with _named(resource.column):
                    if not resource.lock(patience):
                        return False
                locked.callback(_unlock, resource)
            for resource in resources:
                with _named(resource.column):
                    resource.collect()
    finally:
        if collects_garbage:
            gc.enable()
    return True


def _unlock(resource: LogResource) -> None:
    with suppress(OSError):
        resource.unlock()


@contextmanager
def _named(column: str) -> Iterator[None]:
    """Convert an error of the block to error 3722, which names the column and the reason."""
    try:
        yield
    except PermissionError:
        raise  # the resource has not failed: this user is not the owner of the instance
    except (RplError, OSError, ValueError) as error:
        raise unable(column, error, "to check the channels, run: rplctl check") from None


def unable(column: str, error: Exception, hint: str, whose: str = "") -> RplError:
    """Return error 3722 for a column that cannot be collected, with the reason from `error`.

    `hint` is used if `error` has no hint. `whose`: a text before the reason, which names the channel, or ''.
    """
    reason = error.message if isinstance(error, RplError) else str(error)
    return RplError(
        f"Unable to collect information for column '{column}': {whose}{reason[:_MAX_TEXT].rstrip('.')}.",
        errno=er.UNABLE_TO_COLLECT_LOG_STATUS,
        channel=getattr(error, "channel", None),
        hint=getattr(error, "hint", "") or hint,
    )
