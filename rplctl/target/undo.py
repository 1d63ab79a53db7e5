"""How a kind of target writes its rows as SQL text: what `rplctl repair` takes back; `UNDO` in a kind's folder.

Invariant: a literal is lossless: the statement that brings it back makes the same bytes, numbers and times of it.
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
    begin: ClassVar[str]  # statements around those of one transaction
    end = "COMMIT;\n"
    has_backslashes: ClassVar[bool] = False  # in a text one hides what is behind it

    @staticmethod
    @abstractmethod
    def table(model: TableModel) -> Sql:
        """Return the table's name, quoted."""

    def column(self, column: Column) -> Sql:
        """Return the column's name, quoted."""
        return quote(column.name)

    @abstractmethod
    def literal(self, value: Any, column: Column) -> Sql:
        """Return a literal of a key's plain value (target.compared), to find a row by."""

    @abstractmethod
    def literals(self, target: Target, model: TableModel) -> dict[Sql, Sql]:
        """Columns of the target's table that can be written, quoted: SQL that gives the literal of each as text, NULL
        where it is that. Raises TargetError.
        """

    def rows(self, target: Target, sql: Sql) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT in the open transaction. Raises TargetError."""
        with target.mapped_errors(), closing(target.connection.connection.cursor()) as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
