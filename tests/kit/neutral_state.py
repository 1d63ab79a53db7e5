r"""What a server itself printed of its tables, and the same of a SQLite target: the two are compared value by value.

A state file holds per table `#TABLE\t<database>\t<table>…`, a line of `hex(column):class` and one line per row.
Classes: int, dec, tmp, oth (text as printed), float, double (numbers), bit (hex of the number), txt and json (hex of
UTF-8), bin, geo and vec (hex of the bytes); NULL is `NULL`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rplctl.schema.naming import physical_name
from rplctl.schema.structure import END_OF_TIME, ROW_END
from rplctl.target.ddl_parts import quote
from tests.kit.servers import MariadbServer

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class TableState:
    database: str
    table: str
    columns: tuple[tuple[str, str], ...]  # (name, class)
    rows: Rows

    @property
    def name(self) -> str:
        return f"{self.database}.{self.table}"


def parse_state(text: str) -> Iterator[TableState]:
    for block in text.split("#TABLE\t")[1:]:
        head, header, *lines = block.removesuffix("\n").split("\n")
        database, table = head.split("\t")[:2]
        pairs = [column.split(":") for column in header.split("\t")]
        columns = tuple((bytes.fromhex(name).decode(), kind) for name, kind in pairs)
        rows = (zip(line.split("\t"), columns, strict=True) for line in lines)
        yield TableState(
            database, table, columns, Counter(tuple(_number(v, kind) for v, (_, kind) in row) for row in rows)
        )


def _number(text: str, kind: str) -> Any:
    return float(text) if kind in ("float", "double") and text != "NULL" else text


def shown(value: Any, kind: str) -> Any:
    """A stored value as the state file shows it; one of another type than the class wants shows as itself."""
    if value is None:
        return "NULL"
    if kind in ("float", "double"):
        return float(value)
    if kind == "bit":
        return f"{int(value):X}"
    if kind in ("txt", "json") and isinstance(value, str):
        return value.encode().hex().upper()
    if kind in ("bin", "geo", "vec") and isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, bytes) or kind in ("txt", "json", "bin", "geo", "vec"):
        return repr(value)
    return f"{value:04d}" if kind == "tmp" and isinstance(value, int) else str(value)


def sqlite_rows(target: sqlite3.Connection, state: TableState) -> Rows:
    """The target's rows; of a system-versioned table only the current ones where the state has no more."""
    name = quote(physical_name(state.database, state.table))
    there = {row[1] for row in target.execute(f"PRAGMA table_info({name})")}
    where = ""
    if ROW_END in there and ROW_END not in dict(state.columns):
        where = f" WHERE {quote(ROW_END)} = '{END_OF_TIME}'"
    chosen = ", ".join(quote(column) for column, _ in state.columns)
    kinds = [kind for _, kind in state.columns]
    found = target.execute(f"SELECT {chosen} FROM {name}{where}")
    return Counter(tuple(shown(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in found)


def differences(target: sqlite3.Connection, state: str, without: frozenset[str] = frozenset()) -> list[str]:
    """Tables whose rows differ, each with up to two rows that only one side has."""
    found = []
    for expected in parse_state(state):
        if expected.name in without or expected.table in without:
            continue
        rows = sqlite_rows(target, expected)
        if rows != expected.rows:
            missing, surplus = list(expected.rows - rows)[:2], list(rows - expected.rows)[:2]
            found.append(f"{expected.name}: the source has {missing}, the target {surplus}"[:2000])
    return found


def neutral_class(data_type: str, character_set: str | None) -> tuple[str, str]:
    """(class, SQL of the value as text) of a column; `{}` stands for its name."""
    if data_type in ("tinyint", "smallint", "mediumint", "int", "bigint"):
        return "int", "{}"
    if data_type == "bit":
        return "bit", "HEX({}+0)"
    if data_type in ("float", "double"):
        return data_type, "{}*1e0"  # 5.7 has no CAST to DOUBLE
    if data_type in ("date", "time", "datetime", "timestamp", "year"):
        return "tmp", "CONCAT({})"  # YEAR 0 is 0000
    if data_type == "json":
        return "json", "HEX(CAST({} AS CHAR CHARACTER SET utf8mb4))"
    if data_type == "decimal":
        return "dec", "CAST(-(-{}) AS CHAR)"  # without the zeros of ZEROFILL
    if character_set or data_type in ("enum", "set"):
        return "txt", "HEX(CONVERT({} USING utf8mb4))"
    if data_type in ("uuid", "inet4", "inet6"):
        return "dec", "CAST({} AS CHAR)"
    return "bin", "HEX({})"


def state_of(server: MariadbServer, databases: list[str]) -> Iterator[str]:
    """Yield the lines of a state file, as the server prints its tables."""
    for database in databases:
        found = server.sql(
            "SELECT table_name, table_type FROM information_schema.tables WHERE "
            f"table_schema='{database}' AND table_type <> 'SEQUENCE' ORDER BY 1"
        )
        for table, kind in found:
            columns = server.sql(
                "SELECT column_name, data_type, character_set_name FROM information_schema.columns WHERE "
                f"table_schema='{database}' AND table_name='{table}' ORDER BY ordinal_position"
            )
            rows = f"`{database}`.`{table}`"
            if kind == "SYSTEM VERSIONED":
                if "PERIOD FOR SYSTEM_TIME" not in server.sql(f"SHOW CREATE TABLE {rows}")[0][1]:
                    columns += [(name, "timestamp", None) for name in ("row_start", "row_end")]
                rows += " FOR SYSTEM_TIME ALL"
            classes = [neutral_class(row[1], row[2]) for row in columns]
            yield f"#TABLE\t{database}\t{table}\n"
            yield "\t".join(f"{row[0].encode().hex()}:{c}" for row, (c, _) in zip(columns, classes, strict=True)) + "\n"
            values = ", ".join(sql.format(f"`{row[0]}`") for row, (_, sql) in zip(columns, classes, strict=True))
            for row in server.sql(f"SELECT {values} FROM {rows}"):
                yield "\t".join("NULL" if value is None else repr_of(value) for value in row) + "\n"


def repr_of(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)
