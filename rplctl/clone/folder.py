"""Manages the folder of files that the cloner and the applier share during a copy.

The part of the applier that loads the copy is called the loader. The cloner writes chunk files, and the loader loads
and removes them.

    plan.json               written by the loader: the table groups that are not copied yet
    hold                    written by the cloner: the applier must wait while a snapshot is opened
    GROUP-EPOCH/            created by the cloner: one snapshot of a table group (tables that foreign keys link)
        claim.json          the table definitions and the snapshot's position, where the applier waits for the rows
        TABLE.CHUNK.rows    chunk files, numbered in the order in which they are loaded
        read.json           the part of each table that was read, so that another process can continue
        complete.json       the number of chunks of each table: all of them are in the folder, or loaded

A snapshot may continue an unfinished snapshot (`continues`). It then reuses the rows that the old snapshot has read,
and continues the chunk numbers. The old snapshot is loaded first. The first files of the new snapshot have the rows
that changed between the positions of the two snapshots. These files are written before the claim.json of the new
snapshot.

Invariant: a file gets its name when it is complete. Except for chunk files and read.json, it is also durable then. A
snapshot counts only while it has the file claim.json. Without this file, its chunks are not loaded, and its table group
is read again. If the folder is lost, no rows are lost. The clone state in the target records which tables are copied,
and the cloner reads the other tables again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.clone.chunk_file import SnapshotPosition, all_of
from rplctl.durable import private_folder, replace_file
from rplctl.errors import RelayLogError, RplError
from rplctl.plain_file import size_of, stored_json
from rplctl.position import BinlogPosition
from rplctl.schema.bounds import Bound
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel
from rplctl.schema.statement import TableName

HOLD_S = 10.0
Plan = dict[int, list[TableName]]  # table group → the source's names of its tables, parents first


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """The definition of a table to copy, with the source's names. `create`: the text of SHOW CREATE TABLE."""

    model: TableModel
    database: DatabaseModel
    create: str

    @property
    def name(self) -> TableName:
        return self.model.database, self.model.name


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a table that was read so far: `count` chunks, up to and including the key `upto`.

    `upto` is None before the first chunk, and after the last one.
    """

    count: int = 0
    upto: Bound | None = None
    rows: int = 0

    @property
    def is_whole(self) -> bool:
        return self.count > 0 and self.upto is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnapshot:
    """A snapshot of a table group (tables that foreign keys link), as its folder describes it.

    `epoch`: the time when the snapshot was begun, in microseconds since 1970; together with `table_group`, it
    identifies the snapshot. `low`: the snapshot's position in the log of the source. `tables`: the tables of the group
    that exist on the source; the others were dropped. `continues`: the epoch of the unfinished snapshot that this one
    continues; 0 if there is none. `counts`: for each table, the number of chunks that it reuses from that snapshot.
    """

    folder: Path
    table_group: int
    epoch: int
    low: SnapshotPosition
    tables: tuple[CopiedTable, ...]
    server_id: int = 0  # the server id of the source to whose log the position belongs
    continues: int = 0
    counts: tuple[int, ...] = ()

    @property
    def position(self) -> BinlogPosition:
        return BinlogPosition.parse(self.low.position)

    def chunk_path(self, table: int, chunk: int) -> Path:
        return self.folder / f"{table}.{chunk}.rows"

    def chunk_counts(self) -> list[int] | None:
        """Return the number of chunks of each table. Return None if the snapshot is not completely read yet.

        Raises RelayLogError 1594 if complete.json is damaged.
        """
        path = self.folder / "complete.json"
        if (found := stored_json(path)) is None:
            return None
        with _content_of(path):
            return [*all_of(int, found)]

    def claim(self) -> None:
        stored = [{"model": t.model.to_json(), "database": asdict(t.database), "create": t.create} for t in self.tables]
        more = {"server_id": self.server_id, "continues": self.continues, "counts": self.counts}
        _write(self.folder / "claim.json", {"low": asdict(self.low), "tables": stored, **more})

    def keeps(self, table: int) -> bool:
        """True if this snapshot reuses rows of the table from the snapshot that it continues."""
        return bool(self.counts and self.counts[table])

    def tell_read(self, parts: Sequence[Part]) -> None:
        text = json.dumps([[part.count, part.upto, part.rows] for part in parts])
        replace_file(self.folder / "read.json", text.encode(), durable=False)

    def parts(self) -> list[Part]:
        """Return the part of each table that was read so far. Return [] if read.json is missing.

        Raises RelayLogError 1594 if read.json is damaged.
        """
        path = self.folder / "read.json"
        found, parts = stored_json(path) or [], []
        with _content_of(path):
            for count, upto, rows in found:
                all_of(int, (count, rows))
                parts.append(Part(count=count, upto=all_of(str, upto) if upto is not None else None, rows=rows))
        return parts

    def complete(self, counts: list[int]) -> None:
        _write(self.folder / "complete.json", counts)

    @property
    def is_claimed(self) -> bool:
        return (self.folder / "claim.json").exists()

    def remove(self) -> None:
        """Remove the snapshot's folder. The claim is removed first, so that a crash leaves no incomplete snapshot."""
        (self.folder / "claim.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class CloneFolder:
    def __init__(self, channel: Channel) -> None:
        self.path, self._plan = channel.clone_folder, channel.clone_plan

    def read_plan(self) -> Plan:
        """Return the table groups that are not copied yet: the number of each group → the names of its tables.

        The result is {} if all tables are copied, or if plan.json is damaged.
        """
        stored = stored_json(self._plan)
        with suppress(AttributeError, TypeError, ValueError):
            return {int(table_group): [(str(d), str(t)) for d, t in tables] for table_group, tables in stored.items()}
        return {}

    def write_plan(self, plan: Plan) -> None:
        if plan:
            private_folder(self.path)
            _write(self._plan, plan)
        else:
            shutil.rmtree(self.path, ignore_errors=True)

    def hold(self) -> None:
        """Make the applier wait until `let_go` is called, but at most for HOLD_S seconds. May be called again."""
        replace_file(self.path / "hold", b"", durable=False)

    def let_go(self) -> None:
        (self.path / "hold").unlink(missing_ok=True)

    @property
    def is_held(self) -> bool:
        try:
            return time.time() - (self.path / "hold").stat().st_mtime < HOLD_S
        except FileNotFoundError:
            return False

    def begin(
        self, table_group: int, epoch: int, low: SnapshotPosition, tables: list[CopiedTable], server_id: int = 0
    ) -> StoredSnapshot:
        """Create the folder of a new snapshot, and return the snapshot.

        The applier ignores the snapshot until `StoredSnapshot.claim` is called. `table_group`: the number of the table
        group. `server_id`: the server id of the source to whose log the position `low` belongs.
        """
        folder = private_folder(self.path / f"{table_group}-{epoch}")
        return StoredSnapshot(
            folder=folder, table_group=table_group, epoch=epoch, low=low, tables=tuple(tables), server_id=server_id
        )

    def unfinished(self, table_group: int) -> StoredSnapshot | None:
        """Return the newest snapshot of the table group with this number, if some of its chunks are not read yet.

        Return None if the newest snapshot is completely read, or if there is no snapshot.
        """
        found = max(
            (one for one in self.snapshots() if one.table_group == table_group), key=lambda one: one.epoch, default=None
        )
        return found if found is not None and found.chunk_counts() is None else None

    def forget_unfinished(self, table_group: int) -> None:
        """Remove the unfinished snapshot of the table group with this number, and all snapshots that it continues."""
        if self.unfinished(table_group) is not None:
            for found in self.snapshots():
                if found.table_group == table_group and found.chunk_counts() is None:
                    found.remove()

    def sweep(self) -> None:
        """Remove the folders without a claim.json.

        An earlier cloner opened these snapshots, but ended before it passed them on to the applier.
        """
        for path in self.path.glob("*/"):
            if not (path / "claim.json").exists():
                StoredSnapshot(folder=path, table_group=0, epoch=0, low=SnapshotPosition(), tables=()).remove()

    def snapshots(self) -> list[StoredSnapshot]:
        """Return the snapshots that have a claim.json, ordered by position.

        Raises RelayLogError 1594 if a claim.json is damaged.
        """
        return sorted(self._snapshots(), key=lambda found: (found.position.order_key(), found.epoch))

    def _snapshots(self) -> Iterator[StoredSnapshot]:
        for path in self.path.glob("*/claim.json"):
            if (stored := stored_json(path)) is not None:
                with _content_of(path):
                    found = _claimed(path.parent, stored)
                yield found

    def size(self) -> int:
        """Return the total bytes of the chunk files that are not loaded yet."""
        return sum(map(size_of, self.path.glob("*/*.rows")))


def _claimed(folder: Path, stored: Any) -> StoredSnapshot:
    table_group, _, epoch = folder.name.partition("-")
    tables = [
        CopiedTable(TableModel.from_json(t["model"]), DatabaseModel(**t["database"]), *all_of(str, (t["create"],)))
        for t in stored["tables"]
    ]
    server_id, continues = all_of(int, (stored.get("server_id", 0), stored.get("continues", 0)))
    counts = all_of(int, stored.get("counts", ()))
    if counts and len(counts) != len(tables):
        raise ValueError(f"{len(counts)} counts for {len(tables)} tables")
    low = SnapshotPosition.from_json(stored["low"])
    found = StoredSnapshot(
        folder=folder,
        table_group=int(table_group),
        epoch=int(epoch),
        low=low,
        tables=tuple(tables),
        server_id=server_id,
        continues=continues,
        counts=counts,
    )
    found.position.order_key()  # raises an error if it is not a position
    return found


@contextmanager
def _content_of(path: Path) -> Iterator[None]:
    """Convert an error of the `with` block, which reads values from the JSON file `path`, into RelayLogError 1594.

    The message of RelayLogError names the file.
    """
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RplError) as error:
        raise RelayLogError(
            f"{path} is not in the form that rplctl writes: {error}",
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            hint="to begin the copy of the missing tables again, run: rplctl stop; rplctl clone --cancel --yes; "
            "rplctl clone; rplctl start",
        ) from error


def _write(path: Path, content: object) -> None:
    replace_file(path, json.dumps(content).encode())
