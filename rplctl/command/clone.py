"""`clone`: the tables of a living source that the target lacks are copied, and the channel goes on from there.

Here it is only said which: the ledger in the target names them, the receiver's process reads them (clone/cloner.py),
the applier loads them (applier/apply/clone_load.py), and leaves out the events of each until its rows are there. A
channel that has not begun begins at the source's end. Invariant: a table that the target has is not touched.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rplctl.applier.decode.filter_rules import ReplicationFilter, filtered_catalog, moved
from rplctl.channel import Channel
from rplctl.clone.families import families, together
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import (
    Repositories,
    administer,
    open_repositories,
    read_master_info,
    refuse_while_running,
)
from rplctl.command.process.start_request import StartRequest
from rplctl.command.show_clone import cloned
from rplctl.command.start import start
from rplctl.config import Config
from rplctl.errors import SourceError, UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.own_tables.clones import DONE, ClonedTable, add_clones, read_clones
from rplctl.own_tables.initial_models import is_there
from rplctl.own_tables.models import store_models
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition
from rplctl.result_set.columns import quote
from rplctl.schema.plan import Catalog, DatabaseModel
from rplctl.schema.source_catalog import read_catalog
from rplctl.secret import reveal
from rplctl.source.snapshot import Step, step_of
from rplctl.source.survey import log_end, survey
from rplctl.target import open_target, statement_target

if TYPE_CHECKING:
    from rplctl.schema.model import TableModel
    from rplctl.schema.statement import TableName
    from rplctl.target.base import Target

_DUMP = "INITIAL COPY in rplctl(1) shows the way with a dump"
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class TableToClone:
    """Field names are columns. `Row_count` and `Byte_count` are what the source believes."""

    Database_name: str
    Table_name: str
    Row_count: int
    Byte_count: int
    Note: str


@dataclass(frozen=True, slots=True)
class CloneResult:
    channel: str
    listed: tuple[TableToClone, ...] = field(metadata={"column": ""})
    tables: int  # how many are copied
    position: BinlogPosition
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Source:
    """`catalog`: all that it had when the log was at `end`, and all that it has behind it."""

    catalog: Catalog
    end: BinlogPosition
    facts: dict[TableName, tuple[str, int, int]]  # engine, rows, bytes
    sequences: dict[TableName, str]  # how MariaDB makes them

    def bytes_of(self, name: TableName) -> int:
        return self.facts.get(name, ("", 0, 0))[2]


def clone(config: Config, channel_name: str, *, dry_run: bool = False) -> CloneResult:
    """Raises UsageError 3081 while a thread runs, SourceError, TargetError."""
    channel = Channel(channel_name, config.datadir)
    with administer(config, channel) as config:
        refuse_while_running(channel)
        repositories = open_repositories(config, channel_name)
        master = read_master_info(repositories, channel_name)
        stored = repositories.relay_log_info
        relay = stored.read() if stored.exists() else RelayLogInfo()
        is_new = not (master.master_log_name or relay.master_log_name)
        _refuse(config, master)
        try:
            source = _read_source(config, master, is_new=is_new)
        except SourceError as error:
            error.hint = error.hint or "rplctl doctor shows what of the source does not work; then rplctl clone"
            raise
        wanted, tables = _wanted(config, repositories, channel_name, source, is_new=is_new)
    position = source.end if is_new else relay.exec_position
    result = CloneResult(channel_name, tuple(tables), len(tables), position, dry_run)
    if dry_run:
        return result
    if is_new:
        at = MasterChanges(master_log_file=position.log_name, master_log_pos=position.log_pos)
        change_master(config, channel_name, at)
    with administer(config, channel) as config:
        refuse_while_running(channel)
        _add(config, channel_name, position, source, wanted)
    start(config, channel_name, StartRequest())
    return result


def _refuse(config: Config, master: MasterInfo) -> None:
    if master.master_binlog_dir:
        raise UsageError("a folder of binary logs has no tables to copy", hint=_DUMP)
    if config.log_bin:
        raise UsageError("log_bin is on, and copied rows would not be in that log", hint=_DUMP)
    if master.uses_gtid:
        raise UsageError(
            "clone goes by file and position, and this channel by GTID",
            hint="rplctl change-master --master-use-gtid no --master-auto-position 0; by GTID again when it is done",
        )


def _read_source(config: Config, master: MasterInfo, *, is_new: bool) -> _Source:
    with survey(master, reveal(master.user_password, config.datadir), config) as query:
        if step_of(query) is not Step.EXACT:
            raise SourceError(
                "the source does not tell the position of a snapshot, and a copy without is not made yet: MariaDB and "
                "Percona Server tell it",
                hint=_DUMP,
            )
        if is_new and query("XA RECOVER"):
            raise SourceError(
                "the source holds prepared XA transactions, whose rows are in its log before this place already",
                hint="XA RECOVER lists them: XA COMMIT or XA ROLLBACK each, then rplctl clone",
            )
        before = read_catalog(query)
        end = log_end(query)
        catalog = read_catalog(query)  # a table that came or went meanwhile is in one of them
        rows = query("SELECT table_schema, table_name, engine, table_rows, data_length FROM information_schema.tables")
        facts = {(str(d), str(t)): (str(engine or ""), int(n or 0), int(size or 0)) for d, t, engine, n, size in rows}
        sequences = {
            name: str(query(f"SHOW CREATE SEQUENCE {quote(name[0])}.{quote(name[1])}")[0][1])
            for name, model in catalog.tables.items()
            if model.is_sequence
        }
    both = Catalog({**before.tables, **catalog.tables}, {**before.databases, **catalog.databases})
    return _Source(both, end, facts, sequences)


def _wanted(
    config: Config, repositories: Repositories, channel: str, source: _Source, *, is_new: bool
) -> tuple[dict[TableName, TableModel], list[TableToClone]]:
    """By the source's names what the channel replicates and the target lacks; the same to be shown, by ours."""
    rules = ReplicationFilter.from_config(config)
    found = {
        name: (model, ours)
        for name, model in source.catalog.tables.items()
        if rules.accepts_rows((ours := moved(model, rules)).database, ours.name) and not model.is_sequence
    }
    target = open_target(config.target_url)
    try:
        there = _those_there(repositories, target, channel, (ours for _, ours in found.values()))
    finally:
        target.close()
    if is_new and there:
        raise UsageError(
            f"the target has tables of the source already: {_some(there)}",
            hint="drop them, or leave them out with rplctl change-filter; if their rows are of a known position, "
            "name it to rplctl change-master, and clone copies what is missing",
        )
    found = {name: both for name, both in found.items() if both[1].qualified_name not in there}
    if strange := [".".join(name) for name in found if source.facts.get(name, ("InnoDB",))[0].lower() != "innodb"]:
        raise SourceError(
            f"tables whose engine shows no snapshot: {_some(strange)}",
            hint="ALTER TABLE … ENGINE=InnoDB on the source, or leave them out with rplctl change-filter",
        )
    return {name: model for name, (model, _) in found.items()}, [
        TableToClone(ours.database, ours.name, *source.facts.get(name, ("", 0, 0))[1:], _note(model))
        for name, (model, ours) in found.items()
    ]


