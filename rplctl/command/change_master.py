"""CHANGE MASTER TO: set where a channel reads from and how it connects (MySQL's order of checks).

    1. channel name                        3076
    2. running threads                     3081, 3021, 3085
    3. values and their dependencies       1210 … 1776
    4. stored records                      1201, 1872, REQ-6
    5. relay logs purged (both threads stopped, and what is given says that they are of no use:
       channel/change_plan.py), both records flushed, journal

Neither 3075 nor 3078 is raised, here or by a server: MySQL 9 lets two channels read one host and port, too, and what
stops a channel from being removed has an error of its own (3081, 1205, the system's).

Invariant: both records are durable when the function returns. They are two writes, so a command killed half-way is
finished at the next start or change: `change_master.pending` in the run folder holds both until they are down. The
record of a thread that runs is never written: it moves while we look.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from rplctl.channel import MAX_CHANNELS, Channel, check_channel_name
from rplctl.command.channel.change_options import BOTH, EXECUTE, RECEIVE, MasterChanges, check_changes
from rplctl.command.channel.change_plan import (
    change_notes,
    check_dependencies,
    check_own_id,
    check_way,
    default_heartbeat,
    names_other_source,
    names_position,
    new_master_info,
    new_relay_log_info,
    position_notes,
    purges_relay_logs,
    taken_for_the_same,
)
from rplctl.command.channel.context import (
    APPLIER,
    RECEIVER,
    ROLES,
    Note,
    Repositories,
    administer,
    all_channels,
    clear_status,
    engine_of,
    open_repositories,
    running,
    target_has_table,
)
from rplctl.command.channel.lost_record import is_lost, lost_record, made_again
from rplctl.command.check.sync_record import forget_sync
from rplctl.command.instance.journal import append_journal
from rplctl.config import Config
from rplctl.durable import private_folder, remove_file, replace_file
from rplctl.errors import RepositoryConflict, RplError, TargetError, UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.plain_file import parsed_json, read_plain
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.relay_log.purge import purge_all
from rplctl.repository.base import RepositoryKind

_POSITION = ("master_log_file", "master_log_pos")


@dataclass(frozen=True, slots=True)
class ChangeResult:
    channel: str
    created: bool
    previous: MasterInfo
    master_info: MasterInfo
    relay_log_info: RelayLogInfo
    purges_relay_logs: bool
    dry_run: bool
    notes: tuple[Note, ...]
    untouched: frozenset[str] = frozenset()  # roles whose record stays: they run, or the target cannot be asked


def change_master(config: Config, channel_name: str, changes: MasterChanges, *, dry_run: bool = False) -> ChangeResult:
    """Raises UsageError, RplError with MySQL's numbers, ConfigError, TargetError."""
    check_channel_name(channel_name)
    channel = Channel(channel_name, config.datadir)
    with administer(config, channel, makes=True) as config:
        finish_pending_change(config, channel)
        threads = running(channel)
        _check_running(channel_name, changes, threads)
        check_changes(changes)
        repositories = open_repositories(config, channel_name)
        created = not repositories.master_info.exists()
        master, relay = stored_records(config, repositories, channel_name)
        if not created and is_lost(repositories, channel, master):
            relay = _lost(config, repositories, channel, changes, master, dry_run=dry_run) or relay
        stands = created and repositories.relay_log_info.exists()
        master = taken_for_the_same(changes, master) if stands else master
        check_dependencies(changes, master, relay)
        check_own_id(config, channel, changes)
        stays: tuple[Note, ...] = ()
        try:
            if settle_position(config, channel, repositories, dry_run=dry_run):
                relay = repositories.relay_log_info.read()
        except TargetError as error:
            stays = (_applier_stays(changes, master, error, channel_name),)
            threads |= {APPLIER: 0}  # as if it ran: its record and its relay logs stay as they are
        check_way(changes, master, relay)
        purges = not threads and purges_relay_logs(changes, master)
        executed = _executed(channel, relay, by_gtid=master.uses_gtid) if purges else relay.exec_position
        new_master = new_master_info(config, changes, master, executed, purges)
        notes = [*change_notes(config, changes, master, new_master), *position_notes(changes, master, relay, purges)]
        notes += [_stands(relay)] if stands and not purges and relay.master_log_name else []
        result = ChangeResult(
            channel_name,
            created,
            master,
            new_master,
            new_relay_log_info(channel, changes, relay, (master, new_master), purges),
            purges,
            dry_run,
            (*notes, *stays),
            frozenset(threads),
        )
        if not dry_run:
            store_change(config, channel, repositories, result, journal_line(result))
        return result


def _lost(  # noqa: PLR0913
    config: Config,
    repositories: Repositories,
    channel: Channel,
    changes: MasterChanges,
    master: MasterInfo,
    *,
    dry_run: bool,
) -> RelayLogInfo | None:
    """RelayLogInfo is gone: the marker's in its place. Raises RplError 1201 without one, unless a place is named."""
    found = made_again(config, repositories, channel, master, dry_run=dry_run)
    if found is None and not (names_position(changes) or names_other_source(changes, master)):
        raise lost_record(repositories, channel, master)
    return found


