"""Relay log recovery (WL#4621, WL#7353, design D7): runs at every connect, needs no option.

1. repair the index: finish an interrupted purge, drop what does not exist, keep the logs up to the first gap;
2. cut the last relay log to its last complete, intact transaction (only the last can be torn: its predecessors were
   made durable before it was listed), and make it durable: a killed receiver did not, and another may follow it;
3. the next event to fetch is where that transaction ends in the source's log, or the executed position when that is
   later; the stored Read_Master_Log_Pos is asked only when there is neither relay log nor executed position, or when
   CHANGE MASTER set it behind relay logs that are still to be applied;
4. relay logs that begin after the executed position, or that cannot be read on from there to the next one, are useless:
   all go, and the executed position is fetched again, by GTID from the source's first log on when nothing is executed.
   By GTID positions of one source say nothing about another's: relay logs without the applier's own are useless, and
   so are all when one does not begin where the one before it ends.

Invariant: a plan is pure (`plan_recovery`, what `dry_run` shows), and each step of carrying it out leaves a state from
which the same result is planned again, so recovery may be killed anywhere and repeated. Caller holds the receiver lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import BinlogFormatError, RelayLogError, file_error
from rplctl.failpoint import crash_point
from rplctl.info import SET_BY_COMMAND, MasterInfo, RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, RelayLogPosition, log_number
from rplctl.relay_log.check import intact_end
from rplctl.relay_log.gtid import retrieved_gtids
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import READ_FAILURE, out_of_order
from rplctl.relay_log.log_file import (
    Boundary,
    cut_file,
    last_sound_boundary,
    mapped_file,
    read_start,
    start_of,
    sync_file,
)
from rplctl.relay_log.purge import finish_purge, purge_names, registered_names

_NO_RELAY_LOG: Final = RelayLogPosition("", 0)
_NOWHERE: Final = BinlogPosition("", FIRST_EVENT_POSITION)


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What recovery did, or with `dry_run` would do."""

    next_event: BinlogPosition  # WL#4621's e' or e'': what to ask the source for
    relay_end: RelayLogPosition  # where to append (`RelayLogWriter.resume`); the empty position without a relay log
    needs_new_relay_log: bool  # `open_new(next_event, …)` instead: no file, a tail was cut, or positions jump
    format_description: bytes  # the source's event in force at `relay_end`; b'' when unknown
    truncated_bytes: int
    removed_relay_logs: tuple[str, ...]
    retrieved_gtid_set: str  # GTIDs of complete transactions in the relay log; only for channels that use GTIDs
    is_index_repaired: bool
    notes: tuple[str, ...]  # for the thread's log and `rplctl recover`
    continues_at: BinlogPosition = _NOWHERE  # where the relay log ends: a new one says so, the source may be another


@dataclass(frozen=True, slots=True)
class _Tail:
    """The last relay log that is of use, as it will be after the cut."""

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
    config: Config,
    master_info: MasterInfo,
    relay_log_info: RelayLogInfo,
    *,
    dry_run: bool = False,
) -> RecoveryResult:
    """Bring the relay log to its last complete transaction and say what to fetch next.

    No option of `config` turns this off or weakens it. Raises RelayLogError when transactions that were fetched,
    but may not have been applied, are gone or out of order and nothing tells where to fetch them again; RplError when
    the disk fails (transient when it is full).
    """
    del config
    if dry_run:
        return plan_recovery(channel, master_info, relay_log_info)
    index = RelayLogIndex(channel)
    try:
        with index.lock():
            before = index.names()
            finish_purge(channel)
            is_changed = index.names() != before
            plan = plan_recovery(channel, master_info, relay_log_info)
            plan = replace(plan, is_index_repaired=plan.is_index_repaired or is_changed)
            _carry_out(index, plan)
    except OSError as error:
        raise file_error(error, channel.name) from error
    return plan


def plan_recovery(channel: Channel, master_info: MasterInfo, relay_log_info: RelayLogInfo) -> RecoveryResult:
    """What recovery will do; reads only."""
    index = RelayLogIndex(channel)
    purged = set(registered_names(channel))
    listed = [name for name in index.names() if name not in purged]
    files = [name for name in index.files() if name not in purged]
    kept, notes = choose_logs(listed, files)
    tail, damaged = _find_tail(index, kept)
    for name in damaged:
        notes.append(f"relay log {name} holds no intact event; it is removed")
    kept = kept[: len(kept) - len(damaged)]
    executed = relay_log_info.exec_position
    uses_gtid = master_info.uses_gtid
    if kept and _begins_after(index, kept[0], executed, relay_log_info, by_gtid=uses_gtid):
        notes.append(f"relay logs from {kept[0]} on begin after the executed position {executed}; they are removed")
        kept, tail = [], None
    retrieved, broken = _read_through(index, kept, tail, relay_log_info, by_gtid=uses_gtid)
    if broken and not (executed.log_name or uses_gtid):
        raise _unknown_start(channel, f"Relay logs are damaged: {broken};")
    if broken:
        notes.append(f"relay logs are damaged: {broken}; all are removed and fetched again from what is executed")
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
    """(relay logs to keep, notes): of those listed and on disk, up to the first gap in their numbers.

    Without any usable line in the index, the files are listed again from the last one back to the first gap.
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
    """(the last relay log of use, later ones that hold nothing intact)."""
    damaged: list[str] = []
    for name in reversed(kept):
        tail = _examine(index, name)
        if tail is not None:
            return tail, damaged
        damaged.insert(0, name)
    return None, damaged


def _examine(index: RelayLogIndex, name: str) -> _Tail | None:
    """Where the file's last complete, intact transaction ends; None when not even its first event is whole."""
    with mapped_file(index.path(name)) as data:
        try:
            start = read_start(data)
        except BinlogFormatError:
            return None
        size = len(data)
        sound = data[: intact_end(data, start.boundary.offset, start.checksum_algorithm)]
        boundary = last_sound_boundary(sound, start.boundary)
        if boundary.offset <= start.first_event_end < size and not start.source.log_name:
            return None  # cut inside the header: where the file begins is unknown, and nothing in it is whole
        return None if boundary.offset < start.first_event_end else _Tail(name, size, boundary)


