"""The file and its log: both stay small whatever is committed, and a stop leaves one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rplctl.errors import TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target import open_target
from rplctl.target.base import Row, RowSet, TableChunk
from rplctl.target.duckdb.connection import driver_of
from rplctl.target.duckdb.target import DuckdbTarget

ROWS, STEP = 20_000, 4_000
THRESHOLD = 1 << 20


@pytest.fixture
def target(tmp_path: Path) -> Iterator[DuckdbTarget]:
    found = open_target(f"duckdb:///{tmp_path / 't.duckdb'}?checkpoint_threshold=1MiB")
    assert isinstance(found, DuckdbTarget)
    yield found
    found.close()


def made(target: DuckdbTarget) -> TableModel:
    plan = plan_ddl("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(99))", "shop", DdlContext(), Catalog())
    target.begin(foreign_keys=True)
    target.execute_ddl(plan, Catalog())
    target.commit()
    return Catalog().after(plan).tables["shop", "t"]


def apply(
    target: DuckdbTarget, model: TableModel, updates: Sequence[RowSet] = (), inserts: Sequence[RowSet] = ()
) -> None:
    target.begin(foreign_keys=True)
    chunk = TableChunk(
        database="shop",
        table="t",
        absent=[],
        deletes=[],
        updates=[*updates],
        inserts=[*inserts],
        ordered=[],
        change_count=1,
        foreign_keys_off=False,
    )
    target.apply_chunks([chunk], {("shop", "t"): model})
    target.commit()


def updated(target: DuckdbTarget, model: TableModel, n: int) -> None:
    rows: list[Row] = [
        (f"{n} of {id} in place of what was", id) for id in range(n * STEP % ROWS, n * STEP % ROWS + STEP)
    ]
    apply(target, model, updates=[RowSet((1,), rows)])


@pytest.mark.parametrize(("given", "has"), [("", "122.0 MiB"), ("?checkpoint_threshold=32MiB", "32.0 MiB")])
def test_a_checkpoint_waits_for_128_mb_of_log_or_for_what_the_url_says(tmp_path: Path, given: str, has: str) -> None:
    found = open_target(f"duckdb:///{tmp_path / 't.duckdb'}{given}")
    sql = "SELECT current_setting('checkpoint_threshold')"
    assert driver_of(found.connection).execute(as_sql(sql)).fetchone() == (has,)
    found.close()


@pytest.mark.long("It counts bytes of a file; the rows are held by tests/stories/test_duckdb.py.")
def test_file_and_log_stay_small(tmp_path: Path, target: DuckdbTarget) -> None:
    """The log is as long as the threshold and one batch; while somebody reads it grows, and is cut behind that."""
    file, log = tmp_path / "t.duckdb", tmp_path / "t.duckdb.wal"
    model = made(target)
    rows: list[Row] = [(i, f"row {i}") for i in range(ROWS)]
    apply(target, model, inserts=[RowSet((0, 1), rows)])
    sizes, logs = [], []
    for n in range(30):
        updated(target, model, n)
        sizes.append(file.stat().st_size)
        logs.append(log.stat().st_size if log.exists() else 0)
    assert 0 < max(logs) < THRESHOLD + 64 * STEP
    assert sizes[-1] <= 2 * sizes[9]
    with target.engine.begin() as reader:
        driver = driver_of(reader)
        driver.execute(as_sql("SELECT count(*) FROM shop.t")).fetchall()
        for n in range(20):
            updated(target, model, n)
        assert log.stat().st_size > 2 * THRESHOLD
    for n in range(3):
        updated(target, model, n)
    assert (log.stat().st_size if log.exists() else 0) < THRESHOLD + 64 * STEP
    target.close()
    assert [path.name for path in tmp_path.iterdir()] == ["t.duckdb"]


def test_what_interrupts_a_change_leaves_the_file_as_it_was(tmp_path: Path, target: DuckdbTarget) -> None:
    model = made(target)
    target.begin(foreign_keys=True)
    target.interrupt()
    chunk = TableChunk(
        database="shop",
        table="t",
        absent=[],
        deletes=[],
        updates=[],
        inserts=[RowSet((0, 1), [(1, "a")])],
        ordered=[],
        change_count=1,
        foreign_keys_off=False,
    )
    with pytest.raises(TargetError, match="interrupted"):
        target.apply_chunks([chunk], {("shop", "t"): model})
    target.rollback()
    apply(target, model, inserts=[RowSet((0, 1), [(1, "b")])])
    target.reconnect()
    assert driver_of(target.connection).execute(as_sql("SELECT * FROM shop.t")).fetchall() == [(1, "b")]
