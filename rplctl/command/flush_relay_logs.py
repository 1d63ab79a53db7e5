"""FLUSH RELAY LOGS: make the receiver begin a new relay log file."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.command.channel.context import RECEIVER, channels_stay, open_repositories, running
from rplctl.config import Config
from rplctl.durable import replace_file
from rplctl.own_process import signal_holder


@dataclass(frozen=True, slots=True)
class FlushResult:
    channel: str
    asked_receiver: bool


def flush_relay_logs(config: Config, channel_name: str) -> FlushResult:
    """Make the running receiver begin a new relay log file, by the signal SIGHUP. Do nothing if no receiver runs."""
    import signal

    repositories = open_repositories(config, channel_name)
    repositories.master()
    channel = repositories.channel
    pid = running(channel).get(RECEIVER)
    if not pid:
        return FlushResult(channel_name, asked_receiver=False)
    with channels_stay(config.datadir):
        lock = channel.lock_path(RECEIVER)
        replace_file(channel.asked_path(RECEIVER, "flush"), f"{pid}\n".encode(), durable=False)
        asked = signal_holder(pid, signal.SIGHUP, lock, "the receiver", channel_name)
    return FlushResult(channel_name, asked_receiver=asked)
