"""`repair`: repair the rows that differ according to a report of verify, while the channel runs (man rplctl-design).

This module decides which tables in the report can be repaired, and `rplctl.verify.repair` repairs the rows. Invariant:
the command writes only rows that still differ. Before each write, it stores SQL that restores the old values.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel, hold_lock
from rplctl.command.channel.applied_transactions import ChannelTransactions
from rplctl.command.channel.context import RECEIVER, one_engine, open_repositories, refuse_lake, running
from rplctl.command.channel.peers import refuse_silent_peers
from rplctl.command.channel.watched import watched_peers
from rplctl.command.process.brought_up import BroughtUp, brought_up, threads_unchanged
from rplctl.command.show_clone import cloned
from rplctl.command.verify import is_copied
from rplctl.commit.position_store import commit_blocker
from rplctl.commit.resolve import refuse_half_committed
from rplctl.config import Config
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.errors import RplError, SourceError, TargetError, UsageError
from rplctl.history import note_event
from rplctl.locks import read_lock
from rplctl.plain_file import UnfitFile
from rplctl.relay_log.received import Received
from rplctl.renaming import refuse_pending_rename
from rplctl.schema.source_catalog import read_table
from rplctl.schema.statement import TableName
from rplctl.target import open_target, statement_target
from rplctl.target.base import ForeignKeyTarget
from rplctl.verify.key_values import Key, from_json
from rplctl.verify.pair import Pair, why_not
from rplctl.verify.repair import AT_ONCE, Repairer, RepairOutcome
from rplctl.verify.report_file import Difference, Kind, Totals, VerifyReport, read_report
from rplctl.verify.resolve import DefinitionChanged, Resolver
from rplctl.verify.source_side import open_source
from rplctl.verify.table import at_once
from rplctl.verify.target_side import open_side
from rplctl.verify.undo import UndoFolder

MOST_DIFFERING: Final = 0.2  # fraction of a table's rows; if more rows differ, a new copy is faster than a repair
ALWAYS_REPAIRED: Final = 1000  # the keys of one transaction; a repair of so few is always faster than a new copy
_GONE: Final = frozenset({er.NO_SUCH_TABLE, er.BAD_DB_ERROR, er.BAD_FIELD_ERROR, er.SLAVE_CONVERSION_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedTable:
    """The result of a repair for one table, in numbers of keys. The field names are the column names of the output.

    `Reported` counts the keys in the report, and `Equal` those that are equal by now. `Left_over` counts those that
    could not be repaired, with the reasons in `Note`. The other numbers count written rows. In a dry run, they count
    the planned changes, and `Statements` has the first ones as SQL.
    """

    Database_name: str
    Table_name: str
    Reported: int
    Equal: int = 0
    Inserted: int = 0
    Deleted: int = 0
    Updated: int = 0
    Left_over: int = 0
    Note: str = ""
    Statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of a repair. `undo` is the folder with the SQL that undoes the repair.

    `undo` is None if nothing was written.
    """

    channel: str
    tables: tuple[RepairedTable, ...]
    undo: Path | None

    @property
    def is_whole(self) -> bool:
        return not any(table.Left_over for table in self.tables)


Says = Callable[[int, int], None]  # number of keys done, number of all keys


