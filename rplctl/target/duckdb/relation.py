"""Makes decoded rows usable as a table in a DuckDB statement, with typed columns c0, c1, …

Few rows become parameters of the statement. Many rows become an Arrow table, which is registered with the connection.
Length-prefixed rows become Arrow columns without a Python object for each value. SQL in the statement converts the
decoded values (`form`) to the types of the target's columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from rplctl.event.cells import Cells, gather
from rplctl.event.fields import field_spans
from rplctl.event.jit import byte_view
from rplctl.schema.model import INTEGER_BITS, Column, TableModel
from rplctl.sql_text import Sql, joined, written
from rplctl.target.base import COPIES, EncodedRows, Row, Value
from rplctl.target.ddl_parts import quote
from rplctl.target.duckdb.ddl_type import is_binary, typed
from rplctl.target.duckdb.driver import DuckdbDriver
from rplctl.target.value_form import no_text

_NAME: Final = "rplctl_rows"
_FEW: Final = 8  # up to this number of rows, the values are parameters


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows that a SQL statement can read. `sql`: the text after FROM, which names the rows `s`. `values`: the
    parameters in this text.
    """

    sql: Sql
    values: list[Value] = field(default_factory=list)


@contextmanager
def relation(
    driver: DuckdbDriver,
    model: TableModel,
    columns: Sequence[int],
    rows: Sequence[Row] | EncodedRows,
    texts: Collection[str] = (),
) -> Iterator[Relation]:
    """Yield the rows as a relation, which statements in the `with` block can read. `columns`: the index of each value's
    column; COPIES means a number of equal rows. `texts`: the names of columns that an operator has changed to text.
    Raises TargetError 1366 if a column cannot store a value.
    """
    kinds = [None if c == COPIES else model.columns[c] for c in columns]
    wanted = joined(
        ", ",
        (
            written(
                "{} AS c{}",
                typed(column, written("c{}", i), is_text=column.name in texts)
                if column
                else written("CAST(c{} AS BIGINT)", i),
                i,
            )
            for i, column in enumerate(kinds)
        ),
    )
    if not isinstance(rows, EncodedRows) and len(rows) <= _FEW:
        marks = joined(
            ", ",
            [written("({})", joined(", ", (written("CAST(? AS {})", _plain(column)) for column in kinds)))] * len(rows),
        )
        names = joined(", ", (written("c{}", i) for i in range(len(kinds))))
        values = [_checked(value, column) for row in rows for value, column in zip(row, kinds, strict=True)]
        yield Relation(written("(SELECT {} FROM (VALUES {}) AS v({})) AS s", wanted, marks, names), values)
        return
    driver.register(_NAME, _without_lengths(kinds, rows) if isinstance(rows, EncodedRows) else _arrow(kinds, rows))
    try:
        yield Relation(written("(SELECT {} FROM {}) AS s", wanted, quote(_NAME)))
    finally:
        with suppress(duckdb.Error):  # after an error, the rollback removes the name
            driver.unregister(_NAME)


def _arrow(kinds: Sequence[Column | None], rows: Sequence[Row]) -> pa.Table:
    """Return rows of Python values as an Arrow table with columns of bytes and texts. This code does not call pa.array,
    because it would load pandas, which takes 0.6 s and much memory.
    """
    arrays = []
    for column, values in zip(kinds, zip(*rows, strict=True), strict=True):
        try:
            cells = [v if v is None or isinstance(v, bytes) else str(v).encode() for v in values]
        except UnicodeEncodeError as error:
            assert column is not None
            raise no_text(error.object, column.name) from None
        valid = np.packbits([cell is not None for cell in cells], bitorder="little")
        offsets = np.cumsum([0, *(len(cell or b"") for cell in cells)], dtype=np.int64)
        arrays.append(_array(column, len(cells), valid, offsets, b"".join(filter(None, cells))))
    return pa.table(arrays, names=[f"c{i}" for i in range(len(kinds))])


def _array(column: Column | None, count: int, valid: Any, offsets: Any, buffer: Any) -> pa.Array:
    kind = pa.large_binary() if column is not None and is_binary(column) else pa.large_string()
    return pa.Array.from_buffers(kind, count, [pa.py_buffer(part) for part in (valid, offsets, buffer)])


def _without_lengths(kinds: Sequence[Column | None], rows: EncodedRows) -> pa.Table:
    """Return length-prefixed rows as an Arrow table with columns of bytes and texts, without the length prefixes."""
    assert rows.length_prefixed
    text, width = byte_view(rows.view), len(kinds)
    starts, ends = (found.reshape(-1, width) for found in field_spans(text, rows.count * width))
    arrays = []
    for i, column in enumerate(kinds):
        own = np.ascontiguousarray(starts[:, i])
        lengths = np.where(own < 0, 0, ends[:, i] - own).astype(np.int32)
        buffer, offsets = gather(Cells(data=text, starts=own, lengths=lengths, images=own, valid=own, total=rows.count))
        arrays.append(_array(column, rows.count, np.packbits(own >= 0, bitorder="little"), offsets, buffer))
        _check_text(arrays[-1], column)
    return pa.table(arrays, names=[f"c{i}" for i in range(width)])


def _check_text(array: pa.Array, column: Column | None) -> None:
    """Raise TargetError 1366 if a text in the array is not valid UTF-8."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        assert column is not None
        for raw in array.cast(pa.large_binary()).to_pylist():
            _checked(None if raw is None else raw.decode("utf-8", "surrogatepass"), column)
        raise


def _plain(column: Column | None) -> Sql:
    """Return the SQL type of a parameter with a decoded value of the column. `column` is None if the parameter is a
    number of equal rows.
    """
    if column is None:
        return written("BIGINT")
    if column.is_unsigned_64 or column.type == "bit":
        return written("UBIGINT")
    if column.type in INTEGER_BITS or column.type == "year":
        return written("BIGINT")
    if column.type in ("float", "double"):
        return written("DOUBLE")
    return written("BLOB") if is_binary(column) else written("VARCHAR")


def _checked(value: Value, column: Column | None) -> Value:
    if isinstance(value, str) and column is not None:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise no_text(value, column.name) from None
    return value
