"""What is SQLite's own: its errors under MySQL's numbers, its file, its transactions."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from rplctl.errors import TargetError
from rplctl.target import open_engine, open_target
from rplctl.target.sqlite.errors import target_error


def error_of(path: Path, *statements: str) -> sqlite3.Error:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        for statement in statements:
            connection.execute(statement)
    except sqlite3.Error as error:
        return error
    finally:
        connection.close()
    raise AssertionError("no error")


def test_a_lock_of_another_program_is_a_lock_wait_worth_trying_again(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    error = target_error(error_of(path, "BEGIN IMMEDIATE"))
    holder.close()
    assert (error.errno, error.transient) == (1205, True)
    assert error.hint


@pytest.mark.parametrize(
    ("statements", "errno"),
    [
        (("SELECT * FROM nowhere",), 1146),
        (("CREATE TABLE a (x)", "CREATE TABLE a (x)"), 1050),
        (("PRAGMA max_page_count=1", "CREATE TABLE a (x)", "CREATE TABLE b (x)"), 1021),
        (("PRAGMA query_only=ON", "CREATE TABLE a (x)"), 1290),
    ],
)
def test_errors_have_mysqls_numbers(tmp_path: Path, statements: tuple[str, ...], errno: int) -> None:
    assert target_error(error_of(tmp_path / "t.db", *statements)).errno == errno


def test_a_row_above_sqlites_limit_is_data_too_long_with_a_way_out(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "t.db")
    connection.execute("CREATE TABLE t (b)")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1000)  # a thousand million bytes, if nobody lowers it
    for value in (bytes(1001), bytes(999)):  # the value; the row
        with pytest.raises(sqlite3.Error) as caught:
            connection.execute("INSERT INTO t VALUES (?)", (value,))
        error = target_error(caught.value)
        assert (error.errno, error.transient) == (1406, False) and "another kind of target" in error.hint
    connection.close()


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"this is a text file, not a database" * 40)
    with pytest.raises(TargetError) as caught:
        open_target(f"sqlite:///{path}").connection.exec_driver_sql("SELECT 1")
    assert caught.value.errno == 1194


def test_the_file_is_private_and_durable(tmp_path: Path) -> None:
    path = tmp_path / "target.db"
    engine = open_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    engine.dispose()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_target_in_memory_is_refused(url: str) -> None:
    with pytest.raises(TargetError, match="needs a file"):
        open_engine(url)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="nowhere"):
        open_engine(f"sqlite:///{tmp_path / 'nowhere' / 'target.db'}").connect()
