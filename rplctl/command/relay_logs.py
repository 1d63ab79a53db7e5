"""SHOW RELAYLOG EVENTS, FLUSH RELAY LOGS, PURGE of applied relay logs, and the names of a channel's relay logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rplctl.channel import Channel
from rplctl.command.channel.context import (
    RECEIVER,
    administer,
    channels_stay,
    open_repositories,
    read_master_info,
    running,
)
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.own_process import signal_holder
from rplctl.position import FIRST_EVENT_POSITION


@dataclass(frozen=True, slots=True)
class RelayLogEvent:
    """Field names are the columns of SHOW RELAYLOG EVENTS."""

    Log_name: str
    Pos: int
    Event_type: str
    Server_id: int
    End_log_pos: int
    Info: str


def show_relaylog_events(
    config: Config,
    channel_name: str,
    log_name: str = "",
    position: int = FIRST_EVENT_POSITION,
    limit: int | None = None,
) -> Iterator[RelayLogEvent]:
    """Events of one relay log, by default the oldest. Raises UsageError and RelayLogError 1220, BinlogFormatError."""
    from rplctl.relay_log.event_list import events_of
    from rplctl.relay_log.index import RelayLogIndex

    channel = Channel(channel_name, config.datadir)
    read_master_info(open_repositories(config, channel_name), channel_name)
    index = RelayLogIndex(channel)
    names = index.names()
    if log_name and log_name not in names:
        raise UsageError(
            "Error when executing command SHOW RELAYLOG EVENTS: Could not find target log",
            errno=1220,
            channel=channel_name,
            hint=f"relay logs: {', '.join(names) or 'none'}",
        )
    if not names:
        return iter(())
    listed = events_of(index.path(log_name or names[0]), position, limit)
    return (RelayLogEvent(e.log_name, e.pos, e.event_type, e.server_id, e.end_log_pos, e.info) for e in listed)


@dataclass(frozen=True, slots=True)
class PurgeResult:
    channel: str
    removed: tuple[str, ...]
    dry_run: bool


def purge_relay_logs(config: Config, channel_name: str, *, dry_run: bool = False) -> PurgeResult:
    """Remove the relay logs that are applied as a whole. Raises NotConfigured."""
    from rplctl.applied_log.end import logged_record
    from rplctl.applied_log.files import binary_log_files
    from rplctl.relay_log.index import RelayLogIndex
    from rplctl.relay_log.purge import purge_applied

    channel = Channel(channel_name, config.datadir)
    with administer(config, channel) as config:
        repositories = open_repositories(config, channel_name)
        read_master_info(repositories, channel_name)
        relay = repositories.relay_log_info
        position = relay.read().relay_log_position if relay.exists() else None
        record = logged_record(binary_log_files(config, channel))
        if position is not None and record is not None and record.after.relay_log_position.is_before(position):
            position = record.after.relay_log_position  # the binary log lacks what is behind it
        names = RelayLogIndex(channel).names()
        if position is None or position.log_name not in names:
            return PurgeResult(channel_name, (), dry_run)
        applied = names[: names.index(position.log_name)]
        removed = applied if dry_run else purge_applied(channel, position)
        return PurgeResult(channel_name, tuple(removed), dry_run)


@dataclass(frozen=True, slots=True)
class FlushResult:
    channel: str
    asked_receiver: bool


def flush_relay_logs(config: Config, channel_name: str) -> FlushResult:
    """FLUSH RELAY LOGS: the running receiver begins a new file (SIGHUP); does nothing without one."""
    import signal

    channel = Channel(channel_name, config.datadir)
    read_master_info(open_repositories(config, channel_name), channel_name)
    pid = running(channel).get(RECEIVER)
    if not pid:
        return FlushResult(channel_name, asked_receiver=False)
    with channels_stay(config.datadir):
        lock = channel.lock_path(RECEIVER)
        asked = signal_holder(pid, signal.SIGHUP, lock, "the receiver", channel_name)
    return FlushResult(channel_name, asked_receiver=asked)
