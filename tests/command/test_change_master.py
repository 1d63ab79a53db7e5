"""CHANGE MASTER TO as a function: MySQL's semantics (MySQL manual), and what a kill in the middle leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from rplctl.channel import Channel, hold_lock
from rplctl.command.change_master import change_master
from rplctl.command.channel import change_plan as module, change_store
from rplctl.command.channel.change_options import CHANGE_OPTIONS, MasterChanges, parse_value
from rplctl.command.channel.change_plan import new_master_info, new_relay_log_info
from rplctl.command.channel.change_store import finish_pending_change
from rplctl.command.channel.context import open_repositories
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import PositionStore
from rplctl.config import Config
from rplctl.errors import LockBusy, TargetError, UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.secret import reveal

FIRST = MasterChanges(master_host="db1", master_user="repl", master_log_file="b.000003", master_log_pos=1170)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = Config(tmp_path)
    change_master(config, "", FIRST)
    return config


def stored(config: Config, channel: str = "") -> tuple[MasterInfo, RelayLogInfo]:
    repositories = open_repositories(config, channel)
    return repositories.master_info.read(), repositories.relay_log_info.read()


def test_the_first_change_places_both_threads(config: Config) -> None:
    master, relay = stored(config)
    assert master.read_position == relay.exec_position == BinlogPosition("b.000003", 1170)
    assert relay.relay_log_position == RelayLogPosition("relay-bin.000001", 4)
    assert (master.heartbeat, master.port, master.master_id, relay.master_id) == (30.0, 3306, 1, 1)


def test_each_channel_has_a_master_id_of_its_own(config: Config) -> None:
    for name in ("east", "west"):
        change_master(config, name, MasterChanges(master_host=name))
    assert [stored(config, name)[0].master_id for name in ("", "east", "west")] == [1, 2, 3]


OTHER = [MasterChanges(master_host="db2"), MasterChanges(master_port=3307)]


@pytest.mark.parametrize("changes", [MasterChanges(master_host="db1"), MasterChanges(master_port=3306), *OTHER])
def test_host_or_port_forgets_identity_and_heartbeat_another_one_the_position_too_which_is_told(
    config: Config, changes: MasterChanges
) -> None:
    repositories = open_repositories(config, "")
    repositories.master_info.flush(replace(stored(config)[0], uuid="u", master_server_id=9, heartbeat=5.0), force=True)
    result = change_master(config, "", changes)
    master, relay = stored(config)
    is_other = changes in OTHER
    place = BinlogPosition("", 4) if is_other else BinlogPosition("b.000003", 1170)
    assert master.read_position == relay.exec_position == place
    assert any("--master-log-file b.000003 --master-log-pos 1170" in note.text for note in result.notes) is is_other
    assert (master.uuid, master.master_server_id, master.heartbeat) == ("", 0, 30.0)
    assert master.user_name == "repl"


def test_relay_logs_stay_when_neither_source_nor_position_nor_gtid_is_named(config: Config) -> None:
    """What was received need not be there any more at the source."""
    repositories = open_repositories(config, "")
    master, relay = stored(config)
    repositories.master_info.flush(master.with_read_position(BinlogPosition("b.000009", 9999)), force=True)
    (config.datadir / "relay-bin.000001").write_bytes(b"\xfebin")
    (config.datadir / "relay-bin.index").write_text("./relay-bin.000001\n")
    result = change_master(config, "", MasterChanges(master_connect_retry=5, ignore_server_ids=(7,)))
    assert not result.purges_relay_logs and "recover --refetch" in result.notes[-1].text
    assert stored(config)[0].read_position.log_pos == 9999 and stored(config)[1] == relay
    result = change_master(config, "", MasterChanges(master_use_gtid="no", master_auto_position=False))
    assert not result.purges_relay_logs
    result = change_master(config, "", MasterChanges(master_port=3307))
    assert result.purges_relay_logs and not (config.datadir / "relay-bin.000001").exists()


def test_a_position_below_four_is_raised_to_four(config: Config) -> None:
    change_master(config, "", MasterChanges(master_log_pos=0))
    assert stored(config)[0].master_log_pos == 4


def test_a_file_without_a_position_is_noted(config: Config) -> None:
    result = change_master(config, "", MasterChanges(master_log_file="b.000004"))
    assert [note.errno for note in result.notes] == [3023]
    assert stored(config)[0].read_position == BinlogPosition("b.000004", 1170)


@pytest.mark.parametrize(
    ("changes", "errno"),
    [
        (MasterChanges(master_heartbeat_period=61), 1704),
        (MasterChanges(master_heartbeat_period=0.0001), 1703),
        (MasterChanges(master_use_gtid="slave_pos", master_log_file="b.000001", master_log_pos=4), 1618),
        (MasterChanges(password="x"), 1759),
    ],
)
def test_doubtful_values_are_taken_with_a_note(config: Config, changes: MasterChanges, errno: int) -> None:
    executed = replace(stored(config)[1], gtid_executed="0-1-7")  # else GTIDs are refused in the place of a position
    open_repositories(config, "").relay_log_info.flush(executed, force=True)
    assert errno in [note.errno for note in change_master(config, "", changes).notes]


def test_delay_is_the_appliers_and_zero_heartbeat_is_kept(config: Config) -> None:
    change_master(config, "", MasterChanges(master_delay=3600, master_heartbeat_period=0.0, master_host="db2"))
    master, relay = stored(config)
    assert (relay.sql_delay, master.heartbeat) == (3600, 0.0)


def test_a_dry_run_changes_nothing(config: Config) -> None:
    before = {p.name: p.read_bytes() for p in config.datadir.iterdir() if p.is_file()}
    result = change_master(config, "", MasterChanges(master_host="db2"), dry_run=True)
    assert result.master_info.host == "db2"
    assert {p.name: p.read_bytes() for p in config.datadir.iterdir() if p.is_file()} == before


RUNNING = [
    (("receiver",), MasterChanges(master_host="x"), 3021),
    (("receiver",), MasterChanges(password="x"), 3021),
    (("applier",), MasterChanges(master_delay=1), 3085),
    (("receiver",), MasterChanges(master_auto_position=True), 3081),
    (("applier",), MasterChanges(master_use_gtid="no"), 3081),
    (("receiver", "applier"), MasterChanges(master_host="x", master_delay=1), 3081),
    (("receiver", "applier"), MasterChanges(master_user="x"), 3021),
    (("applier",), MasterChanges(master_user="x"), None),
    (("receiver",), MasterChanges(master_delay=1), None),
]


@pytest.mark.parametrize(("roles", "changes", "errno"), RUNNING)
def test_a_running_thread_forbids_what_concerns_it(
    config: Config, roles: tuple[str, ...], changes: MasterChanges, errno: int | None
) -> None:
    from contextlib import ExitStack

    before = stored(config)
    with ExitStack() as held:
        for role in roles:
            held.enter_context(hold_lock(Channel("", config.datadir), role))
        if errno is None:
            assert not change_master(config, "", changes).purges_relay_logs
            return
        with pytest.raises(UsageError) as caught:
            change_master(config, "", changes)
    assert (caught.value.errno, "rplctl stop" in caught.value.hint) == (errno, True)
    assert stored(config) == before


def test_two_commands_at_once_are_not_possible(config: Config) -> None:
    with hold_lock(Channel("", config.datadir), "admin"), pytest.raises(LockBusy):
        change_master(config, "", MasterChanges(master_delay=1))


def test_tls_settings_without_tls_are_warned_of(config: Config) -> None:
    def warned(changes: MasterChanges) -> bool:
        return any("until --master-ssl 1" in note.text for note in change_master(config, "", changes).notes)

    assert warned(MasterChanges(master_ssl_verify_server_cert=True))
    assert warned(MasterChanges(master_tls_version="TLSv1.3"))
    assert not warned(MasterChanges(master_ssl=True))
    assert not warned(MasterChanges(master_tls_version="TLSv1.2"))


def test_the_password_is_stored_protected_and_the_journal_does_not_know_it(config: Config) -> None:
    change_master(config, "", MasterChanges(password="C4nary", master_ssl=True))
    master = stored(config)[0]
    assert reveal(master.user_password, config.datadir) == "C4nary"
    assert "C4nary" not in repr(MasterChanges(password="C4nary"))
    for path in config.datadir.rglob("*"):
        assert not path.is_file() or b"C4nary" not in path.read_bytes()


def test_the_journal_says_who_changed_what(config: Config) -> None:
    line = (config.datadir / "history.jsonl").read_text()
    assert "'CHANGE MASTER TO executed'. Previous state master_host='', master_port= 3306, master_log_file=''" in line
    assert "New state master_host='db1', master_port= 3306, master_log_file='b.000003', master_log_pos= 1170" in line
    assert (config.datadir / "history.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("flushed", [0, 1])
def test_a_change_killed_half_way_is_finished_by_the_next_command(
    config: Config, monkeypatch: pytest.MonkeyPatch, flushed: int
) -> None:
    class Killed(BaseException):
        pass

    repositories = open_repositories(config, "")
    target = type(repositories.master_info)
    original = target.flush
    calls = []

    def flush(self: object, info: object, **rest: object) -> None:
        calls.append(info)
        if len(calls) > flushed:
            raise Killed
        original(self, info, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr(target, "flush", flush)
    with pytest.raises(Killed):
        change_master(config, "", MasterChanges(master_host="db2", master_log_file="c.000001", master_log_pos=4))
    monkeypatch.setattr(target, "flush", original)
    assert finish_pending_change(config, Channel("", config.datadir))
    master, relay = stored(config)
    assert (master.host, master.read_position) == ("db2", BinlogPosition("c.000001", 4))
    assert relay.exec_position == master.read_position
    assert not finish_pending_change(config, Channel("", config.datadir))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("master_port", "3307", 3307),
        ("master_heartbeat_period", "1.5", 1.5),
        ("master_heartbeat_period", "0.00001", 0.00001),
        ("ignore_server_ids", "(7, 3,7)", (3, 7)),
        ("ignore_server_ids", "", ()),
        ("master_ssl", "1", True),
        ("master_use_gtid", "SLAVE_POS", "slave_pos"),
    ],
)
def test_values_are_parsed_as_typed(name: str, text: str, value: object) -> None:
    assert parse_value(CHANGE_OPTIONS[name], text) == value


def test_every_master_option_has_a_source_alias() -> None:
    for row in CHANGE_OPTIONS.values():
        assert not row.name.startswith("master_") or f"--source-{row.name[7:].replace('_', '-')}" in row.flags


def test_our_own_id_is_not_ignored_when_replicate_same_server_id_asks_for_it(tmp_path: Path) -> None:
    config = Config(tmp_path, server_id=77, replicate_same_server_id=True)
    with pytest.raises(UsageError, match="server id 77 clashes with the slave startup option") as caught:
        change_master(config, "", MasterChanges(master_host="db1", ignore_server_ids=(5, 77)))
    assert caught.value.errno == 1650
    change_master(config, "", MasterChanges(master_host="db1", ignore_server_ids=(5,)))
    change_master(Config(tmp_path, server_id=77), "", MasterChanges(ignore_server_ids=(5, 77)))


def applied_to(config: Config) -> tuple[Engine, PositionStore, RelayLogInfo]:
    """A configured channel as its applier finds it: the target, the ledger, and the position in it."""
    change_master(config, "", FIRST)
    engine = open_repositories(config, "").engine()
    create_own_tables(engine)
    store = open_position_store(config, Channel("", config.datadir), engine)
    return engine, store, store.open()


@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
def test_the_record_of_a_running_applier_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It commits while the receiver's settings change: neither its position nor its marker may go back."""
    config = Config(tmp_path, relay_log_info_repository=kind)
    engine, store, before = applied_to(config)
    after = before.at(RelayLogPosition("relay-bin.000001", 900), BinlogPosition("b.000003", 2000))

    def commits_meanwhile(*given: Any) -> MasterInfo:
        with engine.begin() as connection:
            store.advance(connection, before, after)
        store.committed(after)
        return new_master_info(*given)

    monkeypatch.setattr(module, "new_master_info", commits_meanwhile)
    with hold_lock(Channel("", tmp_path), "applier"):
        change_master(config, "", MasterChanges(master_connect_retry=7))
    master, relay = stored(config)
    assert (master.connect_retry, relay.exec_position) == (7, after.exec_position)
    assert master.read_position == BinlogPosition("b.000003", 1170)
    again = open_position_store(config, Channel("", tmp_path), engine)  # after a crash of that applier
    assert again.open().exec_position == after.exec_position


