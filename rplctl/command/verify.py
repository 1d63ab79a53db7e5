"""`verify`: compare source and target row by row while the channel runs (man rplctl-design).

This module chooses the tables and their definitions, and `rplctl.verify` compares the rows. Invariants: no thread is
paused. Only a temporary table of the target and the report in the channel's folder are written. In addition, a table
that `load-schema` created empty loses its mark if it is equal. While DDL of the source is not applied yet, no
definition is reported as different. A comparison of no rows never counts as equal. A channel counts as verified only if
every table that it replicates was compared.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from rplctl import mysql_errors as er
from rplctl.channel import hold_lock
from rplctl.clone.source_tables import read_source_tables
from rplctl.clone.throttle import MAX_LOAD
from rplctl.command.channel.applied_transactions import ChannelTransactions
from rplctl.command.channel.context import (
    APPLIER,
    Repositories,
    one_engine,
    open_repositories,
    refuse_changes,
    running,
)
from rplctl.command.channel.peers import refuse_silent_peers
from rplctl.command.channel.watched import watched_peers
from rplctl.command.cloning.choice import Choice, refusal_of_rights, wanted
from rplctl.command.load_schema import forget_made_empty
from rplctl.command.process.brought_up import BroughtUp, brought_up
from rplctl.command.show_clone import cloned
from rplctl.commit.resolve import refuse_half_committed
from rplctl.config import Config
from rplctl.decode.filter_rules import ReplicationFilter, moved
from rplctl.errors import NotRunning, RplError, SourceError, TargetError, UsageError
from rplctl.history import note_event
from rplctl.info import MasterInfo
from rplctl.own_tables.clones import ClonedTable, CopyState
from rplctl.own_tables.models import load_models
from rplctl.position import BinlogPosition
from rplctl.relay_log.received import Received
from rplctl.schema.definition import table_definition
from rplctl.schema.model import TableModel
from rplctl.schema.source_catalog import read_table
from rplctl.schema.statement import TableName
from rplctl.source.survey import log_end
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target import mapped_errors, statement_target
from rplctl.verify.offline_source import offline_source, place_of
from rplctl.verify.pair import Pair, why_not
from rplctl.verify.progress import Progress
from rplctl.verify.report_file import Header, Totals
from rplctl.verify.resolve import DefinitionChanged, Resolver, Unjudged
from rplctl.verify.source_side import SourceSessions, open_source
from rplctl.verify.table import verify_table
from rplctl.verify.target_side import TargetSide, open_side

_MOST_TRIES: Final = 5
_BETWEEN_TRIES_S: Final = 1.0
_NO_SUCH: Final = frozenset({er.NO_SUCH_TABLE, er.BAD_DB_ERROR})
_ALTERED: Final = frozenset({er.NO_SUCH_TABLE, er.TABLE_DEF_CHANGED, er.BAD_FIELD_ERROR})
_OF_CONNECTIONS: Final = range(2000, 3000)
_GONE: Final = "the source has no such table any more"
_ONLY_HERE: Final = "only the target has this table"  # the operator's, another channel's, or an old one
_AWAY: Final = "the table is not copied yet: rplctl show-clone"
_CANCELLED: Final = "the copy of the table was cancelled: rplctl clone copies it"
_LATER: Final = "its definition differs, perhaps since the target was brought up to date: rplctl verify"
_AHEAD: Final = "its definition differs, perhaps because the target is newer than the stopped source"
_UNJUDGED: Final = "rows differ, but the relay logs that show whether they have changed since are purged: rplctl verify"
_OF_ONE_SIDE: Final = (_GONE, _ONLY_HERE)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """The parameters of `verify`. `report` is a second file for the report.

    `restart`: True to compare again the tables that an interrupted verify has compared. `offline`: the data folder of a
    stopped source. `at`: the end of that source's log, or None if the folder shows it.
    """

    choice: Choice = field(default_factory=Choice)
    threads: int = 2
    max_load: int = MAX_LOAD
    report: Path | None = None
    restart: bool = False
    offline: Path | None = None
    at: BinlogPosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyProgress:
    """The progress of a verify. `rows` is the number of rows that were read on both sides, of about `expected` rows.

    `totals` is the result of the table that was just compared. `waits` is the reason for a wait, or ''.
    """

    tables: int
    tables_done: int
    rows: int
    expected: int
    totals: Totals | None = None
    waits: str = ""


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The result of `verify`. `path` is the file of the report.

    `resumed` is the number of tables that were not compared again, because an interrupted verify had compared them.
    """

    channel: str
    totals: tuple[Totals, ...]
    path: Path
    resumed: int

    @property
    def compared(self) -> tuple[Totals, ...]:
        """The totals of the tables that could be compared."""
        return tuple(table for table in self.totals if is_compared(table))

    @property
    def rows(self) -> int:
        """The number of rows that were compared in all tables."""
        return sum(table.equal + table.differences for table in self.compared)

    @property
    def is_equal(self) -> bool:
        """True if rows were compared, and all tables on both sides are equal. Rows that kept changing do not count."""
        return bool(self.compared) and all(
            (is_compared(table) or table.not_comparable in _OF_ONE_SIDE) and not table.differences and not table.drift
            for table in self.totals
        )