def _stands(relay: RelayLogInfo) -> Note:
    return Note(
        0,
        f"MasterInfo was gone and RelayLogInfo was not: the channel goes on from {relay.exec_position}. If this is "
        "another source: add --master-log-file and --master-log-pos",
    )


def _executed(channel: Channel, relay: RelayLogInfo, *, by_gtid: bool) -> BinlogPosition:
    """Up to where the source's log is applied; where fetching once began when nothing is."""
    from rplctl.relay_log.index import RelayLogIndex
    from rplctl.relay_log.locate import first_fetched

    index = RelayLogIndex(channel)
    begun = None if relay.master_log_name else first_fetched(index, index.names(), relay, by_gtid=by_gtid)
    return begun or BinlogPosition(relay.master_log_name, max(FIRST_EVENT_POSITION, relay.master_log_pos))


def settle_position(config: Config, channel: Channel, repositories: Repositories, *, dry_run: bool) -> bool:
    """Before a stopped applier's position is read to be moved: the target may know of transactions that a crash kept
    out of a file (mode marker and xa). True when the record may be another now. Raises TargetError.
    """
    from rplctl.repository.switch import may_have_table

    if APPLIER in running(channel) or not repositories.relay_log_info.exists():
        return False
    if not may_have_table(config):  # looking would make the target's file
        return False
    if not target_has_table(repositories, "rplctl_commit_marker") or dry_run:
        return False
    from rplctl.commit.position_store import settle

    settle(config, channel, repositories.engine())
    return True


def _applier_stays(changes: MasterChanges, master: MasterInfo, error: TargetError, channel: str) -> Note:
    """Without the target the receiver may be sent elsewhere, as under a running applier. Raises TargetError when the
    applier's position would move: only the target knows up to where its rows go.
    """
    moved = [row.name for row in changes.given() if row.concerns != RECEIVE or row.name in _POSITION]
    is_other = names_other_source(changes, master)
    if not error.transient or moved or (is_other and not master.uses_gtid):
        what = ", ".join(name.upper() for name in moved) or "another source without GTIDs"
        raise TargetError(
            f"{error.message.rstrip('.')}: only the target knows up to where its rows go, and {what} moves the applier",
            errno=error.errno,
            channel=channel,
            hint="when the target is there again; without it: connection options, or with GTIDs another source",
        ) from None
    return Note(0, f"the target cannot be asked ({error.message}): relay logs are kept, the applier goes on in them")


def _check_running(channel: str, changes: MasterChanges, threads: dict[str, int]) -> None:
    concerns = {row.concerns for row in changes.given()}
    if changes.password is not None or changes.password_reference is not None:
        concerns.add(RECEIVE)
    stop = f"rplctl stop{f' --channel {channel}' if channel else ''}"
    if threads and (BOTH in concerns or (concerns >= {RECEIVE, EXECUTE} and len(threads) == len(ROLES))):
        raise UsageError(
            "This operation cannot be performed with running replication threads; "
            f"run STOP SLAVE FOR CHANNEL '{channel}' first",
            errno=3081,
            channel=channel,
            hint=stop,
        )
    for concern, role, errno, thread in ((RECEIVE, RECEIVER, 3021, "io"), (EXECUTE, APPLIER, 3085, "sql")):
        if concern in concerns and role in threads:
            raise UsageError(
                f"This operation cannot be performed with a running slave {thread} thread; "
                f"run STOP SLAVE {thread.upper()}_THREAD FOR CHANNEL '{channel}' first.",
                errno=errno,
                channel=channel,
                hint=f"{stop} --{role}",
            )


def stored_records(config: Config, repositories: Repositories, channel: str) -> tuple[MasterInfo, RelayLogInfo]:
    """What is stored, or fresh records of a new channel with a Master_id of its own (WL#2775 REQ-2)."""
    from rplctl.repository import next_master_id

    if repositories.master_info.exists():
        master = repositories.master_info.read()
    else:
        _refuse_a_second_record(config, repositories, channel)
        channels = all_channels(config)
        if len(channels) >= MAX_CHANNELS:
            raise UsageError("Maximum number of replication channels allowed exceeded.", errno=3080, channel=channel)
        _create_tables(config, repositories)
        master = MasterInfo(
            channel_name=channel,
            master_id=next_master_id(config, engine_of, channels),
            heartbeat=default_heartbeat(config),
        )
    if repositories.relay_log_info.exists():
        return master, repositories.relay_log_info.read()
    return master, RelayLogInfo(channel_name=channel, master_id=master.master_id)


