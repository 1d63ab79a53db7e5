"""`clone`: start to copy tables of a running source. The channel then continues from the copy.

This module only chooses the tables and adds them to the clone state, a table in the target. The receiver's process then
reads the rows (clone/cloner.py), and the applier loads them (applier/apply/clone_load.py). The applier skips the events
of a table until its rows are loaded. A running applier is notified of new tables (clone/throttle.py). A channel without
a position begins at the source's end. Invariant: a table that already exists in the target changes only with `replace`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby

from sqlalchemy import Connection

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.clone.lag import refuse_no_replica
from rplctl.clone.read_from import READ_SOURCE, refuse_copy
from rplctl.clone.source_tables import TableSize
from rplctl.clone.table_groups import table_groups, together
from rplctl.clone.throttle import history_length, read_limits, write_limits
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.change_plan import first_place
from rplctl.command.channel.change_store import ChangeResult, store_change, stored_records
from rplctl.command.channel.context import (
    ROLES,
    Note,
    administer,
    one_engine,
    refuse_lake,
    refuse_while_running,
    running,
)
from rplctl.command.channel.peers import refuse_silent_peers
from rplctl.command.channel.watched import watched_peers
from rplctl.command.check.ends import check_source
from rplctl.command.check.repository import Stored
from rplctl.command.cloning.choice import DUMP, SNAPSHOT_ENGINE, Choice, ClonePlan, TableToClone, make_plan
from rplctl.command.process.start_request import StartRequest
from rplctl.command.start import start
from rplctl.config import Config
from rplctl.decode.filter_rules import ReplicationFilter, filtered_catalog
from rplctl.errors import RplError, SourceError, UsageError
from rplctl.failpoint import crash_point
from rplctl.history import note_event
from rplctl.info import MasterInfo
from rplctl.own_tables.clones import ClonedTable, add_clones, read_clones
from rplctl.own_tables.models import load_models, store_models
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition
from rplctl.renaming import refuse_pending_rename
from rplctl.schema.definition import create_database, sequence_definition
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel
from rplctl.schema.source_catalog import quote
from rplctl.schema.statement import TableName
from rplctl.secret import reveal
from rplctl.skipped_objects import SkippedObjects, in_words
from rplctl.source.base import COPY_AGAIN
from rplctl.source.survey import survey
from rplctl.sql_text import Sql, written
from rplctl.target import dialect_of, mapped_errors, open_target, statement_target, target_kind
from rplctl.target.base import committed

__all__ = ["Choice", "CloneRequest", "CloneResult", "TableToClone", "clone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneRequest:
    """The parameters of `clone`. All fields from `max_load` to `max_lag` are limits of the copy.

    A limit of None keeps the stored limit.
    """

    choice: Choice = field(default_factory=Choice)
    max_load: int | None = None
    max_rate: float | None = None
    load_threads: int | None = None
    read_from: str | None = None
    max_history: int | None = None
    lag_of: str | None = None
    max_lag: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class CloneResult:
    """The result of `clone`. In a dry run, `refusal` is the error that the command without `dry_run` would raise."""

    channel: str
    listed: tuple[TableToClone, ...] = field(metadata={"column": ""})
    tables: int  # the number of tables that are copied
    position: BinlogPosition
    dry_run: bool
    refusal: RplError | None = field(default=None, metadata={"column": ""})
    notes: tuple[Note, ...] = ()


@one_engine()
def clone(config: Config, channel_name: str, request: CloneRequest | None = None) -> CloneResult:
    """Start the copy of the chosen tables, and start the channel if no thread of it runs.

    Raises UsageError if a table cannot be copied, or if a channel without a position runs (3081). Raises SourceError or
    TargetError if a server does not answer or reports an error.
    """
    request = request or CloneRequest()
    if request.dry_run:
        refuse_pending_rename(config, channel_name)
    refuse_lake(
        config,
        "to begin at a position, run: rplctl change-master --master-log-file FILE --master-log-pos POSITION; rplctl "
        "start",
    )
    refuse_silent_peers(config, channel_name)
    with watched_peers(config, channel_name), administer(config, channel_name) as repositories:
        config, channel = repositories.config, repositories.channel
        master, relay = repositories.master(), repositories.relay()
        repositories.refuse_unfit_target()
        is_new = not (master.master_log_name or relay.master_log_name or relay.gtid_executed)
        if is_new:
            refuse_while_running(channel)
        _refuse(config, master)
        if request.choice.replace and not request.choice.is_made and not is_new:
            text = "--replace requires --tables or --databases if the channel has a position"
            raise UsageError(
                text, hint="to name the tables that clone may drop, run: rplctl clone --tables DB.TABLE --replace"
            )
        if not is_new:
            _refuse_purged(config, channel, Stored(master, relay))
        try:
            plan = make_plan(repositories, master, request.choice, is_new=is_new)
        except SourceError as error:
            error.hint = error.hint or "to find the problem of the source, run: rplctl doctor"
            raise
        read_from = read_limits(channel).read_from if request.read_from is None else request.read_from
        if read_from:
            refuse_copy(config, master, read_from)
            others = (name for name in plan.models if plan.source.facts[name].engine.lower() != SNAPSHOT_ENGINE)
            if found := ".".join(next(others, ())):
                text = f"a replica shows the source's position only for InnoDB tables, and {found} is not InnoDB"
                raise UsageError(
                    text, hint=f"{READ_SOURCE}\nTo copy only InnoDB tables, run: rplctl clone --tables DB.TABLE"
                )
        _refuse_unseen(config, master, request)
    position = plan.source.end if is_new and plan.source.end else relay.exec_position
    notes = (*(() if read_from else _wishes(plan)), *_not_copied(plan, is_listed=request.dry_run),
             *_foreign_keys(config, plan))  # fmt: skip
    if request.dry_run:
        return CloneResult(channel_name, plan.listed, len(plan.models), position, True, plan.refusal, notes)
    if plan.refusal:
        raise plan.refusal
    if is_new:
        _begin(config, channel_name, position, plan.source.gtids)
    with administer(config, channel_name) as repositories:
        config = repositories.config
        if is_new:
            refuse_while_running(channel)
        _add(config, channel, position, plan, request.choice)
        crash_point("crash_clone_after_ledger")
        write_limits(
            channel, max_load=request.max_load, max_rate=request.max_rate, load_threads=request.load_threads,
            read_from=request.read_from, max_history=request.max_history, lag_of=request.lag_of,
            max_lag=request.max_lag,
        )  # fmt: skip
    not_copied = _note_objects(config, channel, plan)
    note_event(config.datadir, channel_name, "clone", f"{len(plan.models)} tables are to be copied{not_copied}")
    notes = (*notes, *_brought_up(config, channel))
    return CloneResult(channel_name, plan.listed, len(plan.models), position, False, notes=notes)


def _wishes(plan: ClonePlan) -> tuple[Note, ...]:
    if not plan.source.wished or not plan.models:
        return ()
    text = (
        "On the source, ALTER and DROP of a table wait until this table and the tables copied with it are read, and "
        f"later queries of the table wait, too. With this privilege they do not wait: {plan.source.wished}"
    )
    return (Note(text),)


def _not_copied(plan: ClonePlan, *, is_listed: bool) -> Iterator[Note]:
    """Yield notes about the views, triggers and other objects that `clone` does not copy.

    The notes contain the names if `is_listed`, and otherwise only the number of objects of each kind.
    """
    if plan.source.objects and not is_listed:
        text = f"clone does not copy {in_words(plan.source.objects)}; to list them, run: rplctl clone --dry-run"
        yield Note(text)
        return
    for kind, objects in groupby(plan.source.objects, lambda each: each[0]):
        names = [f"{database}.{name}" for _, database, name in objects]
        yield Note(f"clone does not copy {in_words((kind, '', name) for name in names)}: {', '.join(names)}")


def _foreign_keys(config: Config, plan: ClonePlan) -> Iterator[Note]:
    """Yield a note with the GRANT that the target's account lacks to disable foreign keys.

    Without this privilege, the copy of a child table fails if its parent table is not copied yet (error 1452).
    """
    if not any(model.foreign_keys for model in plan.models.values()):
        return
    with closing(open_target(config.target_url)) as target, mapped_errors(target.kind):
        with target.engine.connect() as connection:
            grant = dialect_of(target.kind).foreign_key_grant(connection)
    if grant:
        yield Note(
            f"tables have foreign keys, and the target's account may not disable them (error 1452); run: {grant}"
        )


def _note_objects(config: Config, channel: Channel, plan: ClonePlan) -> str:
    """Record the objects that the target will not have, because it cannot execute the source's DDL. Return a text about
    them.

    The text is for the history; '' if the target can execute the DDL.
    """
    objects = plan.source.objects
    if not objects or dialect_of(target_kind(config.target_url)).executes_statements:
        return ""
    SkippedObjects(channel).add(objects)
    return f"; not carried out: {in_words(objects)}"


def _brought_up(config: Config, channel: Channel) -> tuple[Note, ...]:
    """Start both threads if neither runs. If only one of them runs, start nothing, and return a note about the stopped
    one.
    """
    threads = running(channel)
    if not threads:
        start(config, channel.name, StartRequest())
        return ()
    missing = [role for role in ROLES if role not in threads]
    return tuple(Note(f"the copy waits for the {role}; to start it, run: rplctl start --{role}") for role in missing)


def _refuse(config: Config, master: MasterInfo) -> None:
    if master.master_binlog_dir:
        raise UsageError("a folder of binary logs has no tables to copy", hint=DUMP)
    if config.log_bin:
        raise UsageError("clone is not supported with log_bin: the binary log would lack the copied rows", hint=DUMP)
    if master.uses_gtid and (master.ignored_server_ids or master.do_domain_ids or master.ignore_domain_ids):
        raise UsageError(
            "clone needs every GTID: this channel ignores some servers or domains, so it never reaches the copy",
            hint="to ignore no servers and domains, run: rplctl change-master --ignore-server-ids '' --do-domain-ids "
            "'' --ignore-domain-ids ''",
        )


def _refuse_purged(config: Config, channel: Channel, stored: Stored) -> None:
    """Raise SourceError if the source has purged the events that the channel needs next.

    The channel already has a position, so it would wait for these events. It would never reach the later position at
    which the tables are copied.
    """
    findings = check_source(config, channel, stored)
    if purged := next((finding for finding in findings if finding.code == "source_purged"), None):
        raise SourceError(
            f"cannot copy tables, because the copy would wait for purged events: {purged.text}",
            errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
            channel=channel.name,
            hint=f"to copy all tables again, which replaces all their rows in the target, run: {COPY_AGAIN}",
        )


def _refuse_unseen(config: Config, master: MasterInfo, request: CloneRequest) -> None:
    """Raise UsageError or SourceError if the request sets a limit by a value that cannot be read, such as the lag of a
    replica.

    The copy would wait for this value forever.
    """
    password = reveal(master.user_password, config.datadir)
    if request.max_history:
        with survey(master, password, config) as query:
            history_length(query)
    if request.lag_of:
        refuse_no_replica(config, master, password, request.lag_of)


def _begin(config: Config, channel_name: str, position: BinlogPosition, gtids: str) -> None:
    """Set the position of a new channel to the source's end.

    If the channel uses GTIDs, the file and offset are stored, too. With them, the channel can continue without GTIDs
    later.
    """
    with administer(config, channel_name) as repositories:
        master, relay = stored_records(repositories, dry_run=False)
        if master.uses_gtid:
            refuse_while_running(repositories.channel)
            begun = replace(relay.at(first_place(repositories.channel), position), gtid_executed=gtids)
            change = ChangeResult(
                channel=channel_name,
                previous=master,
                master_info=master,
                relay_log_info=begun,
                created=False,
                purges_relay_logs=True,
                dry_run=False,
                notes=(),
            )
            store_change(repositories, change, "CLONE")
    if not master.uses_gtid:
        at = MasterChanges(master_log_file=position.log_name, master_log_pos=position.log_pos)
        change_master(config, channel_name, at)


def _add(config: Config, channel: Channel, position: BinlogPosition, plan: ClonePlan, choice: Choice) -> None:
    rules = ReplicationFilter.from_config(config)
    ours = filtered_catalog(plan.source.catalog, rules)
    databases = {name: found for name, found in ours.databases.items() if rules.accepts_database(name)}
    sequences = {name: model for name, model in ours.tables.items() if model.is_sequence and choice.takes(name)}
    with closing(open_target(config.target_url)) as target:
        create_own_tables(target.engine)
        server = statement_target(target)
        if server is not None:
            wanted = {database for database, _ in sequences} | {rules.rewritten(name) for name, _ in plan.models}
            server.make_tables(
                [
                    *(create_database(databases[name]) for name in databases if not choice.is_made or name in wanted),
                    *_create_sequences(plan.source.sequences, rules, sequences),
                ]
            )
        with committed(target):
            add_clones(target.connection, channel.name, _rows(target.connection, channel.name, plan, rules))
            if server is None:
                _store_models(target.connection, channel, position, sequences, databases)


def _store_models(
    connection: Connection,
    channel: Channel,
    position: BinlogPosition,
    sequences: dict[TableName, TableModel],
    databases: dict[str, DatabaseModel],
) -> None:
    """Store the definitions of sequences and databases in the target. The definition of a table comes with its first
    rows.

    Raises UsageError 3081 if the applier runs and a sequence is new, because the applier has its definitions in memory.
    """
    known = load_models(connection, channel.name, position).tables
    new = {name: model for name, model in sequences.items() if name not in known}
    if new:
        refuse_while_running(channel)
    if not running(channel):
        store_models(connection, channel.name, position, new, databases)


def _rows(connection: Connection, channel: str, plan: ClonePlan, rules: ReplicationFilter) -> list[ClonedTable]:
    first = 1 + max((row.Family for row in read_clones(connection, channel)), default=0)
    facts = {name: plan.source.facts.get(name, TableSize(engine="", rows=0, bytes=0)) for name in plan.models}
    alone = {name for name in plan.models if facts[name].engine.lower() != SNAPSHOT_ENGINE}
    groups = [
        *together(
            table_groups({name: model for name, model in plan.models.items() if name not in alone}),
            lambda name: facts[name].bytes,
        ),
        *([name] for name in sorted(alone)),  # each is a group of its own, so that its lock ends sooner
    ]
    return [
        ClonedTable(
            Database_name=rules.rewritten(name[0]), Table_name=name[1], Source_database=name[0], Family=number,
            Expected_rows=facts[name].rows, Expected_bytes=facts[name].bytes,
        )
        for number, members in enumerate(groups, first)
        for name in members
    ]  # fmt: skip


def _create_sequences(
    made_by: dict[TableName, str], rules: ReplicationFilter, wanted: Container[TableName]
) -> Iterator[Sql]:
    """Yield the statements that create the `wanted` sequences in the target. The next event of a sequence sets its
    value.

    `made_by` maps each sequence of the source to its text from SHOW CREATE. Raises RplError if such a text contains
    more than one CREATE SEQUENCE.
    """
    for (database, name), text in made_by.items():
        if ((ours := rules.rewritten(database)), name) in wanted:
            yield written("USE {}", quote(ours))
            yield sequence_definition(text, name)