def _those_there(repositories: Repositories, target: Target, channel: str, models: Iterable[TableModel]) -> list[str]:
    """Those that the target has, and those that are being copied."""
    begun = {row.name for row in cloned(repositories, channel) if row.State != DONE}
    server = statement_target(target)

    def is_known(model: TableModel) -> bool:
        name = (model.database, model.name)
        return name in begun or (server.table_model(*name) is not None if server else is_there(target, model))

    return [model.qualified_name for model in models if is_known(model)]


def _note(model: TableModel) -> str:
    return "without its history" if model.system_versioned else ""


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _add(
    config: Config, channel: str, position: BinlogPosition, source: _Source, wanted: dict[TableName, TableModel]
) -> None:

    rules = ReplicationFilter.from_config(config)
    ours = filtered_catalog(source.catalog, rules)
    databases = {name: found for name, found in ours.databases.items() if rules.accepts_database(name)}
    sequences = {name: model for name, model in ours.tables.items() if model.is_sequence}
    target = open_target(config.target_url)
    try:
        create_own_tables(target.engine)
        server = statement_target(target)
        if server is not None:
            server.make_tables(
                [*map(_create_database, databases.values()), *_create_sequences(source.sequences, rules, sequences)]
            )
        with target.engine.begin() as connection:
            first = max((row.Family for row in read_clones(connection, channel)), default=0) + 1
            rows = [
                ClonedTable(rules.rewritten(name[0]), name[1], name[0], number)
                for number, members in enumerate(together(families(wanted), source.bytes_of), first)
                for name in members
            ]
            add_clones(connection, channel, rows)
            if server is None:
                store_models(connection, channel, position, sequences, databases)
    finally:
        target.close()


def _create_database(found: DatabaseModel) -> str:
    collate = f" COLLATE {found.collation}" if found.collation else ""
    return f"CREATE DATABASE IF NOT EXISTS {quote(found.name)} CHARACTER SET {found.charset}{collate}"


def _create_sequences(
    made_by: dict[TableName, str], rules: ReplicationFilter, wanted: Container[TableName]
) -> Iterator[str]:
    """Their values come with the next event of each."""
    for (database, name), text in made_by.items():
        if ((ours := rules.rewritten(database)), name) in wanted:
            yield f"USE {quote(ours)}"
            yield text.replace("CREATE SEQUENCE", "CREATE SEQUENCE IF NOT EXISTS", 1)
