"""Decode a piece of the relay log into net changes per table, as bytes.

A Spark task runs this module (design D1). The code is pure: no database, no clock, no state. So the task may run twice,
or its result may be discarded. In a table with a key, the last image of each key replaces the earlier images. The net
change also says whether the first change expects the row on the target (D2). In a table without a key, a net change is
the number of copies of each row to delete and to insert (`event.multiset`). If the images do not show these numbers, or
if only a few rows are deleted, every change is kept, in order. Contradictory changes raise `Inconsistent`. The applier
then applies the range one source transaction at a time, and finds the event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from rplctl import mysql_errors as er
from rplctl.decode.json_as_text import keeps_documents
from rplctl.decode.missing_columns import check_generated, check_updates, defaults_of, outdated, without_session_values
from rplctl.decode.overwritten import can_be_overwritten
from rplctl.decode.row_stream import EventRun, TableRows, read_tables
from rplctl.errors import BinlogFormatError
from rplctl.event.cells import LARGE_CELL, cells_of, raw_cells, signed_cells, unsigned_cells
from rplctl.event.fields import LONGEST_LENGTH_PREFIXED, EncodedText, Fields, TextForm, fields_of, text_fields
from rplctl.event.images import NOT_IN_IMAGE, Images
from rplctl.event.json import apply_diffs, parse_text, print_json
from rplctl.event.multiset import MultisetChanges, multiset_changes, with_old_cells
from rplctl.event.net_change import NetChanges, net_changes
from rplctl.event.rows import CASCADES_LOGGED, NO_FOREIGN_KEY_CHECKS, Ints
from rplctl.event.table_map import ColumnType
from rplctl.event.values import INTEGER_WIDTH, decode_column
from rplctl.schema.plan import Catalog
from rplctl.schema.row_key import key_of
from rplctl.target.base import (
    COPIES,
    BulkRows,
    ChangeKind,
    EncodedRows,
    Row,
    RowChange,
    RowSet,
    TableChunk,
    Value,
)
from rplctl.target.column_rows import ColumnRows
from rplctl.target.registry import DEFAULT_KIND, value_form

FEW_REMOVALS = 3  # with more deleted rows, the copies in a keyless table are counted
FEW_CHANGES = 200  # with this many changes, copies are counted even if few rows are deleted
_PRINTED = 32  # bytes: the longest printed number or time


class Inconsistent(Exception):
    """The error for a piece whose changes contradict each other, or whose row images are partial.

    The applier must apply these changes one by one.
    """


def net_chunks(  # noqa: PLR0913 - the values of a split
    run: EventRun,
    catalog: Catalog,
    target_kind: str = DEFAULT_KIND,
    bulk_rows: int = 0,
    *,
    length_prefixed: bool = False,
    in_order: Collection[tuple[str, str]] = (),
) -> list[TableChunk]:
    """Return the net changes of a run of events, with one chunk for each table.

    A chunk with at least `bulk_rows` changes is encoded for bulk loading, but with `bulk_rows=0`, no chunk is encoded.
    With `length_prefixed`, chunks are encoded in the length-prefixed form (`event.fields`) if possible. `in_order`: the
    tables without a key whose changes are not combined. Raises Inconsistent if the order of events counts, or if a
    table has two definitions. Raises BinlogFormatError for damage, and RplError 1146 or 1677 for a wrong table model.
    """
    if run.has_more_than_rows:
        raise Inconsistent("events whose order counts")
    chunks = [
        table_chunk(rows, bulk_rows, in_order, length_prefixed=length_prefixed)
        for rows in read_tables(run, catalog, target_kind)
    ]
    if len({(chunk.database, chunk.table) for chunk in chunks}) != len(chunks):
        raise Inconsistent("one table with two definitions")
    return chunks


def table_chunk(
    rows: TableRows, bulk_rows: int, in_order: Collection[tuple[str, str]] = (), *, length_prefixed: bool
) -> TableChunk:
    """Return the net changes of one table. The docstring of `net_chunks` explains the arguments and the errors."""
    return replace(
        _table_chunk(rows, bulk_rows, in_order, length_prefixed=length_prefixed), width=rows.images.column_count
    )


def inserted_chunk(rows: TableRows, bulk_rows: int, *, length_prefixed: bool) -> TableChunk:
    """Return a chunk that inserts all these rows. The docstring of `net_chunks` explains the other arguments.

    The rows are complete and distinct, so rows of the target are not searched for.
    """
    model, images, form = rows.model, rows.images, value_form(rows.target_kind)
    count, whole = len(images.ops), tuple(range(images.column_count))
    everything, has_large = np.arange(count), has_large_cell(images)
    chunk = TableChunk(
        database=model.database,
        table=model.name,
        change_count=count,
        foreign_keys_off=True,
        width=len(whole),
        has_views=form.takes_views and has_large,
    )
    is_bulk = 0 < bulk_rows <= count or (bulk_rows and form.takes_bytes and has_large)
    if not (is_bulk and _is_encoded(rows, length_prefixed=length_prefixed)):
        return replace(chunk, inserts=[RowSet(whole, ColumnRows([_column(rows, everything, c) for c in whole]))])
    length_prefixed = length_prefixed and _can_be_length_prefixed(rows)
    text = EncodedText([_fields(rows, everything, c) for c in whole], length_prefixed=length_prefixed)
    nothing = EncodedRows(whole, 0, b"")
    return replace(
        chunk,
        bulk=BulkRows(
            absent=nothing,
            deletes=nothing,
            updates=nothing,
            inserts=EncodedRows(whole, count, text, length_prefixed=length_prefixed),
        ),
    )


def row_changes(rows: TableRows, current: Callable[[RowSet, int], Value] | None = None) -> Iterator[RowChange]:
    """Yield every change of one table in the order of the log.

    The log may lack the document to which a JSON diff applies (PARTIAL_JSON with MINIMAL images). For such a diff, the
    function `current` is called when the change is yielded. It gets the image that identifies the row, and the column,
    and returns the target's document. Raises Inconsistent if there is such a diff and `current` is None.
    """
    images = without_session_values(rows.images, rows.model, rows.target_kind)
    everything = np.arange(len(images.cell_start))
    baseless = _diffs_without_base(images)
    if baseless.any() and current is None:
        raise Inconsistent("a JSON diff against the target's document")
    columns = [
        _column(rows, np.where(baseless[:, c], -1, everything) if baseless.size else everything, c)
        for c in range(images.column_count)
    ]
    present = images.cell_start != NOT_IN_IMAGE
    whole = tuple(range(images.column_count))
    complete = _Completion(rows)

    def row_set(image: int) -> RowSet | None:
        if image < 0:
            return None
        held = whole if present[image].all() else tuple(int(c) for c in np.flatnonzero(present[image]))
        return RowSet(held, [tuple(columns[c][image] for c in held)])

    for kind, before, after in zip(images.ops, images.before, images.after, strict=True):
        old, new = row_set(int(before)), row_set(int(after))
        if new is not None and baseless.size and baseless[after].any():
            assert old is not None and current is not None
            new = _with_diffs(
                images, int(after), new, {c: current(old, c) for c in np.flatnonzero(baseless[after]).tolist()}
            )
        if new is not None and new.columns is not whole:
            new = complete(new, is_insert=old is None)
        yield RowChange(kind=ChangeKind(int(kind)), before=old, after=new)


def _diffs_without_base(images: Images) -> npt.NDArray[np.bool_]:
    """Return a mask [images, columns] of the JSON diffs whose before image lacks the column.

    Without JSON diffs, the mask has no rows.
    """
    if not images.is_diff.size:
        return images.is_diff
    lacks_base: npt.NDArray[np.bool_] = images.cell_start[images.before_of_image] == NOT_IN_IMAGE
    return images.is_diff & lacks_base


def _with_diffs(images: Images, image: int, row: RowSet, documents: dict[int, Value]) -> RowSet:
    """Return the row with its JSON diffs applied. `documents` has the target's document of each column with a diff.

    Raises BinlogFormatError if a document is not JSON.
    """
    values = list(row.rows[0])
    for column, text in documents.items():
        diff = raw_cells(cells_of(images, np.array([image]), column))[0]
        try:
            values[row.columns.index(column)] = print_json(apply_diffs(parse_text(str(text)), diff))
        except ValueError as error:
            raise BinlogFormatError(
                f"a JSON diff of a value that is not JSON: {str(text)[:100]}",
                errno=er.INVALID_JSON_VALUE_FOR_FUNC_INDEX,
            ) from error
    return RowSet(row.columns, [tuple(values)])


class _Completion:
    """A function that completes partial after images for targets that do not know the table's defaults."""

    def __init__(self, rows: TableRows) -> None:
        self._model = rows.model
        self._form = value_form(rows.target_kind)
        self._defaults: dict[tuple[int, ...], dict[int, Value]] = {}
        self._updates: set[tuple[int, ...]] = set()

    def __call__(self, rows: RowSet, *, is_insert: bool) -> RowSet:
        """Add the defaults of missing columns to inserted rows, and check updated rows.

        Raises RplError 1364 if rplctl cannot compute a missing value.
        """
        if self._form.knows_defaults:
            return rows
        if not is_insert:
            if rows.columns not in self._updates:
                check_generated(self._model, rows.columns)
                self._updates.add(rows.columns)
            return rows
        if (added := self._defaults.get(rows.columns)) is None:
            found = defaults_of(self._model, rows.columns)
            added = self._defaults[rows.columns] = {c: self._form.stored([value])[0] for c, value in found.items()}
        more = tuple(added.values())
        return RowSet(rows.columns + tuple(added), [row + more for row in rows.rows])


