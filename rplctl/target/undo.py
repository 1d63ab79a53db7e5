"""The interface that writes rows of a target as SQL text, so that an operator can undo the repairs of `rplctl repair`.

The folder of each kind of target defines `UNDO`. Invariant: literals are lossless. The execution of the SQL text
restores the same bytes, numbers and times.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing
from typing import Any, ClassVar

from rplctl.schema.model import Column, TableModel
from rplctl.sql_text import Sql
from rplctl.target.base import Target
from rplctl.target.ddl_parts import quote


class UndoSql(ABC):
    begin: ClassVar[str]  # `begin` and `end` enclose the statements of one transaction
    end = "COMMIT;\n"
    has_backslashes: ClassVar[bool] = False  # a backslash in a text literal escapes the next character

    @staticmethod
    @abstractmethod
    def table(model: TableModel) -> Sql:
        """Return the quoted name of the table on the target."""

    def column(self, column: Column) -> Sql:
        """Return the quoted name of the column on the target."""
        return quote(column.name)

    @abstractmethod
    def literal(self, value: Any, column: Column) -> Sql:
        """Return the literal of a value in a key, for the condition that identifies a row. The value has a plain type
        (int, float, str, bytes).
        """

    @abstractmethod
    def literals(self, target: Target, model: TableModel) -> dict[Sql, Sql]:
        """Return the table's writable columns: quoted name → SQL with which the target prints the value as a literal.

        The literal of a NULL is the text NULL. Raises TargetError if the target reports an error.
        """

    def rows(self, target: Target, sql: Sql) -> list[tuple[Any, ...]]:
        """Execute a SELECT in the open transaction, and return its rows. Raises TargetError if the target fails."""
        with target.mapped_errors(), closing(target.connection.connection.cursor()) as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
