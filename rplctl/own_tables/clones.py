"""The ledger of `rplctl clone`: one row per table that is copied, in the target, written with its rows.

    waiting ──first rows──▶ copying ──last rows──▶ done
       ▲                     │   ▲ │                │
       │                     │   └─┘ another snapshot, its tables begun again empty
       ├─────────────────────┴──────────────────────┘ the operator asks for the table (again), or a
                                                    statement names it together with one that waits
       └──▶ left out ──▶ waiting                        cancelled, from waiting or copying; asked for again

Invariant: a table that is not `done` is left out of what the applier does with events, and is empty or old but for the
rows of the snapshot `Epoch`, of which `Chunks` are loaded; one that is `done` is what the source had at `Position` and
all events after it. A step forward is a compare-and-swap in the transaction of its rows, at that position; so a crash
leaves the row, the rows and the position of one and the same step. The step back touches the row alone: an applier that
has not seen it yet goes on with the table, and the first rows make it again in any case.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, Engine, delete, insert, select, update

from rplctl.errors import LockBusy
from rplctl.own_tables.tables import cloned_tables
from rplctl.schema.statement import TableName
from rplctl.target import mapped_errors

WAITING, COPYING, DONE, LEFT_OUT = "waiting", "copying", "done", "left out"


@dataclass(frozen=True, slots=True)
class ClonedTable:
    """One table that is copied. Field names are columns; the database is the target's name for it."""

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
    Expected_rows: int = 0
    Expected_bytes: int = 0

    @property
    def name(self) -> TableName:
        return self.Database_name, self.Table_name

    @property
    def is_open(self) -> bool:
        """True if rows of the table are still to be loaded."""
        return self.State in (WAITING, COPYING)


def read_clones(connection: Connection, channel: str) -> list[ClonedTable]:
    """Return all tables of the channel, also those that are done, in the order in which they are copied."""
    table = cloned_tables(connection.dialect.name)
    columns = [table.c[name] for name in ClonedTable.__dataclass_fields__]
    query = select(*columns).where(table.c.Channel_name == channel)
    rows = connection.execute(query.order_by(table.c.Family, table.c.Database_name, table.c.Table_name))
    return [ClonedTable(*row) for row in rows]


def is_copying(engine: Engine, channel: str) -> bool:
    """True if some tables of the channel are not copied yet. Raises TargetError."""
    c = cloned_tables(engine.dialect.name).c
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        return connection.execute(select(c.State).where(c.Channel_name == channel, c.State != DONE)).first() is not None


def add_clones(connection: Connection, channel: str, tables: Iterable[ClonedTable]) -> None:
    """Add tables to the copy; the caller's transaction commits them. A table that was copied before and is gone is
    copied again.
    """
    for copied in tables:
        forget_clone(connection, channel, copied.name)
        connection.execute(
            insert(cloned_tables(connection.dialect.name)).values(Channel_name=channel, **asdict(copied))
        )


def requeue_tables(connection: Connection, channel: str, names: Iterable[tuple[TableName, str]]) -> None:
    """Add tables that are copied from now on, each with its database's name on the source. The caller's transaction
    commits them.
    """
    number = max((row.Family for row in read_clones(connection, channel)), default=0) + 1
    add_clones(connection, channel, (ClonedTable(*name, database, number) for name, database in names))


def move_clone(connection: Connection, channel: str, old: ClonedTable, new: ClonedTable) -> None:
    """Replace the record `old` of a table by `new`, in the transaction of its rows. Raises LockBusy if the record is no
    longer `old`.
    """
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
    """Delete the record of a table that the source no longer has."""
    table = cloned_tables(connection.dialect.name)
    here = (table.c.Channel_name == channel, table.c.Database_name == name[0], table.c.Table_name == name[1])
    connection.execute(delete(table).where(*here))


def percent_of(rows: Iterable[ClonedTable]) -> int:
    """Return the percentage of the bytes that are loaded, as far as the source's figures are right. It is 100 if and
    only if all tables are done.
    """
    found = [row for row in rows if row.State != LEFT_OUT]
    if all(row.State == DONE for row in found):
        return 100
    sizes = {row.name: max(row.Expected_bytes, row.Byte_count, 1) for row in found}
    loaded = sum(sizes[row.name] if row.State == DONE else row.Byte_count for row in found)
    return min(99, 100 * loaded // sum(sizes.values()))


def bytes_left(rows: Iterable[ClonedTable]) -> int:
    """Return the bytes that are not loaded yet, as far as the source's figures are right."""
    return sum(max(0, row.Expected_bytes - row.Byte_count) for row in rows if row.is_open)
