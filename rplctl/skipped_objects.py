"""The names of the source's triggers, routines, events and views that the target lacks, because DDL was skipped.

When the applier skips a statement, it adds the names to a file, and a line to the history. Only then does it commit the
position after the statement. So a crash loses no name, but may repeat a line in the history. `rplctl check` counts the
names; no decision depends on them. The file has one JSON object per change of the set, and is synced.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from rplctl.channel import Channel
from rplctl.durable import private_folder, replace_file, sync, write_all
from rplctl.errors import file_errors
from rplctl.history import note_event
from rplctl.plain_file import closing_descriptor, open_plain, read_if_there

SkippedObject: TypeAlias = tuple[str, str, str]  # kind, database, name

_SPARE_LINES = 1000  # lines of objects that were dropped later; a file with more such lines is rewritten


@dataclass(frozen=True, slots=True)
class SkippedObjects:
    """The set of one channel's skipped objects, stored in a file.

    All methods raise RplError if the file cannot be read or written.
    """

    channel: Channel

    def read(self) -> set[SkippedObject]:
        """Return the objects in the set. A line that a crash has torn is ignored."""
        return self._read()[0]

    def add(self, objects: Iterable[SkippedObject]) -> None:
        """Add objects to the set, and write no line to the history."""
        found, _ = known = self._read()
        self._change(known, {*objects} - found, is_gone=False)

    def note(
        self, kind: str, names: Iterable[tuple[str, str]], *, is_drop: bool, text: str, position: str = ""
    ) -> None:
        """Note a skipped statement: add or remove its objects, and write `text` to the history.

        `kind`: for example `view`. `names`: database and name of each object. `is_drop`: True if the statement drops
        the objects. If the set does not change, nothing is written.
        """
        found, _ = known = self._read()
        objects = {(kind, database, name) for database, name in names}
        changed = objects & found if is_drop else objects - found
        if not changed:
            return
        channel = self.channel
        note_event(channel.datadir, channel.name, "not-carried-out", text, thread="applier", position=position)
        self._change(known, changed, is_gone=is_drop)

    def left_out(self, parts: Iterable[str], position: str) -> None:
        """Write one line to the history for each part of a table that the target does not get.

        `parts`: a text about each of these parts. `position`: the position of the statement.
        """
        for text in parts:
            note_event(
                self.channel.datadir, self.channel.name, "not-carried-out", text, thread="applier", position=position
            )

    def forget(self, database: str) -> None:
        """Remove the objects of a database from the set, because the database was dropped."""
        found, _ = known = self._read()
        self._change(known, {each for each in found if each[1] == database}, is_gone=True)

    def clear(self) -> None:
        """Remove all objects from the set, because the channel has another source."""
        self.channel.skipped_objects_path.unlink(missing_ok=True)

    def _read(self) -> tuple[set[SkippedObject], int]:
        """Return the set, and the number of lines in the file."""
        found: set[SkippedObject] = set()
        with file_errors(self.channel.name):
            lines = read_if_there(self.channel.skipped_objects_path, follow=False).splitlines()
        for line in lines:
            try:
                stored = json.loads(line)
                change = (str(stored["kind"]), str(stored["database"]), str(stored["name"]))
                (found.discard if stored["gone"] else found.add)(change)
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
        return found, len(lines)

    def _change(self, known: tuple[set[SkippedObject], int], changed: set[SkippedObject], *, is_gone: bool) -> None:
        found, lines = known
        if not changed:
            return
        path = self.channel.skipped_objects_path
        with file_errors(self.channel.name):
            private_folder(path.parent)
            if lines + len(changed) > 2 * len(found) + _SPARE_LINES:
                after = found - changed if is_gone else found | changed
                return replace_file(path, _lines(after, is_gone=False))
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            with closing_descriptor(open_plain(path, flags, follow=False)) as descriptor:
                write_all(descriptor, b"\n" + _lines(changed, is_gone=is_gone))  # "\n" ends a torn line
                sync(descriptor, path.name)


def in_words(objects: Iterable[SkippedObject]) -> str:
    """Return the number of objects of each kind, the most frequent first: `4 triggers, 1 view`."""
    counts = Counter(kind for kind, _, _ in sorted(objects)).most_common()
    return ", ".join(f"{count} {kind if count == 1 else _plural(kind)}" for kind, count in counts)


def _plural(kind: str) -> str:
    return f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"


def _lines(objects: Iterable[SkippedObject], *, is_gone: bool) -> bytes:
    records = (
        {"kind": kind, "database": database, "name": name, "gone": is_gone} for kind, database, name in sorted(objects)
    )
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()
