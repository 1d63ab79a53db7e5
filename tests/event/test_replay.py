"""The promise of the whole decoder: replaying the row events of a real source gives the rows the source had.

Recorded from MariaDB 10.11.19 and MySQL 9.7.4: every column type, charset and row image either of them has. The state
files are what the servers themselves printed: per table a header `hex(column):class`, then its rows.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.event.replay import Models, Table, recorded, replay

# Row events alone do not make these tables: an ALTER rewrites their rows
_ALTERED = frozenset({"tt_ddl.a", "tt_ddl.a4", "tt_ddl.conv", "tt_ddl.lk", "tt_ddl.r", "tt_keys.part"})
_XA_ROLLBACK = frozenset({"tt_xa.x"})
_MARIADB = {
    "tt_img.i_minimal_g",  # MariaDB leaves a generated column out of a MINIMAL image
    "tt_keys.child",  # ON DELETE CASCADE happens in the engine, not in the log (MySQL 9.7 logs it)
    "tt_keys.child2",
    "tt_keys.ver",  # system versioning: two hidden columns that information_schema does not show
    "tt_trx.t",  # ROLLBACK TO SAVEPOINT
}
CASES = {
    "ma1011-torture-row": (_ALTERED | _XA_ROLLBACK | _MARIADB, 258),
    "my97-torture-row": (_ALTERED | _XA_ROLLBACK, 262),
    "my97-torture-rowsquery": (frozenset({"tt_keys.part"}), 30),
    "my97-torture-compress-l1": (frozenset(), 5),
}


def state_of(case: str) -> dict[str, tuple[list[tuple[str, str]], list[str]]]:
    """By `database.table`: the (column, class) pairs and the row lines."""
    found: dict[str, tuple[list[tuple[str, str]], list[str]]] = {}
    for block in recorded(f"{case}.state.xz").decode().split("#TABLE\t")[1:]:
        head, columns, *rows = block.removesuffix("\n").split("\n")
        database, table = head.split("\t")[:2]
        pairs = [column.split(":") for column in columns.split("\t")]
        found[f"{database}.{table}"] = ([(bytes.fromhex(name).decode(), kind) for name, kind in pairs], rows)
    return found


def shown(value: Any, kind: str) -> Any:
    """A decoded value as the state file shows it; floats stay numbers."""
    if value is None:
        return "NULL"
    if kind in ("float", "double"):
        return float(value)
    if kind == "bit":
        return f"{value:X}"
    if kind in ("txt", "json"):
        return value.encode().hex().upper()
    if kind in ("bin", "geo", "vec"):
        return value.hex().upper()
    return f"{value:04d}" if kind == "tmp" and isinstance(value, int) else str(value)


def rows_of(table: Table | None, columns: list[tuple[str, str]]) -> list[tuple[Any, ...]]:
    if table is None:
        return []
    numbers = [(table.names.index(name), kind) for name, kind in columns]
    return sorted((tuple(shown(row.get(number), kind) for number, kind in numbers) for row in table.rows), key=repr)


def expected_rows(lines: list[str], columns: list[tuple[str, str]]) -> list[tuple[Any, ...]]:
    kinds = [kind for _, kind in columns]
    split = [line.split("\t") for line in lines]
    return sorted((tuple(_number(v, k) for v, k in zip(row, kinds, strict=True)) for row in split), key=repr)


def _number(text: str, kind: str) -> Any:
    return float(text) if kind in ("float", "double") and text != "NULL" else text


@pytest.mark.long("The logs of MySQL stay; that of MariaDB is long.", keeps=r"^my97-torture-(rowsquery|compress-l1)$")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_replayed_rows_are_the_servers_rows(case: str) -> None:
    skip, count = CASES[case]
    models: Models | None = None
    if case.startswith("ma"):
        models = json.loads(recorded(f"{case}.columns.xz"))
    tables = replay(recorded(f"{case}.xz"), models, skip)
    state = state_of(case)
    different = [
        name
        for name, (columns, lines) in state.items()
        if name not in skip and rows_of(tables.get(name), columns) != expected_rows(lines, columns)
    ]
    assert different == []
    assert len(state.keys() - skip) == count
