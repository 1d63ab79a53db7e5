"""The Arrow columns that every change has in addition to the columns of its table.

They are the first and the last columns of the format `binlog` and of a lake's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rplctl.decode.changes import OPS, TableChanges, Transactions
from rplctl.event.images import NOT_IN_IMAGE, Images

TIME: Final = pa.timestamp("us", "UTC")
HEAD: Final = (
    pa.field("op", pa.string(), nullable=False),
    pa.field("log", pa.string(), nullable=False),
    pa.field("pos", pa.int64(), nullable=False),
    pa.field("row_number", pa.int64(), nullable=False),
    pa.field("gtid", pa.string(), nullable=False),
    pa.field("end_log", pa.string(), nullable=False),
    pa.field("end_pos", pa.int64(), nullable=False),
    pa.field("ts", TIME, nullable=False),
)
ALL: Final = slice(None)


def head_of(part: TableChanges, transactions: Transactions, log_name: str, of: slice = ALL) -> list[pa.Array]:
    number = part.transaction[of]
    shift = transactions.shift if isinstance(transactions.shift, int) else transactions.shift[number]
    return [
        pa.array(OPS).take(pa.array(part.rows.images.ops[of])),
        pa.repeat(pa.scalar(log_name), len(number)),
        pa.array(part.position[of] - shift),
        pa.array(part.number[of]),
        pa.array(transactions.gtid, pa.string()).take(pa.array(number)),
        pa.repeat(pa.scalar(transactions.end_log), len(number)),
        pa.array(transactions.end[number]),
        pa.array(part.time[of] * 1_000_000).cast(TIME),
    ]


def tail_of(images: Images, of: slice = ALL) -> list[pa.Array]:
    """Return the last two columns of the changes that `of` selects: `is_partial` and `statement`.

    `is_partial` is true if an image of the change lacks columns. `statement` is NULL.
    """
    before, after = images.before[of], images.after[of]
    partial = np.zeros(len(before), np.bool_)
    for chosen in (before, after):
        partial |= (chosen >= 0) & (images.cell_start[chosen] == NOT_IN_IMAGE).any(axis=1)
    return [pa.array(partial), pa.nulls(len(before), pa.string())]


def columns_of(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> list[pa.Array]:
    """Return the columns of `schema` for statements. `rows` has a sequence of plain values for each statement.

    Times are in microseconds since 1970.
    """
    return [
        pa.array(values, pa.int64()).cast(TIME) if field.name == "ts" else pa.array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
