"""`load-schema`: give a channel the MySQL-side table definitions that its row events do not carry (design D18).

From a `mysqldump --no-data` / `mariadb-dump --no-data` file, for an archive of binary logs; or from the source itself.
They count from the channel's executed position on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.channel import Channel, hold_lock
from rplctl.command.instance import ADMIN, APPLIER, open_repositories, read_master_info, running
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition

if TYPE_CHECKING:
    from rplctl.schema.model import TableModel


@dataclass(frozen=True, slots=True)
class LoadSchemaResult:
    channel: str
    tables: tuple[str, ...]
    position: BinlogPosition
    dry_run: bool


def load_schema(
    config: Config, channel_name: str, dump: Path | None, *, from_source: bool = False, dry_run: bool = False
) -> LoadSchemaResult:
    """Raises UsageError 3085 while the applier runs, RplError for a statement that cannot be read, SourceError."""
    if (dump is None) == (not from_source):
        raise UsageError("load-schema needs a FILE or --from-source")
    channel = Channel(channel_name, config.datadir)
    with hold_lock(channel, ADMIN):
        if APPLIER in running(channel):
            raise UsageError(
                "This operation cannot be performed with a running slave sql thread; "
                f"run STOP SLAVE SQL_THREAD FOR CHANNEL '{channel_name}' first.",
                errno=3085,
                hint="rplctl stop --applier",
            )
        repositories = open_repositories(config, channel_name)
        master = read_master_info(repositories, channel_name)
        relay = repositories.relay_log_info
        position = relay.read().exec_position if relay.exists() else master.read_position
        models = read_dump(dump) if dump is not None else _models_of_source(config, master)
        names = tuple(f"{model.database}.{model.name}" for model in models)
        if models and not dry_run:
            from rplctl.commit.models import store_models
            from rplctl.commit.tables import create_own_tables

            engine = repositories.engine()
            create_own_tables(engine)
            with engine.begin() as connection:
                store_models(connection, channel_name, position, {(m.database, m.name): m for m in models})
        return LoadSchemaResult(channel_name, names, position, dry_run)


def read_dump(path: Path) -> Sequence[TableModel]:
    from rplctl.schema.dump import load_dump

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"{path}: {reason}") from error
    models: Sequence[TableModel] = load_dump(text)
    if not models:
        raise UsageError(f"{path} holds no CREATE TABLE", hint="mysqldump --no-data --databases NAME … > FILE")
    return models


def _models_of_source(config: Config, master: MasterInfo) -> Sequence[TableModel]:
    if master.master_binlog_dir:
        raise UsageError("a folder of binary logs has no schema to ask for", hint="rplctl load-schema FILE")
    from rplctl.schema.source_catalog import models_from_source
    from rplctl.secret import reveal
    from rplctl.source.survey import survey

    with survey(master, reveal(master.user_password, config.datadir), config) as query:
        models: Sequence[TableModel] = models_from_source(query)
        return models
