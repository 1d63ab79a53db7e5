"""The worklog's tables, MySQL's and ours: rows survive every way between them, on every target, killed anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from alembic import command
from alembic.config import Config as AlembicConfig
from sqlalchemy import Engine, event, inspect, text

from rplctl.channel import Channel
from rplctl.errors import UPGRADE, RplError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository import create_tables, open_master_info, open_relay_log_info
from rplctl.repository.install import migrations_folder, upgrade_if_old
from rplctl.repository.layout import MYSQL_LAYOUT, NAMES, OURS, WL2775, ColumnTypes, create, layout_of
from rplctl.repository.switch import resolve_repositories
from rplctl.target.registry import dialect_of
from tests.kit.torture_page import count_torture
from tests.migrations.revisions import columns_of
from tests.migrations.test_versions import in_child
from tests.repository.conftest import SERVERS, Target, config_of

LONG = pytest.mark.long(
    "SQLite and MariaDB stay; tests/repository/test_contract.py has PostgreSQL.", keeps=r"^(?!.*(mysql|postgresql))"
)

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12
KILLED = 9
# what all three layouts can hold
MASTER = MasterInfo(
    master_log_name="binlog.000003", master_log_pos=1170, host="db1", user_name="repl", user_password="fernet:x",
    port=3307, connect_retry=7, enabled_ssl=True, ssl_ca="/ca.pem", ssl_verify_server_cert=True, heartbeat=2.5,
    ignored_server_ids=(3, 7), retry_count=99, master_id=1,
)  # fmt: skip
RELAY = RelayLogInfo(
    relay_log_name="relay-bin.000002", relay_log_pos=2763, master_log_name="binlog.000001", master_log_pos=2552,
    master_id=1,
)  # fmt: skip
# as WL#2775 would have them: the worklog's own INSERTs
WORKLOG_MASTER = (
    "INSERT INTO {t} (Master_id, {q}Lines{q}, Master_log_name, Master_log_pos, Host, {q}User{q}, Password, Port, "
    "Connect_retry, {q}Ssl{q}, Ssl_ca, Ssl_capath, Ssl_cert, Ssl_cipher, Ssl_key, Ssl_verify_servert_cert, "
    "Heartbeat, Ignore_server_ids, Retry_count) VALUES ({id}, 19, 'binlog.000003', 1170, 'db1', 'repl', "
    "'fernet:x', 3307, 7, {yes}, '/ca.pem', '', '', '', '', {yes}, 2.5, '2 3 7', 99)"
)
WORKLOG_RELAY = "INSERT INTO {t} VALUES ({id}, './relay-bin.000002', 2763, 'binlog.000001', 2552)"


@pytest.fixture
def channel(datadir: Any) -> Channel:
    return Channel("", datadir)


def alembic(engine: Engine, revision: str, direction: Callable[..., None]) -> None:
    with engine.connect() as connection, connection.begin():
        config = AlembicConfig()
        config.set_main_option("script_location", str(migrations_folder()))
        config.attributes |= {"connection": connection, "rep_engine": ""}
        direction(config, revision)


def layouts(engine: Engine) -> list[str | None]:
    with engine.connect() as connection:
        return [layout_of(connection, name) for name in NAMES]


def records(target: Target, channel: Channel) -> tuple[MasterInfo, RelayLogInfo]:
    config = config_of(channel.datadir, "TABLE")
    return (
        open_master_info(config, channel, target.engine).read(),
        open_relay_log_info(config, channel, target.engine).read(),
    )


def fill(target: Target, channel: Channel) -> None:
    config = config_of(channel.datadir, "TABLE")
    open_master_info(config, channel, target.engine).flush(replace(MASTER, channel_name=channel.name), force=True)
    open_relay_log_info(config, channel, target.engine).flush(replace(RELAY, channel_name=channel.name), force=True)


def make_by_hand(target: Target, revision: str, engine_name: str = "") -> None:
    """Tables of a revision's layout, without a version table: from the worklog's text, or a server's own script."""
    schema = dialect_of(target.engine().dialect.name).own_schema
    if schema:
        target.execute(f"CREATE {'SCHEMA' if target.kind == 'postgresql' else 'DATABASE'} IF NOT EXISTS {schema}")
    with target.engine().connect() as connection, connection.begin():
        for name, columns in columns_of(revision, connection.dialect.name, engine_name).items():
            create(connection, name, columns, engine_name)


