"""Adds batches to the tables of a lake of plain Parquet files. The folder of a batch exists completely or not at all.

    FOLDER/DATABASE/TABLE/000000000012-CHANNEL/*.parquet      without -CHANNEL for the default channel

Invariant: the folder of a batch is first filled in rplctl's own folder of the lake. A rename then gives it the final
name, which contains the number of the batch. A rename never replaces a folder with files, so if two writers publish the
same batch, one of them fails. After a crash, a writer may publish a batch again if the folder has the same file names.
All files of a table have the same columns, because readers learn the columns from any file.

A table's folder is listed once, and again only if its mtime shows that another program has changed it. So the cost of a
batch does not grow with the number of batches. The check can miss a rename by another program, directly before the next
rename or in the same tick of the clock. Then the next rename of that program, or the next start, shows the change.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl import mysql_errors as er
from rplctl.durable import rename, replace_file, sync_folder
from rplctl.errors import LockBusy, TargetError
from rplctl.locks import FileLock
from rplctl.plain_file import read_plain
from rplctl.target.delta.place import LakePlace, file_name
from rplctl.target.lake import PendingTable

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetTables:
    """The tables of one lake of plain Parquet files. The class implements `lake.LakeTables` with renames of folders."""

    def __init__(self, place: LakePlace) -> None:
        self._place = place
        self._newest: dict[tuple[str, str], tuple[int, int]] = {}  # folder, app_id → the folder's mtime in ns, batch

    def columns_of(self, schema: pa.Schema) -> str:
        text: str = schema.remove_metadata().to_string(show_field_metadata=False)
        return text

    def fits(self, has: str, wanted: str) -> bool:
        return has == wanted

    def takes(self, folder: str, columns: str) -> bool | None:
        from pyarrow.parquet import read_schema

        with _mapped(self._folder(folder)):
            file = next(self._files(folder), None)
            return None if file is None else self.fits(self.columns_of(read_schema(file)), columns)

    def version(self, folder: str, app_id: str) -> int:
        path, channel = self._folder(folder), _encoded_channel(app_id)
        with _mapped(path):
            changed = _changed(path)
            if self._newest.get((folder, app_id), (None, 0))[0] != changed:
                names = (name.partition("-") for name in _names(path))
                ours = (int(number) for number, _, whose in names if whose == channel and number.isdecimal())
                self._newest[folder, app_id] = changed, max(ours, default=0)
        return self._newest[folder, app_id][1]

    def places(self, folder: str) -> list[tuple[str, str, int, int]]:
        from pyarrow.parquet import read_table

        found: list[tuple[str, str, int, int]] = []
        with _mapped(self._folder(folder)):
            for file in self._files(folder):
                rows = read_table(file, columns=["op", "log", "pos", "row_number"]).to_pylist()
                found += [tuple(row.values()) for row in rows]
        return found

    def claimed(self, app_id: str) -> int:
        with _mapped(path := self._claim_file(app_id)):
            return _claim(path)[0]

    def claim(self, app_id: str, batch: int, mark: int) -> None:
        path = self._claim_file(app_id)
        lock = FileLock(path.with_suffix(".lock"))
        with _mapped(path), lock.held():
            has = _claim(path)
            if has[0] > batch or (has[0] == batch and has[1] != mark):
                raise LockBusy(
                    f"{path}: another rplctl has claimed batch {batch} or a later one, and writes this channel into "
                    "the same lake",
                    hint="stop the other rplctl, or use another --channel name or another folder for a new replica",
                )
            replace_file(path, f"{batch} {mark}\n".encode())

    def _claim_file(self, app_id: str) -> Path:
        return Path(self._place.root) / self._place.own_folder / f"batches{_encoded_channel(app_id)}.last"

    def publish(self, table: PendingTable, app_id: str, batch: int) -> None:
        final = self._folder(table.folder) / _batch_name(batch, app_id)
        with _mapped(final):
            if not final.exists():
                was, newest = _changed(final.parent), self._newest.get((table.folder, app_id), (None, 0))
                self._move_in(table, final)
                if newest[0] == was:
                    self._newest[table.folder, app_id] = _changed(final.parent), max(newest[1], batch)
            if set(_names(final)) != {path for path, _, _ in table.files}:
                raise LockBusy(
                    f"{final} has unexpected files: another rplctl writes this channel into the same lake",
                    hint="stop the other rplctl, or use another --channel name or another folder for a new replica",
                )
            root = Path(self._place.root)
            for parent in final.parents:  # also if the batch exists: its writer may have been killed before the sync
                sync_folder(parent)
                if parent == root:
                    break

    def _move_in(self, table: PendingTable, final: Path) -> None:
        """Move the files of the batch into a new folder, and rename this folder to `final`. After a crash, the method
        can be called again. Raises OSError if a file is missing, is truncated or cannot be renamed.
        """
        making = self._place.written(table.folder, f"{table.files[0][0]}.batch")
        making.mkdir(exist_ok=True)
        for path, size, _ in table.files:
            written = self._place.written(table.folder, path)
            if written.exists():
                rename(written, making / path)
            if (making / path).stat().st_size != size:
                raise FileNotFoundError(errno.ENOENT, "a file of the batch is truncated", path)
        sync_folder(making)
        final.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):  # the batch exists already: `publish` then compares the names of the files
            rename(making, final)

    def _folder(self, folder: str) -> Path:
        return Path(self._place.uri(folder))

    def _files(self, folder: str) -> Iterator[Path]:
        """Yield the paths of a table's files. The generator is lazy, so the first path does not cost a list of all
        batches.
        """
        with suppress(FileNotFoundError), os.scandir(self._folder(folder)) as batches:
            for batch in batches:
                if batch.name[0].isdigit():
                    yield from Path(batch).glob("*.parquet")


def _claim(path: Path) -> tuple[int, int]:
    """Return the number and the writer's mark of the last claimed batch, or (0, 0) if no batch is claimed. `path`: the
    file with the claim. Raises TargetError if the file has another format.
    """
    try:
        number, mark = map(int, read_plain(path).split())
    except FileNotFoundError:
        return 0, 0
    except ValueError as error:
        raise TargetError(
            f"{path} does not have the format that rplctl writes", hint="restore the file from a backup of the lake"
        ) from error
    return number, mark


def _encoded_channel(app_id: str) -> str:
    return file_name(app_id.partition("/")[2])  # an encoded name has no `-`


def _batch_name(batch: int, app_id: str) -> str:
    return f"{batch:012}-{_encoded_channel(app_id)}".rstrip("-")


def _changed(folder: Path) -> int:
    """Return the folder's mtime in nanoseconds since 1970, or 0 if the folder does not exist."""
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []


@contextmanager
def _mapped(path: Path) -> Iterator[None]:
    from pyarrow import ArrowInvalid

    try:
        yield
    except (OSError, ArrowInvalid) as error:
        raise TargetError(
            f"{path}: {error}",
            errno=er.ERROR_ON_WRITE,
            hint="to continue after you have repaired the cause that the error names, run: rplctl start",
        ) from error
