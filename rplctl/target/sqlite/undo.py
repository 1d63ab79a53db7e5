"""Writes SQLite's rows as SQL literals, for the statements that undo a repair (target/undo.py).

A literal has the format of SQLite's shell. It depends on the type of the stored value, not on the type of the column.
"""

from __future__ import annotations

from typing import Any, Final

from rplctl.schema.model import Column, TableModel
from rplctl.sql_text import Sql, hex_literal, number, standard_literal, written
from rplctl.target.base import Target
from rplctl.target.ddl_parts import quote
from rplctl.target.sqlite.ddl import table
from rplctl.target.undo import UndoSql


class SqliteUndo(UndoSql):
    begin = "PRAGMA foreign_keys=OFF;\nBEGIN;\n"
    table = staticmethod(table)

    def literal(self, value: Any, column: Column) -> Sql:
        if isinstance(value, bytes):
            return hex_literal(value)
        if not isinstance(value, str):
            return number(value)
        raw = value.encode("utf-8", "surrogateescape")
        return standard_literal(value) if value.isprintable() else written("CAST({} AS TEXT)", hex_literal(raw))

    def literals(self, target: Target, model: TableModel) -> dict[Sql, Sql]:
        """Return the table's quoted columns, each with the SQL that computes the literal of its value.

        Text that has other characters than printable ASCII becomes hexadecimal digits, because SQLite's quote() ends at
        a NUL.
        """
        found = self.rows(target, written("PRAGMA main.table_xinfo({})", table(model)))
        return {quote(name): _literal(quote(name)) for _, name, *_, hidden in found if not hidden}


def _literal(name: Sql) -> Sql:
    return written(
        "CASE WHEN typeof({0}) = 'text' AND ({0} GLOB '*[^ -~]*' OR length({0}) <> length(CAST({0} AS BLOB))) "
        "THEN 'CAST(x''' || hex({0}) || ''' AS TEXT)' WHEN {0} IN (9e999, -9e999) "
        "THEN replace(CAST({0} AS TEXT), 'Inf', '9e999') ELSE quote({0}) END",
        name,
    )


UNDO: Final = SqliteUndo()
