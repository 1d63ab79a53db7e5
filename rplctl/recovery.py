"""Relay log recovery, which runs at each connection of the receiver (WL#4621, WL#7353, design D7).

1. Repair the index. An interrupted purge is finished, and missing files are removed from the index. Only the logs
before the first gap in their numbers are kept.
2. Truncate the last relay log after its last complete, intact transaction. Then sync this log, because a receiver that
was killed has not synced it. The earlier logs are complete, because a receiver syncs each log before it adds the next
log to the index. A log after the first one is useless if it does not record its start in the source's log. But if such
a log is intact and another program wrote it, recovery raises an error and removes nothing.
3. Find the next event to receive: it is at the end of the last relay log, or at the executed position if that is later.
The stored Read_Master_Log_Pos is used only in two cases. Either there is neither a relay log nor an executed position,
or CHANGE MASTER has set it while relay logs were not applied yet.
4. Check the relay logs from the applier's position on: they must be readable, and each must begin at the end of the log
before it. From the first fault on, the relay logs are removed, and their events are received again. A receiver that
starts checks all these logs (`thorough`). Later connections check only the applier's relay log and the last one.
If the relay logs begin after the executed position, all of them are useless and are removed. If nothing is executed
yet, this would also remove the position at which replication began. Recovery then raises an error with this position
and the next command.

With GTIDs, a position of one source has no meaning at another source. All relay logs are useless if the applier's relay
log is missing, or if step 4 finds a fault. The receiver then continues after the executed GTIDs. If there are none, it
begins at the source's first log.

Invariant: to make a plan changes nothing (`plan_recovery`). After each step of its execution, a new plan has the same
result. So recovery may be killed at any point and repeated. The caller holds the lock of the receiver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.errors import BinlogFormatError, RelayLogError, file_errors, for_channel
from rplctl.failpoint import crash_point
from rplctl.info import SET_BY_COMMAND, MasterInfo, RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, RelayLogPosition, log_number
from rplctl.relay_log.gtid import retrieved_gtids
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import first_fetched, follows, named
from rplctl.relay_log.log_file import (
    Boundary,
    cut_file,
    intact_end,
    is_of_another_program,
    last_sound_boundary,
    mapped_file,
    read_start,
    start_of,
    sync_file,
)
from rplctl.relay_log.purge import finish_purge, purge_names, registered_names
from rplctl.relay_log.useful import reason_not_to_apply

_NO_RELAY_LOG: Final = RelayLogPosition("", 0)
_NOWHERE: Final = BinlogPosition("", FIRST_EVENT_POSITION)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """The result of a recovery, or the plan if nothing was changed (`dry_run`)."""

    next_event: BinlogPosition  # WL#4621's e' or e'': the position to request from the source
    relay_end: RelayLogPosition  # where the receiver appends (`RelayLogWriter.resume`); empty without a relay log
    needs_new_relay_log: bool  # no relay log, a truncated end, or a jump: the receiver must begin a new relay log
    format_description: bytes  # the source's FORMAT_DESCRIPTION in force at `relay_end`; b'' if unknown
    truncated_bytes: int
    removed_relay_logs: tuple[str, ...]
    retrieved_gtid_set: str  # GTIDs of complete transactions in the relay log; only for channels that use GTIDs
    is_index_repaired: bool
    notes: tuple[str, ...]  # for the thread's log and `rplctl recover`
    continues_at: BinlogPosition = _NOWHERE  # the source position that a new relay log records as its start


@dataclass(frozen=True, slots=True)
class _Tail:
    """The last usable relay log, and the position after which it is to be truncated.

    `size`: the size of the log in bytes before the truncation. `boundary`: the position after the last complete, intact
    transaction.
    """

    name: str
    size: int
    boundary: Boundary

    @property
    def cut_bytes(self) -> int:
        return self.size - self.boundary.offset

    @property
    def end(self) -> RelayLogPosition:
        return RelayLogPosition(self.name, self.boundary.offset)


def recover_relay_log(
    channel: Channel,
    master_info: MasterInfo,
    relay_log_info: RelayLogInfo,
    *,
    dry_run: bool = False,
    thorough: bool = True,
) -> RecoveryResult:
    """Truncate the relay log after its last complete transaction, and return the next position to receive.

    `dry_run`: return only the plan. `thorough`: check all relay logs (step 4 in the module's docstring). Raises
    RelayLogError if relay logs are missing or damaged, nothing is applied yet, and recovery would lose the position at
    which replication began. Also raises RelayLogError for an intact log of another program (step 2). Raises RplError
    if the disk fails; the error is transient if the disk is full.
    """
    if dry_run:
        return plan_recovery(channel, master_info, relay_log_info, thorough=thorough)
    index = RelayLogIndex(channel)
    with file_errors(channel.name), index.lock():
        before = index.names()
        finish_purge(channel)
        is_changed = index.names() != before
        plan = plan_recovery(channel, master_info, relay_log_info, thorough=thorough)
        plan = replace(plan, is_index_repaired=plan.is_index_repaired or is_changed)
        _carry_out(index, plan)
    return plan


def plan_recovery(
    channel: Channel, master_info: MasterInfo, relay_log_info: RelayLogInfo, *, thorough: bool = True
) -> RecoveryResult:
    """Return the plan of the recovery, and change nothing.

    The parameters and errors are those of `recover_relay_log`.
    """
    index = RelayLogIndex(channel)
    purged = set(registered_names(channel))
    listed = [name for name in index.names() if name not in purged]
    files = [name for name in index.files() if name not in purged]
    kept, notes = choose_logs(listed, files)
    if why := reason_not_to_apply(index, kept, relay_log_info, master_info.place, by_gtid=master_info.uses_gtid):
        notes.append(f"{why}: all are removed, and all events that are not executed are fetched again")
        kept = []
    uses_gtid = master_info.uses_gtid
    executed = relay_log_info.exec_position
    begun = None if executed.log_name or uses_gtid else first_fetched(index, kept, relay_log_info, by_gtid=False)
    tail, damaged = _find_tail(index, kept)
    for name in damaged:
        notes.append(f"relay log {name} has no intact event; it is removed")
    kept = kept[: len(kept) - len(damaged)]
    if begun is not None and kept and _begins_after(index, kept[0], begun, relay_log_info, by_gtid=False):
        raise _unknown_start(channel, "the relay logs are not in the order of their index;", begun)
    first = relay_log_info.relay_log_name
    if not (executed.log_name or uses_gtid or first in ("", *kept)) and kept:
        raise _unknown_start(channel, f"relay log {first} is missing;")
    if kept and _begins_after(index, kept[0], executed, relay_log_info, by_gtid=uses_gtid):
        notes.append(f"relay logs from {kept[0]} on begin after the executed position {executed}; they are removed")
        kept, tail = [], None
    sound, broken = sound_chain(index, kept, _first_to_read(index, kept, executed, relay_log_info), thorough=thorough)
    if broken and not uses_gtid:
        if not (sound or executed.log_name):
            raise _unknown_start(channel, f"the relay logs are damaged: {broken};", begun)
        tail = _examine(index, sound[-1], is_first=len(sound) == 1) if sound else None
        notes.append(f"relay logs are damaged: {broken}; everything after {tail.end if tail else executed} is removed")
        kept = sound
    retrieved, unread = _retrieved(index, kept, tail, broken) if uses_gtid else ("", "")
    if unread:
        notes.append(
            f"relay logs are damaged: {unread}; all are removed, and all events that are not executed are fetched again"
        )
        kept, tail = [], None
    next_event = _next_event(tail, executed, master_info, channel)
    moved = tail is not None and _is_set_behind(tail, master_info)
    notes += _position_notes(tail, next_event, relay_log_info)
    is_jump = tail is not None and bool(tail.boundary.source.log_name) and next_event != tail.boundary.source
    return RecoveryResult(
        next_event=next_event,
        relay_end=tail.end if tail else _NO_RELAY_LOG,
        needs_new_relay_log=tail is None or tail.cut_bytes > 0 or is_jump,
        format_description=tail.boundary.source_format_description if tail else b"",
        truncated_bytes=tail.cut_bytes if tail else 0,
        removed_relay_logs=tuple(name for name in files if name not in kept),
        retrieved_gtid_set=retrieved,
        is_index_repaired=kept != index.names() or not (index.is_canonical() or not kept),
        notes=tuple(notes),
        continues_at=tail.boundary.source if tail and (moved or uses_gtid) else next_event,
    )


def choose_logs(listed: Sequence[str], files: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the relay logs to keep, and notes for the operator about the others.

    `listed`: the names in the index. `files`: the existing relay logs. The kept logs are in both, and are before the
    first gap in their numbers. If the index has no names, the kept logs are the files after the last gap.
    """
    notes: list[str] = []
    existing = sorted(set(listed) & set(files), key=log_number)
    if listed:
        notes += [f"relay log {name} is in the index but not on disk" for name in listed if name not in files]
        kept = existing[:1]
        for name in existing[1:]:
            if log_number(name) != log_number(kept[-1]) + 1:
                notes.append(f"relay logs between {kept[-1]} and {name} are missing; what follows is fetched again")
                break
            kept.append(name)
        return kept, notes
    for name in sorted(files, key=log_number, reverse=True):
        if existing and log_number(name) != log_number(existing[0]) - 1:
            break
        existing.insert(0, name)
    if existing:
        notes.append(f"the relay log index was lost; rebuilt from {existing[0]} to {existing[-1]}")
    return existing, notes


def _find_tail(index: RelayLogIndex, kept: Sequence[str]) -> tuple[_Tail | None, list[str]]:
    """Return the last usable relay log (None if there is none), and the names of the later logs, which are damaged."""
    damaged: list[str] = []
    for name in reversed(kept):
        tail = _examine(index, name, is_first=name == kept[0])
        if tail is not None:
            return tail, damaged
        damaged.insert(0, name)
    return None, damaged


def _examine(index: RelayLogIndex, name: str, *, is_first: bool) -> _Tail | None:
    """Return the relay log with the position after its last complete, intact transaction.

    Return None if the log is useless. A log is useless if even its first event is incomplete. A log that follows other
    logs (`is_first` is False) is also useless if it does not record its start in the source's log. Raises RelayLogError
    if such a log is intact and another program wrote it.
    """
    with mapped_file(index.path(name)) as data:
        try:
            start = read_start(data)
        except BinlogFormatError:
            return None
        size = len(data)
        sound = data[: intact_end(data, start.boundary.offset, start.checksum_algorithm)]
        boundary = last_sound_boundary(sound, start.boundary)
        if not start.source.log_name and (boundary.offset <= start.first_event_end < size or not is_first):
            if is_of_another_program(sound, start) and not is_first:
                raise _not_judged(index.channel, name)
            return None  # the start of this log in the source's log is unknown, so it cannot continue another log
        return None if boundary.offset < start.first_event_end else _Tail(name, size, boundary)


def _begins_after(
    index: RelayLogIndex, first: str, executed: BinlogPosition, relay_log_info: RelayLogInfo, *, by_gtid: bool
) -> bool:
    """True if the first relay log begins after the executed position, so that events between them are missing."""
    start = start_of(index.path(first))
    if by_gtid and relay_log_info.relay_log_name:  # logs that were received again begin at the executed position
        return start != executed and not index.path(relay_log_info.relay_log_name).exists()
    return bool(executed.log_name) and (start is None or (bool(start.log_name) and executed.is_before(start)))


def _first_to_read(
    index: RelayLogIndex, kept: Sequence[str], executed: BinlogPosition, relay_log_info: RelayLogInfo
) -> int:
    """Return the index, in `kept`, of the relay log that the applier reads next. Return 0 if this log is unknown."""
    if relay_log_info.gtid_executed and relay_log_info.relay_log_name in kept:
        return kept.index(relay_log_info.relay_log_name)
    for number in range(len(kept) - 1, 0, -1) if executed.log_name else ():
        start = start_of(index.path(kept[number]))
        if start is not None and start.log_name and not executed.is_before(start):
            return number
    return 0


def sound_chain(index: RelayLogIndex, kept: Sequence[str], first: int, *, thorough: bool) -> tuple[list[str], str]:
    """Return the relay logs before the first damage or gap, and a description of this fault ('' if none).

    The check begins at the index `first` of `kept`, which is the applier's relay log. Without `thorough`, only this log
    and its successor are checked.
    """
    for number in range(first, len(kept) - 1):
        name, following = kept[number : number + 2]
        tail, there = _examine(index, name, is_first=number == 0), start_of(index.path(following))
        if tail is None:
            return list(kept[:number]), f"{name} has no intact event"
        here = tail.boundary.source
        if there is not None and not there.log_name:
            _examine(index, following, is_first=False)  # raises an error if another program wrote an intact log
        if there is None or not follows(here, there):
            return list(kept[: number + 1]), f"{name} can be read to {here}, {following} begins at {named(there)}"
        if not thorough:
            break
    return list(kept), ""


def _retrieved(index: RelayLogIndex, kept: Sequence[str], tail: _Tail | None, broken: str) -> tuple[str, str]:
    """Return the GTIDs of the relay logs, and the reason why these GTIDs are unknown ('' if they are known).

    `broken`: the damage or gap that `sound_chain` found, or ''.
    """
    if broken or tail is None:
        return "", broken
    try:
        return retrieved_gtids(index, kept, tail.boundary.offset), ""
    except BinlogFormatError as error:
        return "", error.message


def _is_set_behind(tail: _Tail, master_info: MasterInfo) -> bool:
    """True if CHANGE MASTER has set the read position while there were relay logs that are not applied yet."""
    is_set = not master_info.flushed_relay_log_name and master_info.flushed_relay_log_pos == SET_BY_COMMAND
    return bool(is_set and tail.boundary.source.log_name and not master_info.uses_gtid)


def _next_event(
    tail: _Tail | None, executed: BinlogPosition, master_info: MasterInfo, channel: Channel
) -> BinlogPosition:
    """Return the position to request from the source: step 3 in the module's docstring (WL#4621).

    Raises RelayLogError if all relay logs are missing and nothing is applied yet.
    """
    if tail is not None and _is_set_behind(tail, master_info):
        return master_info.read_position
    if tail is not None and tail.boundary.source.log_name:
        fetched = tail.boundary.source
        return executed if executed.log_name and fetched.is_before(executed) and not master_info.uses_gtid else fetched
    if executed.log_name:
        return executed
    if master_info.uses_gtid:
        return _NOWHERE  # the receiver begins after the executed GTIDs, or at the source's first log
    if tail is None and master_info.flushed_relay_log_name:
        raise _unknown_start(
            channel, f"all relay logs are missing (the last one was {master_info.flushed_relay_log_name});"
        )
    return master_info.read_position


def _unknown_start(channel: Channel, why: str, begun: BinlogPosition | None = None) -> RelayLogError:
    """Return the error for relay logs that are lost or damaged before anything was applied.

    `why`: the first words of the message. `begun`: the position at which replication began; None if it is unknown.
    """
    name = f" --channel {channel.name}" if channel.name else ""
    if begun is not None:
        options = f"--master-log-file {begun.log_name} --master-log-pos {begun.log_pos}"
        hint = f"to begin at this position again, run: rplctl change-master{name} {options}; rplctl start{name}"
    else:
        hint = (
            f"to begin at the source's first log, run: rplctl reset{name}; rplctl start{name}\n"
            "To copy all tables instead, because rows are missing if the source has purged its first log, run: "
            f"rplctl reset{name}; rplctl clone{name} --replace; rplctl start{name}"
        )
    start = f"the receiver had begun at {begun}" if begun else "the position to fetch from is unknown"
    return RelayLogError(
        f"{why} nothing was applied yet: {start}",
        errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
        channel=channel.name,
        hint=hint,
    )


def _not_judged(channel: Channel, name: str) -> RelayLogError:
    again = for_channel("rplctl recover --refetch; rplctl start", channel.name)
    return RelayLogError(
        f"relay log {name} is intact, but does not record its position in the source's log: another program wrote it",
        errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
        channel=channel.name,
        hint=f"to remove all relay logs and to fetch the missing transactions again, run: {again}",
    )


def _position_notes(tail: _Tail | None, next_event: BinlogPosition, relay_log_info: RelayLogInfo) -> list[str]:
    notes = []
    if tail and tail.cut_bytes:
        notes.append(f"{tail.cut_bytes} bytes after the last complete transaction, at {tail.end}, are removed")
    if tail is None or tail.cut_bytes or next_event != tail.boundary.source:
        notes.append(
            f"Recovery from master pos {next_event.log_pos} and file {next_event.log_name}. Previous relay log pos and "
            f"relay log file had been set to {relay_log_info.relay_log_pos}, {relay_log_info.relay_log_name} "
            "respectively."
        )
    return notes


def _carry_out(index: RelayLogIndex, plan: RecoveryResult) -> None:
    """Execute the plan: write the index, remove files, and then truncate or sync the last relay log.

    The caller holds the lock of the index.
    """
    kept = [name for name in index.files() if name not in plan.removed_relay_logs]
    if plan.is_index_repaired:
        index.replace(kept)
        crash_point("crash_recovery_after_update_index")
    if plan.removed_relay_logs:
        purge_names(index.channel, plan.removed_relay_logs)
    if plan.truncated_bytes:
        crash_point("crash_recovery_before_truncate")
        cut_file(index.path(plan.relay_end.log_name), plan.relay_end.log_pos)
        crash_point("crash_recovery_after_truncate")
    elif plan.relay_end.log_name:
        sync_file(index.path(plan.relay_end.log_name))
