"""Splits a rows event into several events, so that MySQL's BINLOG statement applies it correctly.

Without a usable key, MySQL finds the rows of an event by a hash that ignores BLOB, JSON and GEOMETRY values. If several
rows of the event differ only in these values, MySQL changes the wrong row, or finds none. If an event changes such a
row twice, MySQL loses the BLOB of the second change without an error (MySQL 9.7).

Invariant: the parts contain each row of the event once, in order. In a part, no before image has the same hashed values
as an image of an earlier row.
"""

from __future__ import annotations

from collections.abc import Iterator

from rplctl.decode.row_stream import EventRun
from rplctl.decode.table_shape import formats_of
from rplctl.event.images import NOT_IN_IMAGE, Images, walk_images
from rplctl.event.rows import INSERT
from rplctl.event.table_map import COUNTED, ColumnType, TableMap, of_trait
from rplctl.schema.model import TableModel
from rplctl.schema.row_key import key_of

_NOT_HASHED = of_trait(COUNTED)


def split_by_kind(piece: EventRun, table_map: TableMap, model: TableModel) -> Iterator[bytes]:
    """Yield the rows event at the end of `piece`, whole, or in parts in which MySQL's hash distinguishes all rows.

    Each part ends with the checksum bytes of the whole event, so the caller must not verify them.
    """
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
    """Yield the numbers of the rows at which a new part must begin.

    The before image of such a row has the same hashed values as an image of an earlier row of the part.
    """
    seen: set[tuple[bytes | int, ...]] = set()
    for row, (before, after) in enumerate(zip(images.before.tolist(), images.after.tolist(), strict=True)):
        values = _values(images, before, hashed)
        if values in seen:
            seen.clear()
            yield row
        seen.add(values)
        if after >= 0:  # a column that the after image lacks has not changed
            changed = zip(_values(images, after, hashed), values, strict=True)
            seen.add(tuple(old if new == NOT_IN_IMAGE else new for new, old in changed))


def _values(images: Images, image: int, columns: list[int]) -> tuple[bytes | int, ...]:
    """Return the bytes of the image's cells in these columns.

    A cell without bytes is represented by a negative number, which says whether it is NULL or not in the image.
    """
    places = zip(images.cell_start[image, columns].tolist(), images.cell_length[image, columns].tolist(), strict=True)
    return tuple(images.data[at : at + length].tobytes() if at >= 0 else at for at, length in places)


def _row_starts(images: Images, begin: int, json_columns: int) -> list[int]:
    """Return the offset at which each row of the event begins. `begin`: the offset of the first row.

    `json_columns`: the number of the table's JSON columns if each after image begins with flags for partial JSON, else
    -1.
    """
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
    """Return the offset of the end of an image. `at`: the offset of its NULL bits, with which it begins."""
    places = images.cell_start[image]
    present = places >= 0
    if present.any():
        return int((places + images.cell_length[image])[present].max())
    return at + (int((places != NOT_IN_IMAGE).sum()) + 7) // 8
