"""Stores the batch that is being written to the tables of a lake, one table after another, before the position moves.

Invariant: the batch is stored durably before its first table changes. It is closed in the transaction that moves the
position past it. If an applier finds an open batch, it finishes the batch. The stored batch has the names of its files,
so that nothing is decoded again. The number of a batch only grows. A closed batch keeps its row, so that the next batch
can have the next number.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert, select, update

from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import lake_batch
from rplctl.target import mapped_errors
from rplctl.target.lake import PendingTable

_PLACE = ("relay_log_name", "relay_log_pos", "master_log_name", "master_log_pos", "gtid_executed")


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeBatch:
    """A batch, with the files that it adds to each table of the lake and removes from it.

    `before` and `after`: the positions before and after the batch; the other fields of these records are not used.
    """

    number: int
    before: RelayLogInfo
    after: RelayLogInfo
    tables: tuple[PendingTable, ...]
    is_open: bool = True

    @property
    def mark(self) -> int:
        """A digest of the batch's positions and files (56 bits).

        Writers use it to distinguish two batches that have the same number.
        """
        tables = [[table.folder, table.removed, [path for path, _, _ in table.files]] for table in self.tables]
        words = json.dumps([str(self.after.exec_position), tables])
        return int.from_bytes(hashlib.sha256(words.encode()).digest()[:7], "big")


def last_batch(connection: Connection, channel: str) -> LakeBatch | None:
    table = lake_batch(connection.dialect.name)
    with mapped_errors(connection.dialect.name):
        row = connection.execute(select(table).where(table.c.Channel_name == channel)).one_or_none()
    if row is None:
        return None
    before, after = (RelayLogInfo(channel_name=channel, **json.loads(text)) for text in (row.Before_it, row.After_it))
    tables = tuple(
        PendingTable(
            folder=entry["folder"],
            columns=entry["columns"],
            files=tuple((path, size, stats) for path, size, stats in entry["files"]),
            removed=tuple(entry["removed"]),
            replaces=entry["replaces"],
        )
        for entry in json.loads(row.Tables)
    )
    return LakeBatch(number=row.Number, before=before, after=after, tables=tables, is_open=bool(row.Is_open))


def keep_batch(connection: Connection, channel: str, batch: LakeBatch) -> None:
    """Store the batch in place of the channel's previous one."""
    table = lake_batch(connection.dialect.name)
    places = ({name: getattr(info, name) for name in _PLACE} for info in (batch.before, batch.after))
    before, after = map(json.dumps, places)
    tables = json.dumps([asdict(entry) for entry in batch.tables])
    with mapped_errors(connection.dialect.name):
        connection.execute(delete(table).where(table.c.Channel_name == channel))
        connection.execute(
            insert(table).values(
                Channel_name=channel,
                Number=batch.number,
                Is_open=batch.is_open,
                Before_it=before,
                After_it=after,
                Tables=tables,
            )
        )


def close_batch(connection: Connection, channel: str) -> None:
    table = lake_batch(connection.dialect.name)
    with mapped_errors(connection.dialect.name):
        connection.execute(update(table).where(table.c.Channel_name == channel).values(Is_open=False, Tables="[]"))
