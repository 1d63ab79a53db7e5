"""STOP SLAVE: stop the threads of a channel.

SIGTERM stops a thread at the end of a transaction. If a thread does not stop in time, it is killed, and the result has
a note. The kill loses nothing (WL#4621). A thread that is already stopped causes a note (3084), not an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.command.channel.context import ROLES, Note, channels_stay, refuse_unknown, running
from rplctl.command.process.child import STOP_TIMEOUT_S, stop_running
from rplctl.config import Config
from rplctl.errors import TargetError
from rplctl.history import note_event


@dataclass(frozen=True, slots=True, kw_only=True)
class StopResult:
    channel: str
    stopped: tuple[str, ...]
    killed: tuple[str, ...]
    notes: tuple[Note, ...]


def stop(
    config: Config, channel_name: str, roles: tuple[str, ...] = ROLES, timeout_s: float = STOP_TIMEOUT_S
) -> StopResult:
    """Stop the running threads among `roles`, and kill those that do not stop within `timeout_s` seconds.

    Raises NotConfigured if the channel does not exist, and RplError if the threads belong to another user.
    """
    channel = Channel(channel_name, config.datadir)
    if not running(channel):
        _refuse_unknown(config, channel)
    with channels_stay(channel.datadir):
        # Stop the receiver first, so that nothing new arrives while the applier ends its transaction.
        outcome = {role: stop_running(channel, role, timeout_s) for role in ROLES if role in roles}
    stopped = tuple(role for role, killed in outcome.items() if killed is not None)
    killed = tuple(role for role, was_killed in outcome.items() if was_killed)
    if stopped:
        note_event(config.datadir, channel_name, "stop", " and ".join(stopped) + (", killed" if killed else ""))
    notes = [
        Note(f"the {role} did not stop within {timeout_s:g} s and was killed; the next start recovers")
        for role in killed
    ]
    if not stopped:
        text = f"Replication thread(s) for channel '{channel_name}' are already stopped."
        notes.append(Note(text, er.SLAVE_CHANNEL_WAS_NOT_RUNNING))
    return StopResult(channel=channel_name, stopped=stopped, killed=killed, notes=tuple(notes))


def _refuse_unknown(config: Config, channel: Channel) -> None:
    """Raise NotConfigured if the channel does not exist.

    If its records are in a target that does not answer, the channel exists if it has a folder. The default channel
    always exists, as on the servers, so that setup scripts can be repeated.
    """
    if not channel.name and config.datadir.exists():
        return
    try:
        refuse_unknown(config, channel.name)
    except TargetError as error:
        if not (error.transient and channel.run_folder.is_dir()):
            raise
