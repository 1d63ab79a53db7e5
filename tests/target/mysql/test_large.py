"""Single changes of rows above max_allowed_packet: the same rows and errors as with small ones."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

import pytest

from rplctl.errors import TargetError
from rplctl.schema.model import TableModel
from rplctl.target import open_target
from rplctl.target.base import ChangeKind, CountMismatch, Row, RowChange, RowSet, TableChunk
from rplctl.target.mysql import large as mysql_large
from rplctl.target.mysql.target import MysqlTarget
from tests.kit.servers import MariadbServer

LONG = pytest.mark.long(
    "The cases of the other kinds hold the promise; those of MySQL repeat it.", keeps=r"^(?!.*mysql)"
)

MB = 1 << 20
PACKET = MB
TABLE = """
CREATE TABLE shop.t (n INT, b LONGBLOB, x LONGTEXT CHARACTER SET latin1 COLLATE latin1_swedish_ci, g GEOMETRY, u INT,
  e ENUM('a', 'b'), h BIGINT AS (LENGTH(b)) STORED, t TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, UNIQUE (u))
"""
COLUMNS = (0, 1, 2, 3, 4, 5, 6)
BYTES = bytes(range(256)) * (8 << 10)
LINE = struct.pack("<IBII", 0, 1, 2, 100_000) + struct.pack("<dd", 1.5, -2.0) * 100_000


def row(n: int, b: bytes | None = None, x: bytes | None = None, g: bytes | None = None, u: int | None = None) -> Row:
    return (n, b, x, g, u, 1, b and len(b))


A, B, C = row(1, BYTES, b"a\xe4 " * MB), row(1, BYTES, b"A\xe4 " * MB), row(1, BYTES, b"a\xe4 " * (MB - 1))
LINES, NOTHING, ODD = row(2, None, b"x", LINE), row(3), (4, b"\0" * 2 * MB, None, None, None, 0, 2 * MB)


@pytest.fixture(
    params=[
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("mysql", marks=[pytest.mark.mysql, pytest.mark.slow]),
    ]
)
def server(request: pytest.FixtureRequest) -> Iterator[MariadbServer]:
    found: MariadbServer = request.getfixturevalue(request.param)
    found.sql("DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; CREATE DATABASE IF NOT EXISTS rplctl;" + TABLE)
    (most,) = found.sql("SELECT @@max_allowed_packet")[0]
    found.sql(f"SET GLOBAL max_allowed_packet={PACKET}")
    yield found
    found.sql(f"SET GLOBAL max_allowed_packet={most}")


@pytest.fixture
def target(server: MariadbServer) -> Iterator[MysqlTarget]:
    opened = open_target(server.url())
    assert isinstance(opened, MysqlTarget)
    opened.begin(foreign_keys=True)
    yield opened
    opened.close()


@pytest.fixture
def model(target: MysqlTarget) -> TableModel:
    found = target.table_model("shop", "t")
    assert found is not None
    return found


def change(target: MysqlTarget, model: TableModel, before: Row | None, after: Row | None) -> None:
    kind = ChangeKind.INSERT if before is None else ChangeKind.DELETE if after is None else ChangeKind.UPDATE
    old, new = (None if image is None else RowSet(COLUMNS, [image]) for image in (before, after))
    target.apply_change(RowChange(kind=kind, before=old, after=new), model)


def made(target: MysqlTarget, server: MariadbServer, table: str, columns: str) -> TableModel:
    """Another table, and the target in a new transaction."""
    target.rollback()
    server.sql(f"CREATE TABLE shop.{table} ({columns})")
    target.begin(foreign_keys=True)
    found = target.table_model("shop", table)
    assert found is not None
    return found


def shown(*rows: Row) -> list[Row]:
    return sorted(
        (tuple(hashlib.sha256(v).hexdigest() if isinstance(v, bytes) else v for v in r) for r in rows), key=repr
    )


def found(target: MysqlTarget) -> list[Row]:
    columns = "n, SHA2(b, 256), SHA2(x, 256), SHA2(g, 256), u, e+0, h"
    return sorted((tuple(r) for r in target.connection.exec_driver_sql(f"SELECT {columns} FROM shop.t")), key=repr)


@pytest.mark.long("tests/target/test_contract.py::test_without_a_key_exactly_one_equal_row_is_changed has short rows.")
@LONG
def test_of_rows_that_are_equal_or_only_look_so_exactly_the_one_changes(target: MysqlTarget, model: TableModel) -> None:
    rows = [B, C, A, A, A, LINES, LINES, NOTHING, ODD]
    for one in rows:
        change(target, model, None, one)
    assert found(target) == shown(*rows)
    change(target, model, A, (9, *A[1:]))
    change(target, model, A, None)
    change(target, model, LINES, row(2, BYTES * 2, None, None, 5))
    change(target, model, LINES, None)
    change(target, model, NOTHING, row(3, None, b"z" * 2 * MB))
    change(target, model, ODD, row(4))
    assert found(target) == shown(B, C, A, (9, *A[1:]), row(2, BYTES * 2, u=5), row(3, None, b"z" * 2 * MB), row(4))
    assert target.connection.exec_driver_sql("SELECT COUNT(*) FROM shop.t WHERE t IS NOT NULL").scalar() == 0


@LONG
def test_a_transaction_in_two_phases_is_prepared_with_large_cells(
    target: MysqlTarget, model: TableModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = row(1, BYTES[: 200 << 10])
    monkeypatch.setattr(mysql_large, "LARGE_CELL", 100 << 10)
    target.rollback()
    target.begin(foreign_keys=True, xid="rplctl-large")
    change(target, model, None, less)
    change(target, model, less, (2, *less[1:]))
    change(target, model, (2, *less[1:]), (3, *less[1:]))
    target.prepare()
    target.commit()
    assert found(target) == shown((3, *less[1:]))


@LONG
def test_errors_are_those_of_small_rows_and_nothing_is_left_behind(target: MysqlTarget, model: TableModel) -> None:
    change(target, model, None, row(1, BYTES, u=5))
    for before, after, errno in (
        (A, None, 1032),
        (A, B, 1032),
        (row(1, BYTES, u=6), row(1, BYTES + b"x", u=6), 1032),
        (None, row(2, BYTES + b"x", u=5), 1062),
        (None, row(2, BYTES, u=1 << 40), 1264),
        (None, row(2, BYTES, g=LINE[:-1]), 1416),
    ):
        with pytest.raises(TargetError) as caught:
            change(target, model, before, after)
        assert (caught.value.errno, caught.value.transient) == (errno, False)
        assert found(target) == shown(row(1, BYTES, u=5))
        with pytest.raises(Exception, match="rplctl_cell_0"):
            target.connection.exec_driver_sql("SELECT 1 FROM rplctl.rplctl_cell_0")


@LONG
def test_a_small_row_is_found_behind_one_that_no_cast_takes(target: MysqlTarget, server: MariadbServer) -> None:
    """MariaDB refuses an UPDATE whose condition converts a value above max_allowed_packet."""
    model = made(target, server, "s", "b LONGBLOB, x LONGTEXT")
    images = [RowSet((0, 1), [values]) for values in ((BYTES, b"y" * 2 * MB), (b"small", b"y"), (b"other", b"y"))]
    for image in images[:2]:
        target.apply_change(RowChange(kind=ChangeKind.INSERT, before=None, after=image), model)
    target.apply_change(RowChange(kind=ChangeKind.UPDATE, before=images[1], after=images[2]), model)
    target.commit()
    assert server.rows("shop", "s") == [(BYTES, "y" * 2 * MB), (b"other", "y")]


@LONG
def test_a_row_with_a_key_is_found_by_it(target: MysqlTarget, server: MariadbServer) -> None:
    model = made(target, server, "k", "id INT PRIMARY KEY, b LONGBLOB")
    target.apply_change(RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0, 1), [(0, BYTES)])), model)
    before, after = RowSet((0,), [(0,)]), RowSet((0, 1), [(1, BYTES + b"1")])
    target.apply_change(RowChange(kind=ChangeKind.UPDATE, before=before, after=after), model)
    values, more = memoryview(BYTES + b"2"), memoryview(BYTES + b"3")
    updates, inserts = [RowSet((1,), [(values, 1)])], [RowSet((0, 1), [(2, values), (4, b"small"), (3, more)])]
    target.apply_chunks(
        [
            TableChunk(
                database="shop",
                table="k",
                absent=[],
                deletes=[],
                updates=updates,
                inserts=inserts,
                ordered=[],
                change_count=4,
                foreign_keys_off=False,
                has_views=True,
            )
        ],
        {("shop", "k"): model},
    )
    with pytest.raises(CountMismatch):
        missing = [RowSet((1,), [(values, 5)])]
        target.apply_chunks(
            [
                TableChunk(
                    database="shop",
                    table="k",
                    absent=[],
                    deletes=[],
                    updates=missing,
                    inserts=[],
                    ordered=[],
                    change_count=1,
                    foreign_keys_off=False,
                    has_views=True,
                )
            ],
            {("shop", "k"): model},
        )
    target.commit()
    assert server.rows("shop", "k") == [(1, BYTES + b"2"), (2, BYTES + b"2"), (3, BYTES + b"3"), (4, b"small")]
