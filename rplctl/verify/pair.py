"""Defines the columns of a table that are compared, and reads its rows on both sides in a comparable form.

Invariant: the columns of both sides are matched as the applier matches them. On a MySQL or MariaDB target, they are
matched by position, and each side may have additional columns at the end. On other targets, they are matched by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rplctl.event.column import ColumnFormat
from rplctl.event.images import Images
from rplctl.event.jit import byte_view, lean_kernel
from rplctl.event.values import decode_column
from rplctl.result_set.columns import SelectedColumn, selected_columns
from rplctl.result_set.rows import read_images
from rplctl.schema.generated import columns_by_time_zone
from rplctl.schema.model import CHARACTER_TYPES, INTEGER_BITS, TEMPORAL_TYPES, Column, TableModel
from rplctl.schema.row_key import key_of
from rplctl.source.select import SelectedRows
from rplctl.sql_text import written
from rplctl.target.registry import compared_rows, value_form
from rplctl.verify.hashes import RAW, SIGNED, UNSIGNED, Hashes, hash_images, hash_values
from rplctl.verify.key_values import Key, why_no_key

_PIECE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A table to compare, with its models on the source and on the target.

    `target`: the model that the applier uses. `kind`: the kind of the target. Only the first `width` columns are
    compared. `key`: the indexes of the columns that identify a row. It is () for a table without a key, and if SQL
    literals cannot find rows by the key. In the second case, `why_keyless` has the reason. `ignored`: the indexes of
    columns that are not compared, because each reader of the source sees other values (columns_by_time_zone).
    """

    source: TableModel
    target: TableModel
    kind: str
    width: int
    key: tuple[int, ...]
    why_keyless: str = ""
    ignored: tuple[int, ...] = ()

    @classmethod
    def of(cls, source: TableModel, target: TableModel, kind: str) -> Pair:
        width = min(len(source.columns), len(target.columns))
        key = key_of(source)
        why = why_no_key([source.columns[c] for c in key])
        if any(c >= width for c in key):
            why = "the target lacks a column of its key"
        key = () if why else key
        pair = cls(source=source, target=target, kind=kind, width=width, key=key, why_keyless=why)
        if pair.is_of_servers:  # both servers compute the column, in the same time zone
            return pair
        return replace(pair, ignored=tuple(c for c in columns_by_time_zone(source) if c < width))

    @property
    def is_of_servers(self) -> bool:
        return compared_rows(self.kind) is None

    @property
    def key_columns(self) -> list[Column]:
        return [self.source.columns[c] for c in self.key]

    @property
    def names(self) -> list[str]:
        """The names of the compared columns on the target."""
        return [column.name for column in self.target.columns[: self.width]]

    @property
    def ignored_names(self) -> tuple[str, ...]:
        """The names on the target of the columns that are not compared."""
        return tuple(self.target.columns[c].name for c in self.ignored)

    def compared(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a row's values for the comparison: None in place of a value that is not compared."""
        return tuple(None if c in self.ignored else value for c, value in enumerate(row)) if self.ignored else row

    def selected(self) -> list[SelectedColumn]:
        """Return the columns to select on the source, in the form that the applier's encoders expect."""
        return selected_columns(self.source.columns[: self.width], takes_numbers=self.is_of_servers)

    def hashed(self, *, of_target: bool) -> tuple[list[SelectedColumn], list[int]]:
        """Return the columns to select for hashing rows of one side, and the mode of hash_images for each column.

        If the target is MySQL or MariaDB, the columns are selected so that equal values have equal bytes. For other
        targets, the rows are hashed as Python objects, so the list of modes is empty.
        """
        if not self.is_of_servers:
            return self.selected(), []
        own, other = (self.target, self.source) if of_target else (self.source, self.target)
        found, modes = [], []
        selected = selected_columns(own.columns[: self.width], takes_numbers=True)
        for column, sister, how in zip(own.columns, other.columns, selected, strict=False):
            is_integer = column.type in INTEGER_BITS and sister.type in INTEGER_BITS
            modes.append((UNSIGNED if column.unsigned else SIGNED) if is_integer else RAW)
            is_text = column.type in CHARACTER_TYPES - {"enum", "set"} and sister.type in CHARACTER_TYPES
            if is_text and column.charset != sister.charset:
                how = replace(how, expression=written("CONVERT({} USING utf8mb4)", how.expression))
            found.append(how)
        return found, modes


@dataclass(frozen=True, slots=True, kw_only=True)
class RowHashes:
    """The hashes of some rows of one side, and the hashes of their keys.

    `keys_of` returns the keys themselves, for the rows with the given indexes. In a table without a key, each key is
    (), and the hash of a key is that of the row.
    """

    keys: Hashes
    rows: Hashes
    keys_of: Callable[[npt.NDArray[np.int64]], list[Key]]


def batch_of_images(images: Images, pair: Pair, columns: Sequence[SelectedColumn], modes: Sequence[int]) -> RowHashes:
    """Return the hashes of row images, if the target is MySQL or MariaDB. `columns`, `modes`: see Pair.hashed."""
    rows = hash_images(images, range(len(columns)), modes)
    keys = hash_images(images, pair.key, [modes[c] for c in pair.key]) if pair.key else rows
    formats = [column.format for column in columns]
    return RowHashes(keys=keys, rows=rows, keys_of=lambda numbers: keys_of_images(images, formats, pair, numbers))


def batch_of_source(images: Images, pair: Pair, columns: Sequence[SelectedColumn], modes: Sequence[int]) -> RowHashes:
    """Return the hashes of rows of the source, computed in the same way as those of the target.

    `columns`, `modes`: see Pair.hashed.
    """
    if pair.is_of_servers:
        return batch_of_images(images, pair, columns, modes)
    return batch_of_values(plain_rows(images, pair, columns), pair)


def batch_of_values(rows: list[tuple[Any, ...]], pair: Pair) -> RowHashes:
    """Return the hashes of rows whose values are Python objects, for targets other than MySQL and MariaDB."""
    hashes = hash_values(map(pair.compared, rows))
    if not pair.key:
        return RowHashes(keys=hashes, rows=hashes, keys_of=lambda numbers: [()] * len(numbers))
    keys = [tuple(row[c] for c in pair.key) for row in rows]
    return RowHashes(
        keys=hash_values(keys), rows=hashes, keys_of=lambda numbers: [keys[number] for number in numbers.tolist()]
    )


def keys_of_images(
    images: Images, formats: Sequence[ColumnFormat], pair: Pair, numbers: npt.NDArray[np.int64]
) -> list[Key]:
    """Return the keys of the row images with the indexes `numbers`. A key has None for a column that the image lacks.

    `formats`: the formats of the image's columns. Without a key, each result is ().
    """
    columns = [plain_column(images, formats[c], pair.source.columns[c], pair.kind, numbers, c) for c in pair.key]
    return list(zip(*columns, strict=True)) if columns else [()] * len(numbers)


def plain_rows(images: Images, pair: Pair, columns: Sequence[SelectedColumn]) -> list[tuple[Any, ...]]:
    """Return rows of the source as Python objects, in the form in which the target returns the same rows."""
    everything = np.arange(len(images.cell_start))
    cells = [
        plain_column(images, how.format, pair.source.columns[c], pair.kind, everything, c)
        for c, how in enumerate(columns)
    ]
    return list(zip(*cells, strict=True))


def plain_column(  # noqa: PLR0913 - the place of the cells, and their type
    images: Images, fmt: ColumnFormat, column: Column, kind: str, numbers: npt.NDArray[np.int64], at: int
) -> list[Any]:
    """Return the values of the column with index `at`, from the row images with the indexes `numbers`.

    The values have the form in which a target of `kind` returns them. Raises RplError for a value that cannot be read.
    """
    values, compared = value_form(kind).stored(decode_column(images, numbers, at, fmt)), compared_rows(kind)
    return values if compared is None else compared.of_source(values, column)


def chosen_rows(images: Images, numbers: npt.NDArray[np.int64]) -> Images:
    """Return only the images of the rows with the indexes `numbers`.

    The result represents these rows as after images of INSERTs, which the applier's encoders can load.
    """
    count = len(numbers)
    starts, lengths = (
        np.ascontiguousarray(images.cell_start[numbers]),
        np.ascontiguousarray(images.cell_length[numbers]),
    )
    ops, before, after = np.ones(count, np.uint8), np.full(count, -1, np.int64), np.arange(count)
    return Images(
        data=images.data,
        cell_start=starts,
        cell_length=lengths,
        is_diff=images.is_diff,
        ops=ops,
        before=before,
        after=after,
        event_of_change=np.zeros(count, np.int32),
    )


def stream_images(rows: SelectedRows, columns: Sequence[SelectedColumn]) -> Iterator[Images]:
    """Yield all rows of a SELECT as row images, about 8 MiB at a time.

    Raises SourceError if the source reports an error, and BinlogFormatError if a row is damaged.
    """
    held = bytearray()
    for piece in rows.pieces():
        held += piece.data
        if len(held) >= _PIECE_BYTES and (end := int(end_of_rows(byte_view(held)))):
            whole = bytes(memoryview(held)[:end])
            del held[:end]
            yield from read_images(whole, columns, rows.wire_types)
    yield from read_images(bytes(held), columns, rows.wire_types)


@lean_kernel
def end_of_rows(packets: Any) -> Any:
    """Return the offset after the last complete row in these packets.

    A packet begins with the length of its data (three bytes) and a sequence number (one byte). A row may continue after
    a packet of 0xFFFFFF bytes.
    """
    at = np.int64(0)
    end = np.int64(0)
    while at + 4 <= len(packets):
        length = np.int64(packets[at]) | np.int64(packets[at + 1]) << 8 | np.int64(packets[at + 2]) << 16
        at += 4 + length
        if at > len(packets):
            break
        if length < 0xFFFFFF:
            end = at
    return end


def why_not(pair: Pair) -> str:
    """Return the reason for which the rows of two tables cannot be compared. Return '' if the rows can be compared."""
    if pair.is_of_servers:
        both = [(column, pair.target.columns[c]) for c, column in zip(pair.key, pair.key_columns, strict=True)]
        odd = [theirs.name for theirs, ours in both if _printed(theirs) != _printed(ours)]
        return f"its key has another type on the target: {', '.join(odd)}" if odd else ""
    theirs, ours = ([column.name for column in model.columns] for model in (pair.source, pair.target))
    return "" if theirs == ours else f"its columns are ({', '.join(theirs)}) on the source, ({', '.join(ours)}) here"


def _printed(column: Column) -> tuple[str, int]:
    """Return a value that is equal for two columns in which a server prints the same value alike."""
    kind = column.type
    if kind in CHARACTER_TYPES:
        return "text", 0
    if kind in INTEGER_BITS:
        return "integer", 0
    if kind in TEMPORAL_TYPES:
        return "moment" if kind in ("datetime", "timestamp") else kind, column.length or 0
    return kind, (column.scale or 0) if kind == "decimal" else (column.length or 1) if kind == "binary" else 0
