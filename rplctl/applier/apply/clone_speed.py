"""Computes the speed at which a copy loads rows, as the average of the last half minute, from the clone state."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from typing import Any, Final

from rplctl.own_tables.clones import ClonedTable, CopyState, bytes_left, percent_of

_WINDOW_S: Final = 30.0


class CloneSpeed:
    """The progress of a copy, for the applier's status.

    `moved`: the Unix time at which rows were last loaded, or at which this object was created. `incident`: the text
    about the last failed chunk, or '' after a success.
    """

    def __init__(self) -> None:
        self.moved = time.time()
        self.incident = ""
        self._seen: deque[tuple[float, int, int]] = deque()

    def status(self, rows: Collection[ClonedTable]) -> dict[str, Any]:
        """Return the progress as fields of ThreadStatus (status.py).

        `rows`: the clone state of all tables of the copy.
        """
        size, count = (sum(getattr(row, name) for row in rows) for name in ("Byte_count", "Row_count"))
        now = time.monotonic()
        if not self._seen or self._seen[-1][1:] != (size, count):
            if self._seen:
                self.moved = time.time()
            if self._seen and size < self._seen[-1][1]:  # the copy began again
                self._seen.clear()
            self._seen.append((now, size, count))
        while len(self._seen) > 1 and now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        began, first_size, first_count = self._seen[0]
        seconds = max(now - began, 1.0)
        rate = (size - first_size) / seconds
        done = sum(row.State is CopyState.DONE for row in rows)
        is_over = done == len(rows)
        return {
            "clone_tables": 0 if is_over else len(rows),
            "clone_done": 0 if is_over else done,
            "clone_percent": 0 if is_over else percent_of(rows),
            "clone_rows": 0 if is_over else int((count - first_count) / seconds),
            "clone_bytes": 0 if is_over else int(rate),
            "clone_left": int(bytes_left(rows) / rate) if rate >= 1 and not is_over else None,
            "clone_moved": self.moved,
            "clone_incident": "" if is_over else self.incident,
        }
