"""SQLite: a transaction that reads before it writes takes the write lock first. Receiver, applier and commands write to
one file, and SQLite rejects a write at once if another connection has written since the transaction's first read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.info import MasterInfo
from rplctl.own_tables import owner as owner_module
from rplctl.own_tables.owner import Owner, claim_alone, read_owner
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository import create_tables, open_master_info
from rplctl.repository.tables import check_definition
from rplctl.target import open_engine

OURS = Owner(Instance_id="i", Source_place="db1:3306")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = open_engine(f"sqlite:///{tmp_path / 'target.db'}")
    create_tables(made)
    create_own_tables(made)
    with closing(sqlite3.connect(tmp_path / "target.db")) as other:
        other.execute("CREATE TABLE another (n INTEGER)")
    yield made
    made.dispose()


def with_a_writer_after(read: Callable[..., Any], path: Path) -> Callable[..., Any]:
    """`read`, after which another connection writes if it gets the lock."""

    def interrupted(*arguments: Any, **named: Any) -> Any:
        found = read(*arguments, **named)
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("INSERT INTO another VALUES (1)")
            except sqlite3.OperationalError as error:
                assert "locked" in str(error)
        return found

    return interrupted


def test_a_record_is_written_though_its_definition_is_checked_first(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = with_a_writer_after(check_definition, tmp_path / "target.db")
    monkeypatch.setattr("rplctl.repository.table.check_definition", check)
    repository = open_master_info(
        Config(tmp_path, master_info_repository="TABLE"), Channel("", tmp_path), lambda: engine
    )
    repository.flush(MasterInfo(host="db1"), force=True)
    assert repository.read().host == "db1"


@pytest.mark.parametrize("is_new", [True, False])
def test_the_owners_row_is_written_though_it_is_read_first(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    if not is_new:
        claim_alone(engine, "", replace(OURS, Source_place="db2:3306"), "marker")
    monkeypatch.setattr(owner_module, "read_owner", with_a_writer_after(read_owner, tmp_path / "target.db"))
    claim_alone(engine, "", OURS, "marker")
    with engine.connect() as connection:
        assert read_owner(connection, "") == replace(OURS, Kept_by="marker")
