"""DuckDB's rows as SQL text: what each type prints, quoted, is what it reads.

Tables are named with the catalog that the file has for us, and each text says how to open it so: under the file's own
name a database of the same name would be ambiguous.
"""

from __future__ import annotations

from typing import Final

from rplctl.schema.model import TableModel
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

    def literals(self, target: Target, model: TableModel) -> dict[str, str]:
        """Text with what is no printable ASCII in it goes as bytes."""
        with mapped_errors():
            found = present_columns(driver_of(target.connection), model)
        return {quote(name): f"coalesce({_literal(quote(name), kind)}, 'NULL')" for name, kind in found.items()}


def _literal(name: str, kind: str) -> str:
    if kind == "BLOB":
        return f"'unhex(''' || hex({name}) || ''')'"
    text = f"CAST({name} AS VARCHAR)"
    plain = f"'''' || replace({text}, '''', '''''') || ''''"
    if kind not in ("VARCHAR", "JSON"):
        return plain
    return f"CASE WHEN {text} ~ '[^ -~]' THEN 'decode(unhex(''' || hex({text}) || '''))' ELSE {plain} END"


UNDO: Final = DuckdbUndo()