def test_the_record_of_a_running_receiver_is_left_alone(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    repositories = open_repositories(config, "")

    def receives_meanwhile(*given: Any) -> RelayLogInfo:
        moved = stored(config)[0].with_read_position(BinlogPosition("b.000009", 99))
        repositories.master_info.flush(moved, force=True)
        return new_relay_log_info(*given)

    monkeypatch.setattr(module, "new_relay_log_info", receives_meanwhile)
    with hold_lock(Channel("", config.datadir), "receiver"):
        change_master(config, "", MasterChanges(master_delay=60))
    master, relay = stored(config)
    assert (master.read_position, relay.sql_delay) == (BinlogPosition("b.000009", 99), 60)


def test_what_a_killed_change_left_waits_for_the_thread_it_concerns_only(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = Channel("", config.datadir)
    monkeypatch.setattr(change_store, "remove_file", lambda _path: None)  # killed before the last step
    with hold_lock(channel, "applier"):
        change_master(config, "", MasterChanges(master_connect_retry=7))
    monkeypatch.undo()
    relay = replace(stored(config)[1], master_log_pos=5000)
    open_repositories(config, "").relay_log_info.flush(relay, force=True)
    with hold_lock(channel, "receiver"):
        assert not finish_pending_change(config, channel)
    with hold_lock(channel, "applier"):
        assert finish_pending_change(config, channel)
    assert stored(config)[1].exec_position.log_pos == 5000


def test_what_a_crash_kept_out_of_the_file_is_not_fetched_again(tmp_path: Path) -> None:
    """The marker in the target is ahead of the file, as a power cut leaves them: CHANGE MASTER goes by the marker."""
    config = Config(tmp_path, relay_log_info_repository="FILE")
    engine, store, before = applied_to(config)
    after = before.at(RelayLogPosition("relay-bin.000001", 900), BinlogPosition("b.000003", 2000))
    with engine.begin() as connection:
        store.advance(connection, before, replace(after, gtid_executed="0-1-7"))
    change_master(config, "", MasterChanges(master_connect_retry=7))
    relay = stored(config)[1]
    assert relay.exec_position == BinlogPosition("b.000003", 2000)
    assert relay.gtid_executed == "0-1-7"
    assert open_position_store(config, Channel("", tmp_path), engine).open().exec_position == relay.exec_position


@pytest.mark.parametrize("url", ["mysql://rpl@127.0.0.1:1/", "postgresql://rpl@127.0.0.1:1/postgres"])
def test_without_the_target_the_receiver_may_be_sent_elsewhere_and_the_applier_stays(config: Config, url: str) -> None:
    """Positions in files: only the target knows whether they are up to date, so what would move the applier waits."""
    executed = replace(stored(config)[1], gtid_executed="0-1-7")
    open_repositories(config, "").relay_log_info.flush(executed, force=True)
    change_master(config, "", MasterChanges(master_use_gtid="slave_pos"))
    relay_log = config.datadir / "relay-bin.000001"
    relay_log.write_bytes(b"received")
    before = stored(config)[1]
    away = replace(config, target=url)
    done = change_master(away, "", MasterChanges(master_host="standby", master_connect_retry=7))
    assert "keeps the relay logs" in done.notes[-1].text and not done.purges_relay_logs
    master, relay = stored(config)
    assert (master.host, master.connect_retry, master.uses_gtid) == ("standby", 7, True)
    assert relay == before and relay_log.exists()
    for changes, why in (
        (MasterChanges(master_delay=9), "MASTER_DELAY moves"),
        (MasterChanges(master_use_gtid="no", master_log_file="b.000009"), "MASTER_LOG_FILE, MASTER_USE_GTID moves"),
    ):
        with pytest.raises(TargetError, match=why) as raised:
            change_master(away, "", changes)
        assert raised.value.exit_code == 7 and "when the target answers" in raised.value.hint
    change_master(config, "", MasterChanges(master_use_gtid="no", master_log_file="b.000003", master_log_pos=1170))
    with pytest.raises(TargetError, match="another source without GTIDs"):
        change_master(away, "", MasterChanges(master_host="other"))
    assert stored(config)[0].host == "standby"
    assert change_master(away, "new", MasterChanges(master_host="db9")).created
