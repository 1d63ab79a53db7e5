"""Which rows a partition holds: DROP and TRUNCATE PARTITION delete rows without logging them."""

from __future__ import annotations

from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import refuse
from rplctl.schema.model import TableModel


def partition_condition(model: TableModel, names: tuple[str, ...], context: DdlContext) -> str:
    """An SQLite condition for the rows of these partitions; '' for all rows. Raises RplError when it cannot be told."""
    if not names:
        return ""
    refuse("rplctl cannot tell which rows these partitions held", f"{model.qualified_name}: {', '.join(names)}")
