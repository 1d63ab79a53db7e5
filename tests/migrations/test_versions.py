"""The alembic revisions: one head, the columns that the repositories use, up, down and up again (WL#2775 REQ-1)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from alembic.config import Config as AlembicConfig
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from rplctl.channel import Channel
from rplctl.errors import ConfigError
from rplctl.repository import create_tables, open_master_info
from rplctl.repository.install import SCHEMA_VERSION, VERSIONS, migrations_folder
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO
from rplctl.target.registry import dialect_of
from tests.repository.conftest import (
    MASTER,
    Target,
    channel as channel,
    config_of,
    datadir as datadir,
    sqlite_target as sqlite_target,
    target as target,
)

LONG = pytest.mark.long(
    "SQLite and MariaDB stay; tests/repository/test_contract.py has PostgreSQL.", keeps=r"^(?!.*(mysql|postgresql))"
)


def test_there_is_one_head_and_it_is_the_version_that_install_looks_for() -> None:
    config = AlembicConfig()
    config.set_main_option("script_location", str(migrations_folder()))
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA_VERSION]


def test_the_versions_are_those_of_the_folder_in_their_order() -> None:
    config = AlembicConfig()
    config.set_main_option("script_location", str(migrations_folder()))
    script = ScriptDirectory.from_config(config)
    assert tuple(r.revision for r in reversed(list(script.walk_revisions()))) == VERSIONS


@LONG
def test_the_tables_have_the_servers_columns_in_its_order_and_its_key(target: Target) -> None:
    create_tables(target.engine())
    inspector = inspect(target.engine())
    for record in (MASTER_INFO, RELAY_LOG_INFO):
        schema = dialect_of(target.engine().dialect.name).own_schema
        names = [column["name"].lower() for column in inspector.get_columns(record.table, schema)]
        assert names == ["number_of_lines", *(f.column.lower() for f in record.fields)]
        key = inspector.get_pk_constraint(record.table, schema)["constrained_columns"]
        assert [name.lower() for name in key] == ["channel_name"]
        unique = [u["column_names"] for u in inspector.get_unique_constraints(record.table, schema)]
        assert [[name.lower() for name in names] for names in unique] == [["master_id"]]


@LONG
def test_creating_again_destroys_no_row(target: Target, channel: Channel) -> None:
    create_tables(target.engine())
    repository = open_master_info(config_of(channel.datadir, "TABLE"), channel, target.engine)
    repository.flush(MASTER, force=True)
    create_tables(target.engine())
    target.execute(f"DROP TABLE {target.table('rplctl_version')}")
    create_tables(target.engine())
    assert repository.read() == replace(MASTER, channel_name=channel.name)


@pytest.mark.long("SQLite and MariaDB stay.", keeps=r"^(sqlite|mariadb)")
@LONG
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12
def test_two_processes_at_once_end_with_one_set_of_tables(target: Target) -> None:
    children = [in_child(lambda: create_tables(target.engine())) for _ in range(2)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    with target.engine().connect() as connection:
        rows = connection.execute(text(f"SELECT version_num FROM {target.table('rplctl_version')}")).all()
    assert rows == [(SCHEMA_VERSION,)]


def in_child(body: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            body()
            status = 0
        except BaseException as error:  # noqa: BLE001  # the child must not return into pytest
            sys.stderr.write(f"{error!r}\n")
        finally:
            os._exit(status)
    return child


def test_an_engine_name_that_is_none_is_refused(sqlite_target: Target) -> None:
    with pytest.raises(ConfigError, match="is not the name of a storage engine"):
        create_tables(sqlite_target.engine(), "InnoDB; DROP DATABASE x")


@pytest.mark.postgresql
@pytest.mark.parametrize("target", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True)
def test_any_user_reads_all_but_the_password_and_changes_nothing(target: Target) -> None:
    create_tables(target.engine())
    target.execute("DROP ROLE IF EXISTS common")
    target.execute("CREATE ROLE common")
    with target.engine().connect() as connection:
        connection.execute(text("SET ROLE common"))
        connection.execute(text("SELECT Host, Master_log_pos FROM rplctl.slave_master_info"))
        connection.execute(text("SELECT * FROM rplctl.slave_relay_log_info"))
        for statement in (
            "SELECT User_password FROM rplctl.slave_master_info",
            "DELETE FROM rplctl.slave_master_info",
            "UPDATE rplctl.slave_relay_log_info SET Relay_log_pos = 4",
            "DROP TABLE rplctl.slave_relay_log_info",
        ):
            with pytest.raises(Exception, match="permission denied|must be owner"), connection.begin_nested():
                connection.execute(text(statement))
    target.execute("DROP ROLE common")