def _table_chunk(
    rows: TableRows, bulk_rows: int, in_order: Collection[tuple[str, str]], *, length_prefixed: bool
) -> TableChunk:
    model, images = rows.model, rows.images
    form = value_form(rows.target_kind)
    if form.keeps_json_types and not keeps_documents(rows):
        raise Inconsistent("a JSON document that a text may change")
    count = len(images.ops)
    unchecked = bool((rows.events.flags & NO_FOREIGN_KEY_CHECKS).any())
    cascades_logged = bool((rows.events.flags & CASCADES_LOGGED).all())
    key, has_views = key_of(model), form.takes_views and has_large_cell(images)
    chunk = TableChunk(
        database=model.database,
        table=model.name,
        change_count=count,
        foreign_keys_off=unchecked,
        cascades_logged=cascades_logged,
        has_views=has_views,
    )
    if not key:
        as_multiset = (
            None
            if (model.database, model.name) in in_order
            else _as_multiset(rows, chunk, bulk_rows, length_prefixed=length_prefixed)
        )
        return as_multiset or replace(chunk, ordered=list(row_changes(rows)))
    first = np.where(images.before >= 0, images.before, images.after)
    if (images.cell_start[first][:, list(key)] == NOT_IN_IMAGE).any():
        raise Inconsistent("an image without the columns of the key")
    if not form.knows_defaults:
        check_updates(model, images)
    net = net_changes(images, list(key))
    if net.conflict >= 0 or net.diff_without_base >= 0:
        raise Inconsistent(f"change {max(net.conflict, net.diff_without_base)} contradicts an earlier one")
    if net.cell_image is not None and not form.knows_defaults:
        for column, old in outdated(model, net.cell_image):
            if column in key and old.any():
                raise Inconsistent("a key that the target computes")
            net.cell_image[old, column] = -1
    gone = net.final_image < 0
    present = net.expect_present
    entries = np.arange(len(net))
    is_whole = net.cell_image is None and images.column_count == len(model.columns)
    if is_whole:  # a row that moves to another key is deleted and inserted
        deleted, moved, kept, added = present & gone, entries < 0, present & ~gone, ~present & ~gone
    else:
        moved, kept = ~gone & (net.origin >= 0) & (net.origin != entries), ~gone & (net.origin == entries)
        deleted, added = present & ~np.isin(entries, net.origin[~gone]), ~gone & (net.origin < 0)
        if (moved.any() or (deleted & added).any()) and not form.moves_keys:
            raise Inconsistent("a row moved to another key and its image is partial")
    is_bulk = 0 < bulk_rows <= len(net) or (bulk_rows and form.takes_bytes and has_large_cell(images))
    if net.cell_image is None and is_bulk and _is_encoded(rows, length_prefixed=length_prefixed):
        bulk = _bulk_rows(rows, net, key, length_prefixed=length_prefixed and _can_be_length_prefixed(rows))
        return replace(chunk, bulk=bulk, has_views=False)
    numbers = _key_numbers(rows, net, key) if can_be_overwritten(model) else None  # None: log order
    order = entries if numbers is None else np.argsort(numbers, kind="stable")  # neighbours share pages
    goes, stays, comes = (order[wanted[order]] for wanted in (deleted, kept, added))
    return replace(
        chunk,
        absent=_keys(rows, net, np.flatnonzero(~present & gone), key),
        deletes=_keys(rows, net, goes, key),
        updates=[*_moves(rows, net, np.flatnonzero(moved), key), *_row_sets(rows, net, stays, key)],
        inserts=list(_row_sets(rows, net, comes, ())),
    )


