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
