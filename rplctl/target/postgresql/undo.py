"""Writes PostgreSQL's rows as SQL literals, for the statements that undo a repair (target/undo.py).

A literal is the quoted text that PostgreSQL prints for the value. PostgreSQL can read this text again for each type.
"""

from __future__ import annotations

from typing import Any, Final

from rplctl.schema.model import Column, TableModel
from rplctl.sql_text import Sql, standard_literal, written
from rplctl.target.base import Target
from rplctl.target.ddl_parts import quote
from rplctl.target.postgresql.ddl_type import table
from rplctl.target.postgresql.values import parameter
from rplctl.target.undo import UndoSql


class PostgresqlUndo(UndoSql):
    begin = "BEGIN;\nSET LOCAL standard_conforming_strings = on;\nSET CONSTRAINTS ALL DEFERRED;\n"
    table = staticmethod(table)

    def literal(self, value: Any, column: Column) -> Sql:
        return standard_literal(parameter(value, column) or "")

    def literals(self, target: Target, model: TableModel) -> dict[Sql, Sql]:
        found = self.rows(
            target,
            written(
                "SELECT attname FROM pg_attribute WHERE attrelid = {}::regclass AND attnum > 0 AND NOT "
                "attisdropped AND attgenerated = '' ORDER BY attnum",
                standard_literal(table(model)),
            ),
        )
        return {quote(column): written("quote_nullable({}::text)", quote(column)) for (column,) in found}


UNDO: Final = PostgresqlUndo()
