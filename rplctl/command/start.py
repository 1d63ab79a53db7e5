"""START SLAVE: bring the channel's threads up; with `until_synced` or `foreground` stay until they are done.

What is running already is left as it is and noted (3083). Before anything starts the repositories are settled: REQ-6 is
decided, an interrupted CHANGE MASTER or repository switch is finished.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from rplctl import failpoint
from rplctl.channel import Channel
from rplctl.command.change_master import finish_pending_change
from rplctl.command.channel.context import (
    APPLIER,
    RECEIVER,
    ROLES,
    Note,
    administer,
    engine_of,
    open_repositories,
    read_master_info,
    read_skip_count,
    refuse_unknown,
    running,
    target_has_table,
    write_skip_count,
)
from rplctl.command.channel.lost_record import is_lost, lost_record, made_again
from rplctl.command.check.source_end import SourceEnd, source_end
from rplctl.command.check.sync_record import note_stays, note_synced
from rplctl.command.instance.journal import append_journal
from rplctl.command.process.child import Child, leave_running, spawn, terminate, wait_until_it_runs
from rplctl.config import CONFIG_VARIABLE, Config
from rplctl.durable import remove_leftovers
from rplctl.errors import StoppedEarly, UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, RelayLogPosition, is_log_name, numbered_log_name


@dataclass(frozen=True, slots=True)
class Until:
    """UNTIL of START SLAVE (MySQL manual); at most one kind."""

    master_log_file: str | None = None
    master_log_pos: int | None = None
    relay_log_file: str | None = None
    relay_log_pos: int | None = None
    sql_before_gtids: str | None = None
    sql_after_gtids: str | None = None

    def as_json(self) -> dict[str, Any]:
        """What the applier is told. Raises UsageError 1277 for a wrong combination."""
        master = (self.master_log_file, self.master_log_pos)
        relay = (self.relay_log_file, self.relay_log_pos)
        gtids = {"sql_before_gtids": self.sql_before_gtids, "sql_after_gtids": self.sql_after_gtids}
        given = [kind for kind, pair in (("master_pos", master), ("relay_pos", relay)) if pair != (None, None)]
        given += [kind for kind, value in gtids.items() if value is not None]
        if not given:
            return {"kind": "none"}
        kind = given[0]
        if len(given) > 1 or (kind in gtids and not gtids[kind]):
            raise _wrong_until()
        if kind in gtids:
            return {"kind": kind, "gtids": gtids[kind]}
        name, offset = master if kind == "master_pos" else relay
        if not name or not offset or offset < 4 or not is_log_name(name):
            raise _wrong_until()
        return {"kind": kind, "log_name": name, "log_pos": offset}


def _wrong_until() -> UsageError:
    return UsageError(
        "Incorrect parameter or combination of parameters for START SLAVE UNTIL",
        errno=1277,
        hint="give --until-master-log-file with --until-master-log-pos, or one of the other forms",
    )


@dataclass(frozen=True, slots=True)
class StartRequest:
    roles: tuple[str, ...] = ROLES
    until: Until = field(default_factory=Until)
    until_synced: bool = False
    foreground: bool = False
    max_time_s: float | None = None
    spark_master: str = ""
    crash_points: str = ""


@dataclass(frozen=True, slots=True)
class StartResult:
    channel: str
    started: tuple[str, ...]
    already_running: tuple[str, ...]
    notes: tuple[Note, ...]
    synced_to: BinlogPosition | None = None  # seen to be applied
    ended: str = ""  # how, of one that stayed: an Ending of supervise.py; '' = it goes on
    at: BinlogPosition | None = None  # executed when it ended


Begun = Callable[[StartResult], None]
Progress = Callable[[BinlogPosition, BinlogPosition], None]  # (executed, wanted)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A channel that is ready to be started; its admin lock is held."""

    config: Config
    channel: Channel
    request: StartRequest
    already: dict[str, int]  # role → pid of what runs
    wanted: SourceEnd | None
    notes: tuple[Note, ...]
    keep_variable: str
    skip_count: int
    told: str  # to the applier

    @property
    def roles(self) -> tuple[str, ...]:
        """What is to be started."""
        return tuple(role for role in self.request.roles if role not in self.already)

    def spawn(self, role: str) -> Child:
        arguments = [self.told] if role == APPLIER else []
        variables = variables_of(self.config, self.request)
        return spawn(self.channel, role, arguments, keep_variable=self.keep_variable, variables=variables)

    def take_back(self) -> None:
        """Nothing was started after all."""
        if self.skip_count:
            write_skip_count(self.channel, self.skip_count)

    def result(self, started: Sequence[Child]) -> StartResult:
        already = tuple(role for role in self.request.roles if role in self.already)
        return StartResult(self.channel.name, tuple(child.role for child in started), already, self.notes)


