"""Checks whether the target has the rows that belong to the channel's stored position (design D29).

The result is one of these states:

    ready               nothing was committed yet, or the target has the rows that belong to the position
    target_lost         an applier of this channel has committed, but the target has neither the channel's marker nor
                        the channel's position in a TABLE
    target_of_another   the channel's rows in the target belong to another instance, or to another source

Invariant: in a target that is not `ready`, nothing is applied and no position moves. The check needs to know whether an
applier of this channel has ever committed. If the position is in a FILE, the field `left_at` of this FILE shows it,
because the applier writes the marker before this field. Without a stored position, the applier's last status shows it.
RESET and CHANGE MASTER remove this status. If the operator has set the position, the marker may be missing until the
first commit.

The channel's row in rplctl_channel_owner (own_tables/owner.py) says to which instance and source its rows belong. Rows
without an owner are from an older rplctl, and this instance adopts them. The owner's source must be one of these two:

    the channel's present source        the same server, at the same address or with the same UUID
    the source that this instance       the channel's source has changed since. With GTIDs, this is a failover. But the
    wrote last (written_source.py)      target must not lack GTIDs that the FILE has as executed.

Any other source means that the target was restored from a backup, or that a copy of this instance uses the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, Engine, delete, update

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.commit.marker import is_file_edited, read_marker
from rplctl.commit.step import CommitMode
from rplctl.commit.written_source import note_written, was_written_last
from rplctl.config import Config
from rplctl.errors import TargetError, for_channel
from rplctl.event.gtid import is_executed
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.instance_id import instance_id, instance_place, made_instance_id
from rplctl.own_tables.lake_batch import last_batch
from rplctl.own_tables.owner import Owner, claim_channel, owner_of, read_owner
from rplctl.own_tables.tables import commit_marker, create_own_tables, forget_channel
from rplctl.repository import open_master_info, open_relay_log_info, open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO
from rplctl.repository.switch import may_have_table
from rplctl.repository.tables import own_table_exists
from rplctl.status import read_status
from rplctl.target import dialect_of, mapped_errors, target_kind
from rplctl.target.dialect import TO_WRITE
from rplctl.target.registry import KINDS, is_missing_file
from rplctl.target_url import url_without_password

TAKE_OVER: Final = "--take-over-target"
_COPY_AGAIN: Final = "rplctl reset --forget-gtids --yes && rplctl clone --replace --yes && rplctl start"


class TargetState(StrEnum):
    READY = "ready"
    LOST = "target_lost"
    OTHERS = "target_of_another"


class UnfitTarget(TargetError):
    """The error for a target that does not belong to the stored position (any state except READY).

    The error is permanent, because only the operator can resolve it.
    """

    def __init__(self, state: TargetState, message: str, *, channel: str, position: str, hint: str) -> None:
        super().__init__(message, errno=er.SLAVE_RLI_INIT_REPOSITORY, channel=channel, position=position, hint=hint)
        self.state = state


@dataclass(frozen=True, slots=True, kw_only=True)
class Belonging:
    """The result of the check whether the target belongs to the stored position."""

    state: TargetState
    error: UnfitTarget | None = None  # the error that a start reports; None if the target is ready
    note: str = ""  # a message that a start logs if the target is ready
    has_own_rows: bool = True  # True if the rows belong to this instance, perhaps with another source
    continues: bool = False  # True if the operator may continue by the GTIDs in the target


_READY: Final = Belonging(state=TargetState.READY)


def belonging_of(config: Config, channel: Channel, engine: Callable[[], Engine]) -> Belonging:
    """Check whether the target belongs to the channel's stored position, without changing anything.

    `engine` returns the target's engine. It is called only if the target exists. Raises TargetError if the target does
    not answer.
    """
    file = open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, config, channel, engine).stored()
    has_file = file is not None and RELAY_LOG_INFO.has_data(file)
    has_applied = (
        bool(file.left_at) if file is not None and has_file else read_status(channel.status_path("applier")).has_applied
    )
    if _is_missing(config):
        return _lost(config, channel, file) if has_applied else _READY
    with mapped_errors(engine().dialect.name), engine().connect() as connection:
        owner = read_owner(connection, channel.name)
        marker, in_step = _marker(connection, channel.name)
        is_lake_whole = _has_batches(config, channel, engine(), connection)
    ready = _READY
    if owner is not None:
        ours, by_gtid = identity_of(config, channel, engine)
        if owner.Instance_id != ours.Instance_id:
            return _of_another(channel, owner, ours)
        is_same = owner.is_same_source(ours)
        is_there = is_same and owner.Source_place in ("", ours.Source_place)  # "": the source was unknown
        if not (is_there or owner.is_known_source(ours)):
            is_honest = (is_same or by_gtid) and was_written_last(channel, owner, default=has_applied)
            if not is_honest or not (is_same or _has_all(marker, file, in_step=in_step)):
                return _of_another_time(config, channel, (owner, ours), by_gtid=by_gtid)
            if not is_same:
                ready = Belonging(state=TargetState.READY, note=_of_another_source(channel, owner, ours))
    if not is_lake_whole:
        return _lost(config, channel, file)
    is_enough = owner is not None and owner.Kept_by != CommitMode.MARKER
    if not has_applied or marker is not None or is_enough or (not has_file and _has_row(config, channel, engine)):
        return ready
    return _lost(config, channel, file)


def refuse_unfit(config: Config, channel: Channel, engine: Callable[[], Engine]) -> None:
    """Raise UnfitTarget if the target does not belong to the stored position.

    Called before rows are applied or compared. Raises TargetError if the target does not answer.
    """
    if (found := belonging_of(config, channel, engine)).error is not None:
        raise found.error


def is_owned(config: Config, channel: Channel, engine: Callable[[], Engine]) -> bool:
    """True if the target has a row for the channel in rplctl_channel_owner, of this instance or another one.

    Without such a row, no applier has worked with the target. Raises TargetError if the target reports an error.
    """
    if _is_missing(config):
        return False
    with mapped_errors(engine().dialect.name), engine().connect() as connection:
        return read_owner(connection, channel.name) is not None


def identity_of(config: Config, channel: Channel, engine: Callable[[], Engine]) -> tuple[Owner, bool]:
    """Return the Owner that this instance would write for the channel, and True if the channel uses GTIDs.

    With GTIDs, the channel can continue on another source after a failover.
    """
    master = open_master_info(config, channel, engine).stored() or MasterInfo()
    ours = owner_of(instance_id(config.datadir), instance_place(config.datadir), master)
    return ours, master.uses_gtid


def take_over(config: Config, channel: Channel, engine: Engine) -> None:
    """Make this instance the owner of the channel's rows in the target, because the operator requested it.

    If the rows are of another source, the table models, clone states and position of that source are removed from the
    target. Afterwards, the position that is stored on this host is the valid one. If this host has no position and the
    source is the same, the position in the target is valid. The work may be interrupted and repeated. The caller holds
    the channel's lock in the target. Raises TargetError if the target reports an error.
    """
    ours, _ = identity_of(config, channel, lambda: engine)
    ours = replace(ours, Instance_id=made_instance_id(config.datadir))
    stored = open_relay_log_info(config, channel, lambda: engine)
    is_file = stored.kind is RepositoryKind.FILE
    create_own_tables(engine)
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        owner = read_owner(connection, channel.name)
    is_same = owner is not None and owner.is_known_source(ours)
    here = stored.stored() if is_file else None
    if not is_same and not is_file:
        stored.remove()
    with (
        mapped_errors(engine.dialect.name),
        engine.connect() as plain,
        (connection := plain.execution_options(**TO_WRITE)).begin(),
    ):
        if not is_same:
            forget_channel(connection, channel.name)
        elif is_file:
            marker = commit_marker(engine.dialect.name)
            is_ours = marker.c.Channel_name == channel.name
            if here is not None and (here.master_log_name or here.gtid_executed):
                connection.execute(delete(marker).where(is_ours))
            else:
                connection.execute(update(marker).where(is_ours).values(File_in_step=False))  # then the marker counts
        claim_channel(connection, channel.name, ours)
    note_written(channel, ours)


def claim_restored(config: Config, channel: Channel, engine: Engine) -> None:
    """Write this instance and its present source into rplctl_channel_owner, for a target restored from a backup.

    The caller has set the position in the file for this source. At the next start, the applier uses this position.
    Raises TargetError if the target reports an error.
    """
    ours, _ = identity_of(config, channel, lambda: engine)
    create_own_tables(engine)
    marker = commit_marker(engine.dialect.name)
    with mapped_errors(engine.dialect.name), engine.begin() as connection:
        connection.execute(update(marker).where(marker.c.Channel_name == channel.name).values(File_in_step=True))
        claim_channel(connection, channel.name, ours)
    note_written(channel, ours)


def _is_missing(config: Config) -> bool:
    """True if the target is a file or a lake's folder that does not exist.

    The caller then opens no connection, because a connection would create the file or the folder.
    """
    place = config.target_place
    return is_missing_file(place) or dialect_of(target_kind(place)).is_missing_at(place)


def _has_batches(config: Config, channel: Channel, engine: Engine, connection: Connection) -> bool:
    """True if the lake has all batches that the internal tables record, or if the target is not a lake.

    The internal tables may be in another place than the lake. So the lake can be lost although the tables still exist.
    """
    dialect = dialect_of(target_kind(config.target_place))
    if not dialect.commits_per_table or not own_table_exists(connection, "rplctl_lake_batch"):
        return True
    last = last_batch(connection, channel.name)
    taken = 0 if last is None else last.number - last.is_open
    return taken <= 0 or dialect.lake_tables(engine).claimed(f"rplctl/{channel.name}") >= taken


def _marker(connection: Connection, channel: str) -> tuple[RelayLogInfo | None, bool]:
    return read_marker(connection, channel) if own_table_exists(connection, "rplctl_commit_marker") else (None, False)


def _has_all(marker: RelayLogInfo | None, file: RelayLogInfo | None, *, in_step: bool) -> bool:
    """True if the target has executed all GTIDs that the FILE has as executed.

    The marker has the GTIDs of the target. A failover removes no GTIDs, so a target that lacks some is older than the
    FILE. The result is also True if there is no marker or no FILE, or if the operator has edited the FILE. `in_step`:
    the marker's column File_in_step, which shows such an edit.
    """
    if marker is None or file is None or is_file_edited(file, in_step):
        return True
    return not file.gtid_executed or is_executed(file.gtid_executed, marker.gtid_executed)


def _has_row(config: Config, channel: Channel, engine: Callable[[], Engine]) -> bool:
    if not may_have_table(config):
        return False
    return open_repository(RELAY_LOG_INFO, RepositoryKind.TABLE, config, channel, engine).exists()


def _lost(config: Config, channel: Channel, file: RelayLogInfo | None) -> Belonging:
    said = read_status(channel.status_path("applier"))
    position = file.exec_position if file is not None else said.exec_position
    shown = url_without_password(config.target_url)
    name = channel.name
    text = f"the target {shown} is lost: it lacks the position of channel '{name}', which has applied up to "
    error = UnfitTarget(
        TargetState.LOST, f"{text}{position}", channel=name, position=str(position), hint=_ways_back(config, channel)
    )
    return Belonging(state=TargetState.LOST, error=error, has_own_rows=False)


def _ways_back(config: Config, channel: Channel) -> str:
    """Return the hint for a lost target. Each line of the hint is one alternative and ends with a command."""
    kind = target_kind(config.target_place)
    is_file = KINDS[kind].is_file or dialect_of(kind).commits_per_table
    back = "mount its file system again" if is_file else "bring the target's database back"
    master = open_repository(MASTER_INFO, RepositoryKind.FILE, config, channel, _no_engine).stored()
    if master is None:
        again = (
            "rplctl change-master --master-host HOST --master-user USER --ask-password && rplctl clone && rplctl start"
        )
    elif master.master_binlog_dir or dialect_of(kind).commits_per_table:
        again = "rplctl reset --yes && rplctl start"
    else:
        again = "rplctl reset --yes && rplctl clone && rplctl start"
    lines = (
        f"{back}, then run: rplctl start",
        "To restore a backup into a new instance, run: rplctl --datadir NEW_FOLDER restore BACKUP_FOLDER",
        f"To begin again with an empty target, run: {for_channel(again, channel.name)}",
    )
    return "\n".join((for_channel(lines[0], channel.name), *lines[1:]))


def _no_engine() -> Engine:
    raise AssertionError("a FILE needs no engine")


def _of_another(channel: Channel, owner: Owner, ours: Owner) -> Belonging:
    name = channel.name
    error = UnfitTarget(
        TargetState.OTHERS,
        f"the target's rows of channel '{name}' belong to {owner.shown}; this is {ours.shown}",
        channel=name,
        position="",
        hint="to take the target over, so that the other instance can no longer use it, stop the other instance, then "
        f"run: {for_channel('rplctl start', name)} {TAKE_OVER}\n"
        "To leave the target to the other instance, give this channel another name or another target",
    )
    return Belonging(state=TargetState.OTHERS, error=error, has_own_rows=False)


def _of_another_time(config: Config, channel: Channel, owners: tuple[Owner, Owner], *, by_gtid: bool) -> Belonging:
    """Return the result for rows of this instance that are from neither the present nor the last source of the channel.

    `owners`: the owner in the target, and the one that this instance would write. `by_gtid`: True if the channel uses
    GTIDs.
    """
    owner, ours = owners
    name, here, there = channel.name, ours.Source_place, owner.Source_place
    continues = by_gtid and owner.Kept_by != CommitMode.XA
    start = for_channel("rplctl start", name)
    lines = [f"restore a copy of the target from a time when the channel read from {here}, then run: {start}"]
    if continues:
        lines.append(
            f"If {here} has all transactions of {there}, as after a failover, continue by the GTIDs in the target: "
            f"{start} {TAKE_OVER}"
        )
    else:
        lines.append(f"If you know that the target has all rows up to the stored position, run: {start} {TAKE_OVER}")
    if not dialect_of(target_kind(config.target_place)).commits_per_table and ":" in here:
        lines.append(f"To copy all tables again, run: {for_channel(_COPY_AGAIN, name)}")
    error = UnfitTarget(
        TargetState.OTHERS,
        f"the target's rows of channel '{name}' belong to {owner.shown}; this is {ours.shown}",
        channel=name,
        position="",
        hint="\n".join(lines),
    )
    return Belonging(state=TargetState.OTHERS, error=error, continues=continues)


def _of_another_source(channel: Channel, owner: Owner, ours: Owner) -> str:
    """Return the log message that the channel continues on another source, by GTIDs, after a failover."""
    return (
        f"the target's rows of channel '{channel.name}' belong to {owner.shown}; the channel now reads from "
        f"{ours.Source_place}, and continues there by the target's GTIDs"
    )
