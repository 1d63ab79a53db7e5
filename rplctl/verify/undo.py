"""Writes the undo of a repair: SQL that reverts the changes of a transaction.

Each transaction has a file. The files must be executed in the order of their names. The file of the last transaction
has the first name, so the last transaction is undone first. Invariant: before a transaction changes the first row, its
file is complete, durable, and readable only by the file's owner. The file may be executed more than once. If its
transaction was not committed, executing the file changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rplctl.durable import private_folder, remove_file, replace_file
from rplctl.sql_text import Sql, joined, written
from rplctl.target.base import Target
from rplctl.target.undo import UndoSql
from rplctl.verify.key_values import Key
from rplctl.verify.pair import Pair

_MOST: Final = 999_999_999


class NoUndo(Exception):
    """The error for a row that undo SQL cannot restore, with the row's key and the reason."""

    def __init__(self, key: Key, why: str) -> None:
        super().__init__(why)
        self.key, self.why = key, why


class UndoFolder:
    """The folder with the undo files of one repair. The first `write` creates the folder `path`."""

    def __init__(self, path: Path) -> None:
        self.path, self._count = path, 0

    @property
    def is_used(self) -> bool:
        return self._count > 0

    def write(self, text: str) -> Path:
        """Write the undo SQL of a transaction to a new file. Raises OSError if the file cannot be written."""
        self._count += 1
        path = private_folder(self.path) / f"{_MOST - self._count}.sql"
        replace_file(path, text.encode())
        return path

    def drop(self, path: Path) -> None:
        """Remove the undo file of a transaction that was rolled back."""
        remove_file(path)


@dataclass(frozen=True, slots=True)
class UndoText:
    """The writer of the undo SQL for one transaction of a repair, which changes one table.

    In its methods, a key has the target's values of the columns in `Pair.key`.
    """

    sql: UndoSql
    target: Target
    pair: Pair

    def of(self, inserted: Iterable[Key], deleted: Iterable[Key], updated: Iterable[Key]) -> str:
        """Return the SQL that reverts the inserts, deletes and updates of the rows with these keys.

        It must be called before the changes, because it reads the present rows. `deleted` also has the keys of rows
        that will be deleted and inserted again. Raises NoUndo if a row cannot be restored, and TargetError if the
        target reports an error.
        """
        name = self.sql.table(self.pair.target)
        literals = self.sql.literals(self.target, self.pair.target)
        gone = [f"DELETE FROM {name} WHERE {self._where(key)};\n" for key in inserted]
        back, changed = [], []
        for keys, is_deleted in ((deleted, True), (updated, False)):
            for key in keys:
                row = self._row(key, literals)
                if is_deleted:
                    gone.append(f"DELETE FROM {name} WHERE {self._where(key)};\n")
                    back.append(f"INSERT INTO {name} ({', '.join(row)}) VALUES ({', '.join(row.values())});\n")
                else:
                    sets = ", ".join(f"{column} = {value}" for column, value in row.items())
                    changed.append(f"UPDATE {name} SET {sets} WHERE {self._where(key)};\n")
        return "".join((self.sql.begin, *gone, *changed, *back, self.sql.end))

    def _where(self, key: Key) -> Sql:
        columns = [self.pair.target.columns[c] for c in self.pair.key]
        return joined(
            " AND ",
            (
                written("{} = {}", self.sql.column(column), self.sql.literal(value, column))
                for column, value in zip(columns, key, strict=True)
            ),
        )

    def _row(self, key: Key, literals: Mapping[Sql, Sql]) -> dict[Sql, str]:
        name = self.sql.table(self.pair.target)
        values = joined(", ", literals.values())
        found = self.sql.rows(self.target, written("SELECT {} FROM {} WHERE {}", values, name, self._where(key)))
        if len(found) != 1:
            raise NoUndo(key, "several rows have this key")
        if None in found[0]:  # the target returns NULL for a result that exceeds max_allowed_packet
            raise NoUndo(key, "the row is too large for the undo SQL")
        return dict(zip(literals, found[0], strict=True))
