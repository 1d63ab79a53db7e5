"""The part of an unfinished snapshot that a new snapshot reuses. Its reader was killed, or its source was unavailable.

A table's chunks that were read at L stay. Behind them the rows that the log touched in (L, L'] go, and come as they are
at L' as far as their keys lie in what was read; the rest of the table is read at L'. So the table is as at L'.
Invariant: K, the keys that go, has those of before- and of after-images; where it is not surely all of them, or is
large, the table is read from its first key on. A chunk that was read under a name which another table took meanwhile is
never taken over: the statement that did it lies in (L, L'], and is no plain change of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rplctl.clone.changed_keys import ChangedKeys, Unsure, changed_keys
from rplctl.clone.chunk_file import digest_of, read_chunk
from rplctl.clone.folder import Part, Snapshot
from rplctl.clone.received import Received
from rplctl.errors import RelayLogError
from rplctl.info import RelayLogInfo
from rplctl.relay_log.reader import RelayGroups

_PATIENCE_S: Final = 10.0  # for the receiver to bring it
_FEW: Final = 1000  # keys that are worth it in any case; else a tenth of what was read


def taken_over(
    old: Snapshot, new: Snapshot, log: Iterable[RelayGroups], kind: str, *, folds_names: bool
) -> tuple[list[Part | None], list[ChangedKeys]]:
    """Return the part of each table that is reused (None: nothing), and its changed keys as that kind of target reads
    keys. `log`: the groups `between` the snapshots; `folds_names`: see `changed_keys`. Raises Unsure if no table has
    such a part, and SourceError if the log does not arrive.
    """
    parts = _parts(old)
    names = [[table.name for table in found.tables] for found in (old, new)]
    if old.server_id != new.server_id or names[0] != names[1] or len(parts) != len(new.tables):
        raise Unsure("the source is another, or has other tables")
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
        raise Unsure("too much was changed meanwhile, or not known by its keys")
    return kept, [found.get(table.name, {}) for table in new.tables]


def _parts(old: Snapshot) -> list[Part]:
    """Return the parts, with a last chunk whose file has its name but is not recorded yet."""
    parts = old.parts()
    for number, part in enumerate(parts):
        path = old.chunk_path(number, part.count)
        if not part.is_whole and path.exists():
            try:
                file = read_chunk(path)
            except (OSError, RelayLogError):
                continue
            parts[number] = Part(part.count + 1, file.head.upto, part.rows + file.rows)
    return parts


def between(
    old: Snapshot, new: Snapshot, received: Received, applied: RelayLogInfo, wait: Callable[[float], bool]
) -> Iterator[RelayGroups]:
    """All of the log, and some more on either side. `received` has begun nothing. Raises Unsure, SourceError."""
    if not received.begin_at(applied) or old.position.is_before(received.position):
        raise Unsure(f"the relay log begins at {received.position}, behind {old.position}")
    for groups in received.until(new.position, _PATIENCE_S, wait):
        if received.place is None:
            raise Unsure("another source's log lies between")
        yield groups
    if received.place is None or received.place.is_before(new.position):
        raise Unsure(f"the relay log ends before {new.position}")
