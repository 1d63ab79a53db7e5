"""Rewrites the files of a mirror that have changed rows (copy on write). Other files stay unchanged.

Invariant: before the commit, the rows of each changed key are counted in the files. If a count is not as expected,
CountMismatch is raised and no table is changed. Keys are compared byte by byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from rplctl import mysql_errors as er
from rplctl.errors import OR_EXCLUDE, RplError
from rplctl.schema.model import Column, TableModel
from rplctl.target.base import CountMismatch, Row, Value
from rplctl.target.delta.overlay import NOT_GIVEN, Overlay
from rplctl.target.delta.place import INSTEAD_OF_MIRROR, LakePlace
from rplctl.target.lake import WrittenFile

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

ROWS_PER_FILE: Final = 1_000_000
SMALL_ROWS: Final = 100_000  # a file with fewer rows is small
MOST_SMALL: Final = 8  # this number of small files of a table are merged into one file


class MirrorFiles:
    """The files of one table of a mirror, with methods to find and rewrite rows. `stats`: the path of each file → its
    statistics in Delta's format.
    """

    def __init__(self, place: LakePlace, folder: str, schema: pa.Schema, stats: dict[str, str]) -> None:
        self._place, self._folder, self._schema = place, folder, schema
        self.stats = stats
        self._files = place.files(folder)

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return rows of a file with the given columns, or with all columns. Columns that were added to the table after
        the file was written are NULL.
        """
        wanted = self._schema if columns is None else pa.schema([self._schema.field(name) for name in columns])
        with parquet.ParquetFile(path, filesystem=self._files) as file:
            has = set(file.schema_arrow.names)
            found = file.read([name for name in wanted.names if name in has])
        arrays = [found[f.name] if f.name in has else pa.nulls(len(found), f.type) for f in wanted]
        return pa.Table.from_arrays(arrays, schema=wanted)

    def count(self, model: TableModel, key: Sequence[int], value: Row, *, zero_null: bool) -> int:
        """Return the number of rows in the table's files with the key `value`. `key`: the indexes of its columns."""
        entries = _key_arrays(model, self._schema, key, [value], zero_null=zero_null)
        names = [model.columns[c].name for c in key]
        found = 0
        for path in self._hit(names[0], entries[0]):
            found += int((find(entries, self.read(path, names).columns) >= 0).sum())
        return found

    def of_keys(
        self, model: TableModel, key: Sequence[int], values: Sequence[Row], *, zero_null: bool
    ) -> Iterator[pa.Table]:
        """Yield the rows of the table that have one of these keys, as one Arrow table for each file. `values`: one or
        more different keys.
        """
        entries = _key_arrays(model, self._schema, key, values, zero_null=zero_null)
        names = [model.columns[c].name for c in key]
        for path in self._hit(names[0], entries[0]):
            has = find(entries, self.read(path, names).columns) >= 0
            if has.any():
                yield self.read(path).filter(pa.array(has))

    def rewrite(self, model: TableModel, overlay: Overlay) -> tuple[list[WrittenFile], list[str]]:
        """Write new files that contain the net changes in `overlay`. Return these files, and the paths of the files
        that they replace.

        Raises CountMismatch if the rows are not as expected. Raises RplError 1292 if the lake cannot store a value, and
        TargetError if a file cannot be read or written.
        """
        zero_null, key = self._place.zero_dates_null, overlay.key
        rows = list(overlay.entries.values())
        entries = _key_arrays(model, self._schema, key, list(overlay.entries), zero_null=zero_null)
        expected = np.array([was for was, _ in rows])
        stays = np.array([row is not None for _, row in rows])
        given = [_given(model, self._schema, n, rows, zero_null=zero_null) for n in range(overlay.width)]
        names, seen = [model.columns[c].name for c in key], np.zeros(len(rows), np.int64)
        files, gone = list[WrittenFile](), list[str]()
        for path in self._hit(names[0], entries[0]):
            at = find(entries, self.read(path, names).columns)
            hit = at >= 0
            if not hit.any():
                continue
            seen += np.bincount(at[hit], minlength=len(rows))
            gone.append(path)
            files += self.write(model, _changed(self.read(path), at, stays, given))
        if (seen != expected).any():
            first = int(np.flatnonzero(seen != expected)[0])
            raise CountMismatch(f"{model.qualified_name}: key {list(overlay.entries)[first]} exists {seen[first]} "
                                f"times, expected {int(expected[first])}")  # fmt: skip
        added = np.flatnonzero(stays & ~expected)
        if len(added):
            if any(held is not None and not held[added].all() for held, _ in given):
                raise RplError(
                    f"cannot complete an inserted row of {model.qualified_name}: it lacks columns that only the source "
                    "can compute",
                    errno=er.NO_DEFAULT_FOR_FIELD,
                    hint=f"{INSTEAD_OF_MIRROR}{OR_EXCLUDE}",
                )
            table = pa.Table.from_arrays([values.take(pa.array(added)) for _, values in given], schema=self._schema)
            small = [path for path, text in self.stats.items() if path not in gone and _rows(text) < SMALL_ROWS]
            if len(small) >= MOST_SMALL:
                table = pa.concat_tables([*map(self.read, small), table])
                gone += small
            files += self.write(model, table)
        return files, gone

    def write(self, model: TableModel, rows: pa.Table) -> list[WrittenFile]:
        parts = [rows.slice(at, ROWS_PER_FILE) for at in range(0, len(rows), ROWS_PER_FILE)]
        return [self._place.write(model, self._folder, part, stats_of(part)) for part in parts]

    def _hit(self, name: str, keys: pa.Array) -> Iterator[str]:
        """Yield the paths of the files that may contain one of the keys. `name`: the first column of the key. `keys`:
        the values of this column.

        Only integer columns have minimum and maximum values in the statistics, so other keys yield all files.
        """
        has_bounds = pa.types.is_integer(keys.type)
        ordered = np.sort(keys.to_numpy(zero_copy_only=False)) if has_bounds else np.array([])
        for path, text in self.stats.items():
            stats = json.loads(text or "{}")
            low, high = (stats.get(bound, {}).get(name) for bound in ("minValues", "maxValues"))
            if not has_bounds or low is None or high is None:
                yield path
            elif np.searchsorted(ordered, low) < np.searchsorted(ordered, high, side="right"):
                yield path


