"""Prepare the start of a channel's threads: resolve its records, and collect the options of the applier.

The preparation refuses a record that is in two repositories (REQ-6). It finishes an interrupted CHANGE MASTER or
repository switch. If the target was restored from a backup, it moves the records to the target's position.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from rplctl import mysql_errors as er
from rplctl.applier.options import StartOptions
from rplctl.applier.spark.cluster import given_settings, protection
from rplctl.channel import Channel
from rplctl.command.channel.change_plan import first_place
from rplctl.command.channel.change_store import finish_pending_change
from rplctl.command.channel.context import (
    APPLIER,
    RECEIVER,
    Note,
    engine_of,
    open_repositories,
    refuse_unknown,
    running,
)
from rplctl.command.channel.lost_record import is_lost, lost_record, record_from_marker
from rplctl.command.check.source_end import SourceEnd, source_end
from rplctl.command.check.sync_record import note_stays
from rplctl.command.load_schema import seed_models
from rplctl.command.process.child import Child, spawn
from rplctl.command.process.continued import continue_by_gtid
from rplctl.command.process.start_request import StartRequest, StartResult, UntilOptions, environment_of
from rplctl.commit.xid import instance_name
from rplctl.config import Config
from rplctl.durable import private_folder, remove_leftovers
from rplctl.errors import UsageError
from rplctl.history import note_event
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.origin import read_origin
from rplctl.repository.base import RepositoryKind
from rplctl.repository.switch import resolve_repositories, upgrade_tables
from rplctl.secret import PASSWORD_VARIABLE
from rplctl.status import read_status
from rplctl.target import open_target


@dataclass(frozen=True, slots=True)
class PreparedChannel:
    """A channel whose threads are ready to start. The command holds the channel's admin lock until they run."""

    config: Config
    channel: Channel
    request: StartRequest
    already: dict[str, int]  # role → process id of each running thread
    wanted: SourceEnd | None
    notes: tuple[Note, ...]
    keeps_password: bool  # True: MasterInfo names the environment variable with the password, so the threads need it
    argument: str  # the options of the applier in JSON, as an argument of its process

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles (receiver, applier) whose threads will be started: the requested ones that do not run yet."""
        return tuple(role for role in self.request.roles if role not in self.already)

    def spawn(self, role: str) -> Child:
        arguments = [self.argument] if role == APPLIER else []
        environment = environment_of(self.config, self.request, keeps_password=self.keeps_password)
        return spawn(self.channel, role, arguments, environment)

    def result(self, started: Sequence[Child]) -> StartResult:
        already = tuple(role for role in self.request.roles if role in self.already)
        return StartResult(
            channel=self.channel.name,
            started=tuple(child.role for child in started),
            already_running=already,
            notes=self.notes,
        )


def prepare(config: Config, channel: Channel, request: StartRequest) -> PreparedChannel:
    """Carry out all steps before the threads of a channel start. The caller holds the admin lock of the channel."""
    until = request.until.as_json()
    if APPLIER in request.roles:
        spark = StartOptions(
            spark_master=request.spark_master, spark_conf=request.spark_conf, insecure_cluster=request.insecure_cluster
        ).on(config)
        protection(spark.spark_master, given_settings(spark), is_insecure=spark.insecure_cluster)
    taken = _resolve_belonging(config, channel, request)
    master = _prepare(config, channel)
    if "gtids" in until:
        stored = open_repositories(config, channel.name).relay_log_info.read()
        _refuse_assigned_gtids(stored, channel.name)
        _refuse_other_vendors(until["gtids"], stored.gtid_executed)
    gone_back: tuple[Note, ...] = ()
    if APPLIER in request.roles and not running(channel):
        gone_back = _follow_restored_target(config, channel)
        at = open_repositories(config, channel.name).relay_log_info.read().exec_position
        seed_models(config, channel, master, at)
    relay = open_repositories(config, channel.name).relay_log_info
    fetched_again = _note_useless(config, channel, request, master)
    end = source_end(config, master, relay.read()) if request.until_synced else None
    already = running(channel)
    options = {
        "until": until,
        "spark_master": request.spark_master,
        "spark_conf": request.spark_conf,
        "insecure_cluster": request.insecure_cluster,
        "until_source": str(end.position) if end and end.is_comparable and end.position.log_name else "",
        "until_source_gtids": end.gtids if end else "",
    }
    if APPLIER in request.roles and not (request.until_synced or request.is_passing):
        note_stays(channel)
    return PreparedChannel(
        config,
        channel,
        request,
        already,
        end,
        (*taken, *gone_back, *fetched_again, *_notes(channel.name, request, already, until)),
        master.user_password == f"env:{PASSWORD_VARIABLE}",
        json.dumps(options),
    )


def note_started(config: Config, channel: Channel, request: StartRequest, started: Sequence[str]) -> None:
    """Record a start in the history, except for a start by cron or by a command that needs the threads only for a
    while.
    """
    if started and not (request.until_synced or request.is_passing):
        until = f" until {request.until.shown}" if request.until != UntilOptions() else ""
        note_event(config.datadir, channel.name, "start", " and ".join(started) + until)


def _refuse_assigned_gtids(stored: RelayLogInfo, channel: str) -> None:
    """Raise UsageError if the applier itself assigns GTIDs to the transactions.

    Then an UNTIL with GTIDs is impossible: a transaction has its GTID only when it is applied, too late to stop before
    it.
    """
    if stored.assign_gtids_to_anonymous_transactions_type != "OFF":
        raise UsageError(
            "The SQL_AFTER_GTIDS or SQL_BEFORE_GTIDS clauses for START SLAVE cannot be used when the replication "
            "channel is configured with ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL|<UUID>.",
            errno=er.CANT_SET_SQL_AFTER_OR_BEFORE_GTIDS_WITH_ANONYMOUS_TO_GTID,
            hint="to stop at a position, run: rplctl start --until-master-log-file FILE --until-master-log-pos "
            "POSITION",
        )


def _refuse_other_vendors(gtids: str, executed: str) -> None:
    """Raise UsageError if the GTIDs of UNTIL are of the other vendor than the executed ones.

    The applier could never compare them. Both parameters are GTID sets as text, and `executed` may be ''.
    """
    if executed and (":" in gtids) != (":" in executed):
        vendor = "MySQL" if ":" in executed else "MariaDB"
        raise UsageError(
            er.BAD_SLAVE_UNTIL_COND_TEXT,
            errno=er.BAD_SLAVE_UNTIL_COND,
            hint="to see the applied GTIDs, run: rplctl show-status --field Executed_Gtid_Set\n"
            f"To stop after GTIDs of {vendor}, such as {executed[:60]}, that are not applied yet, run: "
            "rplctl start --until-sql-after-gtids GTIDS",
        )


def _prepare(config: Config, channel: Channel) -> MasterInfo:
    """Complete the work that a crash has left unfinished in the repositories, and return MasterInfo.

    The caller holds the admin lock of the channel.
    """
    finish_pending_change(config, channel)
    if not running(channel):
        for folder in (channel.datadir, channel.run_folder):
            remove_leftovers(folder)
        upgrade_tables(config, engine_of(config))
        if instance_name(channel.datadir):
            from rplctl.commit.resolve import finish_prepared

            finish_prepared(config, channel, engine_of(config))
        refuse_unknown(config, channel.name)  # resolve_repositories would create records for an unknown channel
        config = resolve_repositories(config, channel, engine_of(config), lambda: _has_applied(config, channel))
    repositories = open_repositories(config, channel.name)
    master = repositories.master()
    if not repositories.relay_log_info.exists():
        if record_from_marker(repositories, master) is not None:
            text = f"{repositories.relay_log_info.where} had no record: it was created again from the target's marker"
            note_event(config.datadir, channel.name, "position", text)
        elif is_lost(repositories, master) or master.master_log_name:
            raise lost_record(repositories, master)
        else:  # after RESET SLAVE, the channel begins with the source's first log
            fresh = replace(repositories.relay(), master_id=master.master_id)
            repositories.relay_log_info.flush(fresh.at(first_place(channel), master.read_position), force=True)
    return master


def _has_applied(config: Config, channel: Channel) -> bool:
    from rplctl.commit.belonging import is_owned

    return is_owned(config, channel, engine_of(config))


def _resolve_belonging(config: Config, channel: Channel, request: StartRequest) -> tuple[Note, ...]:
    """Refuse a target that does not belong to the stored position, before anything is created in this target.

    Return notes about a target that is accepted. If the operator requests it (`take_over_target`), take over a target
    of another instance instead. Raises UnfitTarget if the target is refused, LockBusy if the applier of the other
    instance runs, and TargetError if the target reports an error.
    """
    if APPLIER not in request.roles or APPLIER in running(channel):
        return ()
    repositories = open_repositories(config, channel.name)
    if repositories.relay_log_info.kind is RepositoryKind.FILE:  # a pending change-master sets the position first
        finish_pending_change(config, channel)
    from rplctl.commit.belonging import TargetState, belonging_of, take_over

    found = belonging_of(config, channel, repositories.engine)
    if found.error is None:
        if found.note:
            note_event(config.datadir, channel.name, "position", found.note)
        return (Note(found.note),) if found.note else ()
    if found.state is TargetState.OTHERS and request.take_over_target:
        with closing(open_target(config.target_url)) as target:
            target.fence(channel.name)
            if found.continues:
                continue_by_gtid(repositories)
            else:
                take_over(config, channel, target.engine)
        text = f"{found.error.message}; it was taken over"
        note_event(config.datadir, channel.name, "position", text)
        return (Note(text),)
    path = channel.status_path(APPLIER)
    said = replace(
        read_status(path),
        state="",
        target_state=found.state,
        last_errno=found.error.errno,
        last_error=found.error.message,
        last_hint=found.error.hint,
        last_error_timestamp=time.time(),
    )
    private_folder(channel.run_folder)
    said.write(path)
    raise found.error


def _follow_restored_target(config: Config, channel: Channel) -> tuple[Note, ...]:
    """Set the position in RelayLogInfo back to the target's position, if the target was restored from a backup.

    Return a note if the position has changed. This must happen before the receiver starts, because the receiver would
    otherwise request events that are too late.
    """
    repositories = open_repositories(config, channel.name)
    stored = repositories.relay_log_info
    if not repositories.target_has("rplctl_commit_marker"):
        return ()
    from rplctl.commit.marker import has_gone_back

    before = stored.read()
    if not has_gone_back(channel.name, repositories.engine(), before):
        return ()
    from rplctl.commit.position_store import resolve

    resolve(config, channel, repositories.engine())
    text = (
        f"the target has position {stored.read().exec_position}, {stored.where} had {before.exec_position}: the target "
        "was restored from a backup, and the channel continues from the target's position"
    )
    note_event(config.datadir, channel.name, "position", text)
    return (Note(text),)


def _note_useless(config: Config, channel: Channel, request: StartRequest, master: MasterInfo) -> tuple[Note, ...]:
    """Return a note if the relay logs are those of another source. The receiver will remove them.

    This happens after MasterInfo was restored together with the target.
    """
    if RECEIVER not in request.roles or RECEIVER in running(channel) or not RelayLogIndex(channel).names():
        return ()
    origin = read_origin(channel)
    why = origin.differs_from(master.place) if origin is not None else ""
    if not why:
        return ()
    text = f"{why}: the relay logs are removed, and transactions that are not executed are fetched again"
    note_event(config.datadir, channel.name, "position", text)
    return (Note(text),)


def _notes(channel: str, request: StartRequest, already: dict[str, int], until: dict[str, Any]) -> Iterator[Note]:
    if any(role in already for role in request.roles):
        text = f"Replication thread(s) for channel '{channel}' are already running."
        yield Note(text, er.SLAVE_CHANNEL_WAS_RUNNING)
    if until["kind"] != "none" and (request.roles == (RECEIVER,) or APPLIER in already):
        yield Note("SQL thread is not to be started so UNTIL options are ignored", er.UNTIL_COND_IGNORED)