def fill_worklog(target: Target, id: int = 1) -> None:
    yes = "true" if target.kind == "postgresql" else "1"
    quote = "`" if target.kind in ("mariadb", "mysql") else '"'
    for template, name in ((WORKLOG_MASTER, NAMES[0]), (WORKLOG_RELAY, NAMES[1])):
        statement = template.format(t=target.table(name), q=quote, id=id, yes=yes)
        target.execute(statement.lower() if target.kind == "postgresql" else statement)


@pytest.mark.long("SQLite stays; the migrations are the same.", keeps=r"^sqlite$")
@LONG
def test_up_down_and_up_again_keeps_what_each_layout_can_hold(target: Target, channel: Channel) -> None:
    create_tables(target.engine())
    fill(target, channel)
    for revision, layout in (("0002", MYSQL_LAYOUT), ("0001", WL2775)):
        alembic(target.engine(), revision, command.downgrade)
        assert layouts(target.engine()) == [layout, layout]
    create_tables(target.engine())
    assert layouts(target.engine()) == [OURS, OURS]
    assert records(target, channel) == (MASTER, RELAY)
    alembic(target.engine(), "base", command.downgrade)
    assert layouts(target.engine()) == [None, None]


@pytest.mark.long("MariaDB stays, where such tables are.", keeps=r"^mariadb$")
@LONG
def test_the_worklogs_own_tables_are_upgraded_with_their_rows(target: Target, channel: Channel) -> None:
    make_by_hand(target, "0001")
    fill_worklog(target)
    fill_worklog(target, 7)
    create_tables(target.engine())
    assert records(target, channel) == (MASTER, RELAY)
    master, relay = records(target, Channel("master-7", channel.datadir))
    assert (master.host, relay.exec_position, master.master_id) == ("db1", RELAY.exec_position, relay.master_id)


@pytest.mark.long("MariaDB stays, where such tables are.", keeps=r"^mariadb$")
@LONG
def test_tables_as_a_mysql_server_ships_them_are_upgraded(target: Target, channel: Channel) -> None:
    create_tables(target.engine())
    fill(target, Channel("east", channel.datadir))
    alembic(target.engine(), "0002", command.downgrade)
    target.execute(f"DROP TABLE {target.table('rplctl_version')}")
    create_tables(target.engine())
    master, relay = records(target, Channel("east", channel.datadir))
    assert (master.host, master.channel_name, relay.exec_position) == ("db1", "east", RELAY.exec_position)


@pytest.mark.long("SQLite stays; the migrations are the same.", keeps=r"^sqlite$")
@LONG
def test_an_old_instance_is_named_before_and_upgraded_by_a_start(target: Target, channel: Channel) -> None:
    make_by_hand(target, "0001")
    fill_worklog(target)
    with pytest.raises(RplError, match="has the layout of an older version") as error:
        records(target, channel)
    assert "run: rplctl start\n" in error.value.hint
    config = config_of(channel.datadir, "TABLE", target=str(target.engine().url))
    resolve_repositories(config, channel, target.engine)
    assert records(target, channel) == (MASTER, RELAY)


@LONG
def test_tables_of_a_newer_version_are_refused_and_untouched(target: Target, channel: Channel) -> None:
    create_tables(target.engine())
    target.execute(f"UPDATE {target.table('rplctl_version')} SET version_num = '0099'")
    for call in (create_tables, upgrade_if_old):
        with pytest.raises(RplError, match="have version 0099, this rplctl supports versions up to") as error:
            call(target.engine())
        assert error.value.hint == UPGRADE


@pytest.mark.long("SQLite stays; the check is made before any statement.", keeps=r"^sqlite$")
@LONG
def test_a_position_that_the_worklog_cannot_hold_is_refused(target: Target, channel: Channel) -> None:
    create_tables(target.engine())
    fill(target, channel)
    target.execute(f"UPDATE {target.table(NAMES[0])} SET Master_log_pos = 4294967296")
    alembic(target.engine(), "0002", command.downgrade)
    with pytest.raises(RplError, match="does not fit"):
        alembic(target.engine(), "0001", command.downgrade)
    create_tables(target.engine())
    assert records(target, channel)[0].master_log_pos == 4294967296


