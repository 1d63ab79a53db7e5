"""Recorded logs of real servers, read as changes: carried out one after another they make what the servers had."""

from __future__ import annotations

import lzma
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.data_source.json_rows import dict_rows
from rplctl.data_source.options import QueryOptions
from rplctl.data_source.walk import LogWalk
from rplctl.decode.changes import Changes, changes_of
from rplctl.errors import SourceError
from rplctl.schema.statement import TableName
from tests.kit.recorded_state import DATA, unpacked_log

CASES = {  # how many tables can be compared: that no DDL touched, and whose every image is whole
    "ma1011-torture-row": 254,
    "my97-torture-row": 250,
    "my97-torture-rowsquery": 27,
    "my97-torture-nogtid": 27,
    "my97-torture-compress-l1": 3,
    "ma1011-sysbench-mix-small": 3,
    "my97-sysbench-mix-small": 3,
}


def changes(path: Path, **options: str) -> list[Changes]:
    walk = LogWalk(QueryOptions.parse({"path": str(path), **options}))
    return [changes_of(piece) for piece in walk.to()]


def in_order(found: Changes) -> list[tuple[int, int, TableName, Any, Any]]:
    events = []
    for part in found.tables:
        name = part.rows.model.database, part.rows.model.name
        before, after = (
            list(dict_rows(part.rows, images)) for images in (part.rows.images.before, part.rows.images.after)
        )
        places = zip(part.position.tolist(), part.number.tolist(), strict=True)
        events += [(at, n, name, b, a) for (at, n), b, a in zip(places, before, after, strict=True)]
    return sorted(events, key=lambda event: event[:2])


@pytest.mark.long("The small logs stay.", keeps=r"^(?!.*torture-row$)")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_changes_of_a_recorded_log_make_the_rows_that_its_server_had(case: str, tmp_path: Path) -> None:
    unpacked_log(case, tmp_path)
    tables: dict[TableName, Counter[tuple[tuple[str, Any], ...]]] = {}
    altered: set[TableName] = set()
    for found in changes(tmp_path):
        for statement in found.statements:
            name = statement.database, statement.table
            if statement.kind in ("truncate", "drop"):
                tables.pop(name, None)
            if statement.kind == "ddl" and not statement.text.upper().startswith("CREATE"):
                altered.add(name)
        for _, _, name, before, after in in_order(found):
            rows = tables.setdefault(name, Counter())
            if before is not None:
                rows[tuple(before.items())] -= 1
            if after is not None:
                rows[tuple(after.items())] += 1
    compared = 0
    for name, kinds, expected in states(case):
        rows = tables.get(name, Counter())
        if name in altered | CASCADES or not rows or any(len(row) != len(kinds) for row in rows):
            continue  # the log has not all of it
        assert not -rows, f"{name}: rows were changed that never were there"
        ours = Counter("\t".join(map(shown, (value for _, value in row), kinds)) for row in rows.elements())
        wanted = Counter("\t".join(map(as_python, row.split("\t"), kinds)) for row in expected)
        assert ours == wanted, name
        compared += 1
    assert compared >= CASES[case]


CASCADES = {
    ("tt_keys", "child"),
    ("tt_keys", "child2"),
    ("tt_ddl", "a4"),
}  # what foreign keys did; what had another name before


def as_python(text: str, kind: str) -> str:
    if text == "0000" and kind != "bin":  # a year
        return "0"
    return str(float(text)) if kind in ("float", "double") and text != "NULL" else text


def states(case: str) -> list[tuple[TableName, list[str], list[str]]]:
    path = next(p for p in (DATA / f"{case}.state.xz", DATA / "binlog" / f"{case}.state.xz") if p.exists())
    found = []
    for block in lzma.decompress(path.read_bytes()).decode().split("#TABLE\t")[1:]:
        head, columns, *rows = block.removesuffix("\n").split("\n")
        database, table = head.split("\t")[:2]
        found.append(((database, table), [column.split(":")[1] for column in columns.split("\t")], rows))
    return found


def shown(value: Any, kind: str) -> str:
    """As the recordings have it (tests/kit/recorded_state.py)."""
    if value is None:
        return "NULL"
    if kind in ("txt", "json"):
        return str(value).encode().hex().upper()
    if kind in ("bin", "geo", "vec"):
        return bytes(value).hex().upper()
    if kind == "bit":
        return f"{value:X}"
    return str(value)


def test_a_task_that_does_not_see_the_log_says_what_every_executor_has_to_see(tmp_path: Path) -> None:
    unpacked_log("ma1011-sysbench-mix-small", tmp_path)
    (piece, *_) = LogWalk(QueryOptions.parse({"path": str(tmp_path)})).to()
    with pytest.raises(SourceError, match="No such file") as refused:
        changes_of(replace(piece, path=str(tmp_path / "elsewhere" / piece.log_name)))
    assert "make the logs available under this path on every executor" in refused.value.hint
    assert "for a live server: the folder of option spool" in refused.value.hint