def _refuse_a_second_record(config: Config, repositories: Repositories, channel: str) -> None:
    """The channel is not new when the other kind of repository holds it: a switch came between, or an option changed.
    A record here, too, would be what REQ-6 cannot decide.
    """
    from rplctl.repository import open_master_info
    from rplctl.repository.switch import may_have_table

    here = repositories.master_info
    other = RepositoryKind.FILE if here.kind is RepositoryKind.TABLE else RepositoryKind.TABLE
    if other is RepositoryKind.TABLE and not may_have_table(config):
        return
    place = replace(config, master_info_repository=str(other))
    there = open_master_info(place, Channel(channel, config.datadir), repositories.engine)
    try:
        is_there = there.exists()
    except TargetError as error:
        if not error.transient:
            raise
        return  # a target that is away: `start` looks at both again, and refuses to choose (REQ-6)
    if is_there:
        raise RepositoryConflict(
            f"MasterInfo of channel '{channel}' is in {there.where}, and master_info_repository names {here.where}",
            channel=channel,
            hint=f"rplctl switch-repo --to {str(here.kind).lower()}",
        )


def _create_tables(config: Config, repositories: Repositories) -> None:
    """CREATE TABLE IF NOT EXISTS, when a repository is a table: `init` may not have run."""
    if RepositoryKind.TABLE in (repositories.master_info.kind, repositories.relay_log_info.kind):
        from rplctl.repository import create_tables

        create_tables(repositories.engine(), config.rep_engine)


def store_change(
    config: Config, channel: Channel, repositories: Repositories, result: ChangeResult, journal: str
) -> None:
    """Both records durably, through the pending file. Caller holds the admin lock, has settled the position and refused
    what may not be.
    """
    if APPLIER not in result.untouched:
        _keep_models(channel, repositories, result)
    _write_pending(channel, result)
    if result.purges_relay_logs:
        purge_all(channel)
    if RECEIVER not in result.untouched:
        repositories.master_info.flush(result.master_info, force=True)
    if APPLIER not in result.untouched:
        repositories.relay_log_info.flush(result.relay_log_info, force=True)
    remove_file(_pending_path(channel))
    for role in ROLES:
        if role not in result.untouched:
            clear_status(channel, role)
    if _is_other_source(result.previous, result.master_info):
        forget_sync(channel)
    append_journal(config, journal)


def _is_other_source(old: MasterInfo, new: MasterInfo) -> bool:
    return (old.host, old.port, old.master_binlog_dir) != (new.host, new.port, new.master_binlog_dir)


def _keep_models(channel: Channel, repositories: Repositories, result: ChangeResult) -> None:
    """Another source, or positions to be found by GTID: what the tables look like now holds there from the start."""
    stored = repositories.relay_log_info.read() if repositories.relay_log_info.exists() else RelayLogInfo()
    old, new = result.previous, result.master_info
    is_other = _is_other_source(old, new)
    is_known = stored.gtid_executed if new.uses_gtid else is_other and new.master_log_name
    wanted = result.relay_log_info.exec_position
    if not is_known or not stored.master_log_name or not wanted.is_before(stored.exec_position):
        return
    if target_has_table(repositories, "rplctl_table_models"):
        from rplctl.commit.models import load_models, rebase_models

        with repositories.engine().begin() as connection:
            catalog = load_models(connection, channel.name, stored.exec_position)
            rebase_models(connection, channel.name, catalog)


def journal_line(result: ChangeResult, verb: str = "CHANGE MASTER TO") -> str:
    """MySQL's line in its error log; no password in it."""
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


def _write_pending(channel: Channel, result: ChangeResult) -> None:
    record = {
        "purge": result.purges_relay_logs,
        "master_info": None if RECEIVER in result.untouched else asdict(result.master_info),
        "relay_log_info": None if APPLIER in result.untouched else asdict(result.relay_log_info),
    }
    private_folder(channel.run_folder)
    replace_file(_pending_path(channel), json.dumps(record).encode())


def _pending_record(path: Path, channel: Channel) -> dict[str, Any]:
    """What it says. Raises RplError: without it nobody knows what was being changed."""
    try:
        record = parsed_json(read_plain(path))
        is_whole = isinstance(record, dict) and {"master_info", "relay_log_info", "purge"} <= record.keys()
    except ValueError:
        is_whole = False
    if not is_whole:
        raise RplError(
            f"{path} is no record of an unfinished change-master",
            channel=channel.name,
            hint=f"rm {path}, then give the options of that change-master again",
        )
    return dict(record)


def finish_pending_change(config: Config, channel: Channel) -> bool:
    """Complete a CHANGE MASTER that was killed half-way; True when there was one. Caller holds the admin lock."""
    path = _pending_path(channel)
    if not path.exists():
        return False
    record = _pending_record(path, channel)
    master, relay = record["master_info"], record["relay_log_info"]
    threads = running(channel)
    if (master and RECEIVER in threads) or (relay and APPLIER in threads):
        return False
    repositories = open_repositories(config, channel.name)
    if record["purge"]:
        purge_all(channel)
    if master:
        repositories.master_info.flush(_record(MasterInfo, master), force=True)
    if relay:
        repositories.relay_log_info.flush(_record(RelayLogInfo, relay), force=True)
    remove_file(path)
    return True


def _record(kind: type[Any], stored: dict[str, Any]) -> Any:
    known = {f.name for f in fields(kind)}
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in stored.items() if k in known})
