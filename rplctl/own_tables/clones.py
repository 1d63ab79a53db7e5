"""The ledger of `rplctl clone`: one row per table that is copied, in the target, written with its rows.

    waiting → copying → done      done → waiting does not happen: a table that is there is replicated

Invariant: a table that is not `done` is left out of what the applier does with events. `Chunks` counts those that are
loaded of the snapshot `Epoch`; it moves in the transaction that loads one, by a compare-and-swap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, Engine, delete, insert, select, update

from rplctl.errors import LockBusy
from rplctl.own_tables.tables import cloned_tables
from rplctl.schema.statement import TableName
from rplctl.target import mapped_errors

WAITING, COPYING, DONE = "waiting", "copying", "done"


@dataclass(frozen=True, slots=True)
class ClonedTable:
    """Field names are columns; the database is the target's name for it."""

    Database_name: str
    Table_name: str
    Source_database: str
    Family: int
    State: str = WAITING
    Epoch: int = 0
    Chunks: int = 0
    Row_count: int = 0
    Byte_count: int = 0
    Position: str = ""

    @property
    def name(self) -> TableName:
        return self.Database_name, self.Table_name


def read_clones(connection: Connection, channel: str) -> list[ClonedTable]:
    """All tables of the channel, also those that are done, in the order in which they are copied."""
    table = cloned_tables(connection.dialect.name)
    columns = [table.c[name] for name in ClonedTable.__dataclass_fields__]
    query = select(*columns).where(table.c.Channel_name == channel)
    rows = connection.execute(query.order_by(table.c.Family, table.c.Database_name, table.c.Table_name))
    return [ClonedTable(*row) for row in rows]


def is_copying(engine: Engine, channel: str) -> bool:
    """Whether tables of the channel are not copied yet. Raises TargetError."""
    c = cloned_tables(engine.dialect.name).c
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        return connection.execute(select(c.State).where(c.Channel_name == channel, c.State != DONE)).first() is not None


def add_clones(connection: Connection, channel: str, tables: Iterable[ClonedTable]) -> None:
    """The caller's transaction commits it. A table that was copied before and is gone is copied again."""
    for copied in tables:
        forget_clone(connection, channel, copied.name)
        connection.execute(
            insert(cloned_tables(connection.dialect.name)).values(Channel_name=channel, **asdict(copied))
        )


def move_clone(connection: Connection, channel: str, old: ClonedTable, new: ClonedTable) -> None:
    """In the transaction of the rows. Raises LockBusy when the ledger does not say `old` any more."""
    c = cloned_tables(connection.dialect.name).c
    here = (c.Channel_name == channel, c.Database_name == old.Database_name, c.Table_name == old.Table_name)
    there = (c.State == old.State, c.Epoch == old.Epoch, c.Chunks == old.Chunks)
    moved = connection.execute(
        update(cloned_tables(connection.dialect.name)).where(*here, *there).values(**asdict(new))
    )
    if moved.rowcount != 1:
        raise LockBusy(
            f"the copy of {'.'.join(old.name)} is no longer where this applier left it; nothing was loaded",
            channel=channel,
            hint="rplctl show-clone, then rplctl start",
        )


def forget_clone(connection: Connection, channel: str, name: TableName) -> None:
    """The source has the table no longer."""
    table = cloned_tables(connection.dialect.name)
    here = (table.c.Channel_name == channel, table.c.Database_name == name[0], table.c.Table_name == name[1])
    connection.execute(delete(table).where(*here))


def forget_clones(connection: Connection, channel: str) -> None:
    """RESET REPLICA ALL."""
    table = cloned_tables(connection.dialect.name)
    connection.execute(delete(table).where(table.c.Channel_name == channel))
