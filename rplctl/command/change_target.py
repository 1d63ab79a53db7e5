"""`change-target`: set the new address of a target that was moved, for the channels that write to it.

Before the command stores the address, it checks each of these channels. The target at the new address must have the
rows of this instance and of the channel's source. The channel's position there must be the recorded position or a later
one. The only change is one atomic write of rplctl.toml. So after a kill, the options name either the old address or the
new one.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from rplctl.channel import Channel, hold_lock
from rplctl.command.channel.context import (
    ADMIN,
    APPLIER,
    Repositories,
    channels_stay,
    engine_of,
    files_may_change,
    not_configured,
    one_engine,
    open_repositories,
    refuse_lake,
    refuse_while_running,
)
from rplctl.command.init import from_root
from rplctl.commit.belonging import Belonging, TargetState, belonging_of, is_owned
from rplctl.config import (
    INSTANCE_FILE,
    OPTIONS,
    Config,
    Value,
    channel_sections,
    load_config,
    read_options,
)
from rplctl.errors import LOSES_CHANNEL, NEW_TARGET, OTHER_KIND, TargetError, UsageError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.history import note_event
from rplctl.info import RelayLogInfo
from rplctl.option_file import store_options
from rplctl.position import BinlogPosition
from rplctl.renaming import finish_rename, refuse_pending_rename
from rplctl.repository.base import RepositoryKind
from rplctl.repository.channels import channels_of_folder, find_channels
from rplctl.secret import protect
from rplctl.status import read_status
from rplctl.target import target_kind
from rplctl.target_url import authority, is_same_target, url_without_password

_AGAIN = "run: rplctl change-target URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTargetResult:
    """The result of change-target. `channels` maps each channel that uses the new target to its position there."""

    target: str = field(metadata={"column": "Target"})
    previous: str = field(metadata={"column": "Previous_Target"})
    channels: dict[str, str] = field(metadata={"column": "Channels"})
    dry_run: bool = field(metadata={"column": "Dry_Run"})


def change_target(
    config: Config, url: str, channel_name: str | None = None, password: str | None = None, *, dry_run: bool = False
) -> ChangeTargetResult:
    """Set the URL of the target for every channel that has no target of its own.

    If `channel_name` is given, only the section of this channel is changed. `password` is the new password of the
    target; None keeps the stored one if the server is the same. Raises UsageError 3081 if a thread runs. Raises
    TargetError if the new target does not answer, lacks the rows of a channel, or is older than the recorded position.
    """
    datadir = config.datadir
    config = load_config(datadir, channel_name, config_file=config.config_file)  # None: channels without a section
    if not datadir.exists():
        raise not_configured(Channel(channel_name or "", datadir))
    given: dict[str, Value] = from_root({"target": url})
    _refuse(config, given, channel_name)
    if password is not None:
        given["target_password"] = protect(password, datadir, makes_key=not dry_run)
    elif authority(str(given["target"])) != authority(config.target):
        given["target_password"] = ""  # the stored password belongs to another server: never send it to this one
    with one_engine(), ExitStack() as held:
        held.enter_context(files_may_change(datadir))
        held.enter_context(channels_stay(datadir))
        names = _channels(config, given) if channel_name is None else [channel_name]
        for name in names:
            if dry_run:
                refuse_pending_rename(config, name)
            else:
                finish_rename(config, name, engine_of)
            held.enter_context(hold_lock(Channel(name, datadir), ADMIN))
            refuse_while_running(Channel(name, datadir))
        found = {name: _position_there(_moved(config, name, given), name) for name in names}
        if not dry_run:
            store_options(datadir, channel_name or "", given, only_this_channel=channel_name is not None)
            shown = url_without_password(str(given["target"]))
            note_event(datadir, channel_name, "change-target", f"{url_without_password(config.target_place)} → {shown}")
    return ChangeTargetResult(
        target=url_without_password(_moved(config, None, given).target_place),
        previous=url_without_password(config.target_place),
        channels={name: str(position) for name, position in found.items()},
        dry_run=dry_run,
    )


def _moved(config: Config, name: str | None, given: dict[str, Value]) -> Config:
    """Return the options of channel `name` with the new values in `given`. None means the options of all channels."""
    return load_config(config.datadir, name, given, config_file=config.config_file)


def _refuse(config: Config, given: dict[str, Value], channel_name: str | None) -> None:
    """Raise UsageError if the change is impossible for a reason that does not depend on the rows of the targets.

    The reasons are: a lake, another kind of target, the present address as the new one, or a present address that is
    not set in rplctl.toml.
    """
    hint = f"to write a new lake from the source's first log {LOSES_CHANNEL}, run: {NEW_TARGET}; rplctl start"
    refuse_lake(config, hint)
    refuse_lake(replace(config, target=str(given["target"])), hint)
    if is_same_target(config.target, str(given["target"])):
        raise UsageError(
            f"{url_without_password(config.target_place)} is already the target",
            hint="to check the target, run: rplctl check",
        )
    old, new = (target_kind(place) for place in (config.target_place, str(given["target"])))
    if old != new:
        text = f"change-target cannot change the kind of the target from {old} to {new}"
        hint = OTHER_KIND
        raise UsageError(text, hint=hint)
    path = config.datadir / INSTANCE_FILE
    common, section = read_options(path, channel_name or "") if path.exists() else ({}, {})
    stored = common if channel_name is None else {**common, **section}
    if OPTIONS["target"].environment in os.environ or stored.get("target", "") != config.target:
        text = f"the environment or another option file names the target, not {path}"
        raise UsageError(
            text, hint="change the target there. To see the list of the option files, run: man 5 rplctl.toml"
        )


def _channels(config: Config, given: dict[str, Value]) -> list[str]:
    """Return the name of every channel that has no target of its own.

    The new target is searched, too, because a channel may have its records only as rows of this target.
    """
    moved = replace(config, target=str(given["target"]), target_password=str(given.get("target_password", "")))
    names = {name.casefold(): name for name in channels_of_folder(config.datadir)}
    names |= {name.casefold(): name for name in find_channels(moved, engine_of).names}
    sections = channel_sections(config.datadir, config.config_file).items()
    own = {name.casefold() for name, options in sections if "target" in options}
    return sorted(name for folded, name in names.items() if folded not in own)


def _position_there(moved: Config, name: str) -> BinlogPosition:
    """Return the channel's executed position in the new target. `moved` has the options with the new target.

    Raises TargetError if this position is older than the recorded one, or if the rows do not belong to the channel.
    """
    repositories = open_repositories(moved, name)
    shown = url_without_password(moved.target_place)
    belonging = belonging_of(moved, repositories.channel, repositories.engine)
    if belonging.error is not None:
        raise TargetError(
            _why(belonging, shown, name), channel=name, hint=f"copy the whole target there, then {_AGAIN}"
        )
    recorded, there = _recorded(repositories), _stored_there(repositories)
    if there is None:
        if not is_owned(moved, repositories.channel, repositories.engine):  # nothing was applied yet
            return recorded.exec_position
        text = f"{shown} holds no position of channel '{name}', because commit_mode=xa stores it in a file"
        hint = (
            "To store the position in the old target before it is moved, run: "
            "rplctl init --commit-mode auto; rplctl start --until-synced"
        )
        raise TargetError(text, channel=name, hint=hint)
    if _is_behind(there, recorded):
        raise TargetError(
            f"{shown} is an older copy: its position is {_text(there)}, that of channel '{name}' is {_text(recorded)}",
            channel=name,
            position=str(recorded.exec_position),
            hint=f"copy the target again while the channel is stopped, then {_AGAIN}",
        )
    return there.exec_position


def _why(belonging: Belonging, shown: str, name: str) -> str:
    if belonging.state is TargetState.LOST:
        return f"{shown} does not hold the rows of channel '{name}'"
    assert belonging.error is not None
    return f"{shown}: {belonging.error.message}"


def _recorded(repositories: Repositories) -> RelayLogInfo:
    """Return the position that is recorded outside of the target: in the FILE, or else in the applier's status file."""
    if repositories.relay_log_info.kind is RepositoryKind.FILE:
        return repositories.relay()
    said = read_status(repositories.channel.status_path(APPLIER))
    info = RelayLogInfo(master_log_name=said.exec_log_name, master_log_pos=said.exec_log_pos)
    return replace(info, gtid_executed=said.executed_gtid_set)


def _stored_there(repositories: Repositories) -> RelayLogInfo | None:
    if repositories.relay_log_info.kind is RepositoryKind.TABLE:
        return repositories.relay()
    return repositories.marker()[0]


def _is_behind(there: RelayLogInfo, recorded: RelayLogInfo) -> bool:
    if not recorded.gtid_executed:
        return there.exec_position.is_before(recorded.exec_position)
    if ":" in recorded.gtid_executed:
        return not MysqlGtidSet.parse(recorded.gtid_executed).is_subset_of(MysqlGtidSet.parse(there.gtid_executed))
    return not MariadbGtidState.parse(recorded.gtid_executed).is_subset_of(MariadbGtidState.parse(there.gtid_executed))


def _text(info: RelayLogInfo) -> str:
    gtids = f" ({info.gtid_executed[:200]})" if info.gtid_executed else ""
    return f"{info.exec_position}{gtids}"
