"""Collects the net changes that the open transaction makes to one table of a mirror, by key.

Invariant (design D2): nothing is upserted. Each entry records if the key must exist in the table's files. A change is
first checked against earlier changes of the same transaction. Later, when the files are rewritten (`rewrite.py`), it is
checked against the files.
"""

from __future__ import annotations

from typing import Final

from rplctl.target.base import CountMismatch, Row, RowSet, TableChunk, Value

NOT_GIVEN: Final = b"\0rplctl: as it is in the file"  # marks an unchanged column; compared by `is`, not by value


class Overlay:
    """The net changes of one table. `entries`: key → (True if the files must have the key, new row).

    The new row is None for a delete. Otherwise it has a value for each column of the table. Columns that an update does
    not set have the value NOT_GIVEN. `key`: the indexes of the key's columns. `width`: the number of columns.
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
        """Add the net changes of a chunk: first the deletes, then the updates, then the inserts. Raises CountMismatch
        if a change contradicts an earlier change of the transaction.
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
        """True if a row with this key exists after the changes in the overlay, False if the changes have deleted the
        row. None if the overlay has no change of the key, so that the caller must search the files.
        """
        found = self.entries.get(key)
        return None if found is None else found[1] is not None

    def set(self, key: Row, row: Row | None, *, expects: bool) -> None:
        """Set the new row of a key, or delete the row if `row` is None. `expects`: True if the key must exist before
        this change, False if it must be absent. Raises CountMismatch if an earlier change contradicts `expects`.
        """
        found = self.entries.get(key)
        if found is None:
            self.entries[key] = (expects, row)
        elif (found[1] is not None) is not expects:
            raise CountMismatch(f"key {key} {'is missing' if expects else 'already exists'}")
        else:
            self.entries[key] = (found[0], row)

    def update(self, key: Row, after: RowSet) -> None:
        """Set new values in the row with this key. Raises CountMismatch if an earlier change contradicts the update, or
        if the key changes and values of other columns are unknown.
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
        """Return a row with all columns of the table. Each value comes from `part`, else from `key`, else from the
        earlier row `base`. A column without a value gets NOT_GIVEN.
        """
        if part.columns == tuple(range(self.width)):
            return part.rows[0]
        row: list[Value] = list(base) if base is not None else [NOT_GIVEN] * self.width
        for column, value in zip(self.key, key, strict=False):
            row[column] = value
        for column, value in zip(part.columns, part.rows[0], strict=True):
            row[column] = value
        return tuple(row)
