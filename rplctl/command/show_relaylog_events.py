"""SHOW RELAYLOG EVENTS: list the events of one relay log."""

from __future__ import annotations

from collections.abc import Iterator

from rplctl import mysql_errors as er
from rplctl.command.channel.context import open_repositories
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.position import FIRST_EVENT_POSITION
from rplctl.relay_log.event_list import RelayLogEvent, events_of
from rplctl.relay_log.index import RelayLogIndex

__all__ = ["RelayLogEvent", "show_relaylog_events"]


def show_relaylog_events(
    config: Config,
    channel_name: str,
    log_name: str = "",
    position: int = FIRST_EVENT_POSITION,
    limit: int | None = None,
) -> Iterator[RelayLogEvent]:
    """Return at most `limit` events of one relay log, from `position` on. By default, it is the oldest relay log.

    Raises UsageError 1220 if the log does not exist, RelayLogError 1220 if no event begins at `position`, and
    BinlogFormatError if the log is damaged.
    """
    repositories = open_repositories(config, channel_name)
    repositories.master()
    index = RelayLogIndex(repositories.channel)
    names = index.names()
    if log_name and log_name not in names:
        raise UsageError(
            "Error when executing command SHOW RELAYLOG EVENTS: Could not find target log",
            errno=er.ERROR_WHEN_EXECUTING_COMMAND,
            channel=channel_name,
            hint=f"to list the events of one of the relay logs ({', '.join(names) or 'none'}), run: "
            "rplctl show-relaylog-events --in FILE",
        )
    if not names:
        return iter(())
    return events_of(index.path(log_name or names[0]), position, limit)