@one_engine()
def repair(
    config: Config,
    channel_name: str,
    report: Path | None = None,
    *,
    dry_run: int | None = None,
    says: Says = lambda *_: None,
) -> RepairResult:
    """Repair the rows that differ according to `report`, the file of a report. None means the channel's last report.

    With a number as `dry_run`, nothing is written or started, and the result has this number of statements per table.
    `says` receives the progress. Raises UsageError if there is no usable report, or if the kind of the source or target
    permits no repair. Raises SourceError or TargetError if a server reports an error, and NotRunning if the applier
    does not run. Raises WaitTimeout if the applier makes no progress, and LockBusy if a verify or repair of the channel
    runs.
    """
    if dry_run is not None:
        refuse_pending_rename(config, channel_name)
    refuse_lake(
        config, "create the mirror again; to list the changes of a table, run: rplctl show-changes --table DB.TABLE"
    )
    refuse_silent_peers(config, channel_name)
    repositories = open_repositories(config, channel_name)
    channel, master = repositories.channel, repositories.master()
    if master.master_binlog_dir:
        raise UsageError("a folder of binary logs has no rows to repair from")
    with watched_peers(config, channel_name), hold_lock(channel, "verify"), ExitStack() as opened:
        found = _report_of(channel, report)
        threads: BroughtUp | None = None
        if dry_run is None:
            threads = opened.enter_context(brought_up(config, channel))
            is_unchanging = threads.is_unchanging
        elif is_unchanging := opened.enter_context(threads_unchanged(config, channel)):
            repositories.refuse_unfit_target()
            refuse_half_committed(channel, repositories.engine)
        applied = ChannelTransactions(repositories, threads)
        applied.runs()
        away = {row.name for row in cloned(repositories) if not is_copied(row)}
        try:
            source = opened.enter_context(open_source(config, master))
        except SourceError as error:
            error.hint = error.hint or "to find the problem of the source, run: rplctl doctor"
            raise
        if source.server_id != found.header.server_id:
            then = f"{found.path} is a report about the source with server id {found.header.server_id}"
            raise UsageError(
                f"{then}, but the channel's source has now {source.server_id}",
                hint="to write a new report, run: rplctl verify",
            )
        side = opened.enter_context(closing(open_side(config.target_url)))
        target = opened.enter_context(closing(open_target(config.target_url)))
        lock = opened.enter_context(closing(read_lock(config.datadir)))
        received = Received(channel, source.server_id, by_gtid=master.uses_gtid)
        receives = threads is not None or RECEIVER in running(channel)
        resolver = Resolver(
            source=source, side=side, received=received, applied=applied, stopped=_wait, is_unchanging=is_unchanging,
            receives=receives,
        )  # fmt: skip
        undo = UndoFolder(channel.undo_folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
        repairer = Repairer(resolver, target, commit_blocker(config, channel, target.engine), undo, lock, dry_run)
        work = _Repair(repairer, applied, ReplicationFilter.from_config(config), away, says)
        try:
            tables = tuple(work.tables(found))
        except RplError as error:
            if undo.is_used:
                error.hint = f"{error.hint or 'rplctl repair'}; the SQL in {undo.path} undoes the rows written so far"
            raise
        if undo.is_used:
            repaired = sum(table.Inserted + table.Deleted + table.Updated for table in tables)
            left = sum(table.Left_over for table in tables)
            note_event(
                config.datadir, channel_name, "repair", f"{repaired} rows repaired, {left} left; undo: {undo.path}"
            )
        return RepairResult(channel_name, tables, undo.path if undo.is_used else None)


def _report_of(channel: Channel, path: Path | None) -> VerifyReport:
    """Return the report in the file `path`, or the channel's last report if `path` is None.

    Raises UsageError if the file is missing, or if it is not a report of the channel.
    """
    try:
        found = read_report(path or channel.verify_report_path)
    except FileNotFoundError:
        text = f"there is no report {path}" if path else "there is no report of a verify"
        raise UsageError(text, hint="to write a report, run: rplctl verify") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="to write a report, run: rplctl verify") from error
    except UnfitFile as error:
        if path is None:
            raise
        raise UsageError(error.message, hint="to use the report of the last verify, omit --report") from error
    if path is not None and found.header.channel != channel.name:  # the channel's own report may have an old name
        raise UsageError(f"{found.path} is a report of channel '{found.header.channel}'")
    return found


def _wait(seconds: float) -> bool:
    """Wait for some seconds, and return False.

    `Resolver.stopped` is a function that waits and returns True if the work must end. During a repair, a signal ends
    the process itself, so the function always returns False.
    """
    time.sleep(seconds)
    return False