def find(keys: Sequence[pa.Array], columns: Sequence[pa.ChunkedArray]) -> Ints:
    """Find the key of each row in a list of keys. Return the index of the row's key in the list, or -1.

    `keys`: the list of different keys, as one array for each column of the key. `columns`: the same columns of the
    rows.
    """
    if len(keys) == 1:
        return _numbers(pc.index_in(columns[0], value_set=keys[0]))
    mine, theirs = np.zeros(len(keys[0]), np.int64), np.zeros(len(columns[0]), np.int64)
    for key, column in zip(keys, columns, strict=True):
        values = key.unique()
        own, other = _numbers(pc.index_in(key, value_set=values)), _numbers(pc.index_in(column, value_set=values))
        paired = np.where((theirs < 0) | (other < 0), -1, theirs * len(values) + other)
        known, mine = np.unique(mine * len(values) + own, return_inverse=True)
        at = np.minimum(np.searchsorted(known, paired), len(known) - 1)
        theirs = np.where((paired >= 0) & (known[at] == paired), at, -1)
    order = np.argsort(mine)
    return np.where(theirs < 0, -1, order[theirs])


def _numbers(found: Any) -> Ints:
    numbers: Ints = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return numbers


def _changed(rows: pa.Table, at: Ints, stays: npt.NDArray[np.bool_], given: list[Any]) -> pa.Table:
    """Return the rows of a file with the changes applied. `at`: the index of each row's change, or -1 for an unchanged
    row. `stays`: False for each change that deletes its row. `given`: the new values of each column, by change.
    """
    stay, hit = np.where(at >= 0, stays[at], True), at >= 0
    columns = []
    for column, (held, values) in zip(rows.columns, given, strict=True):
        new = hit & stay if held is None else hit & stay & held[at]
        if new.any():
            chosen = values.take(pa.array(at[new]))
            column = pc.replace_with_mask(column.combine_chunks(), pa.array(new), chosen)
        columns.append(column)
    table = pa.Table.from_arrays(columns, schema=rows.schema)
    return table if stay.all() else table.filter(pa.array(stay))


