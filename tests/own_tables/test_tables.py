"""Our own tables in a target that an older rplctl made: brought to today's layout, and what they hold is kept."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

from rplctl.event.format_description import FormatDescription
from rplctl.own_tables.prepared import take_prepared
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository import create_tables
from rplctl.repository.install import upgrade_if_old
from rplctl.target import dialect_of
from tests.migrations.test_versions import in_child
from tests.repository.conftest import Target, target as target

LONG = pytest.mark.long(
    "The cases of the other kinds hold the promise; those of MySQL repeat it.", keeps=r"^(?!.*mysql)"
)

XID = "X'6162',X'',1"
DESCRIPTION = FormatDescription(
    binlog_version=4,
    server_version="10.11.19-MariaDB",
    created=0,
    header_lengths=(56, 13, 0),
    checksum_algorithm=1,
    is_mariadb=True,
)
# as the version before wrote it, one row per transaction
OLD = {
    "sqlite": "CREATE TABLE rplctl_prepared_xa (Channel_name VARCHAR(64) NOT NULL, Xid VARCHAR(300) NOT NULL,"
    " Format_description TEXT NOT NULL, Events BLOB NOT NULL, PRIMARY KEY (Channel_name, Xid))",
    "postgresql": 'CREATE TABLE rplctl.rplctl_prepared_xa ("Channel_name" VARCHAR(64) NOT NULL, "Xid" VARCHAR(300)'
    ' NOT NULL, "Format_description" TEXT NOT NULL, "Events" BYTEA NOT NULL, PRIMARY KEY ("Channel_name", "Xid"))',
    "mariadb": "CREATE TABLE rplctl.rplctl_prepared_xa (Channel_name VARCHAR(64) NOT NULL, Xid VARCHAR(300) NOT NULL,"
    " Format_description LONGTEXT NOT NULL, Events LONGBLOB NOT NULL, PRIMARY KEY (Channel_name, Xid))"
    " ENGINE=InnoDB DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin",
}
OLD["mysql"] = OLD["mariadb"]


def older(target: Target) -> None:
    """The table of before, with a transaction that waits in it."""
    table = target.table("rplctl_prepared_xa")
    target.execute(f"DROP TABLE IF EXISTS {table}")
    with target.engine().begin() as connection:
        connection.exec_driver_sql(OLD[target.kind])
        values = {"name": "", "xid": XID, "text": json.dumps(asdict(DESCRIPTION)), "events": b"\x00events\xff"}
        connection.execute(text(f"INSERT INTO {table} VALUES (:name, :xid, :text, :events)"), values)


def layout(engine: Engine) -> tuple[Any, ...]:
    inspector = inspect(engine)
    where: dict[str, Any] = {"table_name": "rplctl_prepared_xa", "schema": dialect_of(engine.dialect.name).own_schema}
    columns = [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(**where)]
    return sorted(columns), inspector.get_pk_constraint(**where)["constrained_columns"]


def of_files(engine: Engine) -> None:
    """What an applier does whose repositories are files."""
    create_own_tables(engine)


def of_tables(engine: Engine) -> None:
    """What a start does first whose repositories are tables."""
    upgrade_if_old(engine)


@pytest.mark.long("SQLite stays; the statements are the same.", keeps=r"^sqlite")
@LONG
@pytest.mark.parametrize("upgrade", [of_files, of_tables])
def test_a_table_of_before_pieces_gets_them_and_keeps_what_waits(
    target: Target, upgrade: Callable[[Engine], None]
) -> None:
    create_tables(target.engine())
    create_own_tables(target.engine())
    fresh = layout(target.engine())
    target.execute(f"UPDATE {target.table('rplctl_version')} SET version_num = '0003'")
    older(target)
    assert layout(target.engine()) != fresh
    upgrade(target.engine())
    upgrade(target.engine())
    assert layout(target.engine()) == fresh
    with target.engine().begin() as connection:
        out = io.BytesIO()
        assert take_prepared(connection, "", XID, out) == DESCRIPTION
        assert out.getvalue() == b"\x00events\xff"
        names = inspect(connection).get_table_names(dialect_of(target.engine().dialect.name).own_schema)
    assert not [name for name in names if name.endswith("__old")]


@pytest.mark.long("MariaDB stays, where two may start.", keeps=r"^mariadb$")
@LONG
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12
def test_appliers_that_start_at_once_upgrade_it_once(target: Target) -> None:
    """Four, time and again: each looks, and none holds what another waits for."""
    create_own_tables(target.engine())
    for _ in range(5 if target.kind == "mysql" else 1):
        older(target)
        children = [in_child(lambda: create_own_tables(target.engine())) for _ in range(4)]
        assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
        with target.engine().begin() as connection:
            assert take_prepared(connection, "", XID, None) == DESCRIPTION
