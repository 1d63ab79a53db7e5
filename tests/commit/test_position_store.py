"""Commit modes: the position moves with the data, and after a crash the right one of file and marker wins (design
D3).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from rplctl.channel import Channel
from rplctl.commit.marker import MarkerPositionStore, has_gone_back, read_marker, remove_marker
from rplctl.commit.participants.line import LinePosition
from rplctl.commit.position_store import TablePositionStore, open_position_store, resolve
from rplctl.commit.step import CommitMode, CommitStep
from rplctl.commit.transaction import commit_group
from rplctl.commit.two_phase import XaPositionStore
from rplctl.config import Config
from rplctl.errors import LockBusy, NotConfigured
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import open_engine, open_target, two_phase_verbs
from tests.kit.servers import MariadbServer


def at(number: int) -> RelayLogInfo:
    info = RelayLogInfo(channel_name="", gtid_executed=f"0-1-{number}")
    return info.at(RelayLogPosition("relay-bin.000001", 100 * number), BinlogPosition("bin.000001", 1000 * number))


class Instance:
    """One channel whose repository is of `kind`, on a SQLite target."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.config = Config(datadir=folder, relay_log_info_repository=kind)
        self.channel = Channel("", folder)
        self.engine: Engine = open_engine(self.config.target_url)
        create_own_tables(self.engine)
        create_tables(self.engine, "")
        self.repository = open_relay_log_info(self.config, self.channel, lambda: self.engine)
        self.repository.flush(at(1), force=True)

    def move(self, store: object, old: RelayLogInfo, new: RelayLogInfo) -> None:
        with self.engine.begin() as connection:
            store.advance(connection, old, new)  # type: ignore[attr-defined]


@pytest.fixture(params=["FILE", "TABLE"])
def instance(tmp_path: Path, request: pytest.FixtureRequest) -> Instance:
    return Instance(tmp_path, request.param)


@pytest.fixture
def file_instance(tmp_path: Path) -> Instance:
    return Instance(tmp_path, "FILE")


def test_the_mode_follows_from_the_repository(instance: Instance) -> None:
    mode = open_position_store(instance.config, instance.channel, instance.engine).mode
    assert mode is (CommitMode.TRANSACTION if instance.repository.kind == "TABLE" else CommitMode.MARKER)


def test_a_position_moves_with_its_transaction_and_not_without(instance: Instance) -> None:
    store = open_position_store(instance.config, instance.channel, instance.engine)
    opened = store.open()
    assert opened.exec_position == at(1).exec_position
    with instance.engine.connect() as connection:
        store.advance(connection, opened, at(2))
        connection.rollback()
    instance.move(store, opened, at(2))
    store.committed(at(2))
    store.close(at(2))
    assert (
        open_position_store(instance.config, instance.channel, instance.engine).open().exec_position
        == at(2).exec_position
    )


def test_a_position_that_somebody_else_moved_stops_the_applier(instance: Instance) -> None:
    store = open_position_store(instance.config, instance.channel, instance.engine)
    opened = store.open()
    other = open_position_store(instance.config, instance.channel, instance.engine)
    instance.move(other, opened, at(5))
    with pytest.raises(LockBusy, match="nothing was applied"):
        instance.move(store, opened, at(2))


def test_the_set_of_applied_gtids_is_kept_with_the_position(instance: Instance) -> None:
    store = open_position_store(instance.config, instance.channel, instance.engine)
    instance.move(store, store.open(), at(3))
    assert open_position_store(instance.config, instance.channel, instance.engine).open().gtid_executed == "0-1-3"


def test_a_file_behind_the_marker_after_a_crash_is_moved_forward(file_instance: Instance) -> None:
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), at(4))  # killed before the file followed
    assert (
        open_position_store(file_instance.config, file_instance.channel, file_instance.engine).open().exec_position
        == at(4).exec_position
    )
    assert file_instance.repository.read().exec_position == at(4).exec_position


@pytest.mark.parametrize("edited_to", [2, 9], ids=["backwards", "forwards"])
def test_a_file_edited_by_hand_after_an_orderly_stop_is_honoured(file_instance: Instance, edited_to: int) -> None:
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), at(4))
    store.close(at(4))
    path = file_instance.channel.relay_log_info_path
    lines = path.read_text().split("\n")
    assert lines[1:5] == ["./relay-bin.000001", "400", "bin.000001", "4000"]
    lines[2], lines[4] = str(100 * edited_to), str(1000 * edited_to)
    path.write_text("\n".join(lines))
    reopened = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    info = reopened.open()
    assert info.exec_position == at(edited_to).exec_position
    file_instance.move(reopened, info, at(edited_to + 1))