def is_equal(table: Totals) -> bool:
    """True if all rows of the table were compared and are equal."""
    return is_compared(table) and not (table.in_motion or table.differences or table.drift)


def is_compared(table: Totals) -> bool:
    """True if the table was compared. False if every row that was read changed during all attempts."""
    return not table.not_comparable and (not table.in_motion or bool(table.equal + table.differences))


Says = Callable[[VerifyProgress], None]


@one_engine()
def verify(
    config: Config, channel_name: str, request: VerifyRequest | None = None, says: Says = lambda _: None
) -> VerifyResult:
    """Compare the tables of the channel. `says` receives the progress.

    Raises UsageError if the request is not valid, and RplError if there is no table to compare. Raises SourceError or
    TargetError if a server reports an error, NotRunning if a thread stops, and WaitTimeout if the applier makes no
    progress. For a stopped channel, also raises the errors of `start`.
    """
    request = request or VerifyRequest()
    refuse_changes(config)
    refuse_silent_peers(config, channel_name, asks_source=request.offline is None)
    repositories = open_repositories(config, channel_name)
    channel, master = repositories.channel, repositories.master()
    if master.master_binlog_dir:
        raise UsageError("a folder of binary logs has no tables to compare")
    if APPLIER not in running(channel):
        repositories.refuse_unfit_target()
        refuse_half_committed(channel, repositories.engine)
    watched = watched_peers(config, channel_name, asks_source=request.offline is None)
    with watched, hold_lock(channel, "verify"), ExitStack() as opened:
        reached, threads = master, None
        if (folder := request.offline) is not None:
            at = place_of(folder, request.at)
            if not ChannelTransactions(repositories).has(at):
                until = f"--until-master-log-file {at.log_name} --until-master-log-pos {at.log_pos}"
                hint = f"to apply up to there, run: rplctl start {until}"
                raise NotRunning(f"the target is not yet at {at}, the position of {folder}", hint=hint)
            reached = opened.enter_context(offline_source(folder, channel.verify_source_folder, master, config))
            request = replace(request, at=at)
        else:
            threads = opened.enter_context(brought_up(config, channel))
        result = _Verify(repositories, master, reached, request, says, threads).run()
    rows = sum(table.differences for table in result.totals)
    words = "equal" if result.is_equal else f"{rows} rows differ" if rows else "not all could be compared as equal"
    note_event(config.datadir, channel_name, "verify", f"{len(result.compared)} tables, {result.rows} rows: {words}")
    return result


class Ahead(Exception):
    """The error for a table whose definitions differ, perhaps because of DDL between the positions of source and
    target.
    """


