"""Make the binary log of applied transactions and the target agree at start, after a crash.

Invariant: afterwards, the log has the transactions of the target, or an INCIDENT event states that some are missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import Enum

import numpy as np

from rplctl.applied_log.binary_log import BinaryLog, no_events
from rplctl.applied_log.record import EventPlace, PositionRecord, log_event
from rplctl.applier.feed.gtids import assigned, moved_by
from rplctl.applier.feed.plan import plan_batches
from rplctl.applier.log_bin.events import logged_events
from rplctl.channel import Channel
from rplctl.commit.step import CommitMode, CommitStep, PositionStore
from rplctl.commit.transaction import commit_after
from rplctl.config import Config
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.errors import RelayLogError
from rplctl.event.jit import ByteArray
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.relay_log.reader import RelayGroups, RelayLogReader
from rplctl.target.base import Target

_LOST_EVENTS = (1).to_bytes(2, "little")


class Remedy(Enum):
    """The action that makes the log and the target agree at start."""

    NOTHING = "nothing"
    COMMIT = "commit"  # the last transactions of the log are committed to the target
    APPEND = "append"  # transactions are missing in the log, and are copied from the relay logs
    RESTART = "restart"  # a new log begins, because the position was moved; no transaction is missing
    INCIDENT = "incident"  # a new log begins with an INCIDENT, because transactions are missing


def remedy_for(
    record: PositionRecord | None, committed: RelayLogInfo, *, is_in_relay_logs: bool, log_decides: bool
) -> Remedy:
    """Return the action that makes the log and the target agree. `record` is the last record of the log.

    `committed` is the position that the target has reached. `is_in_relay_logs` is true if the relay logs have all
    transactions between the position of the record and `committed`. `log_decides` is true in two-phase commit: then the
    transactions in the log are committed to the target.
    """
    if record is None or record.after.exec_position == committed.exec_position:
        return Remedy.NOTHING
    if record.before.is_at(committed) and (log_decides or not record.changes):
        return Remedy.COMMIT
    if is_in_relay_logs:
        return Remedy.APPEND
    same_gtids = bool(committed.gtid_executed) and record.after.gtid_executed == committed.gtid_executed
    if same_gtids or committed.exec_position.is_before(record.after.exec_position):
        return Remedy.RESTART
    return Remedy.INCIDENT


def catch_up(  # noqa: PLR0913 - the parts of one applier
    config: Config,
    channel: Channel,
    target: Target,
    store: PositionStore,
    committed: RelayLogInfo,
    *,
    has_rollbacks: bool,
) -> RelayLogInfo:
    """Make the log and the target agree before anything is applied, and return the position on which they agree.

    `committed` is the position that the target has reached. `has_rollbacks` is passed to `plan_batches`. Raises
    RelayLogError if the log cannot be repaired or written, and TargetError if the target rejects a statement.
    """
    log = store.log
    if log is None:
        return committed
    record = log.open()
    missing = _missing(config, channel, committed.moved_to(record.after), committed) if record is not None else None
    log_decides = store.mode is CommitMode.XA
    remedy = remedy_for(record, committed, is_in_relay_logs=missing is not None, log_decides=log_decides)
    if record is None or remedy is Remedy.NOTHING:
        return committed
    at = committed.moved_to(record.after)
    if remedy is Remedy.COMMIT:  # any changes of data are already committed
        commit_after(target, store, CommitStep(committed, at), lambda: None)
        return at
    if remedy is not Remedy.APPEND:
        _restart(log, committed, with_incident=remedy is Remedy.INCIDENT)
        return committed
    rules = ReplicationFilter.from_config(config)
    for groups in missing or []:
        for batch in plan_batches(groups, _groups_until(groups, committed), has_rollbacks=has_rollbacks):
            new = moved_by(batch, at, config)
            log.stage(logged_events(batch, rules, assigned(at, config)), at)
            log.complete(at, new)
            at = new
    return committed


def _missing(
    config: Config, channel: Channel, logged: RelayLogInfo, committed: RelayLogInfo
) -> list[RelayGroups] | None:
    """Return the groups between the last position in the binary log and the committed position.

    Return None if the relay logs do not have all these groups.
    """
    if not logged.relay_log_name or not logged.exec_position.is_before(committed.exec_position):
        return None
    reader = RelayLogReader(channel)
    found: list[RelayGroups] = []
    try:
        place = reader.locate(committed.exec_position)
        if place is None or not reader.open(logged):
            return None
        while reader.position.is_before(place):
            groups = reader.groups(config.max_batch_bytes)
            if groups is None:
                return None
            found.append(groups)
    except RelayLogError:
        return None
    if not found:
        return None
    end = found[-1].scan.source_position(_groups_until(found[-1], committed) - 1)
    return found if end == committed.exec_position else None


def _restart(log: BinaryLog, committed: RelayLogInfo, *, with_incident: bool) -> None:
    now = int(time.time())

    def incident(position: int) -> Iterator[ByteArray]:
        text = b"transactions were applied that this log lacks"
        description = log.description
        assert description is not None
        place = EventPlace(
            server_id=log.server_id,
            timestamp=now,
            begins_at=position,
            checksum_algorithm=description.checksum_algorithm,
        )
        body = _LOST_EVENTS + bytes([len(text)]) + text
        yield np.frombuffer(log_event(EventType.INCIDENT, body, place), np.uint8)

    log.restart(committed, incident if with_incident else no_events, now)


def _groups_until(groups: RelayGroups, committed: RelayLogInfo) -> int:
    """Return the number of groups up to the group that ends at the committed position.

    If no group of `groups` ends at this position, all groups are before it, and the result is the number of all groups.
    """
    positions = [groups.scan.source_position(number) for number in range(len(groups.scan))]
    wanted = committed.exec_position
    return positions.index(wanted) + 1 if wanted in positions else len(positions)