@pytest.mark.parametrize("restored", ["target", "file"])
def test_of_a_file_that_nobody_edited_and_a_marker_the_one_that_came_from_a_backup_is_told_by_the_rows(
    file_instance: Instance, restored: str
) -> None:
    """After an orderly stop, too: the marker is of the rows' age, whichever of the two went back."""
    config, channel, engine = file_instance.config, file_instance.channel, file_instance.engine
    path, database = file_instance.channel.relay_log_info_path, config.datadir / "target.db"
    kept = {}
    for number in (4, 6):
        store = open_position_store(config, channel, engine)
        file_instance.move(store, store.open(), at(number))
        store.close(at(number))
        engine.dispose()
        kept[number] = path.read_bytes(), database.read_bytes()
    if restored == "target":
        database.write_bytes(kept[4][1])
    else:
        path.write_bytes(kept[4][0])
    stored = file_instance.repository.read()
    assert has_gone_back("", engine, stored) == (restored == "target")
    rows_at = at(4 if restored == "target" else 6).exec_position
    for _ in range(2):
        store = open_position_store(config, channel, engine)
        info = store.open()
        assert info.exec_position == rows_at == file_instance.repository.read().exec_position
        assert not has_gone_back("", engine, file_instance.repository.read())
        store.close(info)


def test_a_file_of_an_older_release_that_differs_after_an_orderly_stop_counts(file_instance: Instance) -> None:
    """It does not say where the applier left it, so it may have been edited: what that release did."""
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), at(4))
    store.close(at(4))
    assert "rplctl_left_at=" in file_instance.channel.relay_log_info_path.read_text()
    file_instance.repository.flush(at(6), force=True)
    assert "rplctl_left_at=" not in file_instance.channel.relay_log_info_path.read_text()
    assert not has_gone_back("", file_instance.engine, file_instance.repository.read())
    reopened = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    assert reopened.open().exec_position == at(6).exec_position


def test_settling_lets_a_later_change_of_position_count_after_a_crash(file_instance: Instance) -> None:
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), at(4))  # killed here
    resolve(file_instance.config, file_instance.channel, file_instance.engine)
    assert file_instance.repository.read().exec_position == at(4).exec_position
    file_instance.repository.flush(at(2), force=True)  # CHANGE MASTER moves it back
    assert (
        open_position_store(file_instance.config, file_instance.channel, file_instance.engine).open().exec_position
        == at(2).exec_position
    )


def test_other_settings_of_the_file_survive_a_crash(file_instance: Instance) -> None:
    file_instance.repository.flush(replace(at(1), sql_delay=77), force=True)
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), at(4))
    assert open_position_store(file_instance.config, file_instance.channel, file_instance.engine).open().sql_delay == 77


def test_without_a_repository_there_is_no_position_and_no_marker_is_left(file_instance: Instance) -> None:
    remove_marker("", file_instance.engine)
    file_instance.repository.remove()
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    with pytest.raises(NotConfigured):
        store.open()
    assert isinstance(store, MarkerPositionStore)
    with file_instance.engine.connect() as connection:
        assert store.stored(connection) is None


def test_a_crash_before_the_switch_to_a_table_keeps_the_markers_position(file_instance: Instance) -> None:
    """Killed in mode marker, then switch-repo --to table: the row is older than the marker."""
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), at(4))  # killed before the file followed
    table = replace(file_instance.config, relay_log_info_repository="TABLE")
    open_relay_log_info(table, file_instance.channel, lambda: file_instance.engine).flush(at(1), force=True)
    for _ in range(2):
        reopened = open_position_store(table, file_instance.channel, file_instance.engine)
        assert (reopened.mode, reopened.open().exec_position) == (CommitMode.TRANSACTION, at(4).exec_position)


def test_a_marker_in_step_never_overrides_a_table_that_was_moved_later(file_instance: Instance) -> None:
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), at(4))
    store.close(at(4))
    table = replace(file_instance.config, relay_log_info_repository="TABLE")
    open_relay_log_info(table, file_instance.channel, lambda: file_instance.engine).flush(at(2), force=True)
    opened = open_position_store(table, file_instance.channel, file_instance.engine).open()
    assert opened.exec_position == at(2).exec_position