def _given(
    model: TableModel, schema: pa.Schema, number: int, rows: list[tuple[bool, Row | None]], *, zero_null: bool
) -> tuple[npt.NDArray[np.bool_] | None, pa.Array]:
    """Return a mask that is True for the changes that set one column, and the column's new values for all changes. The
    mask is None if all changes set the column. `number`: the index of the column.
    """
    column = model.columns[number]
    values: list[Value] = [None if row is None else row[number] for _, row in rows]
    held = None
    if any(value is NOT_GIVEN for value in values):
        held = np.array([value is not NOT_GIVEN for value in values])
        values = [None if value is NOT_GIVEN else value for value in values]
    return held, column_of(values, column, schema.field(column.name).type, zero_null=zero_null)


def _key_arrays(
    model: TableModel, schema: pa.Schema, key: Sequence[int], keys: Sequence[Row], *, zero_null: bool
) -> list[pa.Array]:
    columns = [model.columns[c] for c in key]
    return [
        column_of([row[n] for row in keys], column, schema.field(column.name).type, zero_null=zero_null)
        for n, column in enumerate(columns)
    ]


def column_of(values: list[Value], column: Column, wanted: pa.DataType, *, zero_null: bool) -> pa.Array:
    """Convert decoded values, in which DECIMAL and times are texts, to an Arrow array of the type `wanted`. Raises
    RplError 1292 for an invalid date; with `zero_null`, the date becomes NULL instead.
    """
    if pa.types.is_temporal(wanted):
        values = [_dated(value, column, zero_null=zero_null) for value in values]
        texts = pa.array(values, pa.string())
        return texts.cast(pa.timestamp("us")).cast(wanted) if pa.types.is_timestamp(wanted) else texts.cast(wanted)
    if pa.types.is_decimal(wanted):
        return pa.array([None if value is None else str(value) for value in values], pa.string()).cast(wanted)
    return pa.array(values, wanted)


def _dated(value: Value, column: Column, *, zero_null: bool) -> Value:
    if value is None:
        return None
    try:
        date.fromisoformat((text := str(value))[:10])
    except ValueError as error:
        if zero_null:
            return None
        raise RplError(
            f"Incorrect {column.type} value: '{text}' for column `{column.name}`: the date is not in the calendar, so "
            "a lake cannot store it",
            errno=er.TRUNCATED_WRONG_VALUE,
            hint="to store NULL instead after you have added zero_dates=null to the URL of the option target in "
            "rplctl.toml, run: rplctl start",
        ) from error
    return value


def stats_of(rows: pa.Table) -> str:
    """Return the statistics of the rows in Delta's format: the number of rows, and minimum and maximum of each integer
    column.
    """
    low, high = dict[str, int](), dict[str, int]()
    for field in rows.schema:
        if pa.types.is_integer(field.type):
            bounds = pc.min_max(rows[field.name]).as_py()
            if bounds["min"] is not None:
                low[field.name], high[field.name] = bounds["min"], bounds["max"]
    return json.dumps({"numRecords": len(rows), "minValues": low, "maxValues": high})


def _rows(stats: str) -> int:
    return int(json.loads(stats or "{}").get("numRecords", ROWS_PER_FILE))
