"""Returns the formats of cells from a table's model, for details that a table map in the log lacks.

Invariant: the wire type comes only from the log, never from this module.
"""

from __future__ import annotations

from functools import lru_cache

from rplctl.event.column import ColumnFormat
from rplctl.schema.model import BINARY_TYPES, CHARACTER_TYPES, TEMPORAL_TYPES, Column


@lru_cache(maxsize=4096)
def known_formats(columns: tuple[Column, ...]) -> tuple[ColumnFormat, ...]:
    """Return, for each column, the details of its cells' format that the table's model contains.

    `event.column.column_formats` combines these details with the details in the log.
    """
    return tuple(_known_format(column) for column in columns)


def _known_format(column: Column) -> ColumnFormat:
    charset = None
    if column.type in CHARACTER_TYPES:
        charset = column.charset or "utf8mb4"
    elif column.type in BINARY_TYPES:
        charset = "binary"
    is_two_digits = column.type == "year" and column.length == 2
    has_length = column.type in TEMPORAL_TYPES or is_two_digits
    word = f"{column.type}({column.length or 0})" if has_length else column.type
    return ColumnFormat(
        type_code=0, metadata=0, unsigned=column.unsigned, charset=charset, labels=column.labels or None, sql_type=word
    )
