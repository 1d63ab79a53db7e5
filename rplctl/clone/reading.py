"""Reads the tables of one snapshot, and writes their rows to chunk files.

A table is read from its first key on, or after the part that an earlier, unfinished snapshot has read. In the second
case, the first new chunk has the keys that the log changed between the two snapshots. Their rows are deleted first, and
then inserted as the new snapshot shows them. Invariant: `read.json` counts a chunk only if its file exists. Between two
chunks, no DDL statement waits for the cloner, if `source.snapshot.lets_ddl_pass` is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from rplctl import mysql_errors as er
from rplctl.clone.changed_keys import ChangedKeys
from rplctl.clone.chunk_file import ChunkHead, Key, digest_of, write_chunk
from rplctl.clone.folder import CopiedTable, Part, StoredSnapshot
from rplctl.clone.report import CloneReport
from rplctl.clone.throttle import Lag, Throttle
from rplctl.errors import SourceError
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.received import Received, alike, ddl_after
from rplctl.result_set.columns import selected_columns
from rplctl.schema.bounds import Chunk, chunk_key, condition, next_chunk, row_bytes
from rplctl.schema.source_catalog import quote, read_table
from rplctl.schema.statement import TableName
from rplctl.source.select import SelectedRows
from rplctl.source.snapshot import SnapshotKind, SourcePosition
from rplctl.source.survey import Ask
from rplctl.sql_text import Sql, joined, written

CHUNK_BYTES: Final = 16 << 20  # the intended size of a chunk, estimated from the size of rows in the previous chunk
_FIRST_ROWS: Final = 1000  # the limit for rows of the first chunk, because the source's size estimate may be outdated
_MOST_GROWTH: Final = 10  # the next chunk has at most this many times the rows of the previous chunk
_KEYS_AT_ONCE: Final = 500
_GONE: Final = frozenset({er.NO_SUCH_TABLE, er.BAD_DB_ERROR})
_MOST_CONDITIONS: Final = 512 << 10  # characters; max_allowed_packet may be 1 MiB


class BeginAgain(Exception):
    """The error if the rows that were read so far cannot be used, so that all tables of the snapshot are read again."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The limits that a SnapshotReader obeys, and the status file that it updates.

    `wait_for_room` waits until there is disk space for the next chunk.
    """

    wait_for_room: Callable[[], None]
    throttle: Throttle
    report: CloneReport


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySource:
    """The sessions on the source of a copy, and the facts about the source that a copy needs.

    `query`, `about`: sessions on the server that is read: for rows, and for other queries. `log`: a session on the
    channel's source; it is the same as `query`, except if a replica is read (`clone --read-from`). `copy`: the address
    of the replica that is read; '' if the source is read. `lag` returns the lag of a replica in seconds. `select` reads
    the rows of a SELECT. `step`: the method by which snapshots are opened. `server_id`: that of the channel's source.
    `applied`: the applier's GTIDs, in the notation of the source's vendor. `relay`: the applier's stored position.
    """

    query: Ask
    about: Ask
    log: Ask
    copy: str
    lag: Lag
    select: Callable[[Sql], SelectedRows]
    step: SnapshotKind
    received: Received
    server_id: int
    applied: SourcePosition
    relay: RelayLogInfo


class SnapshotReader:
    """The reader of the tables of one snapshot, which writes their rows to chunk files."""

    def __init__(
        self, source: CopySource, begun: StoredSnapshot, beside: Beside, *, takes_numbers: bool, locking: Sql
    ) -> None:
        self._query, self._about, self._select, self._lag = source.query, source.about, source.select, source.lag
        self._received, self._begun, self._beside = source.received, begun, beside
        self._takes_numbers, self._locking = takes_numbers, locking
        self._parts = [Part() for _ in begun.tables]

    def go_on(self, parts: Sequence[Part | None], changed_rows: Sequence[ChangedKeys]) -> StoredSnapshot:
        """Reuse the given part of each table (None: nothing), and read the changed rows of this part again.

        Return the snapshot with the number of reused chunks of each table. This is called before the snapshot is
        claimed, because the claim has these numbers. `changed_rows`: the changed keys of each table.
        """
        for number, part in enumerate(parts):
            if part is not None:
                rows = self._read_changed(number, part, changed_rows[number])
                self._parts[number] = replace(part, count=part.count + 1, rows=part.rows + rows)
        self._begun.tell_read(self._parts)
        return replace(self._begun, counts=tuple(part.count if part is not None else 0 for part in parts))

    def read_all(self) -> list[int]:
        """Read all tables that are not completely read, and return the number of chunks of each."""
        return [self._read(number) for number in range(len(self._begun.tables))]

    def _read(self, number: int) -> int:
        model, part = self._begun.tables[number].model, self._parts[number]
        wanted = min(_FIRST_ROWS, _rows_in_a_chunk(row_bytes(self._about, model)[0]))
        while not part.is_whole:
            chunk = next_chunk(self._query, model, wanted, part.upto)
            self._beside.throttle.wait(self._about, self._lag, holds_snapshot=not self._locking)
            if not self._locking:  # with locks, nothing is loaded before everything is read
                self._beside.wait_for_room()
                if not self._begun.is_claimed:
                    raise BeginAgain(f"the applier was past {self._begun.low.position}")
                for groups in self._received.new():
                    check_names(groups, self._begun)
            rows, size = self._read_chunk(number, part.count, chunk, [condition(chunk_key(model), chunk)])
            wanted = min(_MOST_GROWTH * wanted, _rows_in_a_chunk(size / max(rows, 1)))
            part = self._parts[number] = Part(count=part.count + 1, upto=chunk.upto, rows=part.rows + rows)
            self._begun.tell_read(self._parts)
            crash_point("crash_clone_after_chunk")
        return part.count

    def _read_changed(self, number: int, part: Part, changed_rows: ChangedKeys) -> int:
        """Read the changed rows whose keys are in the reused part of a table, and return their number.

        `number`: the index of the table. The other changed rows are read with the rest of the table.
        """
        chunk = Chunk(None, part.upto)
        begin = condition(chunk_key(self._begun.tables[number].model), chunk)
        begin = written("{} AND ", begin) if begin else written(" WHERE ")
        parts = (joined(" OR ", [written("({})", one) for one in some]) for some in _in_parts(changed_rows))
        conditions = [written("{}({})", begin, one) for one in parts]
        nothing = [written(" WHERE 1 = 0")]  # a query without rows, which returns the columns' types
        return self._read_chunk(number, part.count, chunk, conditions or nothing, tuple(changed_rows))[0]

    def _read_chunk(
        self, number: int, chunk_number: int, chunk: Chunk, conditions: Sequence[Sql], gone: tuple[Key, ...] = ()
    ) -> tuple[int, int]:
        """Read one chunk of the table with index `number`, write its file, and return the number of rows and of bytes.

        `conditions`: one WHERE for each SELECT. `gone`: the keys of rows that are deleted before the rows are inserted.
        """
        table = self._begun.tables[number]
        columns = selected_columns(table.model.columns, takes_numbers=self._takes_numbers)
        what = joined(", ", [c.expression for c in columns])

        def rows_where(condition: Sql) -> SelectedRows:
            return self._select(written("SELECT {} FROM {}{}{}", what, quote(*table.name), condition, self._locking))

        self._beside.report.state(f"Reading {'.'.join(table.name)}")
        with transaction(self._query) if self._locking else released(self._query):
            rows = rows_where(conditions[0])
            if read_table(self._about, *table.name)[0] != table.model:
                raise BeginAgain(f"{'.'.join(table.name)} was altered")
            head = ChunkHead(
                database=table.name[0],
                table=table.name[1],
                epoch=self._begun.epoch,
                chunk=chunk_number,
                after=chunk.after,
                upto=chunk.upto,
                digest=digest_of(table.create),
                wire_types=tuple(rows.wire_types),
                low=self._begun.low,
                gone=gone,
            )
            with write_chunk(self._begun.chunk_path(number, chunk_number), head) as file:
                for more in (None, *conditions[1:]):
                    rows = rows if more is None else rows_where(more)
                    for piece in rows.pieces():
                        file.add(piece)
                    file.rows += rows.rows
                file.high = self._begun.low
            self._beside.throttle.took(file.packet_bytes)
            self._beside.report.moved()
        return file.rows, file.packet_bytes


def _rows_in_a_chunk(row_bytes: float) -> int:
    return max(1, int(CHUNK_BYTES / max(row_bytes, 1)))


def _in_parts(changed_rows: ChangedKeys) -> Iterator[list[Sql]]:
    """Divide the conditions, one for each changed key, into lists, each of which fits into one statement."""
    some, size = list[Sql](), 0
    for one in changed_rows.values():
        if some and (len(some) == _KEYS_AT_ONCE or size + len(one) > _MOST_CONDITIONS):
            yield some
            some, size = [], 0
        some.append(one)
        size += len(one)
    if some:
        yield some


def check_names(groups: RelayGroups, begun: StoredSnapshot) -> None:
    """Raise BeginAgain if DDL after the snapshot's position names one of its tables.

    Another table may have got this name since, for example when gh-ost swaps tables.
    """
    if at := ddl_after(groups, begun.position, frozenset(table.name for table in begun.tables)):
        raise BeginAgain(f"DDL at {at} names {names_of(begun.tables)}")


def tables_showing_changes(
    tables: Sequence[CopiedTable], names: Sequence[TableName] = ()
) -> frozenset[TableName] | None:
    """Return the tables whose rows events in the log show a change of the copied `tables`.

    `names`: tables of the group that may have been dropped, so that they are also included. The result is None, which
    means any table, if foreign keys cascade from tables outside of the group. Such cascades are not in the log.
    """
    there = {table.name for table in tables}
    parents = {(key.ref_database, key.ref_table) for table in tables for key in table.model.foreign_keys}
    return frozenset(map(alike, there.union(names))) if parents <= there else None


def names_of(tables: Sequence[CopiedTable]) -> str:
    return ", ".join(".".join(table.name) for table in tables)


@contextmanager
def released(query: Ask) -> Iterator[None]:
    """Run the block, then release the metadata locks that its statements took, so that DDL can continue."""
    query(written("SAVEPOINT rplctl"))
    yield
    query(written("ROLLBACK TO SAVEPOINT rplctl"))


@contextmanager
def transaction(query: Ask) -> Iterator[None]:
    """Run the block in a transaction that is rolled back, which also releases its row locks and metadata locks."""
    query(written("START TRANSACTION"))
    try:
        yield
    finally:
        query(written("ROLLBACK"))


def show_snapshots(names: Sequence[TableName], source: CopySource) -> bool:
    """True if all tables are in InnoDB, so that a snapshot shows their rows at one position."""
    found = source.about(written("SELECT table_schema, table_name, engine FROM information_schema.tables"))
    engines = {(str(database), str(table)): str(engine).lower() for database, table, engine in found}
    return all(engines.get(name, "innodb") == "innodb" for name in names)


def copied_table(name: TableName, source: CopySource, *, is_locked: bool) -> CopiedTable | None:
    """Return the definition of the table on the source. Return None if the table was dropped.

    First, a SELECT takes a metadata lock, which prevents DDL on the table while its definition is read. `is_locked`:
    True if the table is read with row locks, so that no snapshot is open.
    """
    try:
        with transaction(source.query) if is_locked else released(source.query):
            source.query(written("SELECT 1 FROM {} LIMIT 1", quote(*name)))
            return CopiedTable(*read_table(source.about, *name))
    except SourceError as error:
        if error.errno not in _GONE:
            raise
        return None
