"""Compile the kernels of a copy, in addition to the kernels that `event.warm_up` compiles for every start.

A new instance runs this module in the background as a program, which compiles all of these kernels. Invariant: only the
cache changes.
"""

from __future__ import annotations

from rplctl.event import warm_up as event_kernels
from rplctl.event.jit import byte_view
from rplctl.event.table_map import ColumnType
from rplctl.result_set.columns import selected_columns
from rplctl.result_set.rows import in_memory, read_images, unite
from rplctl.result_set.stream import RowStream
from rplctl.schema.model import Column

_ROW = b"\x06\0\0\1" + b"\0\0" + b"\1\0\0\0"  # a packet with one row: no NULL, number 1


def run_kernels() -> None:
    """Compile the kernels, by running them over a row with a single column.

    The column is a number, but the conversions of all other types are compiled, too.
    """
    list(read_images(_ROW, selected_columns([Column(name="id", type="int")]), [ColumnType.LONG]))
    unite(byte_view(_ROW), 0, in_memory(len(_ROW)))
    RowStream(1).take(byte_view(_ROW))


if __name__ == "__main__":
    event_kernels.warm_up()
    run_kernels()
