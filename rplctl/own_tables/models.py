"""Stores the table models of a channel in the target, versioned by the position in the source's log (design D18).

A *model* is the definition of a table on the source. By default, row events have no column names, signedness or
character sets. So rplctl must know the definition of a table at the position of an event, from the DDL before it.
Invariant: a model is written in the transaction that executes its DDL and moves the position past it. `load_models`
returns the models that were valid at any given position, so that an older position can be read again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Select, Table, and_, delete, insert, or_, select, true, update

from rplctl.own_tables.tables import table_models
from rplctl.position import BinlogPosition, log_number
from rplctl.schema.model import MADE_EMPTY, TableModel
from rplctl.schema.plan import Catalog, DatabaseModel
from rplctl.schema.statement import EVERY_TABLE, Move, TableName

DATABASE_ROW = ""  # the Table_name of a row that has the default character set of a database


def load_models(connection: Connection, channel: str, position: BinlogPosition) -> Catalog:
    """Return the catalog that was valid at this position: for each table, the last model at or before it."""
    last: dict[tuple[str, str], str | None] = {}  # the texts are kept, because only the last version must be parsed
    for database, name, number, offset, text in connection.execute(_rows(channel, _table(connection))):
        if (number, offset) <= position.order_key():
            last[database, name] = text
    there = {name: text for name, text in last.items() if text is not None}
    databases = {d: DatabaseModel(**json.loads(text)) for (d, name), text in there.items() if name == DATABASE_ROW}
    models = {name: TableModel.from_json(text) for name, text in there.items() if name[1] != DATABASE_ROW}
    return Catalog(models, databases)


def store_models(  # noqa: PLR0913 - changes of a statement
    connection: Connection,
    channel: str,
    position: BinlogPosition,
    models: Mapping[tuple[str, str], TableModel | None],
    databases: Mapping[str, DatabaseModel | None] | None = None,
    moves: Collection[Move] = (),
) -> None:
    """Store the models that are valid from `position` on, after a DDL statement. The caller's transaction commits them.

    `models`: the new model of each changed table, or None for a dropped table. `databases`: the new default character
    set of each changed database, or None for a dropped database. `moves`: the old and new names of renamed tables. A
    new name None means that the table was dropped, replaced or truncated.

    A table that was created empty has a mark (see `mark_made_empty`). The mark moves to the new name of a renamed
    table. It ends if the table is dropped, replaced or truncated, because the source then has none of the old rows.
    """
    marks = _marks(connection, channel, {old for old, _ in moves}) if moves else {}
    marked = _followed(marks, moves)
    rows_are_loaded(connection, channel, marks.keys() - marked.keys())
    come = {name: _renamed(text, name) for name, text in marked.items() if name not in marks}
    away = dict.fromkeys(old for old, new in moves if new is not None and old in marks)
    models = {**away, **come, **models}
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
    mark_made_empty(connection, channel, position, {name: model for name in come if (model := models[name])})


def _renamed(text: str, name: TableName) -> TableModel:
    return replace(TableModel.from_json(text), database=name[0], name=name[1])


def mark_made_empty(
    connection: Connection, channel: str, position: BinlogPosition, models: Mapping[TableName, TableModel]
) -> None:
    """Mark tables that rplctl created empty, although the source has older rows.

    The mark is stored in the models of the tables at this position. The caller's transaction commits the marks.
    """
    for name, model in models.items():
        marked = json.dumps({**json.loads(model.to_json()), MADE_EMPTY: True})
        _set_model(connection, channel, name, (log_number(position.log_name), position.log_pos), marked)


def tables_made_empty(connection: Connection, channel: str) -> list[TableName]:
    """Return the tables that `load-schema` created empty and whose rows were never copied.

    A table no longer counts after it was dropped on the source, found equal by a comparison, or declared as loaded.
    """
    return [name for name, marks in _marks(connection, channel).items() if marks]


def rows_are_loaded(connection: Connection, channel: str, names: Collection[TableName]) -> None:
    """Remove the mark that these tables were created empty, because they have their rows now.

    The caller's transaction commits the change.
    """
    marks = _marks(connection, channel, names) if names else {}
    for name in names:
        for number, offset, text in marks.get(name, []):
            stored = json.loads(text)
            del stored[MADE_EMPTY]
            _set_model(connection, channel, name, (number, offset), json.dumps(stored))


def _followed(marks: Mapping[TableName, list[tuple[int, int, str]]], moves: Iterable[Move]) -> dict[TableName, str]:
    """Return the new names of the marked tables after these moves, each with the model that has the mark.

    A move without a new name ends the mark.
    """
    left = {name: found[-1][2] for name, found in marks.items()}
    for old, new in moves:
        for name in [name for name in left if old in (name, (name[0], EVERY_TABLE))]:
            text = left.pop(name)
            if new is not None:
                left[new] = text
    return left


def _marks(
    connection: Connection, channel: str, names: Collection[TableName] = ()
) -> dict[TableName, list[tuple[int, int, str]]]:
    """Return the marks of each table as (log number, offset, model), oldest first. A DROP ends earlier marks.

    `names`: the tables to look up; () for all tables.
    """
    found: dict[TableName, list[tuple[int, int, str]]] = {}
    model = _table(connection).c.Model
    query = _rows(channel, _table(connection), names).where(or_(model.is_(None), model.contains(MADE_EMPTY)))
    for database, name, number, offset, text in connection.execute(query):
        if text is None:
            found.pop((database, name), None)
        elif MADE_EMPTY in text and MADE_EMPTY in json.loads(text):
            found.setdefault((database, name), []).append((number, offset, text))
    return found


def _rows(channel: str, table: Table, names: Collection[TableName] = ()) -> Select[Any]:
    """Return the query for the stored models: database, table, log number, log position and model, oldest first.

    `names`: the tables to look up; () for all tables.
    """
    c = table.c
    wanted = [and_(c.Database_name == database, c.Table_name == name if name != EVERY_TABLE else true())
              for database, name in names]  # fmt: skip
    query = select(c.Database_name, c.Table_name, c.Master_log_number, c.Master_log_pos, c.Model)
    query = query.where(c.Channel_name == channel, or_(*wanted) if wanted else true())
    return query.order_by(c.Master_log_number, c.Master_log_pos)


def _set_model(connection: Connection, channel: str, name: TableName, at: tuple[int, int], text: str) -> None:
    table = _table(connection)
    c = table.c
    here = (c.Channel_name == channel, c.Database_name == name[0], c.Table_name == name[1])
    there = (c.Master_log_number == at[0], c.Master_log_pos == at[1])
    connection.execute(update(table).where(*here, *there).values(Model=text))


def rebase_models(connection: Connection, channel: str, catalog: Catalog) -> None:
    """Make the models of the catalog valid from the very beginning, before the first position.

    This is necessary after a change to another source, whose positions differ. The caller's transaction commits the
    change.
    """
    empty, start = tables_made_empty(connection, channel), BinlogPosition("", 0)
    forget_models(connection, channel)
    store_models(connection, channel, start, catalog.tables, catalog.databases)
    kept = {name: catalog.tables[name] for name in empty if name in catalog.tables}
    mark_made_empty(connection, channel, start, kept)


def forget_models(connection: Connection, channel: str) -> None:
    """Delete the channel's models, for RESET REPLICA ALL. The replicated tables are unchanged."""
    table = _table(connection)
    connection.execute(delete(table).where(table.c.Channel_name == channel))


def _table(connection: Connection) -> Table:
    return table_models(connection.dialect.name)