class _Verify:
    def __init__(  # noqa: PLR0913 - the environment of a comparison
        self,
        repositories: Repositories,
        master: MasterInfo,
        reached: MasterInfo,
        request: VerifyRequest,
        says: Says,
        threads: BroughtUp | None,
    ) -> None:
        """Prepare the comparison, and open no connection. `reached` has the connection of the server to compare with.

        For a stopped source, `threads` is None.
        """
        self._config, self._channel, self._repositories = repositories.config, repositories.channel, repositories
        self._master, self._reached, self._request, self._says = master, reached, request, says
        self._rules = ReplicationFilter.from_config(self._config)
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._rows, self._expected, self._waits = 0, 0, ""
        self._holds_still = threads is not None and threads.is_unchanging
        self._is_fresh = threads is not None and threads.has_begun_some
        self._applied = ChannelTransactions(repositories, threads)
        self._applied.runs()  # notes whether the threads run now; if they do not, verify does not wait for them

    def run(self) -> VerifyResult:
        request, channel = self._request, self._channel
        places = [str(request.offline or ""), str(request.at or ""), str(self._config.target or "")]
        asked = json.dumps([asdict(request.choice), *places], default=str)
        self._progress = progress = Progress(channel, asked)
        found = self._tables(progress, restart=request.restart)
        if not found and not self._not_copied:
            raise _nothing_to_compare(self._request.choice)
        self._names = list(found)
        if self._is_fresh and found:
            self._catch_up()
        resumed = len(progress.done)
        work: queue.SimpleQueue[TableName] = queue.SimpleQueue()
        for name in self._names:
            if name not in progress.done:
                work.put(name)
        count = max(1, min(request.threads, work.qsize()))
        with ThreadPoolExecutor(count, "rplctl-verify") as threads:
            begun = [threads.submit(self._work, number, work, found) for number in range(count)]
            try:
                for thread in wait(begun, return_when=FIRST_EXCEPTION).done:
                    thread.result()
            except BaseException as error:
                self._stop.set()
                if isinstance(error, RplError):
                    error.hint = error.hint or "to continue with the remaining tables, run: rplctl verify"
                raise
        progress.done = {name: progress.done[name] for name in self._names} | self._not_copied
        if not request.choice.tables:
            more = self._only_here(found)
            progress.done |= {
                name: Totals(database=name[0], table=name[1], not_comparable=_ONLY_HERE) for name in sorted(more)
            }
        paths = [channel.verify_report_path, *filter(None, [request.report])]
        result = VerifyResult(channel.name, tuple(progress.done.values()), paths[-1], resumed)
        progress.finish(paths, is_whole=self._is_whole(result))
        forget_made_empty(self._repositories, {(one.database, one.table) for one in result.totals if is_equal(one)})
        return result

    def _is_whole(self, result: VerifyResult) -> bool:
        """True if the verify compared every table that the channel replicates, with the channel's own source."""
        is_chosen = self._request.choice != Choice() or self._request.offline is not None
        left = (table for table in result.totals if not is_compared(table))
        return not is_chosen and bool(result.compared) and all(one.not_comparable in _OF_ONE_SIDE for one in left)

    def _catch_up(self) -> None:
        """Wait until the threads, which were just started, have applied the source's present end.

        Without the wait, verify would report the lag as differences.
        """
        with self._open_source() as source, closing(open_side(self._config.target_url)) as side:
            self._resolver(source, side).catch_up()

    def _tables(self, progress: Progress, *, restart: bool) -> dict[TableName, TableModel]:
        """Return the source's definitions of the tables to compare, by their names in the target."""
        choice, rules = self._request.choice, self._rules
        try:
            source = read_source_tables(self._config, self._reached, wanted(rules, choice), is_new=False)
        except SourceError as error:
            error.hint = error.hint or "to find the problem of the source, run: rplctl doctor"
            raise
        missing = [lacking for lacking in source.missing if lacking.right != "REPLICATION SLAVE"]
        if refusal := refusal_of_rights(missing):
            raise refusal
        copies = (row for row in cloned(self._repositories) if choice.takes(row.name) and rules.accepts_rows(*row.name))
        why = {
            row.name: _CANCELLED if row.State is CopyState.LEFT_OUT else _AWAY for row in copies if not is_copied(row)
        }
        self._not_copied = {
            name: Totals(database=name[0], table=name[1], not_comparable=text) for name, text in why.items()
        }
        away, found, facts = self._not_copied, {}, {}
        for name, model in source.catalog.tables.items():
            ours = moved(model, rules)
            here = ours.database, ours.name
            if model.holds_rows and here not in away and rules.accepts_rows(*here) and choice.takes(here):
                found[here] = model
                facts[here] = source.facts[name].rows if name in source.facts else 0
        for here in choice.tables:
            if here not in found and here not in away:
                text = f"the source has no replicated table {'.'.join(here)}"
                hint = "to see the tables of a copy and the filters, run: rplctl show-clone; rplctl show-status"
                raise SourceError(text, errno=er.NO_SUCH_TABLE, hint=hint)
        names = tuple(".".join(name) for name in found)
        with self._open_source() as one:
            server_id, uuid = one.server_id, one.uuid
        was = progress.header
        if restart or was is None or (was.tables, was.server_id, was.uuid) != (names, server_id, uuid):
            place, gtids = (str(source.end or ""), source.gtids) if one.at is None else (str(one.at), "")
            progress.begin(
                Header(
                    channel=self._channel.name,
                    time=time.time(),
                    server_id=server_id,
                    uuid=uuid,
                    position=place,
                    gtids=gtids,
                    tables=names,
                )
            )
        self._expected = 2 * sum(facts[name] for name in found if name not in progress.done)
        return found

    def _only_here(self, found: Mapping[TableName, TableModel]) -> set[TableName]:
        """Return the tables that only the target has, after the present DDL of the source, which may drop some."""
        with self._open_source() as source, closing(open_side(self._config.target_url)) as side:

            def more() -> set[TableName]:
                here = self._tables_here(side, {database for database, _ in found})
                listed = source.about(written("SELECT table_schema, table_name FROM information_schema.tables"))
                there = {(self._rules.rewritten(database), name) for database, name in listed}
                takes = self._request.choice.takes
                return {name for name in here - there if self._rules.accepts_rows(*name) and takes(name)}

            names = more()
            if names:
                try:
                    self._resolver(source, side).catch_up()
                except NotRunning:
                    return set()
            return names & more() if names else names

    def _tables_here(self, side: TargetSide, databases: Collection[str]) -> set[TableName]:
        """Return the channel's tables in a target that stores their definitions, or all tables in `databases` of a
        server.
        """
        if statement_target(side.target) is None:
            with mapped_errors(side.target.kind), self._repositories.engine().connect() as connection:
                return {*load_models(connection, self._channel.name, self._applied.executed()).tables}
        listed = run(
            side.target.connection,
            written("SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"),
        )
        return {(database, name) for database, name in listed if database in databases}

    def _open_source(self) -> AbstractContextManager[SourceSessions]:
        return open_source(self._config, self._reached, self._request.at)

    def _resolver(self, source: SourceSessions, side: TargetSide) -> Resolver:
        received = Received(self._channel, source.server_id, by_gtid=self._master.uses_gtid)
        tells, stopped = self._wait, self._stop.wait
        return Resolver(
            source=source, side=side, received=received, applied=self._applied, stopped=stopped, tells=tells,
            is_unchanging=self._holds_still,
        )  # fmt: skip

    def _work(self, number: int, work: queue.SimpleQueue[TableName], found: dict[TableName, TableModel]) -> None:
        """Compare tables from the queue `work` until it is empty, in the verify thread with this number."""
        with ExitStack() as opened:
            source = opened.enter_context(self._open_source())
            side = opened.enter_context(closing(open_side(self._config.target_url)))
            resolver = self._resolver(source, side)
            while not self._stop.is_set():
                try:
                    name = work.get_nowait()
                except queue.Empty:
                    return
                totals = self._verified(resolver, name, found[name], number)
                self._progress.add(totals)
                self._tell(totals)

    def _verified(self, resolver: Resolver, name: TableName, model: TableModel, number: int) -> Totals:
        totals = Totals(database=name[0], table=name[1])
        for tried in range(_MOST_TRIES):
            try:
                model, known, drift = self._definitions(resolver, name, model)
                totals = replace(totals, drift=drift)
                if known is None:
                    return replace(totals, not_comparable="the target has no such table")
                resolver.side.target.check_table(known)
                pair = Pair.of(model, known, resolver.side.target.kind)
                if why := why_not(pair):
                    return replace(totals, not_comparable=why)
                with self._progress.table(name) as write:
                    spool = self._progress.spool(number)
                    done = self._progress.pieces(name, pair.source.to_json() + pair.target.to_json())
                    self._moved(2 * done.rows)
                    found = verify_table(resolver, pair, self._request.max_load, spool, write, self._moved, done)
                return replace(found, drift=totals.drift, ignored=pair.ignored_names)
            except DefinitionChanged:
                pass
            except Unjudged:
                return replace(totals, not_comparable=_UNJUDGED)
            except Ahead:
                return replace(totals, not_comparable=_LATER if self._holds_still else _AHEAD)
            except TargetError as error:
                if error.transient or not error.errno or error.errno in _OF_CONNECTIONS:
                    raise
                if error.errno not in _ALTERED:
                    return replace(totals, not_comparable=error.message)
            except SourceError as error:
                if error.errno in _NO_SUCH and tried:
                    return replace(totals, not_comparable=_GONE, drift=())
                if error.errno not in _ALTERED | _NO_SUCH:
                    raise
            self._stop.wait(_BETWEEN_TRIES_S)
        return replace(totals, not_comparable="it was altered while it was verified", drift=())

    def _definitions(
        self, resolver: Resolver, name: TableName, model: TableModel
    ) -> tuple[TableModel, TableModel | None, tuple[str, ...]]:
        """Return the definitions of a table on both sides, and statements for their differences.

        Differences that DDL of the source will resolve are left out, because verify waits until this DDL is applied.
        Raises DefinitionChanged if a definition changes in the meantime. Raises Ahead if the target cannot apply the
        DDL now. Also raises the errors of Resolver.
        """
        about, side = resolver.source.about, resolver.side
        model, _, create = read_table(about, model.database, model.name)

        def compared() -> tuple[TableModel | None, tuple[str, ...]]:
            known = self._applied.model(side, name)
            if known is None:
                return None, (table_definition(create, model.name).create(database=name[0]),)
            return known, side.drift(model, create, known)

        def is_odd() -> bool:
            return bool(drift) or known is not None and bool(why_not(Pair.of(model, known, side.target.kind)))

        known, drift = compared()
        at = log_end(about) if self._holds_still else resolver.source.at
        if at and is_odd() and self._applied.executed() != at:
            raise Ahead
        if is_odd():
            resolver.catch_up()
            known, drift = compared()
            if is_odd() and read_table(about, model.database, model.name)[0] != model:
                raise DefinitionChanged
        return model, known, drift

    def _wait(self, why: str) -> None:
        if why != self._waits:
            self._waits = why
            self._tell(None)

    def _moved(self, rows: int) -> None:
        with self._lock:
            self._rows += rows
        self._tell(None)

    def _tell(self, totals: Totals | None) -> None:
        done = len(self._progress.done)
        self._says(
            VerifyProgress(
                tables=len(self._names),
                tables_done=done,
                rows=self._rows,
                expected=max(self._rows, self._expected),
                totals=totals,
                waits=self._waits,
            )
        )


def is_copied(table: ClonedTable) -> bool:
    """True if the target has the rows of the table, and its events are replicated."""
    return not table.is_open and table.State is not CopyState.LEFT_OUT


def _nothing_to_compare(choice: Choice) -> RplError:
    of = " that --databases or --tables names" if choice != Choice() else ""
    hint = "to list the source's tables, run: rplctl clone --dry-run\nTo see the filters, run: rplctl show-status"
    return RplError(f"nothing was compared: the source has no replicated table{of}", hint=hint)
