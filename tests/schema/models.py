"""What two models of one table have in common, whether they came from its DDL or from SHOW CREATE TABLE."""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.model import INTEGER_BITS, Column


def bare(column: Column) -> Column:
    """Without what the server prints otherwise than it was written: display widths, defaults, collations."""
    length = None if column.type in INTEGER_BITS else column.length
    generated = None if column.generated is None else ""
    # SHOW CREATE TABLE prints labels in utf8mb3
    labels = tuple("".join("?" if ord(c) > 0xFFFF else c for c in label) for label in column.labels)
    return replace(column, length=length, default=None, collation=None, generated=generated, labels=labels)
