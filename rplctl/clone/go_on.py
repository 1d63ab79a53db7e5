"""Finds the part of an unfinished snapshot that a new snapshot reuses, after a killed cloner or an unavailable source.

The unfinished snapshot has chunks that were read at the position L; the new snapshot is at L'. The chunks of L are
kept. Then the rows that the log changed in (L, L'] are deleted, and inserted as they are at L' if their keys are in the
part that was read. The rest of the table is read at L', so the result is the table at L'. Invariant: the keys to delete
include those of before and after images. If these keys may be incomplete, or are many, the table is read from its first
key on. A chunk is never reused if another table has taken the name meanwhile: the statement that renamed it is in (L,
L'], and is not a plain change of rows.
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

_PATIENCE_S: Final = 10.0  # for the receiver to fetch the log between the positions
_FEW: Final = 1000  # so many changed keys are always worth it; more must be at most a tenth of the rows read


def taken_over(
    old: StoredSnapshot, new: StoredSnapshot, log: Iterable[RelayGroups], kind: str, *, folds_names: bool
) -> tuple[list[Part | None], list[ChangedKeys]]:
    """Return, for each table, the part of the `old` snapshot that the `new` one reuses (None: nothing), and the keys
    that the log changed in between, as targets of `kind` store them.

    `log`: the groups that `between` yields; `folds_names`: see `changed_keys`. Raises Unsure if nothing can be reused,
    and SourceError if the log does not arrive.
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
    """Return the part of each table that the snapshot has read, with a last chunk whose file is complete but not
    recorded yet.
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
    """Yield the groups of the log between the positions of both snapshots, and perhaps more before and after them. The
    caller passes a `received` that has not begun.

    Raises Unsure if the relay log lacks a part of that log, and SourceError if nothing has arrived for too long.
    """
    if not received.begin_at(applied) or old.position.is_before(received.position):
        raise Unsure(f"the relay log begins at {received.position}, after {old.position}")
    for groups in received.until(new.position, _PATIENCE_S, wait):
        if received.place is None:
            raise Unsure("the log of another source is between the snapshots")
        yield groups
    if received.place is None or received.place.is_before(new.position):
        raise Unsure(f"the relay log ends before {new.position}")
