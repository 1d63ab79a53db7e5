"""TABLE: compare-and-swap, damaged definitions, engines (WL#2775 REQ-1, REQ-2; design D4)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError

from rplctl.channel import Channel
from rplctl.errors import RplError, TargetError
from rplctl.info import RelayLogInfo
from rplctl.repository import create_tables, open_master_info, open_relay_log_info
from rplctl.repository.table import TableRepository, compare_and_swap
from tests.repository.conftest import MASTER, RELAY, Target, config_of

LONG = pytest.mark.long(
    "SQLite and MariaDB stay; tests/repository/test_contract.py has PostgreSQL.", keeps=r"^(?!.*(mysql|postgresql))"
)


@pytest.fixture
def ready(target: Target) -> Target:
    create_tables(target.engine())
    return target


def master_info(target: Target, channel: Channel) -> TableRepository:  # type: ignore[type-arg]
    return open_master_info(config_of(channel.datadir, "TABLE"), channel, target.engine)  # type: ignore[return-value]


def relay_log_info(target: Target, channel: Channel) -> TableRepository:  # type: ignore[type-arg]
    return open_relay_log_info(config_of(channel.datadir, "TABLE"), channel, target.engine)  # type: ignore[return-value]


def swap(target: Target, expected: RelayLogInfo, new: RelayLogInfo) -> bool:
    with target.engine().begin() as connection:
        return compare_and_swap(connection, expected, new)


@LONG
def test_swap_moves_the_position_once(ready: Target, channel: Channel) -> None:
    old = replace(RELAY, channel_name=channel.name)
    new = replace(old, relay_log_pos=5000, master_log_pos=4800, gtid_executed="x:1-10")
    relay_log_info(ready, channel).flush(old, force=True)
    assert swap(ready, old, new)
    assert not swap(ready, old, new), "a second committer with the old position is fenced off"
    assert relay_log_info(ready, channel).read() == new


@LONG
def test_swap_to_the_same_position_still_hits_its_row(ready: Target, channel: Channel) -> None:
    """MySQL counts changed rows unless told to count found ones."""
    info = replace(RELAY, channel_name=channel.name)
    relay_log_info(ready, channel).flush(info, force=True)
    assert swap(ready, info, info)


@LONG
def test_swap_inserts_the_first_row_and_only_the_first(ready: Target, channel: Channel) -> None:
    nothing = RelayLogInfo(channel_name=channel.name)
    first = replace(RELAY, channel_name=channel.name, master_id=0)
    assert swap(ready, nothing, first)
    assert not swap(ready, nothing, first)
    assert replace(relay_log_info(ready, channel).read(), master_id=0) == first


@LONG
def test_swap_without_its_row_is_refused_when_a_position_was_expected(ready: Target, channel: Channel) -> None:
    info = replace(RELAY, channel_name=channel.name)
    assert not swap(ready, info, replace(info, relay_log_pos=5000))
    assert not relay_log_info(ready, channel).exists()


@LONG
def test_a_rolled_back_swap_leaves_the_old_position(ready: Target, channel: Channel) -> None:
    old = replace(RELAY, channel_name=channel.name)
    relay_log_info(ready, channel).flush(old, force=True)
    with ready.engine().connect() as connection, connection.begin() as transaction:
        assert compare_and_swap(connection, old, replace(old, relay_log_pos=5000))
        transaction.rollback()
    assert relay_log_info(ready, channel).read() == old


@LONG
def test_swap_leaves_the_settings_that_a_super_user_edited(ready: Target, channel: Channel) -> None:
    old = replace(RELAY, channel_name=channel.name)
    relay_log_info(ready, channel).flush(old, force=True)
    ready.execute(f"UPDATE {ready.table('slave_relay_log_info')} SET Sql_delay = 99")
    assert swap(ready, old, replace(old, relay_log_pos=5000))
    assert relay_log_info(ready, channel).read().sql_delay == 99


@LONG
def test_of_two_committers_at_once_one_wins(ready: Target, channel: Channel) -> None:
    old = replace(RELAY, channel_name=channel.name)
    relay_log_info(ready, channel).flush(old, force=True)
    barrier, won = threading.Barrier(2), []

    def commit(position: int) -> None:
        barrier.wait()
        won.append(swap(ready, old, replace(old, relay_log_pos=position)))

    threads = [threading.Thread(target=commit, args=(position,)) for position in (5000, 6000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False, True]


@LONG
def test_a_missing_table_is_named(target: Target, channel: Channel) -> None:
    assert not master_info(target, channel).exists()
    for repository, errno in ((master_info(target, channel), 1201), (relay_log_info(target, channel), 1872)):
        with pytest.raises(
            RplError, match=r"Info table is not ready to be used\. Table '.*' cannot be opened"
        ) as error:
            repository.read()
        assert (error.value.errno, error.value.hint) == (errno, "to create the table, run: rplctl init")


@LONG
def test_a_missing_column_is_named(ready: Target, channel: Channel) -> None:
    master_info(ready, channel).flush(MASTER, force=True)
    ready.execute(f"ALTER TABLE {ready.table('slave_master_info')} DROP COLUMN Heartbeat")
    repository = master_info(ready, channel)
    for call in (repository.read, repository.exists, lambda: repository.flush(MASTER, force=True)):
        with pytest.raises(RplError, match=r"Corrupted table .*\. Check out table definition.*Heartbeat") as error:
            call()
        assert error.value.errno == 1201


@LONG
@pytest.mark.parametrize("key", [None, "Host"])
def test_a_changed_primary_key_is_refused_even_with_two_rows_of_a_channel(
    key: str | None, ready: Target, channel: Channel
) -> None:
    master_info(ready, channel).flush(MASTER, force=True)
    rekey(ready, "slave_master_info", key)
    if key is None:
        table = ready.table("slave_master_info")
        ready.execute(f"UPDATE {table} SET Master_id = 1")
        ready.execute(f"INSERT INTO {table} SELECT * FROM {table}")
    expected = r"problem with its key field\(s\).*expected field #1 to be 'Channel_name' but found "
    expected += "'no key'" if key is None else f"(?i:'{key}')"
    with pytest.raises(RplError, match=expected) as error:
        master_info(ready, channel).read()
    assert error.value.errno == 1201


def rekey(target: Target, name: str, key: str | None) -> None:
    """Give the table another primary key, or none and no other unique one."""
    table = target.table(name)
    if target.kind == "sqlite":  # it cannot drop a key; without one, a copy of the table
        target.execute(f"CREATE TABLE copy AS SELECT * FROM {table}")
        target.execute(f"DROP TABLE {table}")
        if key is None:
            target.execute(f"ALTER TABLE copy RENAME TO {table}")
            return
        columns = ", ".join(f"{c} TEXT" for c in columns_of(target, "copy"))
        target.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key}))")
    elif target.kind == "postgresql":
        target.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}_pkey")
        target.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}_master_id_key")
        if key:
            target.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({key})")
    else:
        added = f", ADD PRIMARY KEY ({key})" if key else ""
        target.execute(f"ALTER TABLE {table} DROP PRIMARY KEY, DROP KEY Master_id{added}")


def columns_of(target: Target, table: str) -> list[str]:
    with target.engine().connect() as connection:
        return [row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({table})")]


@LONG
def test_a_value_that_cannot_be_is_named_with_its_column(ready: Target, channel: Channel) -> None:
    repository = relay_log_info(ready, channel)
    repository.flush(RELAY, force=True)
    ready.execute(f"UPDATE {ready.table('slave_relay_log_info')} SET Relay_log_name = '/etc/passwd'")
    with pytest.raises(RplError, match=r"slave_relay_log_info\.Relay_log_name: '/etc/passwd' is not the name") as error:
        relay_log_info(ready, channel).read()
    assert error.value.errno == 1872


@LONG
def test_a_super_user_may_edit_a_row_and_the_next_read_uses_it(ready: Target, channel: Channel) -> None:
    master_info(ready, channel).flush(MASTER, force=True)
    ready.execute(f"UPDATE {ready.table('slave_master_info')} SET Host = 'other', Master_log_pos = 4")
    info = master_info(ready, channel).read()
    assert (info.host, info.master_log_pos) == ("other", 4)


@LONG
def test_column_defaults_do_not_change_what_is_written(ready: Target, channel: Channel) -> None:
    if ready.kind == "sqlite":
        pytest.skip("SQLite cannot change a default")
    ready.execute(f"ALTER TABLE {ready.table('slave_master_info')} ALTER COLUMN Connect_retry SET DEFAULT 7")
    master_info(ready, channel).flush(MASTER, force=True)
    assert master_info(ready, channel).read().connect_retry == 60


@pytest.mark.long("SQLite stays; each target has the same key.", keeps=r"^sqlite$")
@LONG
def test_a_record_whose_master_id_another_row_has_gets_the_next_one(ready: Target, channel: Channel) -> None:
    """Two instances with one target give their first channels the same Master_id, while their records are files."""
    other = Channel("other", channel.datadir)
    master_info(ready, channel).flush(MASTER, force=True)
    master_info(ready, other).flush(MASTER, force=True)
    assert master_info(ready, other).read() == replace(MASTER, channel_name="other", master_id=MASTER.master_id + 1)
    with pytest.raises(DBAPIError):  # the key of the table
        ready.execute(f"UPDATE {ready.table('slave_master_info')} SET Master_id = {MASTER.master_id}")
    relay_log_info(ready, channel).flush(RELAY, force=True)
    assert swap(ready, RelayLogInfo(channel_name="other"), replace(RELAY, channel_name="other"))
    assert relay_log_info(ready, other).read().master_id == RELAY.master_id + 1


@LONG
def test_the_records_of_new_channels_that_are_written_at_once_get_different_master_ids(
    ready: Target, channel: Channel
) -> None:
    names = [f"channel{n}" for n in range(4)]
    barrier = threading.Barrier(len(names))

    def write(name: str) -> None:
        repository = master_info(ready, Channel(name, channel.datadir))
        assert not repository.exists()  # its connection is ready
        barrier.wait()
        repository.flush(replace(MASTER, channel_name=name, master_id=1), force=True)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(write, names))
    ids = [master_info(ready, Channel(name, channel.datadir)).read().master_id for name in names]
    assert sorted(ids) == [1, 2, 3, 4]


@LONG
def test_an_error_of_the_target_shows_no_parameter(ready: Target, channel: Channel) -> None:
    master_info(ready, channel).flush(MASTER, force=True)
    ready.execute(f"CREATE UNIQUE INDEX one_port ON {ready.table('slave_master_info')} (Port)")
    with pytest.raises(TargetError) as error:
        master_info(ready, Channel("other", channel.datadir)).flush(MASTER, force=True)
    assert MASTER.user_password not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("kind", ["postgresql+psycopg", "mysql+pymysql"])
def test_a_target_that_is_away_is_a_transient_target_error_with_mysqls_number(channel: Channel, kind: str) -> None:
    config = config_of(channel.datadir, "TABLE")
    repository = open_master_info(config, channel, lambda: create_engine(f"{kind}://u:geheim@127.0.0.1:1/x"))
    with pytest.raises(TargetError) as error:
        repository.read()
    assert error.value.transient and "geheim" not in str(error.value)
    assert error.value.errno == 2003


@pytest.mark.mariadb
@pytest.mark.parametrize("target", [pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)
def test_an_engine_that_cannot_hold_the_tables_is_the_targets_error(target: Target) -> None:
    for engine, errno in (("CSV", 1071), ("NoSuchEngine", 1286)):
        with pytest.raises(TargetError) as error:
            create_tables(target.engine(), engine)
        assert (error.value.errno, error.value.transient) == (errno, False)


@pytest.mark.mariadb
@pytest.mark.parametrize("target", [pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)
@pytest.mark.parametrize(
    ("engine", "transactional"), [("InnoDB", True), ("MyISAM", False), ("Aria", False), ("MEMORY", False)]
)
def test_any_engine_of_the_server_holds_both_records(
    engine: str, transactional: bool, target: Target, channel: Channel
) -> None:
    create_tables(target.engine(), engine)
    master_info(target, channel).flush(MASTER, force=True)
    relay_log_info(target, channel).flush(RELAY, force=True)
    assert master_info(target, channel).read() == replace(MASTER, channel_name=channel.name)
    assert relay_log_info(target, channel).read() == replace(RELAY, channel_name=channel.name)
    assert relay_log_info(target, channel).is_transactional() is transactional


@pytest.mark.mariadb
@pytest.mark.parametrize("target", [pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)
@pytest.mark.parametrize(("engine", "transactional"), [("InnoDB", True), ("Aria", False)])
def test_a_change_of_engine_shows_at_the_next_question(
    engine: str, transactional: bool, target: Target, channel: Channel
) -> None:
    create_tables(target.engine(), "MyISAM")
    repository = relay_log_info(target, channel)
    assert not repository.is_transactional()
    target.execute(f"ALTER TABLE rplctl.slave_relay_log_info ENGINE={engine}")
    assert repository.is_transactional() is transactional


@pytest.mark.postgresql
@pytest.mark.parametrize("target", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True)
def test_an_unlogged_table_is_not_crash_safe(target: Target, channel: Channel) -> None:
    create_tables(target.engine(), "UNLOGGED")
    assert not relay_log_info(target, channel).is_transactional()


@pytest.mark.mariadb
@pytest.mark.parametrize("target", [pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True)
def test_a_read_lock_of_a_super_user_holds_the_flush_until_it_is_released(target: Target, channel: Channel) -> None:
    create_tables(target.engine())
    repository = master_info(target, channel)
    done = threading.Event()

    def flush() -> None:
        repository.flush(MASTER, force=True)
        done.set()

    with target.engine().connect() as super_user:
        super_user.exec_driver_sql("FLUSH TABLES WITH READ LOCK")
        thread = threading.Thread(target=flush)
        thread.start()
        assert not done.wait(0.5)
        super_user.exec_driver_sql("UNLOCK TABLES")
    thread.join(180)
    assert done.is_set() and repository.read().host == MASTER.host
