"""Read the state of a channel at one moment, for monitoring. An error of the reading is a part of the state."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from rplctl.channel import Channel
from rplctl.command.check.sync_record import read_sync_record, runs_from_cron
from rplctl.command.process.thread_report import ThreadReport, Threads
from rplctl.command.show_status import SlaveStatus, status_and_threads
from rplctl.config import Config
from rplctl.errors import RplError, as_rpl_error

STATES: Final = ("running", "connecting", "silent", "stopped", "failed", "killed")


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a channel at one moment.

    If the state could not be read, `error` is the reason, and the fields about the state are empty.
    """

    channel: str
    at: float  # Unix seconds
    status: SlaveStatus | None = None
    threads: Threads | None = None
    synced_at: float | None = None
    is_from_cron: bool = False
    error: RplError | None = None

    @property
    def states(self) -> tuple[str, str]:
        """The states of receiver and applier: words of STATES, or 'unknown' if they could not be read."""
        threads = self.threads
        return (state_of(threads.receiver), state_of(threads.applier)) if threads else ("unknown", "unknown")


def seen(config: Config, channel: str) -> Seen:
    now = time.time()
    try:
        status, threads = status_and_threads(config, channel, now)
        record = read_sync_record(Channel(channel, config.datadir))
    except (RplError, OSError) as error:
        return Seen(channel, now, error=as_rpl_error(error))
    return Seen(channel, now, status, threads, record.at if record else None, runs_from_cron(config, record))


def state_of(thread: ThreadReport) -> str:
    """Return the state of a thread as one word of STATES."""
    if not thread.runs:
        return "killed" if thread.killed_at else "failed" if thread.status.last_errno else "stopped"
    if thread.silent_since is not None:
        return "silent"
    return "running" if thread.role != "receiver" or thread.status.connected else "connecting"
