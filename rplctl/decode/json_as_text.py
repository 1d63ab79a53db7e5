"""Tests whether JSON documents in row images can be written as text into a MySQL server.

Invariant: if the test is True, the server makes the same document of the text. If it is False, the document may have
typed values, or doubles that the server's parser changes, and only the rows event itself keeps them.
"""

from __future__ import annotations

import numpy as np

from rplctl.decode.row_stream import TableRows
from rplctl.event.cells import cells_of, raw_cells
from rplctl.event.json import is_exact_as_text
from rplctl.event.table_map import ColumnType

_OPAQUE_TYPE, _DOUBLE_TYPE = b"\x0f", b"\x0b"


def keeps_documents(rows: TableRows) -> bool:
    """True if a text changes no JSON document in these row images."""
    everything = np.arange(len(rows.images.cell_start))
    columns = [c for c, fmt in enumerate(rows.formats) if fmt.real_type == ColumnType.JSON]
    return not any(  # most documents lack the type bytes of the values that matter
        (_OPAQUE_TYPE in raw or _DOUBLE_TYPE in raw) and not is_exact_as_text(bytes(raw))
        for column in columns
        for raw in raw_cells(cells_of(rows.images, everything, column))
    )
