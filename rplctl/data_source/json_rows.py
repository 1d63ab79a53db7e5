"""Convert rows to JSON, so that rows of tables with different columns have the same form.

Integers and floats are numbers, bytes are base64 (as Spark's `from_json` reads BINARY), and everything else is the
server's text. A column that the image lacks is omitted. NULL is null.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np

from rplctl.decode.row_stream import TableRows
from rplctl.event.images import NOT_IN_IMAGE
from rplctl.event.rows import Ints
from rplctl.event.values import decode_column


def dict_rows(rows: TableRows, images: Ints) -> Iterator[dict[str, Any] | None]:
    """Yield the row in each of the images with the indexes `images`, as {column name: value}.

    The index -1 stands for a missing image, and gives None.
    """
    names = [column.name for column in rows.model.columns[: len(rows.formats)]]
    columns = [decode_column(rows.images, images, number, fmt) for number, fmt in enumerate(rows.formats)]
    held = rows.images.cell_start[images] != NOT_IN_IMAGE
    is_full = bool(held.all())
    for number, values in enumerate(zip(*columns, strict=True)):
        if images[number] < 0:
            yield None
        elif is_full:
            yield dict(zip(names, values, strict=True))
        else:
            yield {names[column]: values[column] for column in np.flatnonzero(held[number]).tolist()}


def json_text(row: dict[str, Any] | None) -> str | None:
    if row is None:
        return None
    return json.dumps(row, ensure_ascii=False, default=lambda raw: b64encode(raw).decode(), separators=(",", ":"))