def _as_multiset(rows: TableRows, chunk: TableChunk, bulk_rows: int, *, length_prefixed: bool) -> TableChunk | None:
    """Return the chunk of a table without a key as the number of copies of each row to delete and insert.

    Return None if the changes must stay in order, because the order counts or too few rows are deleted. An UPDATE
    deletes one copy and inserts one, so its images must have all columns of the target.
    """
    model, form = rows.model, value_form(rows.target_kind)
    images = with_old_cells(without_session_values(rows.images, model, rows.target_kind))
    filled = images is not rows.images
    if not images.are_full() or (filled and any(column.generated for column in model.columns)):
        return None
    rows, whole = replace(rows, images=images), tuple(range(images.column_count))
    multiset = multiset_changes(images)
    goes, is_long = np.flatnonzero(multiset.gone), chunk.change_count >= (bulk_rows or FEW_CHANGES)
    if len(goes) and (
        len(whole) != len(model.columns)
        or has_large_cell(images)
        or not (is_long or multiset.gone.sum() > FEW_REMOVALS)
    ):
        return None
    comes = np.repeat(multiset.image, multiset.come)
    is_bulk = is_long or len(goes) or (form.takes_bytes and has_large_cell(images))
    if bulk_rows and is_bulk and _is_encoded(rows, length_prefixed=length_prefixed):
        return replace(
            chunk,
            bulk=_encoded_multiset(
                rows, multiset, comes, length_prefixed=length_prefixed and _can_be_length_prefixed(rows)
            ),
        )
    if len(goes) and not form.counts_rows:
        return None
    deletes = [
        (*row, copies)
        for row, copies in zip(_rows(rows, multiset.image[goes], whole), multiset.gone[goes].tolist(), strict=True)
    ]
    inserts = [RowSet(whole, _rows(rows, comes, whole))] if len(comes) else []
    return replace(chunk, deletes=deletes, inserts=inserts)


