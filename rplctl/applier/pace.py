"""How much relay log one batch takes: little at first, so that rows appear at once; more while the applier is behind.

Invariant: a batch is expected to hold no more row changes than fit into memory decoded, whatever their size, and no
more bytes than `max_batch_bytes`.
"""

from __future__ import annotations

FIRST_BYTES_AS_TEXT, CHANGES_AS_TEXT = 64 << 20, 1_000_000  # of a target that takes them encoded
FIRST_BYTES_AS_VALUES, CHANGES_AS_VALUES = 16 << 20, 200_000  # as Python's objects
GROWTH = 16  # of a batch that was full


class Pace:
    def __init__(self, first_bytes: int, most_bytes: int, most_changes: int) -> None:
        self._first_bytes = min(first_bytes, most_bytes)
        self._most_bytes = most_bytes
        self._most_changes = most_changes
        self.batch_bytes = self._first_bytes

    @classmethod
    def as_text(cls, most_bytes: int) -> Pace:
        return cls(FIRST_BYTES_AS_TEXT, most_bytes, CHANGES_AS_TEXT)

    @classmethod
    def as_values(cls, most_bytes: int) -> Pace:
        return cls(FIRST_BYTES_AS_VALUES, most_bytes, CHANGES_AS_VALUES)

    def decoded(self, size: int, changes: int) -> None:
        """A batch of `size` bytes held that many row changes. Only a full one says that there is more to come."""
        if 2 * size < self.batch_bytes:
            return
        fitting = self._most_bytes if not changes else size * self._most_changes // changes
        larger = min(GROWTH * self.batch_bytes, fitting, self._most_bytes)
        self.batch_bytes = max(larger, self._first_bytes)

    def job_bytes(self, size: int) -> int:
        """How much of a range of `size` bytes is decoded at a time; all of it, if it is not far too large."""
        return size if 2 * size <= 3 * self.batch_bytes else self.batch_bytes
