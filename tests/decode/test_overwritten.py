"""A row that a later piece of the batch changes again is not written for the earlier one; all else is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from rplctl.applier.apply import bulk
from rplctl.decode.overwritten import can_be_overwritten, without_overwritten
from rplctl.errors import TargetError
from rplctl.event.fields import EncodedText, text_fields
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.target.base import BulkRows, EncodedRows, TableChunk
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.conftest import Factory
from tests.kit.servers import MariadbServer

NONE = EncodedRows((0, 1), 0, b"")


def rows(*numbers: int, text: bytes = b"a\\n%d") -> EncodedRows:
    lines = [text % number + b"\t%d\n" % number for number in numbers]
    return EncodedRows((1, 0), len(numbers), b"".join(lines), np.array(numbers, np.int64).tobytes())


def piece(
    table: str = "t", updates: EncodedRows = NONE, deletes: EncodedRows = NONE, inserts: EncodedRows = NONE
) -> list[TableChunk]:
    bulk = BulkRows(absent=NONE, deletes=deletes, updates=updates, inserts=inserts)
    return [
        TableChunk(database="d", table=table, change_count=9, foreign_keys_off=False, cascades_logged=False, bulk=bulk)
    ]


def updates_of(pieces: Iterable[list[TableChunk]]) -> list[bytes | memoryview]:
    return [chunk.bulk.updates.view for chunks in pieces for chunk in chunks if chunk.bulk is not None]


def test_an_update_goes_when_a_later_piece_updates_or_deletes_the_row() -> None:
    pieces = [piece(updates=rows(1, 2, 3, 4)), piece(updates=rows(2, 7)), piece(deletes=rows(3, 7))]
    assert updates_of(without_overwritten(pieces)) == [rows(1, 4).text, rows(2).text, b""]
    first = next(without_overwritten(pieces))[0].bulk
    assert first is not None
    assert first.updates == rows(1, 4)


def test_framed_rows_are_cut_where_they_end() -> None:
    columns: list[list[bytes | None]] = [[b"a\nb", None, b"\1" * 300], [b"1", b"2", b"3"]]

    def length_prefixed(*numbers: int) -> EncodedRows:
        fields = [text_fields([column[number - 1] for number in numbers]) for column in columns]
        text = b"".join(EncodedText(fields, length_prefixed=True))
        return EncodedRows((1, 0), len(numbers), text, np.array(numbers, np.int64).tobytes(), length_prefixed=True)

    pieces = [piece(updates=length_prefixed(1, 2, 3)), piece(updates=length_prefixed(2))]
    first = next(without_overwritten(pieces))[0].bulk
    assert first is not None and first.updates == length_prefixed(1, 3)


def test_an_insert_behind_an_update_makes_nothing_good() -> None:
    pieces = [piece(updates=rows(1, 2)), piece(inserts=rows(2))]
    assert list(without_overwritten(pieces)) == pieces


def test_an_insert_and_a_delete_stay_whatever_comes_later() -> None:
    pieces = [piece(inserts=rows(1), deletes=rows(2)), piece(updates=rows(1)), piece(updates=rows(2))]
    assert list(without_overwritten(pieces)) == pieces


def test_another_table_and_another_sign_are_other_rows() -> None:
    pieces = [piece(updates=rows(5)), piece("u", updates=rows(5)), piece(updates=rows(-5))]
    assert list(without_overwritten(pieces)) == pieces


def test_the_piece_keeps_what_the_source_did_in_all() -> None:
    pieces = without_overwritten([piece(updates=rows(1)), piece(updates=rows(1))])
    assert [chunk.change_count for chunks in pieces for chunk in chunks] == [9, 9]


@pytest.mark.parametrize(
    ("more", "can"),
    [
        ("", True),
        (", KEY (v)", True),
        (", UNIQUE (v)", False),
        (", FOREIGN KEY (v) REFERENCES p (id)", False),
    ],
)
def test_tables_where_rows_count_on_each_other_are_left_alone(more: str, can: bool) -> None:
    catalog = Catalog()
    for sql in ("CREATE TABLE p (id INT PRIMARY KEY)", f"CREATE TABLE t (id INT PRIMARY KEY, v INT{more})"):
        catalog = catalog.after(plan_ddl(sql, "d", DdlContext(), catalog))
    assert can_be_overwritten(catalog.tables["d", "t"]) is can


@pytest.fixture(scope="module")
def log(mariadb_factory: Factory[MariadbServer]) -> RelayGroups:
    """Few rows, changed again and again."""
    source = mariadb_factory()
    chosen = random.Random(7)
    changes = []
    for number in range(400):
        key = chosen.randrange(1, 30)
        changes.append(
            chosen.choice(
                [
                    f"UPDATE t SET v = '{number}' WHERE id = {key}",
                    f"UPDATE t SET v = '{number}' WHERE id = {key}",
                    f"REPLACE INTO t VALUES ({key}, 'new {number}')",
                    f"DELETE FROM t WHERE id = {key}",
                ]
            )
        )
    source.sql("CREATE DATABASE superseded")
    source.sql("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", "superseded")
    source.sql("INSERT INTO t SELECT seq, 'first' FROM seq_1_to_29", "superseded")
    source.sql("; ".join(changes), "superseded")
    return groups_of(source.binlog_files[-1])


@pytest.mark.long("One seed stays in make test.", keeps=r"^0$")
@pytest.mark.mariadb
@pytest.mark.parametrize("missing", [0, 9])
def test_a_target_ends_and_stops_as_without_it(
    tmp_path: Path,
    mariadb: MariadbServer,
    log: RelayGroups,
    monkeypatch: pytest.MonkeyPatch,
    missing: int,
) -> None:
    sent: list[int] = []

    def outcome(
        name: str, drop: Callable[[Sequence[list[TableChunk]]], Iterable[list[TableChunk]]]
    ) -> tuple[tuple[object, ...], int]:
        def counted(pieces: Sequence[list[TableChunk]]) -> list[list[TableChunk]]:
            kept = list(drop(pieces))
            sent.append(sum(c.bulk.updates.count for piece in kept for c in piece if c.bulk is not None))
            return kept

        sent.clear()
        mariadb.sql("DROP DATABASE IF EXISTS superseded; DROP DATABASE IF EXISTS rplctl")
        monkeypatch.setattr(bulk, "without_overwritten", counted)
        instance = Instance(tmp_path / name, log, target=mariadb.url())
        half = len(log.scan) // 2
        error: TargetError | None = None
        try:
            instance.apply(log, half)
            if missing:
                mariadb.sql(f"DELETE FROM t WHERE id <= {missing}", "superseded")
            instance.apply_from(log, half)
        except TargetError as raised:
            error = raised
        shown = (error.errno, error.message, error.position) if error else None
        found = shown, instance.applier.info.exec_position, mariadb.rows("superseded", "t")
        instance.target.close()
        return found, sum(sent)

    monkeypatch.setattr("rplctl.applier.spark.splits.SMALLEST_SPLIT", 1 << 10)
    monkeypatch.setattr("rplctl.target.mysql.target.BULK_ROWS", 1)
    plain, all_sent = outcome("plain", list)
    lean, less_sent = outcome("lean", without_overwritten)
    assert plain == lean
    assert (plain[0] is not None) is bool(missing)
    assert less_sent < all_sent
