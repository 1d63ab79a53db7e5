"""REQ-1 (WL#2775): who may read and write the tables, by the script of the manual page, word for word."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from rplctl.channel import Channel
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository import create_tables, open_master_info, open_relay_log_info
from rplctl.repository.layout import statements_for_readers
from rplctl.repository.record import MASTER_INFO
from tests.repository.conftest import MASTER, RELAY, Target, config_of

PAGE = Path(__file__).parents[2] / "man/rplctl.1"
FORBIDDEN = [
    "SELECT User_password FROM rplctl.slave_master_info",
    "INSERT INTO rplctl.slave_relay_log_info (Channel_name) VALUES ('x')",
    "UPDATE rplctl.slave_relay_log_info SET Relay_log_pos = 4",
    "DELETE FROM rplctl.slave_master_info",
    "DROP TABLE rplctl.slave_relay_log_info",
    "ALTER TABLE rplctl.slave_master_info ADD COLUMN x INTEGER",
]


def scripts() -> list[str]:
    section = PAGE.read_text().partition(".SH PRIVILEGES\n")[2].partition("\n.SH ")[0]
    return [block.replace("\\-", "-") for block in re.findall(r"^\.EX\n(.*?)^\.EE$", section, re.DOTALL | re.MULTILINE)]


def fill(target: Target, channel: Channel) -> None:
    create_tables(target.engine())
    create_own_tables(target.engine())
    config = config_of(channel.datadir, "TABLE")
    open_master_info(config, channel, target.engine).flush(MASTER, force=True)
    open_relay_log_info(config, channel, target.engine).flush(RELAY, force=True)


def test_the_views_of_the_page_hold_every_column_but_the_password() -> None:
    for script in scripts():
        columns = re.sub(r"[\s`]", "", re.split(r"\bSELECT\b|\bFROM\b", script)[1]).split(",")
        assert columns == ["Number_of_lines", *(f.column for f in MASTER_INFO.fields if f.column != "User_password")]


@pytest.mark.long("test_any_user_reads_all_but_the_password_from_creation_on_or_as_it_is_printed stays in make test.")
@pytest.mark.parametrize(
    "target",
    [
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("mysql", marks=[pytest.mark.mysql, pytest.mark.slow]),
    ],
    indirect=True,
)
def test_on_mysql_a_common_user_reads_all_but_the_password_and_changes_nothing(
    target: Target, channel: Channel, request: pytest.FixtureRequest
) -> None:
    server: Any = request.getfixturevalue(target.kind)
    fill(target, channel)
    server.sql("DROP USER IF EXISTS monitor@'%'; CREATE USER monitor@'%' IDENTIFIED BY 'm'")
    server.sql(scripts()[0])
    url = f"mysql+pymysql://monitor:m@{server.host}:{server.port}/"
    look(create_engine(url, poolclass=NullPool), lambda: server.sql("DROP USER monitor@'%'"))


@pytest.mark.parametrize("target", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True)
def test_on_postgresql_a_common_user_reads_all_but_the_password_and_changes_nothing(
    target: Target, channel: Channel, postgresql: Any
) -> None:
    fill(target, channel)
    postgresql.sql("DROP ROLE IF EXISTS monitor; CREATE ROLE monitor LOGIN PASSWORD 'm'")
    postgresql.sql(scripts()[1])
    url = f"postgresql+psycopg://monitor:m@{postgresql.host}:{postgresql.port}/postgres"
    look(create_engine(url, poolclass=NullPool), lambda: postgresql.sql("DROP ROLE monitor"))


def look(engine: Any, clean_up: Callable[[], object]) -> None:
    with engine.connect() as connection:
        public = connection.execute(text("SELECT * FROM rplctl.slave_master_info_public")).mappings().one()
        assert "user_password" not in {name.lower() for name in public}
        assert MASTER.user_password not in map(str, public.values())
        connection.execute(text("SELECT * FROM rplctl.slave_relay_log_info")).one()
        connection.rollback()
        for statement in FORBIDDEN:
            with pytest.raises(DBAPIError, match=r"denied|must be owner"):
                connection.execute(text(statement))
            connection.rollback()
    engine.dispose()
    clean_up()


READERS = [
    pytest.param("mariadb", marks=pytest.mark.mariadb),
    pytest.param("mysql", marks=[pytest.mark.mysql, pytest.mark.slow]),
]


@pytest.mark.long("MariaDB stays in make test.", keeps=r"mariadb")
@pytest.mark.parametrize("target", READERS, indirect=True)
def test_any_user_reads_all_but_the_password_from_creation_on_or_as_it_is_printed(
    target: Target, channel: Channel, request: pytest.FixtureRequest
) -> None:
    """MariaDB 10.11 has PUBLIC; MySQL 9 has a role that is mandatory instead, which only an administrator makes."""
    server: Any = request.getfixturevalue(target.kind)
    fill(target, channel)
    with target.engine().connect() as connection:
        printed = statements_for_readers(connection)
    assert bool(printed) == (target.kind == "mysql")
    server.sql("; ".join(["DROP USER IF EXISTS any_user@'%'", "CREATE USER any_user@'%' IDENTIFIED BY 'm'", *printed]))
    reader = create_engine(f"mysql+pymysql://any_user:m@{server.host}:{server.port}/", poolclass=NullPool)
    columns = ", ".join(f"`{f.column}`" for f in MASTER_INFO.fields if f.column != "User_password")
    with reader.connect() as connection:
        row = connection.execute(text(f"SELECT {columns} FROM rplctl.slave_master_info")).one()
        assert MASTER.user_password not in map(str, row)
        connection.execute(text("SELECT * FROM rplctl.slave_relay_log_info")).one()
        for statement in FORBIDDEN:
            with pytest.raises(DBAPIError, match="denied"):
                connection.execute(text(statement))
    server.sql("DROP USER any_user@'%'")
    if printed:
        server.sql(
            "SET PERSIST mandatory_roles = ''; RESET PERSIST activate_all_roles_on_login;"
            "SET GLOBAL activate_all_roles_on_login = OFF; DROP ROLE rplctl_reader"
        )


@pytest.mark.mariadb
@pytest.mark.parametrize("target", ["mariadb"], indirect=True)
def test_an_account_that_may_not_grant_makes_the_tables_and_prints_what_is_missing(
    target: Target, channel: Channel, mariadb: Any
) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS rplctl; DROP USER IF EXISTS maker@'%'")
    mariadb.sql("CREATE USER maker@'%' IDENTIFIED BY 'm'; GRANT ALL ON rplctl.* TO maker@'%'")
    maker = create_engine(f"mysql+pymysql://maker:m@{mariadb.host}:{mariadb.port}/", poolclass=NullPool)
    create_tables(maker)
    with maker.connect() as connection:
        printed = statements_for_readers(connection)
    assert [line.partition(" (")[0].partition(" ON ")[0] for line in printed] == ["GRANT SELECT", "GRANT SELECT"]
    assert "User_password" not in printed[0]
    mariadb.sql("; ".join(printed))
    mariadb.sql("DROP USER maker@'%'; REVOKE SELECT ON rplctl.slave_relay_log_info FROM PUBLIC; DROP DATABASE rplctl")