def _encoded_multiset(rows: TableRows, multiset: MultisetChanges, comes: Ints, *, length_prefixed: bool) -> BulkRows:
    whole = tuple(range(rows.images.column_count))
    goes = np.flatnonzero(multiset.gone)

    def encoded(images: Ints, *more: Fields) -> EncodedRows:
        columns = whole + (COPIES,) * len(more)
        if not len(images):
            return EncodedRows(columns, 0, b"")
        text = EncodedText([*(_fields(rows, images, c) for c in whole), *more], length_prefixed=length_prefixed)
        return EncodedRows(columns, len(images), text, length_prefixed=length_prefixed)

    copies = text_fields([b"%d" % count for count in multiset.gone[goes].tolist()])
    nothing = EncodedRows(whole, 0, b"")
    return BulkRows(
        absent=nothing, deletes=encoded(multiset.image[goes], copies), updates=nothing, inserts=encoded(comes)
    )


def _rows(rows: TableRows, images: Ints, columns: tuple[int, ...]) -> list[Row]:
    return list(zip(*(_column(rows, images, c) for c in columns), strict=True))


def has_large_cell(images: Images) -> bool:
    """True if a cell may exceed the target's max_allowed_packet, or if copies of it may fill the memory."""
    return bool(len(images.cell_length)) and int(images.cell_length.max()) > LARGE_CELL


def _is_encoded(rows: TableRows, *, length_prefixed: bool) -> bool:
    form = value_form(rows.target_kind)
    return form.encodes(rows.formats, rows.model) and (
        form.takes_delimited or (length_prefixed and _can_be_length_prefixed(rows))
    )


def _can_be_length_prefixed(rows: TableRows) -> bool:
    """True if the rows are short, and no column is generated. In the length-prefixed form, each column is a parameter.

    A generated column cannot be a parameter. The logged bytes of JSON are counted, so its text may exceed the limit.
    """
    longest = rows.images.cell_length.max(axis=0).clip(_PRINTED).sum()
    return int(longest) <= LONGEST_LENGTH_PREFIXED and not any(column.generated for column in rows.model.columns)


def _bulk_rows(rows: TableRows, net: NetChanges, key: tuple[int, ...], *, length_prefixed: bool) -> BulkRows:
    """Return the net changes in encoded form. All images must have all columns.

    A row that moves to another key is deleted and inserted.
    """
    gone, present = net.final_image < 0, net.expect_present
    whole = tuple(range(rows.images.column_count))
    values_then_key = tuple(c for c in whole if c not in key) + key
    numbers = _key_numbers(rows, net, key)
    order = np.arange(len(net)) if numbers is None else np.argsort(numbers, kind="stable")  # neighbours share pages
    keeps_keys = numbers is not None and can_be_overwritten(rows.model)

    def encoded(wanted: npt.NDArray[np.bool_], columns: tuple[int, ...], *, final: bool) -> EncodedRows:
        entries = order[wanted[order]]
        if not len(entries):
            return EncodedRows(columns, 0, b"")
        images = (net.final_image if final else net.key_image)[entries]
        text = EncodedText([_fields(rows, images, c) for c in columns], length_prefixed=length_prefixed)
        keys = numbers[entries].tobytes() if numbers is not None and keeps_keys else b""
        return EncodedRows(columns, len(entries), text, keys, length_prefixed)

    return BulkRows(
        absent=encoded(~present & gone, key, final=False),
        deletes=encoded(present & gone, key, final=False),
        updates=encoded(present & ~gone, values_then_key, final=True),
        inserts=encoded(~present & ~gone, whole, final=True),
    )


