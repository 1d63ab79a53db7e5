"""Sums are made where both sides define a table alike; of a piece that differs rows of some buckets are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.result_set.columns import SESSION
from rplctl.schema.bounds import Bound
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.schema.source_catalog import read_table
from rplctl.verify import source_side
from rplctl.verify.pair import Pair
from rplctl.verify.progress import PiecesDone, UnequalRows
from rplctl.verify.server_sums import RowSum, unequal_rows
from tests.kit.servers import MariadbServer

COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="v", type="varchar", length=9, charset="latin1"),
    Column(name="g", type="float"),
)
MODEL = TableModel(
    database="d", name="t", columns=COLUMNS, keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),)
)


def sum_of(source: TableModel, target: TableModel, kind: str = "mysql") -> RowSum | None:
    return RowSum.of(Pair.of(source, target, kind))


def test_what_is_not_defined_alike_or_printed_with_a_loss_is_not_summed() -> None:
    found = sum_of(MODEL, MODEL)
    assert found is not None and found.key == "CRC32(`id`)"
    assert found.row == (
        "CRC32(CONCAT_WS('#', `id`, IFNULL(CRC32(`v`), 'N'), IFNULL((`g` * 1e0), 'N'))) * (CRC32(`id`) + 1)"
    )
    more = replace(MODEL, columns=(*COLUMNS, Column(name="own", type="int")))
    assert sum_of(MODEL, more) is not None
    others = [
        replace(MODEL, keys=()),
        replace(MODEL, columns=(COLUMNS[0], replace(COLUMNS[1], charset="utf8mb4"), COLUMNS[2])),
        replace(MODEL, columns=(COLUMNS[0], COLUMNS[1], replace(COLUMNS[2], type="double"))),
        replace(MODEL, columns=(COLUMNS[0], replace(COLUMNS[1], name="w"), COLUMNS[2])),
    ]
    assert [sum_of(MODEL, other) for other in others] == [None] * 4
    point = replace(MODEL, columns=(COLUMNS[0], Column(name="p", type="point")))
    assert sum_of(point, point) is None and sum_of(MODEL, MODEL, "sqlite") is None


def test_rows_of_unequal_buckets_are_read_on_both_sides(tmp_path: Path) -> None:
    done = PiecesDone(tmp_path / "none", "")
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
    assert unequal_rows(source, found((9, 7), []), by, 0, seen.append, done) == (9, [])
    rows, unlike = unequal_rows(source, found((8, 6), [(1, 4, 5), (3, 4, 3)]), by, 0, seen.append, done)
    assert (rows, seen) == (9, [18, 17])
    assert unlike == [UnequalRows(after=None, upto=None, buckets=(2, 3), rows=9)]
    assert by.where(unlike[0]) == " WHERE (CRC32(`id`) & 4095) IN (2, 3)"
    assert unequal_rows(source, found((8, 6), [(1, 4, 5), (2, 5, 2)]), by, 0, seen.append, done) == (9, [])


class Killed(BaseException):
    pass


class KilledAfter(PiecesDone):
    """The verify ends when so many pieces more are kept."""

    left = 0

    def keep(self, upto: Bound, rows: int, unlike: list[UnequalRows]) -> None:
        super().keep(upto, rows, unlike)
        self.left -= 1
        if not self.left:
            raise Killed


@pytest.mark.mariadb
def test_a_table_that_was_cut_after_any_piece_goes_on_behind_it(
    mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_side, "PIECE_BYTES", 1 << 10)  # 1,000 rows at least
    mariadb.sql(
        "CREATE OR REPLACE DATABASE ours; CREATE OR REPLACE DATABASE theirs;"
        "CREATE TABLE ours.t (a VARCHAR(9), b INT, v TEXT, PRIMARY KEY (a, b)) CHARSET latin1;"
        "INSERT INTO ours.t SELECT seq % 7, seq, REPEAT('x', 50) FROM mysql.seq_1_to_9500;"
        "CREATE TABLE theirs.t LIKE ours.t; INSERT INTO theirs.t SELECT * FROM ours.t;"
        "UPDATE theirs.t SET v = 'y' WHERE b IN (1, 4000); DELETE FROM theirs.t WHERE b = 9498"
    )
    with mariadb.connect() as one, mariadb.connect() as two, mariadb.connect() as three:
        asked: list[str] = []

        def asks(connection: Any, counted: bool = False) -> Any:
            def ask(sql: str) -> Any:
                asked.extend([sql] * (counted and "GROUP BY" not in sql))
                with connection.cursor() as cursor:
                    cursor.execute(sql)
                    return cursor.fetchall()

            ask(SESSION)
            return ask

        source: Any = SimpleNamespace(query=asks(one, counted=True), about=asks(two))
        model = read_table(source.about, "ours", "t")[0]
        by = sum_of(model, replace(model, database="theirs"))
        assert by is not None
        seen: list[int] = []
        asked.clear()
        whole = unequal_rows(source, asks(three), by, 0, seen.append, PiecesDone(tmp_path / "whole", ""))
        pieces = len(asked)
        assert whole[0] == 9500 and len(whole[1]) == 3 and pieces == 10
        for number in range(1, pieces):
            path = tmp_path / f"cut {number}"
            for left in (number, 1):  # killed again after one piece more, or at its end
                asked.clear()
                killed = KilledAfter(path, "definition")
                killed.left = left
                try:
                    unequal_rows(source, asks(three), by, 0, seen.append, killed)
                except Killed:
                    assert len(asked) <= left + 1, "not more than a piece is read again"
            went_on = PiecesDone(path, "definition")
            asked.clear()
            assert unequal_rows(source, asks(three), by, 0, seen.append, went_on) == whole
            assert len(asked) <= pieces - number
            assert PiecesDone(path, "another").upto is None