def start(
    config: Config,
    channel_name: str,
    request: StartRequest,
    progress: Progress | None = None,
    begun: Begun = lambda result: None,
) -> StartResult:
    """Raises NotConfigured, UsageError 1277, RepositoryConflict, and what the threads end with at once; of one that
    stays until something is reached WaitTimeout or StoppedEarly. `begun` is called when it stays, once all runs.
    """
    check_request(request)
    if not (request.foreground or request.until_synced):
        ready, started = _bring_up(config, channel_name, request)
        leave_running(started)
        return ready.result(started)
    with ended_by_signals(channel_name):
        ready, started = _bring_up(config, channel_name, request)
        try:
            begun(ready.result(started))
            return _stay(ready, started, progress)
        finally:
            for child in started:
                if child.exit_code() is None:
                    terminate(child)


def _stay(ready: Prepared, started: list[Child], progress: Progress | None) -> StartResult:
    from rplctl.command.process.supervise import Run, executed_position, supervise

    has_until = ready.request.until != Until() and any(child.role == APPLIER for child in started)
    run = Run(ready.config, ready.channel, started, ready.wanted, has_until)
    ending = supervise(run, ready.request.max_time_s, progress)
    if ready.wanted is None:
        return replace(ready.result(started), ended=str(ending), at=executed_position(ready.channel))
    note_synced(ready.channel, ready.wanted.asked_at, str(ready.wanted.position))
    synced_to = ready.wanted.position
    return replace(ready.result(started), synced_to=synced_to, ended=str(ending), at=synced_to)


def _bring_up(config: Config, channel_name: str, request: StartRequest) -> tuple[Prepared, list[Child]]:
    """The threads that are to run and do not yet."""
    channel = Channel(channel_name, config.datadir)
    with administer(config, channel) as config:
        ready = prepare(config, channel, request)
        started: list[Child] = []
        try:
            for role in ready.roles:
                started.append(ready.spawn(role))
            for child in started:
                wait_until_it_runs(child)
        except BaseException:
            for child in started:
                terminate(child)
            ready.take_back()
            raise
    return ready, started


@contextmanager
def ended_by_signals(channel: str) -> Iterator[None]:
    """While something is being started SIGTERM ends it as Ctrl-C does: what was begun is taken back. Raises
    StoppedEarly.
    """

    class Terminated(BaseException): ...

    def end(*_: object) -> None:
        raise Terminated

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, end) if is_main else None
    try:
        yield
    except Terminated:
        text = f"channel '{channel}' was stopped by SIGTERM while it was being started"
        raise StoppedEarly(text, channel=channel, hint="nothing is lost: rplctl start") from None
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def prepare(config: Config, channel: Channel, request: StartRequest) -> Prepared:
    """All that comes before the threads. Caller holds the admin lock."""
    until = request.until.as_json()
    master = _prepare(config, channel)
    if "gtids" in until:
        _refuse_assigned_gtids(open_repositories(config, channel.name).relay_log_info.read(), channel.name)
    gone_back: tuple[Note, ...] = ()
    if APPLIER in request.roles and not running(channel):
        gone_back = _follow_restored_target(config, channel)
        _seed(config, channel, master)
    relay = open_repositories(config, channel.name).relay_log_info
    end = source_end(config, master, relay.read()) if request.until_synced else None
    already = running(channel)
    skip = read_skip_count(channel) if APPLIER in request.roles and APPLIER not in already else 0
    options = {
        "until": until,
        "spark_master": request.spark_master,
        "until_source": str(end.position) if end and end.is_comparable and end.position.log_name else "",
        "until_source_gtids": end.gtids if end else "",
        "skip_count": skip,
    }
    if APPLIER in request.roles and not request.until_synced:
        note_stays(channel)
    if skip:
        write_skip_count(channel, 0)  # the applier writes what is left of it when it stops
    return Prepared(
        config,
        channel,
        request,
        already,
        end,
        (*gone_back, *_notes(channel.name, request, already, until)),
        master.user_password.partition("env:")[2] if master.user_password.startswith("env:") else "",
        skip,
        json.dumps(options),
    )


