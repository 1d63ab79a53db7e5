"""RESET SLAVE: remove the position and the relay logs and, with ALL, the channel itself. Replicated tables are kept.

As on a server, the applier keeps its settings except the delay, and a channel that uses GTIDs keeps its executed GTIDs.
ALL also removes the filters of this channel.

Invariant: the executed position is removed last. So after a kill at any point, a start continues from this position.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace

from rplctl import mysql_errors as er, skip_list
from rplctl.command.change_filter import FILTERS
from rplctl.command.channel.both_places import after_interrupted_switch, refuse_both_places
from rplctl.command.channel.change_plan import first_place
from rplctl.command.channel.change_store import after_pending_change, keep_models, resolve_position
from rplctl.command.channel.context import ROLES, Note, Repositories, administer, not_configured, refuse_while_running
from rplctl.command.check.sync_record import forget_sync
from rplctl.config import Config
from rplctl.durable import remove_file
from rplctl.history import note_event
from rplctl.info import RelayLogInfo
from rplctl.option_file import forget_options
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.purge import purge_all
from rplctl.repository.base import RepositoryKind
from rplctl.skipped_objects import SkippedObjects
from rplctl.target import mapped_errors

TABLE = RepositoryKind.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetResult:
    channel: str
    removed_relay_logs: tuple[str, ...] = ()
    removed_channel: bool = False
    dry_run: bool
    notes: tuple[Note, ...] = ()


def reset(
    config: Config, channel_name: str, *, everything: bool = False, forget_gtids: bool = False, dry_run: bool = False
) -> ResetResult:
    """Remove the position and the relay logs of a channel. With `everything`, also remove the channel itself.

    `forget_gtids` also removes the executed GTIDs. Raises UsageError 3081 if a thread runs.
    """
    from rplctl.commit.resolve import finish_prepared

    with administer(config, channel_name, dry_run=dry_run) as repositories:
        refuse_while_running(repositories.channel)
        repositories, finished = after_pending_change(repositories, dry_run=dry_run)
        repositories = after_interrupted_switch(repositories, dry_run=dry_run)
        config, channel = repositories.config, repositories.channel
        refuse_both_places(repositories)
        if not (repositories.master_info.exists() or repositories.relay_log_info.exists()):
            if channel_name:
                raise not_configured(channel)
            note = Note("there is no channel to reset", er.BAD_SLAVE)  # no error for the default channel, as in MySQL
            return ResetResult(channel=channel_name, dry_run=dry_run, notes=(*finished, note))
        index = RelayLogIndex(channel)
        names = tuple(sorted({*index.names(), *index.files()}))
        result = ResetResult(
            channel=channel_name, removed_relay_logs=names, removed_channel=everything, dry_run=dry_run
        )
        belonging = repositories.belonging()
        is_fit, is_own = belonging.error is None, belonging.has_own_rows
        if not is_own and repositories.relay_log_info.exists() and repositories.relay_log_info.kind is TABLE:
            repositories.refuse_unfit_target()
        if not dry_run and is_fit and not everything:
            # If only some tables of a lake have the last batch, finish it while its position is known.
            resolve_position(repositories, dry_run=False)
        kept = _kept(repositories, keeps_gtids=is_fit and not forget_gtids)
        if not everything and kept.gtid_executed:
            text = "Executed_Gtid_Set is kept, and the next start continues after it; --forget-gtids removes it"
            finished = (*finished, Note(text))
        if dry_run:
            return replace(result, notes=finished)
        if repositories.master_info.exists():
            master = repositories.master_info.read()
            cleared = replace(
                master,
                master_log_name="",
                master_log_pos=FIRST_EVENT_POSITION,
                flushed_relay_log_name="",
                flushed_relay_log_pos=0,
            )
            repositories.master_info.flush(cleared, force=True)
        purge_all(channel)
        shutil.rmtree(channel.clone_folder, ignore_errors=True)
        shutil.rmtree(channel.verify_folder, ignore_errors=True)
        channel.verify_report_path.unlink(missing_ok=True)
        finish_prepared(config, channel, repositories.engine)
        if kept.gtid_executed and not everything:
            keep_models(repositories, repositories.relay())
        elif is_own and repositories.target_has("rplctl_commit_marker"):
            if repositories.relay_log_info.exists():  # without left_at, the position is valid without a marker
                relay = replace(repositories.relay_log_info.read(), left_at="")
                repositories.relay_log_info.flush(relay, force=True)
            _remove_marker(repositories)
        if everything or kept == RelayLogInfo(channel_name=channel.name, master_id=kept.master_id):
            repositories.relay_log_info.remove()
        else:
            repositories.relay_log_info.flush(kept, force=True)
        skip_list.clear(channel.run_folder)
        forget_sync(channel)
        for role in ROLES:
            channel.status_path(role).unlink(missing_ok=True)
        if everything:
            SkippedObjects(channel).clear()
            _forget_channel(repositories, has_rows=is_own)
        note_event(config.datadir, channel_name, "reset", "RESET SLAVE ALL" if everything else "RESET SLAVE")
        return replace(result, notes=finished)


def _kept(repositories: Repositories, *, keeps_gtids: bool) -> RelayLogInfo:
    """Return RelayLogInfo after the reset: the applier's settings and, if the channel uses GTIDs, the executed GTIDs.

    `keeps_gtids=False` removes the GTIDs, too.
    """
    stored, master = repositories.relay(), repositories.master_info.stored()
    kept = RelayLogInfo(
        channel_name=stored.channel_name,
        master_id=stored.master_id,
        require_row_format=stored.require_row_format,
        require_table_primary_key_check=stored.require_table_primary_key_check,
        assign_gtids_to_anonymous_transactions_type=stored.assign_gtids_to_anonymous_transactions_type,
        assign_gtids_to_anonymous_transactions_value=stored.assign_gtids_to_anonymous_transactions_value,
    )
    if not (keeps_gtids and stored.gtid_executed and master is not None and master.uses_gtid):
        return kept
    begin = kept.at(first_place(repositories.channel), BinlogPosition("", FIRST_EVENT_POSITION))
    return replace(begin, gtid_executed=stored.gtid_executed, left_at=stored.left_at)


def _remove_marker(repositories: Repositories) -> None:
    from rplctl.commit.marker import remove_marker
    from rplctl.commit.written_source import forget_written
    from rplctl.own_tables.owner import disown_channel

    engine, channel = repositories.engine(), repositories.channel.name
    forget_written(repositories.channel)
    remove_marker(channel, engine)
    with mapped_errors(engine.dialect.name), engine.begin() as connection:
        disown_channel(connection, channel)


def _forget_channel(repositories: Repositories, *, has_rows: bool) -> None:
    """Remove the channel's records, status and logs for RESET SLAVE ALL, but not its replicated tables.

    `has_rows` is True if the internal tables in the target have rows of the channel.
    """
    from rplctl.commit.written_source import forget_written
    from rplctl.own_tables.tables import forget_channel
    from rplctl.repository.table import is_file_missing

    channel = repositories.channel
    if has_rows and not is_file_missing(engine := repositories.engine()):
        with mapped_errors(engine.dialect.name), engine.begin() as connection:
            forget_channel(connection, channel.name)
    forget_written(channel)
    repositories.master_info.remove()
    forget_options(repositories.config.datadir, channel.name, FILTERS)
    remove_file(channel.relay_log_index_path)
    for role in ROLES:
        channel.log_path(role).unlink(missing_ok=True)