@pytest.mark.long("One engine stays in make test.", keeps=r"MyISAM")
@pytest.mark.parametrize("engine_name", ["MyISAM", "Aria", "MEMORY"])
@pytest.mark.parametrize("target", [pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)
def test_an_upgrade_keeps_the_engine(target: Target, channel: Channel, engine_name: str) -> None:
    make_by_hand(target, "0002", engine_name)
    create_tables(target.engine())
    query = (
        "SELECT DISTINCT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA='rplctl' AND TABLE_NAME LIKE 'slave%'"
    )
    with target.engine().connect() as connection:
        assert connection.execute(text(query)).scalars().all() == [engine_name]


def die_at(engine: Engine, number: int) -> None:
    """Let `number` writing statements through, then end this process at once."""
    seen = [0]

    def before(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().upper().startswith(("CREATE", "DROP", "INSERT", "UPDATE", "RENAME", "DELETE", "COMMIT")):
            if seen[0] == number:
                os._exit(KILLED)
            seen[0] += 1

    event.listen(engine, "before_cursor_execute", before)


@pytest.mark.long("test_a_first_installation_killed_before_any_statement_is_finished_by_the_next stays in make test.")
@pytest.mark.slow
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.torture)])
@pytest.mark.parametrize("target", ["sqlite", *(p for p in SERVERS if p.values[0] != "mysql")], indirect=True)
def test_an_upgrade_killed_before_any_statement_is_finished_by_the_next(
    target: Target, channel: Channel, every: int
) -> None:
    """Of six statements three are the one on some kind of target; `-m torture` kills before all of them on each."""
    for number in range(2 * ("sqlite", "mariadb", "postgresql").index(target.kind) % every, 300, every):
        emptied(target)
        make_by_hand(target, "0001")
        fill_worklog(target)
        if os.waitstatus_to_exitcode(os.waitpid(in_child(lambda: dying_upgrade(target, number)), 0)[1]) == KILLED:  # noqa: B023
            create_tables(target.engine())
            assert records(target, channel) == (MASTER, RELAY), f"killed before statement {number}"
            names = inspect(target.engine()).get_table_names(schema=dialect_of(target.engine().dialect.name).own_schema)
            assert not [name for name in names if "__rplctl" in name]
            count_torture("layout upgrades", target.kind, 0)
            continue
        assert number > 8, "it makes more statements than that"
        return
    pytest.fail("the upgrade never ends")


@pytest.mark.long("SQLite stays; servers take the same steps.", keeps=r"sqlite")
@pytest.mark.parametrize("target", ["sqlite", *(p for p in SERVERS if p.values[0] != "mysql")], indirect=True)
def test_a_first_installation_killed_before_any_statement_is_finished_by_the_next(
    target: Target, channel: Channel
) -> None:
    for number in range(100):
        emptied(target)
        if os.waitstatus_to_exitcode(os.waitpid(in_child(lambda: dying_upgrade(target, number)), 0)[1]) != KILLED:  # noqa: B023
            break
        create_tables(target.engine())
        assert layouts(target.engine()) == [OURS, OURS], f"killed before statement {number}"
        config = config_of(channel.datadir, "TABLE")
        open_master_info(config, channel, target.engine).flush(MASTER, force=True)
        open_relay_log_info(config, channel, target.engine).flush(RELAY, force=True)
        assert records(target, channel) == (MASTER, RELAY)
    assert number > 4, "it makes more statements than that"


def emptied(target: Target) -> None:
    if target.kind != "sqlite":
        target.execute("DROP SCHEMA IF EXISTS rplctl" + (" CASCADE" if target.kind == "postgresql" else ""))
    else:
        for name in (*NAMES, "rplctl_version"):
            target.execute(f"DROP TABLE IF EXISTS {name}")


def dying_upgrade(target: Target, number: int) -> None:
    engine = target.engine()
    die_at(engine, number)
    create_tables(engine)


def test_memory_has_no_text_and_gets_long_names_instead() -> None:
    assert type(ColumnTypes("mariadb", "MEMORY").text).__name__ == "VARCHAR"
    assert type(ColumnTypes("mariadb", "Aria").text).__name__ == "TEXT"


def test_the_newest_version_costs_one_question(sqlite_target: Target) -> None:
    create_tables(sqlite_target.engine())
    engine = sqlite_target.engine()
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda _c, _cursor, statement, *_: statements.append(statement))
    create_tables(engine)
    upgrade_if_old(engine)
    assert [s for s in statements if not s.startswith(("SELECT", "PRAGMA", "BEGIN"))] == []
