"""A snapshot is of one place of the source's log, whatever comes and goes while its tables are looked at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rplctl.clone import cloner as cloner_module
from rplctl.clone.cloner import Cloner
from rplctl.clone.folder import CopiedTable
from rplctl.clone.reading import CopySource, copied_table
from rplctl.clone.snapshot_method import SnapshotMethod, method_of
from rplctl.config import load_config
from rplctl.durable import private_folder
from rplctl.schema.statement import TableName
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
NAMES = [("away", "stays"), ("away", "goes")]


@contextmanager
def looking(server: MariadbServer, replica: Replica) -> Iterator[tuple[Cloner, CopySource]]:
    """Beside a receiver."""
    server.sql("DROP DATABASE IF EXISTS away; CREATE DATABASE away; USE away;"
               "CREATE TABLE stays (id INT PRIMARY KEY); CREATE TABLE goes (id INT PRIMARY KEY)")  # fmt: skip
    replica.run("start", "--receiver")
    private_folder(replica.channel.clone_folder)
    cloner = Cloner(load_config(replica.datadir), replica.channel, threading.Event())
    with cloner.reading() as source:
        wait_until(source.received.begin, 60)
        yield cloner, source


def method_on(cloner: Cloner, source: CopySource) -> SnapshotMethod:
    method = method_of(cloner.asked(NAMES, source), None)
    assert method is not None
    return method


def seen_away(monkeypatch: pytest.MonkeyPatch, server: MariadbServer, gone: str, back: str) -> list[TableName]:
    """The first look at the table that goes falls between the two statements; what is looked at."""
    looked: list[TableName] = []

    def look(name: TableName, source: CopySource, *, is_locked: bool) -> CopiedTable | None:
        is_first = name == NAMES[1] and name not in looked
        looked.append(name)
        if is_first:
            server.sql(gone, "away")
        found = copied_table(name, source, is_locked=is_locked)
        if is_first:
            assert found is None
            server.sql(back)
        return found

    monkeypatch.setattr(cloner_module, "copied_table", look)
    return looked


def opened_where_all_are_there(
    server: MariadbServer, replica: Replica, monkeypatch: pytest.MonkeyPatch, gone: str, back: str
) -> None:
    with looking(server, replica) as (cloner, source):
        looked = seen_away(monkeypatch, server, gone, back)
        with cloner.opened_snapshot(NAMES, method_on(cloner, source)) as (place, tables):
            assert [table.name for table in tables] == NAMES
            assert looked == 2 * NAMES
            assert str(place.position) == ":".join(map(str, server.master_status()))
            # DDL of tables that were looked at does not wait for the snapshot
            server.sql("ALTER TABLE away.stays ADD x INT; RENAME TABLE away.goes TO away.g, away.g TO away.goes")
    with looking(server, replica) as (cloner, source):  # nothing comes and goes: what is not there is gone
        server.sql("DROP TABLE away.goes")
        with cloner.opened_snapshot(NAMES, method_on(cloner, source)) as (_, tables):
            assert [table.name for table in tables] == NAMES[:1]


RENAMED = ("RENAME TABLE goes TO gone", "RENAME TABLE away.gone TO away.goes")
DROPPED = (
    "DROP DATABASE away",
    "CREATE DATABASE away; USE away; CREATE TABLE stays (id INT PRIMARY KEY); CREATE TABLE goes (id INT PRIMARY KEY)",
)


@pytest.mark.long("A RENAME in the moment of a snapshot is rare.")
@pytest.mark.parametrize(("gone", "back"), [RENAMED, DROPPED], ids=["renamed", "dropped with its database"])
def test_a_table_that_is_away_for_a_moment_is_not_gone_where_the_snapshot_says_its_place(
    mariadb: MariadbServer, replica: Replica, monkeypatch: pytest.MonkeyPatch, gone: str, back: str
) -> None:
    replica.change_master(mariadb)
    opened_where_all_are_there(mariadb, replica, monkeypatch, gone, back)


@pytest.mark.long("The cases of the other kinds hold the promise; those of MySQL repeat it.")
def test_a_table_that_is_away_for_a_moment_is_not_gone_where_a_window_has_the_place(
    mysql: MysqlServer, replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica.change_master(mysql, "--get-master-public-key", "1")
    opened_where_all_are_there(mysql, replica, monkeypatch, *RENAMED)
