"""The net changes that the open transaction makes to one table of a mirror, by key, with the expectation of each
change.

Invariant (design D2): nothing is upserted. An entry records if its key must exist in the table's files. Each change is
checked against earlier changes of the transaction in the overlay, and against the files when they are rewritten
(`rewrite.py`).
"""

from __future__ import annotations

from typing import Final

from rplctl.target.base import CountMismatch, Row, RowSet, TableChunk, Value

NOT_GIVEN: Final = b"\0rplctl: as it is in the file"  # an unchanged column; compared by identity, not by value


class Overlay:
    """The changed rows. `entries`: key → (True if the files must have the key, the new row or None if it is deleted).

    A row has a value for each column of the table; a column that an update does not name is NOT_GIVEN.
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
        """Add the changes of a chunk: the deletes, then the updates, then the inserts. Raises CountMismatch if a
        change contradicts an earlier one.
        """
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
        """Return True if the key exists after the changes in the overlay, False if not, and None if only the files can
        tell.
        """
        found = self.entries.get(key)
        return None if found is None else found[1] is not None

    def set(self, key: Row, row: Row | None, *, expects: bool) -> None:
        """Set the row of a key; None deletes the row. `expects`: True if the key must exist before, False if it must
        not. Raises CountMismatch if an earlier change contradicts this.
        """
        found = self.entries.get(key)
        if found is None:
            self.entries[key] = (expects, row)
        elif (found[1] is not None) is not expects:
            raise CountMismatch(f"key {key} {'is missing' if expects else 'already exists'}")
        else:
            self.entries[key] = (found[0], row)

    def update(self, key: Row, after: RowSet) -> None:
        """Set the new values of a row. If its key changes, the row must be complete. Raises CountMismatch if the
        change contradicts an earlier one.
        """
        found = self.entries.get(key)
        row = self.whole(after, None if found is None else found[1], key)
        moved = tuple(row[c] for c in self.key)
        if moved == key:
            self.set(key, row, expects=True)
            return
        if any(value is NOT_GIVEN for value in row):
            raise CountMismatch("the key of a row changes, and the row image is incomplete")
        self.set(key, None, expects=True)
        self.set(moved, row, expects=False)

    def whole(self, part: RowSet, base: Row | None = None, key: Row = ()) -> Row:
        """Return a row with all columns. A value is from `part`, else from `key`, else from the row `base`, else
        NOT_GIVEN.
        """
        if part.columns == tuple(range(self.width)):
            return part.rows[0]
        row: list[Value] = list(base) if base is not None else [NOT_GIVEN] * self.width
        for column, value in zip(self.key, key, strict=False):
            row[column] = value
        for column, value in zip(part.columns, part.rows[0], strict=True):
            row[column] = value
        return tuple(row)