class _Repair:
    def __init__(
        self,
        repairer: Repairer,
        applied: ChannelTransactions,
        rules: ReplicationFilter,
        away: set[TableName],
        says: Says,
    ) -> None:
        self._repairer, self._applied, self._rules, self._away, self._says = repairer, applied, rules, away, says
        self._done = self._reported = 0
        self._rests: bool | None = None  # True if foreign keys can be disabled; None: not known yet

    def tables(self, report: VerifyReport) -> Iterator[RepairedTable]:
        totals = {(found.database, found.table): found for found in report.totals if found.differences}
        self._reported = sum(found.differences for found in totals.values())
        differing = groupby(report.differences(), lambda found: (found.database, found.table))
        for name, found in differing:
            yield self._table(totals.pop(name), found)
        for name, left in totals.items():
            yield _left(left, f"the table has no key: {_clone(name)}")

    def _table(self, totals: Totals, found: Iterator[Difference]) -> RepairedTable:
        name, out = (totals.database, totals.table), RepairOutcome()
        if why := self._why_not(totals):
            return _left(totals, why)
        try:
            pair = self._pair(name)
            if isinstance(pair, str):
                return _left(totals, pair)
            self._repair(pair, found, out)
        except (DefinitionChanged, SourceError, TargetError) as error:
            why = "not repaired, because the table was altered: rplctl verify"
            if not isinstance(error, DefinitionChanged) and error.errno not in _GONE:
                if error.errno != er.TABLEACCESS_DENIED_ERROR:
                    raise
                why = error.message
            done = out.equal + out.inserted + out.deleted + out.updated + out.left.total()
            out.left[why] += totals.differences - done
        note = "; ".join(f"{count} {why}" for why, count in out.left.items())
        return RepairedTable(
            Database_name=name[0],
            Table_name=name[1],
            Reported=totals.differences,
            Equal=out.equal,
            Inserted=out.inserted,
            Deleted=out.deleted,
            Updated=out.updated,
            Left_over=out.left.total(),
            Note=note,
            Statements=tuple(out.statements),
        )

    def _why_not(self, totals: Totals) -> str:
        name = totals.database, totals.table
        if totals.differences > max(ALWAYS_REPAIRED, MOST_DIFFERING * totals.rows):
            return f"more than {MOST_DIFFERING:.0%} of the rows differ: {_clone(name)}"
        if name in self._away or not self._rules.accepts_rows(*name):
            return "the table is not replicated now: rplctl show-clone"
        return ""

    def _pair(self, name: TableName) -> Pair | str:
        """Return the pair of the source's table and the target's table, or the reason why it cannot be repaired."""
        resolver = self._repairer.resolver
        model, _, _ = read_table(resolver.source.about, self._rules.original(name[0]), name[1])
        known = self._applied.model(resolver.side, name)
        if known is None:
            return "the target has no such table: rplctl clone"
        resolver.side.target.check_table(known)
        server = statement_target(resolver.side.target)
        if server is None and self._acts_on_others(name):
            return (
                "foreign keys act on other rows: GRANT SET ON PARAMETER session_replication_role TO the target's user"
            )
        if server is not None and server.wants_replay(known):
            return "triggers, or system versioning, would act on the repaired rows"
        if server is not None and not server.is_transactional(known):
            return f"the table's engine has no transactions: {_clone(name)}"
        pair = Pair.of(model, known, resolver.side.target.kind)
        if not pair.key:
            return f"{pair.why_keyless or 'the table has no key'}: {_clone(name)}"
        return why_not(pair) or pair

    def _acts_on_others(self, name: TableName) -> bool:
        """True if a DELETE in this table would change rows of other tables, by foreign keys that cannot be disabled."""
        target = self._repairer.target
        if self._rests is None:
            target.begin(foreign_keys=False)
            self._rests = not isinstance(target, ForeignKeyTarget) or target.follow_foreign_keys(False, {})
            target.rollback()
        keys = (key for model in self._applied.models().values() for key in model.foreign_keys if key.acts)
        return not self._rests and any((key.ref_database, key.ref_table) == name for key in keys)

    def _repair(self, pair: Pair, found: Iterator[Difference], out: RepairOutcome) -> None:
        repairer = self._repairer
        count = min(AT_ONCE, at_once(repairer.resolver, pair))
        while some := list(islice(found, count)):
            keys: dict[Key, Kind] = {}
            for difference in some:
                if (key := _key(pair, difference)) is not None:
                    keys[key] = difference.kind
            if len(keys) < len(some):
                out.left["not of the table's present key: rplctl verify"] += len(some) - len(keys)
            repairer.repair(pair, keys, out)
            self._done += len(some)
            self._says(self._done, self._reported)
        repairer.finish(pair, out)


def _key(pair: Pair, found: Difference) -> Key | None:
    """Return the key of a difference in the report. Return None if the report has other key columns than the table."""
    names = [pair.names[c] for c in pair.key]
    if {*found.key} != {*names}:
        return None
    columns = zip(names, pair.key_columns, strict=True)
    try:
        return tuple(from_json(found.key[name], column, pair.kind) for name, column in columns)
    except ValueError:
        return None


def _left(totals: Totals, why: str) -> RepairedTable:
    return RepairedTable(
        Database_name=totals.database,
        Table_name=totals.table,
        Reported=totals.differences,
        Left_over=totals.differences,
        Note=why,
    )


def _clone(name: TableName) -> str:
    return f"rplctl clone --tables {shlex.quote('.'.join(name))} --replace"
