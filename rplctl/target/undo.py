"""How a kind of target writes its rows as SQL text: what `rplctl repair` takes back; `UNDO` in a kind's folder.

Invariant: a literal is lossless: the statement that brings it back makes the same bytes, numbers and times of it.
"""

from __future__ import annotations

from typing import Any, Protocol

from rplctl.schema.model import Column, TableModel
from rplctl.target.base import Target


class UndoSql(Protocol):
    begin: str  # statements around those of one transaction
    end: str

    def table(self, model: TableModel) -> str:
        """Its quoted name."""

    def column(self, column: Column) -> str:
        """As above."""

    def literal(self, value: Any, column: Column) -> str:
        """Of a key's plain value (target.compared), to find a row by."""

    def literals(self, target: Target, model: TableModel) -> dict[str, str]:
        """Columns of the target's table that can be written, quoted: SQL that gives the literal of each as text, NULL
        where it is that. Raises TargetError.
        """

    def rows(self, target: Target, sql: str) -> list[tuple[Any, ...]]:
        """What a SELECT gives in the open transaction. Raises TargetError."""
