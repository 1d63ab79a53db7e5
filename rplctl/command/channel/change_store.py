"""Write both records of a channel as one change, for change-master, import-info and every start.

Invariant: both records are durable when `store_change` returns. A change needs two writes. Until both are durable, the
file `change_master.pending` in the channel's run folder has the contents of both records. If the command is killed in
between, the next start or change finishes it. The record of a running thread is never written, because the thread
changes it at the same time.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Generic

from rplctl import mysql_errors as er
from rplctl.channel import MAX_CHANNELS, Channel
from rplctl.command.channel.change_plan import default_heartbeat
from rplctl.command.channel.context import (
    APPLIER,
    RECEIVER,
    ROLES,
    Note,
    Repositories,
    engine_of,
    open_repositories,
    running,
)
from rplctl.command.check.sync_record import forget_sync
from rplctl.config import Config
from rplctl.durable import private_folder, remove_file, replace_file
from rplctl.errors import RepositoryConflict, RplError, TargetError, UsageError
from rplctl.history import note_event
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.plain_file import parsed_json, read_plain
from rplctl.relay_log.origin import move_origin
from rplctl.relay_log.purge import purge_all
from rplctl.repository import create_tables, list_channels, next_master_id, open_master_info
from rplctl.repository.base import Info, InfoRepository, RepositoryKind
from rplctl.repository.switch import may_have_table, may_have_target
from rplctl.skipped_objects import SkippedObjects

CONNECTION = {  # attribute of MasterInfo → its column in the output
    "host": "Master_Host",
    "port": "Master_Port",
    "master_binlog_dir": "Master_Binlog_Dir",
    "master_log_name": "Master_Log_File",
    "master_log_pos": "Read_Master_Log_Pos",
    "has_password": "Password_Set",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult:
    channel: str
    previous: MasterInfo = field(metadata={"column": ""})
    master_info: MasterInfo = field(metadata={"column": CONNECTION})
    relay_log_info: RelayLogInfo = field(metadata={"column": ""})
    created: bool
    purges_relay_logs: bool
    dry_run: bool
    notes: tuple[Note, ...]
    # roles whose record is not written: the thread runs, or the target does not answer
    untouched: frozenset[str] = field(default=frozenset(), metadata={"column": ""})
    repeats: bool = field(default=False, metadata={"column": ""})  # transactions would be applied again


def resolve_position(repositories: Repositories, *, dry_run: bool) -> bool:
    """Bring the stored position of a stopped applier up to date, before a command reads or changes this position.

    If the position is in a file, a crash may have prevented the last write of the file. Then the target has
    transactions after the stored position (commit modes marker and xa). Return True if the stored position may have
    changed. Raises TargetError if the target reports an error.
    """
    config, channel = repositories.config, repositories.channel
    if APPLIER in running(channel) or not repositories.relay_log_info.exists():
        return False
    if not may_have_target(config):  # a query would create the target's file
        return False
    if dry_run or not repositories.target_has("rplctl_commit_marker") or not repositories.target_is_fit():
        return False  # the target has no transactions of this channel
    from rplctl.commit.position_store import resolve

    resolve(config, channel, repositories.engine())
    return True


def stored_records(repositories: Repositories, *, dry_run: bool) -> tuple[MasterInfo, RelayLogInfo]:
    """Return the stored records, or the records of a new channel with a Master_id of its own (WL#2775 REQ-2).

    For a new channel with a TABLE repository, the tables are created, too, except in a dry run.
    """
    config, channel = repositories.config, repositories.channel.name
    if repositories.master_info.exists():
        master = repositories.master_info.read()
    else:
        _refuse_a_second_record(repositories)
        channels = list_channels(config, engine_of)
        if len(channels) >= MAX_CHANNELS:
            raise UsageError(
                "Maximum number of replication channels allowed exceeded.",
                errno=er.SLAVE_MAX_CHANNELS_EXCEEDED,
                hint="to list the channels, run: rplctl show-channels\n"
                "To remove one with its position, relay logs, filters and settings (the target's tables stay), run: "
                "rplctl reset --all --channel NAME",
            )
        if not dry_run and RepositoryKind.TABLE in (repositories.master_info.kind, repositories.relay_log_info.kind):
            create_tables(repositories.engine(), config.rep_engine)  # `init` may not have run
        master = MasterInfo(
            channel_name=channel,
            master_id=next_master_id(config, engine_of, channels),
            heartbeat=default_heartbeat(config),
        )
    if repositories.relay_log_info.exists():
        return master, repositories.relay_log_info.read()
    return master, replace(repositories.relay(), master_id=master.master_id)


def _refuse_a_second_record(repositories: Repositories) -> None:
    """Raise RepositoryConflict if the other kind of repository already has a MasterInfo of the channel.

    This happens after a change of the option master_info_repository. With two records, a later command could not decide
    which one is valid (REQ-6).
    """
    config, name, here = repositories.config, repositories.channel.name, repositories.master_info
    other = RepositoryKind.FILE if here.kind is RepositoryKind.TABLE else RepositoryKind.TABLE
    if other is RepositoryKind.TABLE and not may_have_table(config):
        return
    place = replace(config, master_info_repository=str(other))
    there = open_master_info(place, repositories.channel, repositories.engine)
    try:
        is_there = there.exists()
    except TargetError as error:
        if not error.transient:
            raise
        return  # The target does not answer. `start` checks both repositories again, and refuses two records (REQ-6).
    if is_there:
        raise RepositoryConflict(
            f"MasterInfo of channel '{name}' is in {there.where}, and master_info_repository names {here.where}",
            hint=f"to move the record, run: rplctl switch-repo --to {str(here.kind).lower()}",
        )


def store_change(repositories: Repositories, result: ChangeResult, statement: str) -> None:
    """Write both records durably, by way of the pending file. `statement` names the command in the history.

    The caller has the admin lock of the channel, has called `resolve_position`, and has refused invalid changes.
    """
    channel = repositories.channel
    master = None if RECEIVER in result.untouched else result.master_info
    relay = None if APPLIER in result.untouched else result.relay_log_info
    if relay:
        _keep_models(repositories, result)
        _forget_source(repositories, result)
    record = {
        "purge": result.purges_relay_logs,
        "master_info": asdict(master) if master else None,
        "relay_log_info": asdict(relay) if relay else None,
    }
    private_folder(channel.run_folder)
    replace_file(_pending_path(channel), json.dumps(record).encode())
    _carry_out(repositories, master, relay, purges=result.purges_relay_logs)
    for role in ROLES:
        if role not in result.untouched:
            channel.status_path(role).unlink(missing_ok=True)  # Last_*_Error, too
    if _is_other_source(result.previous, result.master_info):
        forget_sync(channel)
        SkippedObjects(channel).clear()
    note_event(channel.datadir, channel.name, "change-master", _in_words(result, statement))


def _carry_out(
    repositories: Repositories, master: MasterInfo | None, relay: RelayLogInfo | None, *, purges: bool
) -> None:
    """Write the records of the pending file, and then remove this file. A record that is None is not written.

    `purges` also removes the relay logs and the files of an unfinished clone.
    """
    channel = repositories.channel
    if purges:
        purge_all(channel)
        shutil.rmtree(channel.clone_folder, ignore_errors=True)  # its positions may belong to another source
    elif master:
        move_origin(channel, master)
    if master:
        repositories.master_info.flush(master, force=True)
    if relay:
        repositories.relay_log_info.flush(relay, force=True)
    remove_file(_pending_path(channel))


def _forget_source(repositories: Repositories, result: ChangeResult) -> None:
    """Remove the source's identity from the target if the new records have no identity or another identity.

    The identity is removed before the new records are written. A crash in between does no harm: until the next start, a
    source without a stored identity is treated like the known source (own_tables/owner.py).
    """
    old, new = result.previous, result.master_info
    is_known = (old.uuid, old.master_server_id) == (new.uuid, new.master_server_id)
    if is_known or not may_have_target(repositories.config) or not repositories.target_has("rplctl_channel_owner"):
        return
    if repositories.target_is_fit():
        from rplctl.commit.written_source import note_written
        from rplctl.own_tables.owner import forget_source, read_owner

        with repositories.engine().begin() as connection:
            forget_source(connection, result.channel)
            owner = read_owner(connection, result.channel)
        if owner is not None:
            note_written(repositories.channel, owner)


def _is_other_source(old: MasterInfo, new: MasterInfo) -> bool:
    return (old.host, old.port, old.master_binlog_dir) != (new.host, new.port, new.master_binlog_dir)


def _keep_models(repositories: Repositories, result: ChangeResult) -> None:
    """Make the present table definitions valid from the start of every log, if the new position is before the executed
    position.

    This is necessary if the source changes, or if the applier skips the executed transactions after the new position.
    The target's tables have the present definitions, so earlier definitions would not match these tables.
    """
    stored = repositories.relay()
    old, new = result.previous, result.master_info
    is_other = _is_other_source(old, new)
    passes_over = new.uses_gtid or (":" in stored.gtid_executed and not is_other)
    is_known = stored.gtid_executed if passes_over else is_other and new.master_log_name
    wanted = result.relay_log_info.exec_position
    if not is_known or not stored.master_log_name or not wanted.is_before(stored.exec_position):
        return
    keep_models(repositories, stored)


def keep_models(repositories: Repositories, stored: RelayLogInfo) -> None:
    """Make the table definitions that are valid at the stored position valid from the start of every log."""
    if repositories.target_has("rplctl_table_models"):
        from rplctl.own_tables.models import load_models, rebase_models

        with repositories.engine().begin() as connection:
            catalog = load_models(connection, stored.channel_name, stored.exec_position)
            rebase_models(connection, stored.channel_name, catalog)


def _in_words(result: ChangeResult, verb: str) -> str:
    """Return a text about the change for the history, in the form that MySQL writes to its error log, without the
    password.
    """
    channel = f" FOR CHANNEL '{result.channel}'" if result.channel else ""
    return (
        f"'{verb}{channel} executed'. Previous state {_state(result.previous)}. New state {_state(result.master_info)}."
    )


def _state(info: MasterInfo) -> str:
    where = f", master_binlog_dir='{info.master_binlog_dir}'" if info.master_binlog_dir else ""
    return (
        f"master_host='{info.host}', master_port= {info.port}, master_log_file='{info.master_log_name}', "
        f"master_log_pos= {info.master_log_pos}, master_bind='{info.bind}'{where}"
    )


def _pending_path(channel: Channel) -> Path:
    return channel.run_folder / "change_master.pending"


def _pending_record(path: Path, channel: Channel) -> dict[str, Any]:
    """Return the content of the pending file. Raises RplError if it is damaged, because the interrupted change is then
    unknown.
    """
    try:
        record = parsed_json(read_plain(path))
        is_whole = isinstance(record, dict) and {"master_info", "relay_log_info", "purge"} <= record.keys()
    except ValueError:
        is_whole = False
    if not is_whole:
        raise RplError(
            f"{path} is not a record of an unfinished change-master",
            hint=f"to remove the file before you repeat that change-master, run: rm {path}",
        )
    return dict(record)


def finish_pending_change(config: Config, channel: Channel) -> bool:
    """Complete a CHANGE MASTER that was killed before its end. Return True if there was such a CHANGE MASTER.

    The caller has the admin lock of the channel.
    """
    found = _pending_change(channel)
    if found is None:
        return False
    _carry_out(open_repositories(config, channel.name), found.master, found.relay, purges=found.purges)
    return True


def after_pending_change(repositories: Repositories, *, dry_run: bool) -> tuple[Repositories, tuple[Note, ...]]:
    """Finish an interrupted CHANGE MASTER, and return the repositories and a note about this.

    If there was no interrupted CHANGE MASTER, there is no note. A dry run finishes nothing, but returns repositories
    that show the records as they will be.
    """
    found = _pending_change(repositories.channel)
    if found is None:
        return repositories, ()
    note = Note(f"an interrupted change-master {'would be' if dry_run else 'was'} finished first")
    if not dry_run:
        finish_pending_change(repositories.config, repositories.channel)
        return repositories, (note,)
    if found.master:
        repositories = replace(repositories, master_info=_Foreseen(repositories.master_info, found.master))
    if found.relay:
        repositories = replace(repositories, relay_log_info=_Foreseen(repositories.relay_log_info, found.relay))
    return repositories, (note,)


class _Foreseen(Generic[Info]):
    """A repository as it will be after an interrupted change is finished. It can only be read."""

    def __init__(self, place: InfoRepository[Info], info: Info) -> None:
        self.guard = place.guard
        self._place: InfoRepository[Info] = place
        self._info: Info = info

    @property
    def kind(self) -> RepositoryKind:
        return self._place.kind

    @property
    def where(self) -> str:
        return self._place.where

    def exists(self) -> bool:
        return True

    def stored(self) -> Info:
        return self._info

    read = stored

    def flush(self, info: Info, *, force: bool, events: int = 1) -> None:
        raise AssertionError("a dry run writes nothing")

    def remove(self) -> None:
        raise AssertionError("a dry run removes nothing")

    def is_transactional(self) -> bool:
        return self._place.is_transactional()


@dataclass(frozen=True, slots=True, kw_only=True)
class _PendingChange:
    """The content of the pending file: the records to write. A record that is None is not written."""

    master: MasterInfo | None
    relay: RelayLogInfo | None
    purges: bool


def _pending_change(channel: Channel) -> _PendingChange | None:
    """Return the change in the pending file. Return None if there is no such file.

    The result is also None if the change has a record of a thread that runs. Raises RplError if the file is damaged.
    """
    path = _pending_path(channel)
    if not path.exists():
        return None
    record = _pending_record(path, channel)
    master, relay = record["master_info"], record["relay_log_info"]
    threads = running(channel)
    if (master and RECEIVER in threads) or (relay and APPLIER in threads):
        return None
    return _PendingChange(
        master=_record(MasterInfo, master) if master else None,
        relay=_record(RelayLogInfo, relay) if relay else None,
        purges=bool(record["purge"]),
    )


def _record(kind: type[Any], stored: dict[str, Any]) -> Any:
    known = {f.name for f in fields(kind)}
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in stored.items() if k in known})
