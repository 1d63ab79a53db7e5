"""What a recorded source had at its end (tests/data/*.state.xz), compared by value with a server that applied its log.

Per table: a header `hex(column):class`, then its rows, as the source itself printed them.
"""

from __future__ import annotations

import contextlib
import lzma
from pathlib import Path

from tests.kit.servers import MariadbServer

DATA = Path(__file__).parents[1] / "data"

_SHOWN = {  # class → how the server prints the column
    "int": "{0}+0",
    "dec": "{0}",
    "float": "CAST({0} AS DOUBLE)",
    "double": "{0}",
    "bit": "HEX({0}+0)",
    "tmp": "CAST({0} AS CHAR)",
    "txt": "HEX(CONVERT({0} USING utf8mb4))",
    "json": "HEX(CONVERT({0} USING utf8mb4))",
    "bin": "HEX({0})",
    "geo": "HEX({0})",
    "vec": "HEX({0})",
    "oth": "CAST({0} AS CHAR)",
}


def unpacked_log(case: str, folder: Path) -> Path:
    """The recorded binary log as a file of its own, under the name its source gave it."""
    found = [path for path in (DATA / f"{case}.xz", DATA / "binlog" / f"{case}.xz") if path.exists()]
    name = "mysql-bin.000001" if case.startswith("ma") else "binlog.000001"
    (folder / name).write_bytes(lzma.decompress(found[0].read_bytes()))
    (folder / f"{name.partition('.')[0]}.index").write_text(f"./{name}\n")
    return folder / name


def differences(case: str, server: MariadbServer) -> list[str]:
    """One line per table that is not as the source had it; the number of tables compared is never zero."""
    blocks = lzma.decompress((DATA / f"{case}.state.xz").read_bytes()).decode().split("#TABLE\t")[1:]
    assert blocks
    found = []
    for block in blocks:
        head, columns, *rows = block.removesuffix("\n").split("\n")
        database, table = head.split("\t")[:2]
        present = _rows(server, database, table, columns.split("\t"))
        if sorted(present) != sorted(rows):
            missing, extra = set(rows) - set(present), set(present) - set(rows)
            found.append(f"{database}.{table}: lacks {sorted(missing)[:2]}, has {sorted(extra)[:2]}"[:600])
    return found


def _rows(server: MariadbServer, database: str, table: str, columns: list[str]) -> list[str]:
    expressions = []
    for column in columns:
        name, kind = column.split(":")
        quoted = bytes.fromhex(name).decode().replace("`", "``")
        expressions.append(_SHOWN[kind].format(f"`{quoted}`"))
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
        connection.decoders = {}  # everything as the server prints it
        cursor.execute("SET sql_mode=''")
        cursor.execute(f"SELECT {', '.join(expressions)} FROM `{database}`.`{table.replace('`', '``')}`")
        return ["\t".join("NULL" if v is None else _text(v) for v in row) for row in cursor.fetchall()]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
