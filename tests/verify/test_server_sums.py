"""Sums are made where both sides define a table alike; of a piece that differs rows of some buckets are read."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.verify.pair import Pair
from rplctl.verify.server_sums import RowSum, unequal_rows

COLUMNS = (Column("id", "int", nullable=False), Column("v", "varchar", 9, charset="latin1"), Column("g", "float"))
MODEL = TableModel("d", "t", COLUMNS, (Key("PRIMARY", "primary", (KeyPart("id"),)),))


def sum_of(source: TableModel, target: TableModel, kind: str = "mysql") -> RowSum | None:
    return RowSum.of(Pair.of(source, target, kind))


def test_what_is_not_defined_alike_or_printed_with_a_loss_is_not_summed() -> None:
    found = sum_of(MODEL, MODEL)
    assert found is not None and found.key == "CRC32(`id`)"
    assert found.row == (
        "CRC32(CONCAT_WS('#', `id`, IFNULL(CRC32(`v`), 'N'), IFNULL((`g` * 1e0), 'N'))) * (CRC32(`id`) + 1)"
    )
    more = replace(MODEL, columns=(*COLUMNS, Column("own", "int")))
    assert sum_of(MODEL, more) is not None
    others = [
        replace(MODEL, keys=()),
        replace(MODEL, columns=(COLUMNS[0], replace(COLUMNS[1], charset="utf8mb4"), COLUMNS[2])),
        replace(MODEL, columns=(COLUMNS[0], COLUMNS[1], replace(COLUMNS[2], type="double"))),
        replace(MODEL, columns=(COLUMNS[0], replace(COLUMNS[1], name="w"), COLUMNS[2])),
    ]
    assert [sum_of(MODEL, other) for other in others] == [None] * 4
    point = replace(MODEL, columns=(COLUMNS[0], Column("p", "point")))
    assert sum_of(point, point) is None and sum_of(MODEL, MODEL, "sqlite") is None


def test_rows_of_unequal_buckets_are_read_on_both_sides() -> None:
    by = sum_of(MODEL, MODEL)
    assert by is not None
    seen: list[int] = []

    def found(totals: tuple[int, int], buckets: list[tuple[int, int, int]]) -> Any:
        def ask(sql: str) -> Any:
            if "LIMIT 1 OFFSET" in sql:
                return []
            return buckets if "GROUP BY" in sql else [totals]

        return ask

    source: Any = SimpleNamespace(query=found((9, 7), [(1, 4, 5), (2, 5, 2)]), about=lambda _: [(100, 900)])
    assert unequal_rows(source, found((9, 7), []), by, 0, seen.append) == (9, [])
    rows, unlike = unequal_rows(source, found((8, 6), [(1, 4, 5), (3, 4, 3)]), by, 0, seen.append)
    assert (rows, seen) == (9, [18, 17])
    assert [(found.where, found.rows) for found in unlike] == [(" WHERE (CRC32(`id`) & 4095) IN (2, 3)", 9)]
    assert unequal_rows(source, found((8, 6), [(1, 4, 5), (2, 5, 2)]), by, 0, seen.append) == (9, [])
