"""The DDL of recorded binary logs, with the session it ran in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rplctl.schema.context import DdlContext

DATA = Path(__file__).parents[1] / "data"
VERSIONS = {"ddl_mariadb.sql": "10.11.19-MariaDB-log", "ddl_mysql.sql": "9.7.4"}


def recorded(name: str) -> Iterator[tuple[str, str, DdlContext]]:
    """(statement, default database, context)."""
    text = (DATA / name).read_text()
    for block in text.split("\n;;\n"):
        lines = block.split("\n")
        while lines and (lines[0].startswith("-- Distinct") or lines[0].startswith("-- after")):
            lines.pop(0)
        if any(lines):
            database, _, sql_mode = lines[0].removeprefix("-- ").rpartition(" ")
            yield (
                "\n".join(lines[1:]),
                database,
                DdlContext(sql_mode=int(sql_mode), server_version=VERSIONS[name], charset="utf8mb4"),
            )