def _refuse_assigned_gtids(stored: RelayLogInfo, channel: str) -> None:
    """A GTID that the applier gives is not known before the transaction is applied: too late to stop before it."""
    if stored.assign_gtids_to_anonymous_transactions_type != "OFF":
        raise UsageError(
            "The SQL_AFTER_GTIDS or SQL_BEFORE_GTIDS clauses for START SLAVE cannot be used when the replication "
            "channel is configured with ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL|<UUID>.",
            errno=4019,
            channel=channel,
            hint="name a position: --until-master-log-file with --until-master-log-pos",
        )


def variables_of(config: Config, request: StartRequest) -> dict[str, str]:
    given = {failpoint.ENVIRONMENT: request.crash_points}
    if config.config_file:
        given[CONFIG_VARIABLE] = str(config.config_file.resolve())
    return {name: value for name, value in given.items() if value}


def check_request(request: StartRequest) -> None:
    """Raises UsageError, ConfigError."""
    until = request.until.as_json()
    failpoint.parse_failpoints(request.crash_points)
    if request.until_synced and (until["kind"] != "none" or APPLIER not in request.roles):
        raise UsageError("--until-synced needs the applier and goes with no other UNTIL", errno=1277)
    if request.max_time_s is not None and not (request.foreground or request.until_synced):
        raise UsageError("--max-time needs --foreground or --until-synced", hint="rplctl stop ends a started channel")


def _prepare(config: Config, channel: Channel) -> MasterInfo:
    """Repositories in order and a configured source. Caller holds the admin lock."""
    finish_pending_change(config, channel)
    if not running(channel):
        for folder in (channel.datadir, channel.run_folder):
            remove_leftovers(folder)
        from rplctl.commit.two_phase import settle_prepared
        from rplctl.repository.switch import settle_repositories, upgrade_tables

        upgrade_tables(config, engine_of(config))
        settle_prepared(config, channel, engine_of(config))
        refuse_unknown(config, channel.name)  # settling would fill in records of a channel that nobody made
        config = settle_repositories(config, channel, engine_of(config))
    repositories = open_repositories(config, channel.name)
    master = read_master_info(repositories, channel.name)
    if not repositories.relay_log_info.exists():
        if made_again(config, repositories, channel, master) is not None:
            text = f"{repositories.relay_log_info.where} had no record: it was made again from the target's marker"
            append_journal(config, f"START for channel '{channel.name}': {text}")
        elif is_lost(repositories, channel, master) or master.master_log_name:
            raise lost_record(repositories, channel, master)
        else:  # after RESET SLAVE: from the first log there is
            first = RelayLogPosition(numbered_log_name(channel.relay_log_base, 1), FIRST_EVENT_POSITION)
            fresh = RelayLogInfo(channel_name=channel.name, master_id=master.master_id)
            repositories.relay_log_info.flush(fresh.at(first, master.read_position), force=True)
    return master


def _follow_restored_target(config: Config, channel: Channel) -> tuple[Note, ...]:
    """Before the receiver asks for what follows a position that the target no longer has: it would fetch too little."""
    repositories = open_repositories(config, channel.name)
    stored = repositories.relay_log_info
    if not target_has_table(repositories, "rplctl_commit_marker"):
        return ()
    from rplctl.commit.position_store import has_gone_back, settle

    before = stored.read()
    if not has_gone_back(channel.name, repositories.engine(), before):
        return ()
    settle(config, channel, repositories.engine())
    text = (
        f"the target is at {stored.read().exec_position}, {stored.where} was at {before.exec_position}: the target was "
        "restored from a backup, and the channel goes on from the target's position"
    )
    append_journal(config, f"START for channel '{channel.name}': {text}")
    return (Note(0, text),)


def _seed(config: Config, channel: Channel, master: MasterInfo) -> None:
    from rplctl.command.load_schema import seed_models

    seed_models(config, channel, master, open_repositories(config, channel.name).relay_log_info.read().exec_position)


def _notes(channel: str, request: StartRequest, already: dict[str, int], until: dict[str, Any]) -> tuple[Note, ...]:
    notes = []
    if any(role in already for role in request.roles):
        notes.append(Note(3083, f"Replication thread(s) for channel '{channel}' are already running."))
    if until["kind"] != "none" and (request.roles == (RECEIVER,) or APPLIER in already):
        notes.append(Note(1279, "SQL thread is not to be started so UNTIL options are ignored"))
    return tuple(notes)
