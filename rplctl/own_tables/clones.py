"""The progress of `rplctl clone`: one row per copied table, in the target, written together with the rows of the table.

    waiting ──first rows──▶ copying ──last rows──▶ done
       ▲                     │   ▲ │                │
       │                     │   └─┘ another snapshot: its tables are emptied and copied again
       ├─────────────────────┴──────────────────────┘ the operator requests the table (again), or a
       │                                            statement names it together with a waiting table
       └──▶ left out ──▶ waiting                        cancelled while waiting or copying; requested again

Invariant: the applier skips the events of a table that is not `done`. Such a table is empty or has old rows, in
addition to the rows of the snapshot `Epoch`, of which `Chunks` chunks are loaded. A table that is `done` has the rows
that the source had at `Position`, with all later events.

A step forward is a compare-and-swap of the record, in the transaction that changes the rows at that position. So after
a crash, the record, the rows and the position belong to the same step. A step back to `waiting` changes only the
record. An applier that has not read this record yet continues with the table. This does no harm, because the first rows
of the new copy create the table again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection, Engine, delete, insert, select, update

from rplctl.errors import LockBusy
from rplctl.own_tables.tables import cloned_tables, stored_state
from rplctl.schema.statement import TableName
from rplctl.target import mapped_errors


class CopyState(StrEnum):
    """The state of one table's copy by `rplctl clone`, as the target stores it."""

    WAITING = "waiting"
    COPYING = "copying"
    DONE = "done"
    LEFT_OUT = "left out"


# The steps forward, each in the transaction that changes the rows. `add_clones` sets any state back to WAITING.
NEXT_STATES: Final = {
    CopyState.WAITING: frozenset({CopyState.COPYING, CopyState.LEFT_OUT}),
    CopyState.COPYING: frozenset({CopyState.COPYING, CopyState.DONE, CopyState.LEFT_OUT}),
    CopyState.DONE: frozenset[CopyState](),
    CopyState.LEFT_OUT: frozenset[CopyState](),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClonedTable:
    """The state of the copy of one table. The field names are column names.

    `Database_name`: the database's name in the target. `Family`: the number of the group of tables that are copied in
    one snapshot. `Epoch`: the number of this snapshot. `Chunks`: the number of loaded chunks.
    """

    Database_name: str
    Table_name: str
    Source_database: str
    Family: int
    State: CopyState = CopyState.WAITING
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
        """True if some rows of the table are still to be loaded. False if the copy is done or cancelled."""
        return self.State in (CopyState.WAITING, CopyState.COPYING)


def read_clones(connection: Connection, channel: str) -> list[ClonedTable]:
    """Return the states of all tables of the channel's copies, including finished ones, in the order of copying.

    Raises TargetError if a row has an unknown state.
    """
    table = cloned_tables(connection.dialect.name)
    columns = [table.c[name] for name in ClonedTable.__dataclass_fields__]
    query = select(*columns).where(table.c.Channel_name == channel)
    rows = connection.execute(query.order_by(table.c.Family, table.c.Database_name, table.c.Table_name))
    return [ClonedTable(**{**row._mapping, "State": stored_state(CopyState, row.State, table.name)}) for row in rows]


def is_copying(engine: Engine, channel: str) -> bool:
    """True if the copy of any table of the channel is not done. A cancelled table counts as not done.

    Raises TargetError if the target reports an error.
    """
    c = cloned_tables(engine.dialect.name).c
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        return (
            connection.execute(select(c.State).where(c.Channel_name == channel, c.State != str(CopyState.DONE))).first()
            is not None
        )


def add_clones(connection: Connection, channel: str, tables: Iterable[ClonedTable]) -> None:
    """Add tables to the copy. The caller's transaction commits them.

    If a table has a row from an earlier copy, the new row replaces it.
    """
    for copied in tables:
        forget_clone(connection, channel, copied.name)
        connection.execute(
            insert(cloned_tables(connection.dialect.name)).values(Channel_name=channel, **_columns(copied))
        )


def requeue_tables(connection: Connection, channel: str, names: Iterable[tuple[TableName, str]]) -> None:
    """Add these tables to the copy, so that the applier skips their events from now on.

    `names`: for each table its name in the target, and the name of its database on the source. The caller's transaction
    commits them.
    """
    number = max((row.Family for row in read_clones(connection, channel)), default=0) + 1
    tables = (
        ClonedTable(Database_name=name[0], Table_name=name[1], Source_database=database, Family=number)
        for name, database in names
    )
    add_clones(connection, channel, tables)


def move_clone(connection: Connection, channel: str, old: ClonedTable, new: ClonedTable) -> None:
    """Replace the row `old` of a table's copy by `new`, in the transaction that changes the rows of this table.

    Raises LockBusy if the stored row is no longer `old`, because another process has changed it.
    """
    c = cloned_tables(connection.dialect.name).c
    here = (c.Channel_name == channel, c.Database_name == old.Database_name, c.Table_name == old.Table_name)
    assert new.State in NEXT_STATES[old.State], f"{'.'.join(old.name)}: {old.State} → {new.State}"
    there = (c.State == str(old.State), c.Epoch == old.Epoch, c.Chunks == old.Chunks)
    moved = connection.execute(
        update(cloned_tables(connection.dialect.name)).where(*here, *there).values(**_columns(new))
    )
    if moved.rowcount != 1:
        raise LockBusy(
            f"another process has changed the copy of {'.'.join(old.name)}; nothing was loaded",
            channel=channel,
            hint="to check the copy and continue, run: rplctl show-clone; rplctl start",
        )


def _columns(table: ClonedTable) -> dict[str, Any]:
    """Return the values of all columns for this record. The state becomes text, because not every driver accepts an
    enum.
    """
    return {**asdict(table), "State": str(table.State)}


def forget_clone(connection: Connection, channel: str, name: TableName) -> None:
    """Delete the row about the copy of a table, because the table no longer exists on the source or another row
    replaces it.
    """
    table = cloned_tables(connection.dialect.name)
    here = (table.c.Channel_name == channel, table.c.Database_name == name[0], table.c.Table_name == name[1])
    connection.execute(delete(table).where(*here))


def percent_of(rows: Iterable[ClonedTable]) -> int:
    """Return the percentage of bytes that are loaded, according to the source's estimates.

    The result is 100 if and only if all tables are done. Cancelled tables do not count.
    """
    found = [row for row in rows if row.State is not CopyState.LEFT_OUT]
    if all(row.State is CopyState.DONE for row in found):
        return 100
    sizes = {row.name: max(row.Expected_bytes, row.Byte_count, 1) for row in found}
    loaded = sum(sizes[row.name] if row.State is CopyState.DONE else row.Byte_count for row in found)
    return min(99, 100 * loaded // sum(sizes.values()))


def bytes_left(rows: Iterable[ClonedTable]) -> int:
    """Return the number of bytes that are still to be loaded, according to the source's estimates."""
    return sum(max(0, row.Expected_bytes - row.Byte_count) for row in rows if row.is_open)
