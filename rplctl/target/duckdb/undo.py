"""Writes DuckDB's rows as SQL literals, for the statements that undo a repair (`target.undo`).

A literal is the quoted text that DuckDB prints for the value. DuckDB can read this text back for each type. The names
of tables begin with rplctl's catalog name for the file, and each SQL file begins with the ATTACH for this catalog name.
With the file's own name as catalog, a database with the same name would be ambiguous.
"""

from __future__ import annotations

from typing import Final

from rplctl.schema.model import TableModel
from rplctl.sql_text import Sql, written
from rplctl.target.base import Target
from rplctl.target.ddl_parts import quote
from rplctl.target.duckdb.connection import driver_of
from rplctl.target.duckdb.ddl_type import CATALOG, literal, table
from rplctl.target.duckdb.errors import mapped_errors
from rplctl.target.duckdb.rows import present_columns
from rplctl.target.undo import UndoSql


class DuckdbUndo(UndoSql):
    begin = f"-- in DuckDB, first: ATTACH 'FILE' AS {CATALOG};\nBEGIN TRANSACTION;\n"
    table = staticmethod(table)
    literal = staticmethod(literal)

    def literals(self, target: Target, model: TableModel) -> dict[Sql, Sql]:
        """Return the table's columns: quoted name → SQL with which DuckDB prints the value as a literal. A text with
        other characters than printable ASCII is printed as bytes.
        """
        with mapped_errors():
            found = present_columns(driver_of(target.connection), model)
        return {
            quote(name): written("coalesce({}, 'NULL')", _literal(quote(name), kind)) for name, kind in found.items()
        }


def _literal(name: Sql, kind: str) -> Sql:
    if kind == "BLOB":
        return written("'unhex(''' || hex({}) || ''')'", name)
    text = written("CAST({} AS VARCHAR)", name)
    plain = written("'''' || replace({}, '''', '''''') || ''''", text)
    if kind not in ("VARCHAR", "JSON"):
        return plain
    return written("CASE WHEN {} ~ '[^ -~]' THEN 'decode(unhex(''' || hex({}) || '''))' ELSE {} END", text, text, plain)


UNDO: Final = DuckdbUndo()
