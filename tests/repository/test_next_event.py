"""rplctl_next_event (WL#4621): the next event to execute, by SQL, on every kind of target, wherever it is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import inspect, text

from rplctl.channel import Channel
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import PositionStore
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.repository.install import SCHEMA_VERSION
from rplctl.repository.next_event import VIEW
from rplctl.target.registry import dialect_of
from tests.repository.conftest import Target, config_of

LONG = pytest.mark.long(
    "SQLite and MariaDB stay; tests/repository/test_contract.py has PostgreSQL.", keeps=r"^(?!.*(mysql|postgresql))"
)

COLUMNS = "Channel_name, Master_log_name, Master_log_pos, Relay_log_name, Relay_log_pos, Kept_in"


def at(position: int, channel: Channel) -> RelayLogInfo:
    info = RelayLogInfo(channel_name=channel.name, gtid_executed="0-1-7")
    return info.at(RelayLogPosition("relay-bin.000002", position), BinlogPosition("binlog.000003", position))


def seen(target: Target) -> list[tuple[object, ...]]:
    with target.engine().connect() as connection:
        rows = connection.execute(text(f"SELECT {COLUMNS} FROM {target.table(VIEW)} ORDER BY Channel_name"))
        return [tuple(row) for row in rows]


def advance(
    target: Target, store: PositionStore, before: RelayLogInfo, after: RelayLogInfo, *, commit: bool = True
) -> None:
    with target.engine().connect() as connection, connection.begin() as transaction:
        store.advance(connection, before, after)
        if not commit:
            transaction.rollback()
    if commit:
        store.committed(after)


@pytest.mark.long("SQLite stays; each target has the same view.", keeps=r"^sqlite")
@LONG
@pytest.mark.parametrize("kind", ["TABLE", "FILE"])
def test_it_moves_with_the_rows_commit_and_with_nothing_else(target: Target, channel: Channel, kind: str) -> None:
    config = config_of(channel.datadir, kind)
    if kind == "TABLE":
        create_tables(target.engine())
    open_relay_log_info(config, channel, target.engine).flush(at(100, channel), force=True)
    create_own_tables(target.engine())
    store = open_position_store(config, channel, target.engine())
    store.open()
    where = "slave_relay_log_info" if kind == "TABLE" else "rplctl_commit_marker"
    assert seen(target) == [(channel.name, "binlog.000003", 100, "relay-bin.000002", 100, where)]
    advance(target, store, at(100, channel), at(200, channel), commit=False)
    assert seen(target)[0][2] == 100, "rolled back with the rows"
    advance(target, store, at(100, channel), at(200, channel))
    assert seen(target) == [(channel.name, "binlog.000003", 200, "relay-bin.000002", 200, where)]


@LONG
def test_each_channel_has_one_row_though_one_is_kept_in_a_table_and_one_in_a_file(
    target: Target, channel: Channel
) -> None:
    create_own_tables(target.engine())  # an applier with files was there before the tables were
    other = Channel("east 1/Ä", channel.datadir)  # the same but for case: another channel
    file, table = config_of(channel.datadir, "FILE"), config_of(channel.datadir, "TABLE")
    open_relay_log_info(file, channel, target.engine).flush(at(100, channel), force=True)
    open_position_store(file, channel, target.engine()).open()
    create_tables(target.engine())
    open_relay_log_info(table, other, target.engine).flush(replace(at(300, other), master_id=2), force=True)
    found = {(row[0], row[2], row[5]) for row in seen(target)}
    assert found == {(channel.name, 100, "rplctl_commit_marker"), (other.name, 300, "slave_relay_log_info")}


@LONG
def test_tables_of_the_version_before_get_the_view_at_the_next_start(target: Target, channel: Channel) -> None:
    create_tables(target.engine())
    config = config_of(channel.datadir, "TABLE")
    open_relay_log_info(config, channel, target.engine).flush(at(100, channel), force=True)
    target.execute(f"DROP VIEW {target.table(VIEW)}")
    target.execute(f"UPDATE {target.table('rplctl_version')} SET version_num='0004'")
    create_tables(target.engine())
    assert seen(target)[0][2] == 100
    with target.engine().connect() as connection:
        version = connection.execute(text(f"SELECT version_num FROM {target.table('rplctl_version')}")).scalar()
    assert version == SCHEMA_VERSION


@LONG
def test_a_layout_before_it_is_rebuilt_though_the_view_is_there(target: Target, channel: Channel) -> None:
    """PostgreSQL drops no table that a view is made of."""
    create_tables(target.engine())
    info, table = target.table("slave_relay_log_info"), target.table("rplctl_version")
    with target.engine().begin() as connection:
        connection.execute(text(f"DROP VIEW {target.table(VIEW)}"))
        connection.execute(text(f"ALTER TABLE {info} DROP COLUMN Gtid_executed"))
        connection.execute(text(f"CREATE VIEW {target.table(VIEW)} AS SELECT Channel_name FROM {info}"))
        connection.execute(text(f"DROP TABLE {table}"))
    create_tables(target.engine())
    assert seen(target) == []


@pytest.mark.mariadb
@pytest.mark.parametrize("target", [pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)
def test_an_account_that_may_not_create_views_goes_without_it(
    target: Target, channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    target.execute("DROP DATABASE IF EXISTS rplctl")
    target.execute("CREATE OR REPLACE USER viewless@'%' IDENTIFIED BY 'x'")
    target.execute("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON *.* TO viewless@'%'")
    from sqlalchemy import create_engine

    engine = create_engine(target.engine().url.set(username="viewless", password="x"))
    create_own_tables(engine)
    assert "the view rplctl_next_event is not there" in caplog.text
    names = inspect(target.engine()).get_view_names(dialect_of("mariadb").own_schema)
    assert names == []
    create_own_tables(target.engine())
    assert inspect(target.engine()).get_view_names(dialect_of("mariadb").own_schema) == [VIEW]
    target.execute("DROP USER viewless@'%'")
