"""Table models of a channel, kept in the target and versioned by source position (design D18).

Row events carry neither names nor signedness nor charsets by default, so what a table looked like at a position must
come from the DDL before it. Invariant: a model is written in the same transaction as the DDL that made it and as the
position after that DDL; `load_models` at a position gives what was valid there, so an old position can be read again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from sqlalchemy import Connection, Table, delete, insert, select

from rplctl.commit.tables import own_schema, table_models
from rplctl.position import BinlogPosition, log_number
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DatabaseModel

DATABASE_ROW = ""  # Table_name of the row that keeps a database's default character set


def load_models(connection: Connection, channel: str, position: BinlogPosition) -> Catalog:
    """The catalog valid at that position: the last model at or before it, per table."""
    table = _table(connection)
    rows = connection.execute(
        select(
            table.c.Database_name, table.c.Table_name, table.c.Master_log_number, table.c.Master_log_pos, table.c.Model
        )
        .where(table.c.Channel_name == channel)
        .order_by(table.c.Master_log_number, table.c.Master_log_pos)
    )
    models: dict[tuple[str, str], TableModel] = {}
    databases: dict[str, DatabaseModel] = {}
    for database, name, number, offset, text in rows:
        if (number, offset) > position.order_key():
            continue
        if name == DATABASE_ROW:
            databases.pop(database, None)
            if text is not None:
                databases[database] = DatabaseModel(**json.loads(text))
        elif text is None:
            models.pop((database, name), None)
        else:
            models[database, name] = TableModel.from_json(text)
    return Catalog(models, databases)


def store_models(
    connection: Connection,
    channel: str,
    position: BinlogPosition,
    models: Mapping[tuple[str, str], TableModel | None],
    databases: Mapping[str, DatabaseModel | None] | None = None,
) -> None:
    """Record models valid from `position` on (None = dropped). The caller's transaction commits them."""
    entries = [(key, None if model is None else model.to_json()) for key, model in models.items()]
    for name, defaults in (databases or {}).items():
        entries.append(((name, DATABASE_ROW), None if defaults is None else json.dumps(asdict(defaults))))
    table = _table(connection)
    for (database, name), text in entries:
        where = {
            "Channel_name": channel,
            "Database_name": database,
            "Table_name": name,
            "Master_log_number": log_number(position.log_name),
            "Master_log_pos": position.log_pos,
        }
        connection.execute(delete(table).where(*(table.c[column] == value for column, value in where.items())))
        connection.execute(insert(table).values(**where, Model=text))


def rebase_models(connection: Connection, channel: str, catalog: Catalog) -> None:
    """Make the catalog valid from before any position on: the source is another one, whose positions say nothing about
    those that the models were kept by. The caller's transaction commits it.
    """
    forget_models(connection, channel)
    store_models(connection, channel, BinlogPosition("", 0), catalog.tables, catalog.databases)


def forget_models(connection: Connection, channel: str) -> None:
    """RESET REPLICA ALL: drop the channel's models; replicated tables stay."""
    table = _table(connection)
    connection.execute(delete(table).where(table.c.Channel_name == channel))


def _table(connection: Connection) -> Table:
    return table_models(own_schema(connection.engine))
