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
