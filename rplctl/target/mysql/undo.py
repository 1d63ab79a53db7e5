"""Writes rows of MySQL and MariaDB as SQL literals, for the statements that undo a repair (`target.undo`).

Texts and bytes are written in hex, in the column's character set, so the SQL is ASCII.
"""

from __future__ import annotations

from typing import Any, Final

from rplctl.schema.model import CHARACTER_TYPES, INTEGER_BITS, TEMPORAL_TYPES, Column, TableModel
from rplctl.sql_text import NOTHING, Sql, as_text, utf8_literal, word, written
from rplctl.target.base import Target
from rplctl.target.mysql.rows import table_name
from rplctl.target.mysql.values import comparand, quote
from rplctl.target.undo import UndoSql

_NUMBERS: Final = frozenset({*INTEGER_BITS, "decimal", "year"})
_NUMBERED: Final = frozenset({"bit", "enum", "set"})
_PRINTED: Final = TEMPORAL_TYPES | {"inet4", "inet6", "uuid", "double"}


class MysqlUndo(UndoSql):
    has_backslashes = True
    begin = (
        "SET NAMES utf8mb4;\nSET SESSION sql_mode='', SESSION foreign_key_checks=0, SESSION time_zone='+00:00';\n"
        "START TRANSACTION;\n"
    )

    @staticmethod
    def table(model: TableModel) -> Sql:
        return as_text(table_name(model))

    def column(self, column: Column) -> Sql:
        return as_text(quote(column.name))

    def literal(self, value: Any, column: Column) -> Sql:
        if isinstance(value, str) and column.type in CHARACTER_TYPES:
            return utf8_literal(value)
        return as_text(comparand(value, column))

    def literals(self, target: Target, model: TableModel) -> dict[Sql, Sql]:
        return {self.column(c): self._text(c) for c in model.columns if c.generated is None}

    def _text(self, column: Column) -> Sql:
        name, kind = self.column(column), column.type
        if kind in _NUMBERS:
            text = written("CAST({} AS CHAR)", name)
        elif kind in _NUMBERED:
            text = written("CAST({} + 0 AS CHAR)", name)
        elif kind == "float":
            text = written("QUOTE({} * 1e0)", name)  # `* 1e0`, because `+ 0` would turn -0 into 0
        elif kind in _PRINTED:
            text = written("QUOTE({})", name)
        elif kind == "json":
            text = written("CONCAT('_utf8mb4 X''', HEX(CAST({} AS CHAR)), '''')", name)
        else:
            charset = word(column.charset or "utf8mb4")
            introducer = written("_{} ", charset) if kind in CHARACTER_TYPES else NOTHING
            text = written("CONCAT('{}X''', HEX({}), '''')", introducer, name)
        return written("IF({} IS NULL, 'NULL', {})", name, text)


UNDO: Final = MysqlUndo()
