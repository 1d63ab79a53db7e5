"""Convert changes to rows of a lake's table. These are the columns, in Arrow types that Delta has:

    op            the operation: insert, update, delete, ddl, truncate or drop
    log           the file in the source's log that has the event
    pos           the offset of the event in this file
    row_number    the number of the row in the event, from 0
    gtid          the GTID of the transaction, or '' without GTIDs
    end_log       the file in the source's log in which the transaction ends
    end_pos       the offset of the transaction's end in this file
    ts            the time at which the statement began on the source
    before        a struct of the table's columns before the change, or NULL
    after         a struct of the table's columns after the change, or NULL
    is_partial    true if `before` or `after` lacks columns (binlog_row_image)
    statement     the text of DDL, or NULL for a row

If the format `binlog` reads one table, it has these columns, too. arrow.py converts the values. TIME is text, because
lakes have no interval longer than a day.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rplctl.decode.arrow import column_array
from rplctl.decode.change_columns import HEAD, columns_of, head_of, tail_of
from rplctl.decode.changes import TableChanges, Transactions
from rplctl.decode.row_stream import TableRows
from rplctl.event.rows import Ints
from rplctl.event.values import decode_column
from rplctl.schema.model import TableModel
from rplctl.target.delta.columns import row_schema

_TAIL: Final = (pa.field("is_partial", pa.bool_(), nullable=False), pa.field("statement", pa.string()))


def lake_schema(model: TableModel) -> pa.Schema:
    row = pa.struct(list(row_schema(model)))
    return pa.schema([*HEAD, pa.field("before", row), pa.field("after", row), *_TAIL])


def change_rows(part: TableChanges, transactions: Transactions, log_name: str, *, zero_null: bool) -> pa.Table:
    """Return all changes of one table in a piece of the log as rows, in the order of the log.

    Raises BinlogFormatError for a damaged value. An invalid date raises RplError 1292, or is NULL with `zero_null`.
    """
    rows, images = part.rows, part.rows.images
    schema = lake_schema(rows.model)
    return pa.Table.from_arrays(
        [
            *head_of(part, transactions, log_name),
            _structs(rows, images.before, schema.field("before").type, zero_null=zero_null),
            _structs(rows, images.after, schema.field("after").type, zero_null=zero_null),
            *tail_of(images),
        ],
        schema=schema,
    )


def _structs(rows: TableRows, images: Ints, wanted: pa.StructType, *, zero_null: bool) -> pa.Array:
    arrays = []
    for number, (column, field) in enumerate(zip(rows.model.columns, wanted, strict=True)):
        if number >= len(rows.formats):
            arrays.append(pa.nulls(len(images), field.type))
        elif column.type == "time":
            arrays.append(pa.array(decode_column(rows.images, images, number, rows.formats[number]), field.type))
        else:
            fmt = rows.formats[number]
            arrays.append(column_array(rows.images, images, number, fmt, column, field.type, zero_null=zero_null))
    is_none = images < 0
    return pa.StructArray.from_arrays(arrays, fields=list(wanted), mask=pa.array(is_none) if is_none.any() else None)


def statement_rows(  # noqa: PLR0913 - a statement and its position
    model: TableModel, op: str, text: str, *, log_name: str, position: int, gtid: str, end: int, time: int, number: int
) -> pa.Table:
    """Return the row of a lake's table for DDL that changed the table.

    `op` is ddl, truncate or drop, and `text` is the statement. `number` is stored as `row_number`. `end` is the offset
    after the transaction, and `time` is in seconds since 1970.
    """
    values = (op, log_name, position, number, gtid, log_name, end, time * 1_000_000, None, None, False, text)
    schema = lake_schema(model)
    return pa.Table.from_arrays(columns_of([values], schema), schema=schema)
