"""What DuckDB says of a row, a lock, a disk or a file, as MySQL's numbers; what passes by itself is tried again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from sqlalchemy.exc import DBAPIError

from rplctl.errors import TargetError
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target import open_target
from rplctl.target.base import ChangeKind, RowChange, RowSet
from rplctl.target.duckdb.errors import change_error, mapped_errors, target_error

MODEL = TableModel(
    database="d",
    name="t",
    columns=(Column(name="a", type="int"), Column(name="b", type="date")),
    keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("a"),)),),
)
CHANGE = RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0, 1), [(1, "2024-00-07")]))


@pytest.fixture
def driver() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a INT PRIMARY KEY, b DATE NOT NULL)")
        connection.execute("INSERT INTO t VALUES (1, '2024-02-29')")
        yield connection


@pytest.mark.parametrize(
    ("sql", "errno", "message"),
    [
        ("SELECT * FROM absent", 1146, "absent"),
        ("CREATE TABLE t (a INT)", 1050, "already exists"),
        ("INSERT INTO t VALUES ('x', NULL)", 1366, "x"),
        ("INSERT INTO t SELECT 99999999999, '2024-01-01'", 1366, "99999999999"),
        ("SELECT 1e400::DECIMAL(3,2)", 1366, ""),
        ("ATTACH '/proc/version' AS f", 1194, "not a valid DuckDB database file"),
        ("SELEC 1", 1105, "SELEC"),
    ],
)
def test_a_statement_that_fails(driver: duckdb.DuckDBPyConnection, sql: str, errno: int, message: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        driver.execute(sql)
    found = target_error(caught.value)
    assert (found.errno, found.transient) == (errno, False), caught.value
    assert message in found.message and "\n" not in found.message


@pytest.mark.parametrize(
    ("sql", "errno", "message"),
    [
        ("INSERT INTO t VALUES (1, '2024-01-01')", 1062, "Duplicate entry"),
        ("INSERT INTO t VALUES (2, NULL)", 1048, "Column 'b' cannot be null"),
        ("INSERT INTO t VALUES (2, '2024-00-07')", 1292, "Incorrect date value: '2024-00-07' for column 'b'"),
    ],
)
def test_a_row_that_does_not_fit(driver: duckdb.DuckDBPyConnection, sql: str, errno: int, message: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        driver.execute(sql)
    found = change_error(caught.value, CHANGE, MODEL)
    assert (found.errno, found.transient) == (errno, False)
    assert message in found.message


@pytest.mark.parametrize(
    ("error", "errno", "transient"),
    [
        (duckdb.IOException('Could not write file "/x": No space left on device'), 1021, True),
        (duckdb.IOException("Could not fsync"), 1030, True),
        (duckdb.FatalException("database has been invalidated"), 1030, True),
        (duckdb.TransactionException("Conflict on update"), 1205, True),
        (duckdb.InterruptException("Interrupted!"), 1317, False),
        (duckdb.OutOfMemoryException("failed to allocate"), 1114, False),
        (duckdb.SerializationException("Failed to deserialize"), 1194, False),
    ],
)
def test_what_passes_by_itself_is_tried_again(error: duckdb.Error, errno: int, transient: bool) -> None:
    found = target_error(error)
    assert (found.errno, found.transient) == (errno, transient) and found.message


def test_who_has_the_file_open_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    code = f"import duckdb; c = duckdb.connect({str(path)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"open\n"
        with pytest.raises(TargetError) as caught:
            _ = open_target(f"duckdb:///{path}").engine.connect()
        other.communicate(b"\n")
    assert (caught.value.errno, caught.value.transient) == (1205, True)
    assert (
        f"(process {other.pid})" in caught.value.message
        and f"to end that program, run: kill {other.pid}" in caught.value.hint
    )


def test_an_error_that_sqlalchemy_wraps_is_the_same() -> None:
    cause = duckdb.IOException("No space left on device")
    with pytest.raises(TargetError) as caught, mapped_errors():
        raise DBAPIError("SELECT 1", None, cause)
    assert caught.value.errno == 1021
