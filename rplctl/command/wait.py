"""Waiting for a channel: for a state, or for a position as MASTER_POS_WAIT does. Gives up with exit code 9."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rplctl.channel import Channel
from rplctl.command.applied import is_applied
from rplctl.command.instance import APPLIER, RECEIVER, ROLES, Repositories, open_repositories, read_master_info, running
from rplctl.config import Config
from rplctl.errors import NotRunning, UsageError, WaitTimeout
from rplctl.position import BinlogPosition
from rplctl.status import read_status

STATES = ("running", "synced", "stopped")
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class WaitResult:
    channel: str
    waited_s: float
    executed: BinlogPosition


def wait(
    config: Config,
    channel_name: str,
    *,
    state: str = "",
    position: BinlogPosition | None = None,
    timeout_s: float | None = None,
) -> WaitResult:
    """Return once the channel is there. Raises WaitTimeout, NotRunning, UsageError."""
    if (position is None) == (not state) or (state and state not in STATES):
        raise UsageError(f"wait needs --pos FILE:POS or --state {'|'.join(STATES)}")
    channel = Channel(channel_name, config.datadir)
    repositories = open_repositories(config, channel_name)
    read_master_info(repositories, channel_name)
    begun = time.monotonic()
    while True:
        stored = repositories.relay_log_info
        executed = stored.read().exec_position if stored.exists() else BinlogPosition("", 0)
        if _is_there(channel, repositories, state, position):
            return WaitResult(channel_name, time.monotonic() - begun, executed)
        if (position is not None or state == "synced") and APPLIER not in running(channel):
            raise _not_running(channel, executed)
        if timeout_s is not None and time.monotonic() - begun > timeout_s:
            raise WaitTimeout(
                f"channel '{channel_name}' is not {state or f'at {position}'} after {timeout_s:g} s",
                channel=channel_name,
                position=str(executed),
                hint="rplctl show-status",
            )
        time.sleep(_POLL_S)


def _is_there(channel: Channel, repositories: Repositories, state: str, position: BinlogPosition | None) -> bool:
    if position is not None:
        return is_applied(channel, repositories, position)
    threads = running(channel)
    if state == "stopped":
        return not threads
    receiver = read_status(channel.status_path(RECEIVER))
    if len(threads) < len(ROLES) or not receiver.connected:
        return False
    read = BinlogPosition(receiver.read_log_name, receiver.read_log_pos)
    # the receiver says that it waits only once it has taken everything the source had
    return state == "running" or (receiver.state.startswith("Waiting for") and is_applied(channel, repositories, read))


def _not_running(channel: Channel, executed: BinlogPosition) -> NotRunning:
    status = read_status(channel.status_path(APPLIER))
    return NotRunning(
        status.last_error or "This operation requires a running slave; configure slave and do START SLAVE",
        errno=status.last_errno or 1199,
        channel=channel.name,
        position=str(executed),
        hint="rplctl start",
    )