@pytest.mark.long("MyISAM stays in make test.", keeps=r"^MyISAM$")
@pytest.mark.mariadb
@pytest.mark.parametrize("rep_engine", ["MyISAM", "Aria", "MEMORY"])
def test_a_table_without_transactions_follows_a_marker_after_commit(
    tmp_path: Path, mariadb: MariadbServer, rep_engine: str
) -> None:
    """REQ-5: the row is written after COMMIT; a rollback leaves marker and row, a crash in between is caught up."""
    mariadb.sql("DROP DATABASE IF EXISTS rplctl")
    config = Config(datadir=tmp_path, relay_log_info_repository="TABLE", target=mariadb.url())
    engine = open_engine(mariadb.url())
    create_own_tables(engine)
    create_tables(engine, rep_engine)
    channel = Channel("", tmp_path)
    repository = open_relay_log_info(config, channel, lambda: engine)
    repository.flush(at(1), force=True)
    store = open_position_store(config, channel, engine)
    assert store.mode is CommitMode.MARKER
    opened = store.open()
    with engine.connect() as connection:
        store.advance(connection, opened, at(2))
        connection.rollback()
    assert repository.read().exec_position == at(1).exec_position
    with engine.begin() as connection:
        store.advance(connection, opened, at(3))  # killed before the row followed
    assert repository.read().exec_position == at(1).exec_position
    assert open_position_store(config, channel, engine).open().exec_position == at(3).exec_position
    mariadb.sql("ALTER TABLE rplctl.slave_relay_log_info ENGINE=InnoDB")
    after = open_position_store(config, channel, engine)
    assert (after.mode, after.open().exec_position) == (CommitMode.TRANSACTION, at(3).exec_position)
    engine.dispose()


@pytest.mark.parametrize("in_step", [False, True], ids=["left moving", "left in step"])
def test_in_two_phases_a_target_from_a_backup_with_its_marker_goes_on_from_there(
    file_instance: Instance, caplog: pytest.LogCaptureFixture, in_step: bool
) -> None:
    """The file is ahead: a marker that was moving cannot be behind it but from a backup; beside one that was in step
    the file may have been edited, so it counts, and that is told.
    """
    engine, repository = file_instance.engine, file_instance.repository
    store = open_position_store(file_instance.config, file_instance.channel, engine)
    store.open()
    if in_step:
        store.close(at(1))
    verbs = two_phase_verbs("mysql")  # nothing of it is asked
    assert verbs is not None
    two_phase = XaPositionStore(repository, LinePosition(repository), engine, "rplctl:", verbs)
    repository.flush(at(5), force=True)
    opened = two_phase.open()
    assert opened.exec_position == at(5 if in_step else 1).exec_position
    assert repository.read().exec_position == opened.exec_position
    assert ("taken as edited by hand" if in_step else "the target was restored") in caplog.text
    assert f"position {at(5).exec_position} is ahead of the target's own {at(1).exec_position}: " in caplog.text
    with engine.connect() as connection:
        assert read_marker(connection, "") == (None, False)
    assert two_phase.open().exec_position == opened.exec_position


def test_a_file_in_step_takes_the_gtids_of_the_marker(file_instance: Instance) -> None:
    """A FILE in MySQL's layout does not hold them: without the marker's they would be fetched and applied again."""
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), at(4))
    store.close(at(4))
    for left_at in (file_instance.repository.read().left_at, ""):
        stored = replace(file_instance.repository.read(), gtid_executed="", left_at=left_at)
        file_instance.repository.flush(stored, force=True)
        reopened = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
        info = reopened.open()
        assert (info.exec_position, info.gtid_executed) == (at(4).exec_position, "0-1-4")
        reopened.close(info)


def test_gtids_that_import_info_sets_at_the_markers_position_count(file_instance: Instance) -> None:
    store = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
    file_instance.move(store, store.open(), replace(at(4), gtid_executed=""))
    store.close(replace(at(4), gtid_executed=""))
    file_instance.repository.flush(at(4), force=True)
    for _ in range(2):  # the second start reads the marker that the first one has corrected
        reopened = open_position_store(file_instance.config, file_instance.channel, file_instance.engine)
        assert reopened.open().gtid_executed == "0-1-4"


@pytest.mark.parametrize(("is_safe", "kind"), [(True, TablePositionStore), (False, MarkerPositionStore)])
def test_a_table_that_is_not_crash_safe_gets_a_marker_beside_it_and_is_written_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_safe: bool, kind: type[Any]
) -> None:
    """REQ-5 iii to v (WL#2775): sync_relay_log_info is of files alone."""
    config = Config(datadir=tmp_path, relay_log_info_repository="TABLE", sync_relay_log_info=0)
    channel, target = Channel("", tmp_path), open_target(config.target_url)
    create_own_tables(target.engine)
    create_tables(target.engine, "")
    repository = open_relay_log_info(config, channel, lambda: target.engine)
    monkeypatch.setattr(type(repository), "is_transactional", lambda self: is_safe)
    repository.flush(RelayLogInfo(), force=True)
    store = open_position_store(config, channel, target.engine)
    before = store.open()
    after = at(1)
    commit_group(target, store, CommitStep(before, after), lambda: None)
    target.close()
    assert isinstance(store, kind)
    assert open_relay_log_info(config, channel, lambda: target.engine).read().exec_position == after.exec_position
