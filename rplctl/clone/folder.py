"""Where the two ends of a copy meet: the reading one leaves chunk files here, the loading one takes them away.

    plan.json               the loader's: the families of tables that are not copied yet
    hold                    the reader's, while it opens a snapshot: the applier stands still
    FAMILY-EPOCH/           the reader's: one snapshot of a family (tables that foreign keys link, or a table)
        claim.json          what the tables are there, and L: the applier waits at L for their rows
        TABLE.CHUNK.rows    chunk files, numbered in the order in which they are loaded
        read.json           how far each table is read: where another process goes on
        complete.json       how many chunks each table has: all are here, or loaded

One that goes on with another (`continues`) takes over its tables as far as they are read; chunks are numbered on. That
one is loaded first, and what the log touched between the two places is among the first files of the second, which are
there before its claim is.

Invariant: a file has its name when it is whole, and but for chunk files and read.json durable. A snapshot is worth its
claim: without claim.json nothing of it is loaded any more, and its family is read again. Nothing here is an authority:
the ledger in the target says what is loaded, and all of the folder may be lost.
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
from rplctl.clone.bounds import Bound
from rplctl.clone.chunk_file import Place, all_of
from rplctl.durable import private_folder, replace_file
from rplctl.errors import RelayLogError, RplError
from rplctl.plain_file import size_of, stored_json
from rplctl.position import BinlogPosition
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel
from rplctl.schema.statement import TableName

HOLD_S = 10.0
Plan = dict[int, list[TableName]]  # family → its tables, parents first, by the source's names


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """By the source's names; `create`: what SHOW CREATE TABLE prints."""

    model: TableModel
    database: DatabaseModel
    create: str

    @property
    def name(self) -> TableName:
        return self.model.database, self.model.name


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a table that is read: `count` chunks, up to and including the key `upto`. None: up to the last chunk,
    or no chunk is read.
    """

    count: int = 0
    upto: Bound | None = None
    rows: int = 0

    @property
    def is_whole(self) -> bool:
        return self.count > 0 and self.upto is None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One that was claimed. `tables`: those that the source has there; others of the family are gone. `counts`: how
    many chunks of each table are those of the snapshot `continues`; 0: the table begins here.
    """

    folder: Path
    table_group: int
    epoch: int
    low: Place
    tables: tuple[CopiedTable, ...]
    server_id: int = 0  # of the source whose log has the place
    continues: int = 0
    counts: tuple[int, ...] = ()

    @property
    def position(self) -> BinlogPosition:
        return BinlogPosition.parse(self.low.position)

    def chunk_path(self, table: int, chunk: int) -> Path:
        return self.folder / f"{table}.{chunk}.rows"

    def chunk_counts(self) -> list[int] | None:
        """Return the number of chunks of each table; None while the snapshot is read. Raises RelayLogError 1594 for a
        file of another content.
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
        """True if the table has rows from the snapshot that this one continues."""
        return bool(self.counts and self.counts[table])

    def tell_read(self, parts: Sequence[Part]) -> None:
        text = json.dumps([[part.count, part.upto, part.rows] for part in parts])
        replace_file(self.folder / "read.json", text.encode(), durable=False)

    def parts(self) -> list[Part]:
        """[] when it is not known. Raises RelayLogError 1594 for a file of another content."""
        path = self.folder / "read.json"
        found, parts = stored_json(path) or [], []
        with _content_of(path):
            for count, upto, rows in found:
                all_of(int, (count, rows))
                parts.append(Part(count, all_of(str, upto) if upto is not None else None, rows))
        return parts

    def complete(self, counts: list[int]) -> None:
        _write(self.folder / "complete.json", counts)

    @property
    def is_claimed(self) -> bool:
        return (self.folder / "claim.json").exists()

    def remove(self) -> None:
        """The claim first: what is left of the rest after a crash is no snapshot."""
        (self.folder / "claim.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)


class CloneFolder:
    def __init__(self, channel: Channel) -> None:
        self.path, self._plan = channel.clone_folder, channel.clone_plan

    def read_plan(self) -> Plan:
        """{} when there is nothing to copy, and for junk."""
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
        """The applier is to stand where it is, until a snapshot is claimed or for HOLD_S."""
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
        self, table_group: int, epoch: int, low: Place, tables: list[CopiedTable], server_id: int = 0
    ) -> Snapshot:
        """One that nobody loads before it is claimed."""
        folder = private_folder(self.path / f"{table_group}-{epoch}")
        return Snapshot(folder, table_group, epoch, low, tuple(tables), server_id)

    def unfinished(self, table_group: int) -> Snapshot | None:
        """The newest of a family, if it is not read to its end."""
        found = max(
            (one for one in self.snapshots() if one.table_group == table_group), key=lambda one: one.epoch, default=None
        )
        return found if found is not None and found.chunk_counts() is None else None

    def forget_unfinished(self, table_group: int) -> None:
        """Remove the unfinished snapshot with all snapshots that it continues."""
        if self.unfinished(table_group) is not None:
            for found in self.snapshots():
                if found.table_group == table_group and found.chunk_counts() is None:
                    found.remove()

    def sweep(self) -> None:
        """The reader's: what it had begun and not claimed when it ended."""
        for path in self.path.glob("*/"):
            if not (path / "claim.json").exists():
                Snapshot(path, 0, 0, Place(), ()).remove()

    def snapshots(self) -> list[Snapshot]:
        """Those that are claimed, the earliest place first. Raises RelayLogError 1594 for a claim that is none."""
        return sorted(self._snapshots(), key=lambda found: (found.position.order_key(), found.epoch))

    def _snapshots(self) -> Iterator[Snapshot]:
        for path in self.path.glob("*/claim.json"):
            if (stored := stored_json(path)) is not None:
                with _content_of(path):
                    found = _claimed(path.parent, stored)
                yield found

    def size(self) -> int:
        """Bytes that wait to be loaded."""
        return sum(map(size_of, self.path.glob("*/*.rows")))


def _claimed(folder: Path, stored: Any) -> Snapshot:
    table_group, _, epoch = folder.name.partition("-")
    tables = [
        CopiedTable(TableModel.from_json(t["model"]), DatabaseModel(**t["database"]), *all_of(str, (t["create"],)))
        for t in stored["tables"]
    ]
    server_id, continues = all_of(int, (stored.get("server_id", 0), stored.get("continues", 0)))
    counts = all_of(int, stored.get("counts", ()))
    if counts and len(counts) != len(tables):
        raise ValueError(f"{len(counts)} counts for {len(tables)} tables")
    low = Place.from_json(stored["low"])
    found = Snapshot(folder, int(table_group), int(epoch), low, tuple(tables), server_id, continues, counts)
    found.position.order_key()  # or it is none
    return found


@contextmanager
def _content_of(path: Path) -> Iterator[None]:
    """Raise an error that names the file if the block misses a value in its JSON, or finds one of another type."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RplError) as error:
        raise RelayLogError(
            f"{path} is not in the form that rplctl writes: {error}",
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            hint="to read the missing tables again, run: rplctl stop; rplctl clone --cancel --yes; rplctl clone",
        ) from error


def _write(path: Path, content: object) -> None:
    replace_file(path, json.dumps(content).encode())
