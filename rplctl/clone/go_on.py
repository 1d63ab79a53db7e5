"""Finds the part of an unfinished snapshot that a new snapshot reuses, after a killed cloner or an unavailable source.

The unfinished snapshot has chunks that were read at the position L. The new snapshot is at a later position L'. The
table at L' is put together from three parts:

1. The chunks that were read at L are loaded.
2. The rows that the log changed between L and L' are deleted. If their keys are in the part that was read, the rows
   are inserted as they are at L'.
3. The rest of the table is read at L'.

Invariant: the keys to delete include the keys of before images and after images. If these keys may be incomplete, or
are too many, the table is read from its first key on. If another table has got the name of the table since L, no chunk
is reused. The log then has a RENAME between L and L'. Such a statement is not a plain change of rows, so the keys count
as incomplete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rplctl.clone.changed_keys import ChangedKeys, Unsure, changed_keys
from rplctl.clone.chunk_file import digest_of, read_chunk
from rplctl.clone.folder import Part, StoredSnapshot
from rplctl.errors import RelayLogError
from rplctl.info import RelayLogInfo
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.received import Received

_PATIENCE_S: Final = 10.0  # the longest wait for the log between the positions
_FEW: Final = 1000  # the limit for changed keys of a table, or a tenth of the rows that were read if that is more


def taken_over(
    old: StoredSnapshot, new: StoredSnapshot, log: Iterable[RelayGroups], kind: str, *, folds_names: bool
) -> tuple[list[Part | None], list[ChangedKeys]]:
    """Return the parts of the tables in the `old` snapshot that the `new` one reuses, and the keys to read again.

    The first list has the part of each table; None if nothing is reused. The second list has the keys that the log
    changed between the snapshots, as targets of `kind` store them. `log`: the event groups that `between` yields.
    `folds_names`: True if the source's names are case-insensitive. Raises Unsure if nothing can be reused, and
    SourceError if the log does not arrive.
    """
    parts = _parts(old)
    names = [[table.name for table in found.tables] for found in (old, new)]
    if old.server_id != new.server_id or names[0] != names[1] or len(parts) != len(new.tables):
        raise Unsure("the source has changed, or its tables have")
    models = [
        now.model
        for part, was, now in zip(parts, old.tables, new.tables, strict=True)
        if part.count and was.model == now.model and digest_of(was.create) == digest_of(now.create)
    ]
    try:
        found = changed_keys(log, old.position, new.position, models, kind, folds_names=folds_names)
    except RelayLogError as error:
        raise Unsure(error.message) from error
    kept: list[Part | None] = [
        part if table.name in found and len(found[table.name]) <= max(_FEW, part.rows // 10) else None
        for part, table in zip(parts, new.tables, strict=True)
    ]
    if all(part is None for part in kept):
        raise Unsure("too many rows have changed meanwhile, or rows whose keys are unknown")
    return kept, [found.get(table.name, {}) for table in new.tables]


def _parts(old: StoredSnapshot) -> list[Part]:
    """Return the part of each table that the snapshot has read.

    This includes a last chunk whose file is complete, although a crash came before it was recorded in read.json.
    """
    parts = old.parts()
    for number, part in enumerate(parts):
        path = old.chunk_path(number, part.count)
        if not part.is_whole and path.exists():
            try:
                file = read_chunk(path)
            except (OSError, RelayLogError):
                continue
            parts[number] = Part(count=part.count + 1, upto=file.head.upto, rows=part.rows + file.rows)
    return parts


def between(
    old: StoredSnapshot, new: StoredSnapshot, received: Received, applied: RelayLogInfo, wait: Callable[[float], bool]
) -> Iterator[RelayGroups]:
    """Yield the event groups of the relay log between the positions of both snapshots, and perhaps some more.

    `received`: a reader of the relay log that has not begun. `applied`: the applier's position. `wait` waits for the
    given seconds, and returns True if the copy must end. Raises Unsure if the relay log lacks a part between the
    positions, and SourceError if nothing has arrived for too long.
    """
    if not received.begin_at(applied) or old.position.is_before(received.position):
        raise Unsure(f"the relay log begins at {received.position}, after {old.position}")
    for groups in received.until(new.position, _PATIENCE_S, wait):
        if received.place is None:
            raise Unsure("the log of another source is between the snapshots")
        yield groups
    if received.place is None or received.place.is_before(new.position):
        raise Unsure(f"the relay log ends before {new.position}")