def _key_numbers(rows: TableRows, net: NetChanges, key: tuple[int, ...]) -> npt.NDArray[Any] | None:
    """Return the key of each entry as a 64-bit number, or None if the key is not exactly one integer column."""
    width = INTEGER_WIDTH.get(ColumnType(rows.formats[key[0]].real_type)) if len(key) == 1 else None
    if width is None:
        return None
    cells = cells_of(rows.images, net.key_image, key[0])
    return unsigned_cells(cells) if rows.formats[key[0]].unsigned else signed_cells(cells, width)


def _fields(rows: TableRows, images: Ints, column: int) -> Fields:
    form = value_form(rows.target_kind)
    model = rows.model.columns[column]
    text = TextForm(partial(form.field_text, model), form.takes_bytes)
    return fields_of(rows.images, images, column, form.format_for(rows.formats[column], model), text)


def _row_sets(rows: TableRows, net: NetChanges, entries: Ints, key: tuple[int, ...]) -> Iterator[RowSet]:
    """Yield the final rows of `entries`, in one set for each combination of columns that the images have.

    For inserts, `key` is empty. For updates, `key` has the columns of the key, and each row ends with the old values of
    these columns.
    """
    if not len(entries):
        return
    whole = tuple(range(rows.images.column_count))
    complete = _Completion(rows)
    if net.cell_image is None:
        patterns = [(whole, entries)]
    else:
        held, which = np.unique(net.cell_image[entries] >= 0, axis=0, return_inverse=True)
        patterns = [(tuple(int(c) for c in np.flatnonzero(row)), entries[which == i]) for i, row in enumerate(held)]
    for columns, chosen in patterns:
        kept = tuple(c for c in columns if c not in key) or key or columns
        cells = [
            _column(rows, net.key_rows_for(rows.images, c)[chosen] if c in key else net.rows_for(c)[chosen], c)
            for c in kept
        ]
        cells += [_column(rows, net.key_rows_for(rows.images, c)[chosen], c) for c in key]
        found = RowSet(kept, list(zip(*cells, strict=True)))
        yield found if columns == whole else complete(found, is_insert=not key)


def _moves(rows: TableRows, net: NetChanges, entries: Ints, key: tuple[int, ...]) -> Iterator[RowSet]:
    """Yield the updates that also change the key. A row leaves a key before another row takes it."""
    if net.cell_image is None or not len(entries):
        return
    ordered = _leavers_first(entries, net.origin)
    held = net.cell_image[ordered] >= 0
    cuts = np.flatnonzero((held[1:] != held[:-1]).any(axis=1)) + 1
    for chosen in np.split(ordered, cuts):
        columns = tuple(np.flatnonzero(net.cell_image[chosen[0]] >= 0).tolist())
        check_generated(rows.model, columns)
        cells = [_column(rows, net.rows_for(c)[chosen], c) for c in columns]
        cells += [_column(rows, net.key_rows_for(rows.images, c)[net.origin[chosen]], c) for c in key]
        yield RowSet(columns, list(zip(*cells, strict=True)))


def _leavers_first(entries: Ints, origin: Ints) -> Ints:
    """Sort changes of keys: the change that frees a key comes before the change that takes this key."""
    leaving = dict(zip(origin[entries].tolist(), entries.tolist(), strict=True))
    ordered: list[int] = []
    done: set[int] = set()
    for first in entries.tolist():
        chain: list[int] = []
        entry: int | None = first
        while entry is not None and entry not in done:
            done.add(entry)
            chain.append(entry)
            entry = leaving.get(entry)
        ordered += reversed(chain)
    return np.array(ordered, np.int64)


def _keys(rows: TableRows, net: NetChanges, entries: Ints, key: tuple[int, ...]) -> list[Row]:
    if not len(entries):
        return []
    cells = (_column(rows, net.key_rows_for(rows.images, c)[entries], c) for c in key)
    return list(zip(*cells, strict=True))


def _column(rows: TableRows, images: Ints, column: int) -> list[Value]:
    form = value_form(rows.target_kind)
    how = form.format_for(rows.formats[column], rows.model.columns[column])
    return form.stored(decode_column(rows.images, images, column, how, views=form.takes_views))
