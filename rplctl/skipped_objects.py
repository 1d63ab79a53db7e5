"""The names of the source's triggers, routines, events and views that the target lacks.

The applier adds a name and a line in the history before it commits the position after the statement. So a crash may
repeat a line but loses no name. `check` counts the names; no decision depends on them. The file has one JSON object per
change of the set, and is synced.
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

_SPARE_LINES = 1000  # lines of dropped objects; with more, the file is rewritten


@dataclass(frozen=True, slots=True)
class SkippedObjects:
    """The channel's set of skipped objects. Methods raise RplError if the system rejects the file."""

    channel: Channel

    def read(self) -> set[SkippedObject]:
        """Return the objects that were skipped and not dropped since. A torn line is ignored."""
        return self._read()[0]

    def add(self, objects: Iterable[SkippedObject]) -> None:
        """Add objects without a line in the history."""
        found, _ = known = self._read()
        self._change(known, {*objects} - found, is_gone=False)

    def note(
        self, kind: str, names: Iterable[tuple[str, str]], *, is_drop: bool, text: str, position: str = ""
    ) -> None:
        """Add the objects of a statement, or remove those that it drops, with a line in the history.

        DROP of an object that is not in the set changes nothing, and is not in the history.
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
        """Write lines to the history about parts of a table that the target does not get."""
        for text in parts:
            note_event(
                self.channel.datadir, self.channel.name, "not-carried-out", text, thread="applier", position=position
            )

    def forget(self, database: str) -> None:
        """Remove the objects of a dropped database."""
        found, _ = known = self._read()
        self._change(known, {each for each in found if each[1] == database}, is_gone=True)

    def clear(self) -> None:
        """Remove the set, because the channel has another source."""
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
