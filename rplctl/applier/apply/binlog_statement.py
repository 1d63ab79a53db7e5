"""A rows event for MySQL's BINLOG statement, cut where the server's own applier would take one row for another.

Without a usable key MySQL looks an event's rows up in a hash that knows nothing of BLOB, JSON and GEOMETRY: of rows
alike in all else it changes the wrong one, or finds none; and one that an event changes twice keeps the first BLOB (a
MySQL 9.7 replica does so without a word). Invariant: the parts hold the event's rows, each once, in its order; within a
part each row, as it was, differs in what the hash knows from all before it, as they were and as they became.
"""

from __future__ import annotations

from collections.abc import Iterator

from rplctl.applier.decode.row_stream import EventRun
from rplctl.applier.decode.table_shape import formats_of
from rplctl.event.images import NOT_IN_IMAGE, Images, walk_images
from rplctl.event.rows import INSERT
from rplctl.event.table_map import COUNTED, ColumnType, TableMap, of_trait
from rplctl.schema.model import TableModel
from rplctl.target.base import key_of

_NOT_HASHED = of_trait(COUNTED)


def split_by_kind(piece: EventRun, table_map: TableMap, model: TableModel) -> Iterator[bytes]:
    """The last event of `piece`, a rows event of `table_map`: whole, or in parts that end with its checksum's bytes."""
    raw, events = piece.event(len(piece.types) - 1), piece.rows_events()
    if events.kind[0] == INSERT:
        return iter([raw])
    formats = formats_of(table_map, model.as_known_by(table_map.column_count))
    images = walk_images(events, formats)
    key = key_of(model)
    if len(images.ops) == 1 or (key and all(images.cell_start[0, column] != NOT_IN_IMAGE for column in key)):
        return iter([raw])
    hashed = [number for number, one in enumerate(formats) if one.real_type not in _NOT_HASHED]
    json_columns = sum(one.type_code == ColumnType.JSON for one in formats)
    begin, end = int(events.data_start[0]), int(events.data_end[0])
    starts = _row_starts(images, begin, json_columns if events.partial_json[0] else -1)
    cuts = [begin, *(starts[row] for row in _alike(images, hashed)), end]
    start = int(piece.starts[-1])
    head, tail = raw[: begin - start], raw[end - start :]
    return (head + raw[a - start : b - start] + tail for a, b in zip(cuts, cuts[1:], strict=False))


def _alike(images: Images, hashed: list[int]) -> Iterator[int]:
    """Rows that are, as they were, like another before or after its change, since the row yielded before."""
    seen: set[tuple[bytes | int, ...]] = set()
    for row, (before, after) in enumerate(zip(images.before.tolist(), images.after.tolist(), strict=True)):
        values = _values(images, before, hashed)
        if values in seen:
            seen.clear()
            yield row
        seen.add(values)
        if after >= 0:  # what an image lacks has not changed
            changed = zip(_values(images, after, hashed), values, strict=True)
            seen.add(tuple(old if new == NOT_IN_IMAGE else new for new, old in changed))


def _values(images: Images, image: int, columns: list[int]) -> tuple[bytes | int, ...]:
    """Cells, or what stands for one that is not there."""
    places = zip(images.cell_start[image, columns].tolist(), images.cell_length[image, columns].tolist(), strict=True)
    return tuple(images.data[at : at + length].tobytes() if at >= 0 else at for at, length in places)


def _row_starts(images: Images, begin: int, json_columns: int) -> list[int]:
    """Offset of each row; `json_columns` of the table where after images say how theirs are written, else -1."""
    starts, at = [], begin
    for before, after in zip(images.before.tolist(), images.after.tolist(), strict=True):
        starts.append(at)
        at = _end_of(images, before, at)
        if after >= 0:
            if json_columns >= 0:
                at += 1 + (int(images.data[at]) & 1) * ((json_columns + 7) // 8)
            at = _end_of(images, after, at)
    return starts


def _end_of(images: Images, image: int, at: int) -> int:
    """Return where an image ends whose NULL bits begin at `at`."""
    places = images.cell_start[image]
    present = places >= 0
    if present.any():
        return int((places + images.cell_length[image])[present].max())
    return at + (int((places != NOT_IN_IMAGE).sum()) + 7) // 8
