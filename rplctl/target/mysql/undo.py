"""Rows of MySQL and MariaDB as SQL text: text and bytes in hex of the column's own character set, so all is ASCII."""

from __future__ import annotations

from typing import Any, Final

from rplctl.schema.model import CHARACTER_TYPES, INTEGER_BITS, TEMPORAL_TYPES, Column, TableModel
from rplctl.sql_text import word
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
    def table(model: TableModel) -> str:
        return table_name(model).decode()

    def column(self, column: Column) -> str:
        return quote(column.name).decode()

    def literal(self, value: Any, column: Column) -> str:
        if isinstance(value, str) and column.type in CHARACTER_TYPES:
            return f"_utf8mb4 X'{value.encode('utf-8', 'surrogateescape').hex()}'"
        return comparand(value, column).decode()

    def literals(self, target: Target, model: TableModel) -> dict[str, str]:
        return {self.column(c): self._text(c) for c in model.columns if c.generated is None}

    def _text(self, column: Column) -> str:
        name, kind = self.column(column), column.type
        if kind in _NUMBERS:
            text = f"CAST({name} AS CHAR)"
        elif kind in _NUMBERED:
            text = f"CAST({name} + 0 AS CHAR)"
        elif kind == "float":
            text = f"QUOTE({name} * 1e0)"  # a sum of -0 and 0 is 0
        elif kind in _PRINTED:
            text = f"QUOTE({name})"
        elif kind == "json":
            text = f"CONCAT('_utf8mb4 X''', HEX(CAST({name} AS CHAR)), '''')"
        else:
            introducer = f"_{word(column.charset or 'utf8mb4')} " if kind in CHARACTER_TYPES else ""
            text = f"CONCAT('{introducer}X''', HEX({name}), '''')"
        return f"IF({name} IS NULL, 'NULL', {text})"


UNDO: Final = MysqlUndo()
