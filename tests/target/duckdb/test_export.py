"""Copies for readers: each is whole and of one moment, whoever reads, whatever dies, while the applier commits."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from rplctl.errors import ConfigError
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target import dialect_of, open_engine, open_target
from rplctl.target.duckdb.connection import driver_of
from rplctl.target.duckdb.target import DuckdbTarget
from tests.kit.replica import wait_until

MAKE = """CREATE SCHEMA shop; CREATE TABLE shop.a (id INTEGER PRIMARY KEY, n INTEGER, filler VARCHAR);
CREATE TABLE shop.b (n INTEGER); CREATE UNIQUE INDEX "b by n" ON shop.b (n);
INSERT INTO shop.a SELECT i, 0, md5(i::VARCHAR) FROM range(30000) r (i); INSERT INTO shop.b VALUES (0)"""
BOTH = "SELECT count(*), min(n), max(n), (SELECT n FROM {0}.b) FROM {0}.a"
CHILD = """
import sys, time
from tests.target.duckdb.test_export import committing
committing(sys.argv[1])
"""


def url(folder: Path) -> str:
    return f"duckdb:///{folder / 'shop.duckdb'}?threads=2&export_to={folder / 'copy.duckdb'}"


def step(target: DuckdbTarget, n: int) -> None:
    """All rows of a and the row of b get the same number in one transaction."""
    target.begin(foreign_keys=False)
    driver = driver_of(target.connection)
    driver.execute(
        as_sql(f"UPDATE shop.a SET n = {n} WHERE id % 100 = 0; UPDATE shop.a SET n = {n}; UPDATE shop.b SET n = {n}")
    )
    target.commit()


def committing(address: str) -> None:
    """For ever: what is killed."""
    target = open_target(address)
    assert isinstance(target, DuckdbTarget)
    target.fence("")
    for n in range(1, 1_000_000):
        step(target, n)


def made(folder: Path) -> DuckdbTarget:
    target = open_target(url(folder))
    assert isinstance(target, DuckdbTarget)
    target.begin(foreign_keys=False)
    driver_of(target.connection).execute(as_sql(MAKE))
    target.commit()
    return target


def number(copy: Path) -> int:
    """Of the commit that the copy is of."""
    with duckdb.connect(str(copy), read_only=True) as reader:
        row = reader.execute(BOTH.format("shop")).fetchone()
    assert row is not None
    count, least, most, other = row
    assert count == 30_000 and least == most == other
    return int(most)


@pytest.mark.long("tests/stories/test_duckdb.py reads a copy in make test.")
@pytest.mark.slow
def test_each_copy_is_of_one_commit_and_the_last_is_of_the_last(tmp_path: Path) -> None:
    target = made(tmp_path)
    copy = tmp_path / "copy.duckdb"
    wait_until(copy.exists, timeout_s=30)
    assert copy.stat().st_mode & 0o777 == 0o600
    copy.chmod(0o644)
    held = copy.open("rb")  # a reader that stays
    bytes_then = copy.read_bytes()
    seen, n = set[int](), 0
    end = time.monotonic() + 60
    while len(seen) < 3 and time.monotonic() < end:
        n += 1
        step(target, n)
        seen.add(number(copy))
    assert len(seen) == 3
    assert held.read() == bytes_then
    held.close()
    wait_until(lambda: number(copy) == n, timeout_s=30)  # though nothing is committed any more
    step(target, n + 1)
    target.close()
    assert number(copy) == n + 1 and copy.stat().st_mode & 0o777 == 0o644
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.duckdb", "shop.duckdb"]
    with duckdb.connect(str(copy), read_only=True) as reader:
        assert reader.execute("SELECT index_name FROM duckdb_indexes()").fetchall() == [("b by n",)]


@pytest.mark.long("A copy is made under another name and renamed; a kill in between is rare.")
@pytest.mark.slow
@pytest.mark.parametrize("point", ["crash_export_before_rename", "crash_export_after_rename", "any time"])
def test_a_kill_leaves_a_whole_copy_and_the_next_process_goes_on(tmp_path: Path, point: str) -> None:
    made(tmp_path).close()
    copy = tmp_path / "copy.duckdb"
    before = copy.stat().st_ino
    armed = {} if point == "any time" else {"RPLCTL_FAILPOINTS": f"{point}=kill@2"}
    with subprocess.Popen([sys.executable, "-c", CHILD, url(tmp_path)], env={**os.environ, **armed}) as child:
        if point == "any time":  # in the middle of one
            wait_until(lambda: copy.stat().st_ino != before and (tmp_path / ".copy.duckdb.tmp").exists(), timeout_s=30)
            child.kill()
        assert child.wait(60) == -signal.SIGKILL
    assert number(copy) >= 0
    target = open_target(url(tmp_path))
    target.fence("")  # as the applier begins: without a commit of its own
    target.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.duckdb", "shop.duckdb"]
    (tmp_path / "shop.duckdb").rename(tmp_path / "other.duckdb")
    assert number(copy) == number(tmp_path / "other.duckdb") >= 1


def test_a_copy_that_cannot_be_made_is_told_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "away"
    address = url(tmp_path).replace("copy.duckdb", "away/copy.duckdb")
    target = open_target(address)
    assert isinstance(target, DuckdbTarget)
    target.begin(foreign_keys=False)
    driver_of(target.connection).execute(as_sql(MAKE))
    with caplog.at_level(logging.WARNING):
        target.commit()
        wait_until(lambda: str(folder / "copy.duckdb") in caplog.text, timeout_s=30)
    folder.mkdir()
    step(target, 1)
    target.close()
    assert number(folder / "copy.duckdb") == 1


@pytest.mark.parametrize("name", ["{0}/t.duckdb", "{0}/t.duckdb.wal", "{0}"])
def test_a_name_that_is_no_copys_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="export_to"):
        open_engine(f"duckdb:///{tmp_path}/t.duckdb?export_to={name.format(tmp_path)}")


def test_doctor_tells_how_old_the_copy_is_and_warns_of_one_that_stays_behind(tmp_path: Path) -> None:
    beside = dialect_of("duckdb").beside
    assert not [*beside(url(tmp_path))]
    file, copy = tmp_path / "shop.duckdb", tmp_path / "copy.duckdb"
    file.touch()
    (line,) = beside(url(tmp_path))
    assert (line.Result, line.Detail) == ("WARN", f"{copy} does not exist yet")
    copy.touch()
    assert [line.Result for line in beside(url(tmp_path))] == ["OK"]
    os.utime(copy, (1, file.stat().st_mtime - 1000))
    (line,) = beside(url(tmp_path))
    assert line.Result == "WARN" and "written 1000 s later" in line.Detail