def _begins_after(
    index: RelayLogIndex, first: str, executed: BinlogPosition, relay_log_info: RelayLogInfo, *, by_gtid: bool
) -> bool:
    """True when the relay logs do not reach back to the executed position."""
    start = start_of(index.path(first))
    if by_gtid and relay_log_info.relay_log_name:  # what was fetched again begins with the executed position
        return start != executed and not index.path(relay_log_info.relay_log_name).exists()
    return bool(executed.log_name) and (start is None or (bool(start.log_name) and executed.is_before(start)))


def _read_through(
    index: RelayLogIndex, kept: Sequence[str], tail: _Tail | None, relay_log_info: RelayLogInfo, *, by_gtid: bool
) -> tuple[str, str]:
    """(the GTIDs in the relay logs when they are needed, what keeps the applier from reading on; '' for nothing)."""
    try:
        executed = relay_log_info.exec_position
        broken = _break_behind(index, kept, executed) if executed.log_name else out_of_order(index, kept, by_gtid=False)
        if broken or not by_gtid or tail is None:
            return "", broken
        return retrieved_gtids(index, kept, tail.boundary.offset), ""
    except BinlogFormatError as error:
        return "", error.message


def _break_behind(index: RelayLogIndex, kept: Sequence[str], executed: BinlogPosition) -> str:
    """What is wrong with the relay log that the applier is in: it cannot be read to where the next one begins. Nothing
    when it is the last, which the cut mends; later ones are looked at when the applier has come to them.
    """
    following = ""
    for name in reversed(kept):
        start = start_of(index.path(name))
        if start is None or executed.is_before(start):
            following = name
            continue
        if not following:
            return ""
        with mapped_file(index.path(name)) as data:
            first = read_start(data)
            sound = data[: intact_end(data, first.boundary.offset, first.checksum_algorithm)]
            here, there = last_sound_boundary(sound, first.boundary).source, start_of(index.path(following))
        if there is not None and not (here.log_name and there.log_name and here.is_before(there)):
            return ""
        return f"{name} can be read to {here}, {following} begins at {there or 'an unknown place'}"
    return ""


def _is_set_behind(tail: _Tail, master_info: MasterInfo) -> bool:
    """CHANGE MASTER named another place to read from while relay logs waited to be applied."""
    is_set = not master_info.flushed_relay_log_name and master_info.flushed_relay_log_pos == SET_BY_COMMAND
    known = tail.boundary.source.log_name and master_info.master_log_name
    return bool(is_set and known and not master_info.uses_gtid)


def _next_event(
    tail: _Tail | None, executed: BinlogPosition, master_info: MasterInfo, channel: Channel
) -> BinlogPosition:
    """WL#4621: the later of the relay log's end and the executed position."""
    if tail is not None and _is_set_behind(tail, master_info):
        return master_info.read_position
    if tail is not None and tail.boundary.source.log_name:
        fetched = tail.boundary.source
        return executed if executed.log_name and fetched.is_before(executed) and not master_info.uses_gtid else fetched
    if executed.log_name:
        return executed
    if master_info.uses_gtid:
        return _NOWHERE  # the executed GTIDs say it; none of them: from the source's first log on
    if tail is None and master_info.flushed_relay_log_name:
        raise _unknown_start(channel, f"All relay logs are gone (the last was {master_info.flushed_relay_log_name}),")
    return master_info.read_position


def _unknown_start(channel: Channel, why: str) -> RelayLogError:
    return RelayLogError(
        f"{why} nothing was applied yet: where to fetch again is unknown",
        errno=READ_FAILURE,
        channel=channel.name,
        hint="rplctl change-master --master-log-file FILE --master-log-pos POS",
    )


def _position_notes(tail: _Tail | None, next_event: BinlogPosition, relay_log_info: RelayLogInfo) -> list[str]:
    notes = []
    if tail and tail.cut_bytes:
        notes.append(f"{tail.cut_bytes} bytes after the last complete transaction, at {tail.end}, are cut")
    if tail is None or tail.cut_bytes or next_event != tail.boundary.source:
        notes.append(
            f"Recovery from master pos {next_event.log_pos} and file {next_event.log_name}. Previous relay log pos and "
            f"relay log file had been set to {relay_log_info.relay_log_pos}, {relay_log_info.relay_log_name} "
            "respectively."
        )
    return notes


def _carry_out(index: RelayLogIndex, plan: RecoveryResult) -> None:
    """Index first, then files, then the cut or the sync. Caller holds the index lock."""
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
