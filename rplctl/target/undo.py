"""The interface that writes rows of a target as SQL text, so that the repairs of `rplctl repair` can be undone.

A kind's folder defines `UNDO`. Invariant: literals are lossless; executing them restores the same bytes, numbers and
times.
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
        """Return the table's name, quoted."""

    def column(self, column: Column) -> Sql:
        """Return the column's name, quoted."""
        return quote(column.name)

    @abstractmethod
    def literal(self, value: Any, column: Column) -> Sql:
        """Return a key's plain value (target.compared) as a literal for the condition that identifies its row."""

    @abstractmethod
    def literals(self, target: Target, model: TableModel) -> dict[Sql, Sql]:
        """Return the quoted names of the table's writable columns, each with SQL that computes its value's literal as
        text.

        The literal of a NULL is the text NULL. Raises TargetError if the target reports an error.
        """

    def rows(self, target: Target, sql: Sql) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT in the open transaction. Raises TargetError if the target reports an error."""
        with target.mapped_errors(), closing(target.connection.connection.cursor()) as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
