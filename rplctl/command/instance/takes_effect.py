"""Determine when a changed option takes effect: at once, or at the next start of the threads that read it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from rplctl.channel import Channel
from rplctl.command.channel.context import APPLIER, RECEIVER, Note, running
from rplctl.errors import for_channel
from rplctl.repository.channels import channels_of_folder

AT_ONCE: Final = frozenset({"run_mode", "max_sync_age", "max_verify_age", "rep_engine"})  # only commands read them
OF_RECEIVER: Final = frozenset(
    {
        "max_relay_log_size",
        "relay_log_space_limit",
        "replicate_same_server_id",
        "source_poll",
        "sync_master_info",
        "sync_relay_log",
    }
)
OF_BOTH: Final = frozenset(
    {
        "channel_group",
        "master_info_repository",
        "on_error",
        "on_recovery",
        "relay_log_info_repository",
        "replica_net_timeout",
        "server_id",
        "target",
        "target_password",
    }
)


def readers_of(option: str) -> tuple[str, ...]:
    """Return the threads that must start again before a change of the option takes effect.

    Return () if a change takes effect at once.
    """
    if option in AT_ONCE:
        return ()
    if option in OF_BOTH:
        return RECEIVER, APPLIER
    return (RECEIVER,) if option in OF_RECEIVER else (APPLIER,)


def notes_of_running(datadir: Path, changed: Collection[str]) -> Iterator[Note]:
    """Yield notes that say when the changed options take effect. If no thread of the instance runs, yield none."""
    threads = {name: running(Channel(name, datadir)) for name in channels_of_folder(datadir)}
    if not any(threads.values()):
        return
    by_readers: dict[tuple[str, ...], list[str]] = {}
    for option in changed:
        by_readers.setdefault(readers_of(option), []).append(option)
    for readers, options in by_readers.items():
        late = [(name, role) for name, pids in threads.items() for role in readers if role in pids]
        verb = "take effect" if len(options) > 1 else "takes effect"
        if not late:
            when = f"at the next start of the {readers[-1]}" if readers else "at once"
            yield Note(f"{', '.join(options)} {verb} {when}")
        for name, role in late:
            again = for_channel(f"rplctl stop --{role} && rplctl start --{role}", name)
            yield Note(f"{', '.join(options)} {verb} when the {role} of channel '{name}' starts again: {again}")
