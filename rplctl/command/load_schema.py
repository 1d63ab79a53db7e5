"""`load-schema`: load the table definitions of the source, which its row events do not contain (design D18).

The definitions come from the source itself, or from a dump file (`mysqldump --no-data` or `mariadb-dump --no-data`). A
source that is an archive of binary logs needs the file. The definitions are valid from the channel's executed position
on. Tables that the channel's filters exclude are not loaded.

Invariant: if load-schema creates a table, the table is empty, and rplctl reports this. `check` also reports it until
one of these events:

* The source drops the table.
* `verify` finds the table equal.
* The operator confirms that the rows are loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rplctl.channel import Channel
from rplctl.command.channel.context import APPLIER, Repositories, administer, ask_source, refuse_while_running
from rplctl.config import Config, split_list
from rplctl.decode.filter_rules import ReplicationFilter, filtered_catalog
from rplctl.errors import SourceError, UsageError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.repository.switch import may_have_target
from rplctl.schema.dump import load_catalog
from rplctl.schema.source_catalog import read_catalog
from rplctl.sql_text import backticked, written
from rplctl.target import dialect_of, open_target

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from rplctl.schema.model import TableModel
    from rplctl.schema.plan import Catalog
    from rplctl.schema.statement import TableName


def _column(name: str) -> Any:
    return field(metadata={"column": name})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSchemaResult:
    channel: str = _column("channel")
    tables: tuple[str, ...] = _column("tables")
    created: tuple[str, ...] = _column("created")  # tables that the target lacked
    empty: tuple[str, ...] = _column("empty")  # created tables that have rows on the source, or may have some
    position: BinlogPosition = _column("position")
    dry_run: bool = _column("dry_run")


@dataclass(frozen=True, slots=True)
class RowsLoadedResult:
    loaded: tuple[str, ...] = _column("loaded")


def load_schema(
    config: Config, channel_name: str, dump: Path | None, *, from_source: bool = False, dry_run: bool = False
) -> LoadSchemaResult:
    """Load the table definitions from the file `dump`, or from the source. Create the tables that the target lacks.

    Raises UsageError 3085 if the applier runs, RplError for a statement that cannot be parsed, and SourceError if the
    source does not answer or refuses.
    """
    if (dump is None) == (not from_source):
        raise UsageError("load-schema needs a FILE or --from-source")
    with administer(config, channel_name, dry_run=dry_run) as repositories:
        config = repositories.config
        refuse_while_running(repositories.channel, APPLIER)
        repositories.refuse_unfit_target()
        master, has_begun = repositories.master(), repositories.relay_log_info.exists()
        position = repositories.relay().exec_position if has_begun else master.read_position
        catalog = read_dump(dump) if dump is not None else _catalog_of_source(config, master)
        catalog = _as_replicated(config, catalog)
        names = tuple(model.qualified_name for model in catalog.tables.values())
        created: list[TableName] = []
        empty: list[TableName] = []
        if not dry_run:
            from rplctl.own_tables.initial_models import load_catalog

            with closing(open_target(config.target_url)) as target:
                created = load_catalog(target, channel_name, position, catalog)
                empty = _with_rows(config, master, created) if from_source else created
                _keep_marks(target.engine, channel_name, set(created) - set(empty))
        return LoadSchemaResult(
            channel=channel_name,
            tables=names,
            created=_shown(created),
            empty=_shown(empty),
            position=position,
            dry_run=dry_run,
        )


def rows_loaded(config: Config, channel_name: str, names: str) -> RowsLoadedResult:
    """Record that the operator has loaded the rows of tables that were created empty. `check` no longer reports these
    tables.

    `names` is `DB.TABLE,…` or `all`. Raises UsageError for a table that `check` does not report.
    """
    with administer(config, channel_name) as repositories:
        repositories.master()
        has_models = may_have_target(repositories.config) and repositories.target_has("rplctl_table_models")
        known = _made_empty(repositories) if has_models else {}
        wanted = list(known) if names == "all" else split_list(names)
        if strange := [name for name in wanted if name not in known]:
            raise UsageError(
                f"--rows-loaded {', '.join(strange)}: load-schema did not create this table empty",
                hint=f"name some of these tables: {', '.join(known) or 'none'}",
            )
        _keep_marks(repositories.engine(), channel_name, {known[name] for name in wanted})
        return RowsLoadedResult(tuple(wanted))


def forget_made_empty(repositories: Repositories, equal: Collection[TableName]) -> None:
    """Remove the mark "created empty" from the tables in `equal`, because `verify` has found the source's rows in them.

    `check` no longer reports these tables.
    """
    if repositories.target_has("rplctl_table_models"):
        loaded = {*_made_empty(repositories).values()}.intersection(equal)
        _keep_marks(repositories.engine(), repositories.channel.name, loaded)


def _made_empty(repositories: Repositories) -> dict[str, TableName]:
    from rplctl.own_tables.models import tables_made_empty
    from rplctl.own_tables.tables import create_own_tables

    engine, channel = repositories.engine(), repositories.channel.name
    create_own_tables(engine)  # tables of an older rplctl lack the column of the mark
    with engine.connect() as connection:
        return {f"{database}.{table}": (database, table) for database, table in tables_made_empty(connection, channel)}


def _keep_marks(engine: Engine, channel: str, loaded: set[TableName]) -> None:
    from rplctl.own_tables.models import rows_are_loaded

    if loaded:
        with engine.begin() as connection:
            rows_are_loaded(connection, channel, loaded)


def _with_rows(config: Config, master: MasterInfo, names: list[TableName]) -> list[TableName]:
    """Return those of the tables that have rows on the source. A table that cannot be read is also returned.

    Tables without rows on the source are complete, although they are empty in the target.
    """
    if not names or not master.host:
        return names
    found = []
    with ask_source(config, master) as query:
        for name in names:
            with suppress(SourceError):
                if not query(written("SELECT 1 FROM {} LIMIT 1", backticked(*name))):
                    continue
            found.append(name)
    return found


def _shown(names: list[TableName]) -> tuple[str, ...]:
    return tuple(f"{database}.{table}" for database, table in names)


def read_dump(path: Path) -> Catalog:
    try:
        # Rows, and the defaults of BINARY columns on MariaDB, may contain bytes that are not text.
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    catalog = load_catalog(text)
    if "\ufffd" in text and (
        not catalog.tables or any("\ufffd" in name for table in catalog.tables.values() for name in _names_in(table))
    ):
        raise UsageError(
            f"the dump {path} is not UTF-8",
            hint=f"to write the dump in UTF-8, run: {_DUMP} --default-character-set=utf8mb4 > FILE",
        )
    if not catalog.tables:
        raise UsageError(f"{path} holds no CREATE TABLE", hint=f"to write a dump of definitions, run: {_DUMP} > FILE")
    return catalog


_DUMP = "mysqldump --no-data --databases NAME"


def _names_in(table: TableModel) -> Iterator[str]:
    yield from (table.database, table.name)
    for column in table.columns:
        yield from (column.name, *column.labels)


def _catalog_of_source(config: Config, master: MasterInfo) -> Catalog:
    if master.master_binlog_dir:
        raise UsageError(
            "a folder of binary logs has no table definitions",
            hint="to load them from a dump, run: rplctl load-schema FILE",
        )
    with ask_source(config, master) as query:
        return read_catalog(query)


def _as_replicated(config: Config, catalog: Catalog) -> Catalog:
    """Return the catalog as the channel's filters see it: with the names in the target, and without the excluded
    tables.
    """
    return filtered_catalog(catalog, ReplicationFilter.from_config(config))


def seed_models(config: Config, channel: Channel, master: MasterInfo, position: BinlogPosition) -> tuple[str, ...]:
    """Load the definitions of tables that the target already has, when a channel starts for the first time.

    This is necessary if the channel begins after the DDL of these tables in the source's log (design D18). The result
    has the names of these tables. It is empty, and nothing is loaded, in these cases:

    * The channel begins with the first log, which contains the DDL.
    * The channel already has definitions.
    * The source does not answer (the receiver will report this), or it is a folder of binary logs.
    * The target is a server, which has definitions of its own.
    """
    if not position.log_name or not master.host:
        return ()
    from rplctl.own_tables.initial_models import adopt_tables, needs_models

    with closing(open_target(config.target_url)) as target, suppress(SourceError):
        if not dialect_of(target.kind).executes_statements and needs_models(target.engine, channel.name):
            catalog = _as_replicated(config, _catalog_of_source(config, master))
            return tuple(adopt_tables(target, channel.name, position, catalog))
    return ()
