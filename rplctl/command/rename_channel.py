"""`rename-channel`: give a stopped channel another name. rplctl/renaming.py carries out the steps.

Invariant: all checks that can refuse the rename come before the first step. Under the new name, the channel continues
at the same position, with the same relay logs and the same rows in the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rplctl import renaming
from rplctl.channel import Channel, check_channel_name
from rplctl.command.channel.both_places import after_interrupted_switch
from rplctl.command.channel.change_store import after_pending_change, resolve_position
from rplctl.command.channel.context import (
    Repositories,
    channels_stay,
    engine_of,
    files_may_change,
    known_channels,
    not_configured,
    open_repositories,
    refuse_lake,
    refuse_while_running,
)
from rplctl.config import INSTANCE_FILE, Config, channel_sections, read_file
from rplctl.errors import UsageError
from rplctl.history import note_event
from rplctl.relay_log.index import RelayLogIndex
from rplctl.repository.switch import may_have_target


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameResult:
    """The result of a rename. `steps` describes the steps for people."""

    channel: str = field(metadata={"column": "Channel_Name"})  # the new one
    old: str = field(metadata={"column": "Old_Channel_Name"})
    steps: tuple[str, ...] = field(metadata={"column": "Steps"})
    dry_run: bool = field(metadata={"column": "Dry_Run"})


def rename_channel(config: Config, old: str, new: str, *, dry_run: bool = False) -> RenameResult:
    """Rename the channel `old` to `new`. First finish a rename that was interrupted.

    Raises NotConfigured if the channel does not exist, and UsageError 3081 if a thread runs. Raises UsageError if the
    new name is in use, and TargetError if the target reports an error.
    """
    check_channel_name(new)
    if old.casefold() == new.casefold():
        raise UsageError(
            f"channel '{old}' already has that name",
            channel=old,
            hint="to list the channels, run: rplctl show-channels",
        )
    if not config.datadir.exists():
        raise not_configured(Channel(old, config.datadir))
    with files_may_change(config.datadir), channels_stay(config.datadir):
        pending = renaming.pending_rename(config.datadir)
        if dry_run:
            renaming.refuse_pending_rename(config, old)
        else:
            renaming.finish_rename(config, old, engine_of)
        if pending is not None and (pending.old, pending.new) == (old, new):  # finish_rename has just completed it
            return RenameResult(channel=new, old=old, steps=(), dry_run=False)
        old = next((name for name in known_channels(config) if name.casefold() == old.casefold()), old)
        with renaming.both_locked(config.datadir, *((old,) if dry_run else (old, new))):  # a lock creates a folder
            repositories = open_repositories(config, old)
            refuse_while_running(repositories.channel)
            _refuse(repositories, new)
            steps = tuple(_steps(repositories, Channel(new, config.datadir)))
            if not dry_run:
                _resolve(repositories)
                renaming.begin(config, old, new, engine_of)
    if not dry_run:
        note_event(config.datadir, new, "rename-channel", f"rename-channel '{old}' '{new}'")
    return RenameResult(channel=new, old=old, steps=steps, dry_run=dry_run)


def _resolve(repositories: Repositories) -> None:
    """Finish the commands that a crash has interrupted, because their files contain the old name of the channel."""
    from rplctl.commit.resolve import finish_prepared

    config, channel = repositories.config, repositories.channel
    after_pending_change(repositories, dry_run=False)
    repositories = after_interrupted_switch(repositories)
    resolve_position(repositories, dry_run=False)
    if may_have_target(config):
        finish_prepared(repositories.config, channel, repositories.engine)


def _refuse(repositories: Repositories, new: str) -> None:
    config, channel = repositories.config, repositories.channel
    if not (repositories.master_info.exists() or repositories.relay_log_info.exists()):
        raise not_configured(channel)
    refuse_lake(config, "a lake identifies its writer by the channel's name; begin a new channel with a new lake")
    if config.log_bin:
        raise UsageError(
            "the name of the binary log contains the channel's name, and its readers use that name",
            channel=channel.name,
            hint="to write no more binary log, which its readers then lack (init changes only this setting), run: "
            "rplctl init --log-bin ''",
        )
    repositories.refuse_unfit_target()
    there = Channel(new, config.datadir)
    if taken := next(_taken(repositories, there), ""):
        raise UsageError(
            f"the name '{new}' is in use: {taken}",
            channel=channel.name,
            hint="to list the channels, run: rplctl show-channels",
        )
    elsewhere = channel_sections(config.datadir, config.config_file)
    own = {name.lower() for name in _own_sections(config)}
    if channel.name.lower() in {name.lower() for name in elsewhere} - own:
        text = f"an option file outside of {config.datadir} has a section for channel '{channel.name}'"
        raise UsageError(text, channel=channel.name, hint="rename the section there, too; see man 5 rplctl.toml")


def _own_sections(config: Config) -> list[str]:
    path = config.datadir / INSTANCE_FILE
    return [*read_file(path).get("channel", {})] if path.exists() else []


def _taken(repositories: Repositories, there: Channel) -> Iterator[str]:
    """Yield the reasons for which the name of channel `there` is already in use."""
    config = repositories.config
    if there.name.casefold() in {name.casefold() for name in known_channels(config)}:
        yield "there is such a channel"
    if RelayLogIndex(there).names() or RelayLogIndex(there).files():
        yield f"{there.relay_log_index_path} lists its relay logs"
    if there.name.lower() in {name.lower() for name in channel_sections(config.datadir, config.config_file)}:
        yield "an option file has a section for it"
    folder = there.run_folder
    if folder.exists() and (left := [path.name for path in folder.iterdir() if path.suffix != ".lock"]):
        yield f"{folder} holds {', '.join(sorted(left)[:3])}"
    if may_have_target(config):
        from rplctl.own_tables.tables import has_rows

        with repositories.engine().connect() as connection:
            if has_rows(connection, there.name):
                yield "the target holds rows of such a channel"


def _steps(repositories: Repositories, there: Channel) -> Iterator[str]:
    """Yield a description of each step of the rename, in the order of the steps."""
    here = repositories.channel
    yield f"rows of channel '{here.name}' in the target become those of '{there.name}'"
    count = len(RelayLogIndex(here).files())
    yield f"relay logs {here.relay_log_base}.* ({count}) become {there.relay_log_base}.*"
    yield f"{repositories.master_info.where} and {repositories.relay_log_info.where} have the new name"
    if here.name.lower() in {name.lower() for name in _own_sections(repositories.config)}:
        yield f"[channel.{here.name}] of {INSTANCE_FILE} becomes [channel.{there.name}]"
    yield f"{here.run_folder} becomes {there.run_folder}"
