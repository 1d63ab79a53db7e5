"""Changes that the open transaction makes to one table of a mirror: the net change of each key, and what it expects.

Invariant (design D2): nothing is upserted. An entry knows whether its key must be in the table's files; within the
transaction each change is checked here, against the files when they are rewritten (`rewrite.py`).
"""

from __future__ import annotations

from typing import Final

from rplctl.target.base import CountMismatch, Row, RowSet, TableChunk, Value

NOT_GIVEN: Final = b"\0rplctl: as it is in the file"  # of a column; the very object, no value that is equal to it


class Overlay:
    """`entries`: key → (is in the files, the row from now on: a value for each column; None where it goes).

    Rows are of the table's width; columns that an update does not name are NOT_GIVEN.
    """

    def __init__(self, key: tuple[int, ...], width: int) -> None:
        self.key = key
        self.width = width
        self.entries: dict[Row, tuple[bool, Row | None]] = {}

    def copy(self) -> Overlay:
        made = Overlay(self.key, self.width)
        made.entries = dict(self.entries)
        return made

    def take(self, chunk: TableChunk) -> None:
        """All deletes, then updates, then inserts. Raises CountMismatch."""
        for key in chunk.absent:
            self.set(key, None, expects=False)
        for key in chunk.deletes:
            self.set(key, None, expects=True)
        for update in chunk.updates:
            count = len(update.columns)
            for row in update.rows:
                self.update(row[count:], RowSet(update.columns, [row[:count]]))
        for insert in chunk.inserts:
            for row in insert.rows:
                whole = self.whole(RowSet(insert.columns, [row]))
                self.set(tuple(whole[c] for c in self.key), whole, expects=False)

    def is_there(self, key: Row) -> bool | None:
        """None: only the files know."""
        found = self.entries.get(key)
        return None if found is None else found[1] is not None

    def set(self, key: Row, row: Row | None, *, expects: bool) -> None:
        """`expects`: the key is there before it."""
        found = self.entries.get(key)
        if found is None:
            self.entries[key] = (expects, row)
        elif (found[1] is not None) is not expects:
            raise CountMismatch(f"key {key}: {'missing' if expects else 'there already'}")
        else:
            self.entries[key] = (found[0], row)

    def update(self, key: Row, after: RowSet) -> None:
        """A row whose key moves must be whole."""
        found = self.entries.get(key)
        row = self.whole(after, None if found is None else found[1], key)
        moved = tuple(row[c] for c in self.key)
        if moved == key:
            self.set(key, row, expects=True)
            return
        if any(value is NOT_GIVEN for value in row):
            raise CountMismatch("a row moves to another key, and its image is partial")
        self.set(key, None, expects=True)
        self.set(moved, row, expects=False)

    def whole(self, part: RowSet, base: Row | None = None, key: Row = ()) -> Row:
        """A row of the table's width: values of the part, else of the row before, else NOT_GIVEN."""
        if part.columns == tuple(range(self.width)):
            return part.rows[0]
        row: list[Value] = list(base) if base is not None else [NOT_GIVEN] * self.width
        for column, value in zip(self.key, key, strict=False):
            row[column] = value
        for column, value in zip(part.columns, part.rows[0], strict=True):
            row[column] = value
        return tuple(row)
