"""A position needs its marker (design D29): a target that is lost, or that belongs to another instance, is refused."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.backup import backup
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import engine_of, known_channels, one_engine
from rplctl.command.check.ends import UNFIT
from rplctl.command.check.verb import CheckLimits, Scope, check
from rplctl.command.doctor import FAIL, doctor
from rplctl.command.load_schema import load_schema
from rplctl.command.process.preparation import prepare
from rplctl.command.process.start_request import StartRequest
from rplctl.command.reset import reset
from rplctl.command.show_status import show_status
from rplctl.command.switch_repo import switch_repo
from rplctl.commit.belonging import TargetState, UnfitTarget
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import CommitStep
from rplctl.commit.transaction import commit_group
from rplctl.config import Config
from rplctl.errors import LockBusy, NotConfigured, RplError
from rplctl.instance_id import INSTANCE_ID_FILE, instance_id, made_instance_id
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition
from rplctl.repository import create_tables
from rplctl.repository.switch import resolve_repositories
from rplctl.status import ThreadStatus
from rplctl.target import open_engine, open_target
from tests.kit.channel_life import TRANSACTIONS, Archive, Life
from tests.kit.servers import MariadbServer, PostgresqlServer

FROM_FIRST = MasterChanges(master_log_file="binlog.000001", master_log_pos=4)
KINDS = [pytest.param(kinds, id="-".join(kinds)) for kinds in product(["FILE", "TABLE"], repeat=2)]  # Master, relay


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    folder = tmp_path / "archive"
    folder.mkdir()
    made = Archive(folder)
    made.fill()
    return made


def worked(folder: Path, archive: Archive, kinds: tuple[str, str] = ("FILE", "FILE"), count: int = 3) -> Life:
    """A channel that has applied so many transactions and stopped in an orderly way."""
    options = {"master_info_repository": kinds[0], "relay_log_info_repository": kinds[1]}
    life = Life.begin(folder, archive, FROM_FIRST, **options)
    made_instance_id(folder)
    life.receive()
    apply(life, count)
    return life


def apply(life: Life, count: int = 1 << 30) -> None:
    """As the applier does, which tells where it is."""
    life.apply(count)
    at = life.records()[1]
    status = ThreadStatus(exec_log_name=at.master_log_name, exec_log_pos=at.master_log_pos)
    life.channel.run_folder.mkdir(parents=True, exist_ok=True)
    status.write(life.channel.status_path("applier"))


def start(life: Life, *, take_over: bool = False) -> None:
    with one_engine():
        prepare(life.config, life.channel, StartRequest(take_over_target=take_over))


def execute(life: Life, script: str) -> None:
    connection = sqlite3.connect(life.folder / "target.db")
    connection.executescript(script)
    connection.close()


def remove_file(life: Life) -> None:
    for path in life.folder.glob("target.db*"):
        path.unlink()


def copy_database(file: Path, copy: Path) -> None:
    """With what is in its write-ahead log, too."""
    with closing(sqlite3.connect(file)) as one, closing(sqlite3.connect(copy)) as other:
        one.backup(other)


def replace_with_empty(life: Life) -> None:
    """As DROP DATABASE and CREATE DATABASE: somebody has used it since."""
    remove_file(life)
    execute(life, "CREATE TABLE probe (seq INTEGER); CREATE TABLE stranger (a INT)")


def replace_with_tables(life: Life) -> None:
    """Our own tables are there again, as another channel's start makes them."""
    replace_with_empty(life)
    engine = open_engine(life.config.target_url)
    create_own_tables(engine)
    create_tables(engine)
    engine.dispose()


LOSSES = [remove_file, replace_with_empty, replace_with_tables]
VERBS: dict[str, Callable[[Life], object]] = {
    "start": start,
    "show-status": lambda life: show_status(life.config, ""),
    "switch-repo": lambda life: switch_repo(life.config, "", "table"),
    "load-schema": lambda life: load_schema(life.config, "", life.folder / "rplctl.toml"),
    "ledger": lambda life: open_position_store(life.config, life.channel, open_engine(life.config.target_url)),
}


@pytest.mark.long("The default pair of repositories stays, with each way to lose the target.", keeps=r"FILE-FILE")
@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("kinds", KINDS)
def test_a_lost_target_is_critical_for_every_command_and_starts_refuse(
    tmp_path: Path, archive: Archive, kinds: tuple[str, str], lose: Callable[[Life], None]
) -> None:
    """Whatever the repositories are, however it went; and no command makes anything in the target that is there."""
    life = worked(tmp_path / "instance", archive, kinds)
    lose(life)
    before = (life.folder / "target.db").exists()
    assert known_channels(life.config) == [""]
    for scope in Scope:
        with one_engine():
            verdict = check(life.config, "", CheckLimits(warning_s=60, critical_s=300), scope)
        lost = [finding for finding in verdict.findings if finding.code == "target_lost"]
        assert (verdict.level, len(lost)) == (2, 1), verdict
        assert "rplctl start" in lost[0].repair and " restore " in lost[0].repair
        assert not {f.code for f in verdict.findings} & {"repository_missing", "target_away", "table_missing"}
    lines = doctor(life.config)
    assert any(line.Result == FAIL and "target_lost" in line.Check for line in lines), lines
    assert not any("first start creates it" in line.Detail for line in lines)
    for _ in range(2):  # nothing that was refused makes it valid
        with pytest.raises(UnfitTarget) as refused:
            start(life)
        assert refused.value.state is TargetState.LOST and refused.value.exit_code == 7
    assert (life.folder / "target.db").exists() == before
    if kinds[0] == "FILE":
        shown = show_status(life.config, "")
        assert (shown.Target_State, shown.Last_SQL_Errno) == ("target_lost", 1872)
        assert "rplctl reset --yes" in shown.Last_SQL_Hint
    else:
        with pytest.raises(UnfitTarget):
            show_status(life.config, "")


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "show-status"])
def test_no_command_works_on_a_lost_target(tmp_path: Path, archive: Archive, verb: str) -> None:
    life = worked(tmp_path / "instance", archive)
    replace_with_empty(life)
    with pytest.raises(UnfitTarget):
        VERBS[verb](life)
    assert life.numbers() == []


def test_a_missing_file_is_seen_by_show_status_before_any_start(tmp_path: Path, archive: Archive) -> None:
    life = worked(tmp_path / "instance", archive)
    assert show_status(life.config, "").Target_State == ""
    remove_file(life)
    assert show_status(life.config, "").Target_State == "target_lost"


def test_a_target_that_comes_back_goes_on(tmp_path: Path, archive: Archive) -> None:
    life = worked(tmp_path / "instance", archive)
    (life.folder / "target.db").rename(life.folder / "away")
    with pytest.raises(UnfitTarget):
        start(life)
    (life.folder / "away").rename(life.folder / "target.db")
    life.go_on()
    assert life.numbers() == list(range(1, TRANSACTIONS + 1))


@pytest.mark.parametrize("kinds", [("FILE", "FILE"), ("FILE", "TABLE")])
def test_reset_is_a_way_out_of_a_lost_target(tmp_path: Path, archive: Archive, kinds: tuple[str, str]) -> None:
    life = worked(tmp_path / "instance", archive, kinds)
    replace_with_empty(life)
    reset(life.config, "")
    life.go_on()
    assert life.numbers() == list(range(1, TRANSACTIONS + 1))


def test_the_operators_position_needs_no_marker(tmp_path: Path, archive: Archive) -> None:
    """The rows were loaded from elsewhere, up to a position that the operator names; other options change nothing."""
    life = worked(tmp_path / "instance", archive)
    replace_with_empty(life)
    life.change(MasterChanges(master_connect_retry=3))
    with pytest.raises(UnfitTarget):
        start(life)
    end = archive.end_of(5)
    life.change(MasterChanges(master_log_file=end.log_name, master_log_pos=end.log_pos))
    life.go_on()
    assert life.numbers() == list(range(6, TRANSACTIONS + 1))


@pytest.mark.parametrize("kinds", KINDS)
def test_a_channel_that_has_committed_nothing_begins_in_an_empty_target(
    tmp_path: Path, archive: Archive, kinds: tuple[str, str]
) -> None:
    """In the middle of the log, where the operator put it; the target's file is made by the start."""
    options = {"master_info_repository": kinds[0], "relay_log_info_repository": kinds[1]}
    end = archive.end_of(5)
    at = MasterChanges(master_log_file=end.log_name, master_log_pos=end.log_pos)
    life = Life.begin(tmp_path / "instance", archive, at, **options)
    if kinds == ("FILE", "FILE"):
        replace_with_empty(life)
    life.go_on()
    assert life.numbers() == list(range(6, TRANSACTIONS + 1))


@pytest.mark.parametrize("crash", ["marker", "file"])
def test_a_kill_between_the_first_commit_and_the_file_starts_again(
    tmp_path: Path, archive: Archive, crash: str
) -> None:
    """The file does not know yet of the marker; or the target is lost in that moment, and all begins again."""
    life = worked(tmp_path / "instance", archive, count=0)
    path = life.channel.relay_log_info_path
    before = path.read_text().replace("rplctl_left_at=", "rplctl_none=")
    apply(life, 3)
    path.write_text(before)
    execute(life, "UPDATE rplctl_commit_marker SET File_in_step = 0")
    if crash == "marker":
        life.go_on()
    else:
        replace_with_empty(life)
        life.go_on()
    assert life.numbers() == list(range(1, TRANSACTIONS + 1))


def test_a_position_that_was_moved_into_a_file_needs_the_target(tmp_path: Path, archive: Archive) -> None:
    """`switch-repo` in both directions keeps in mind that an applier has worked there."""
    life = worked(tmp_path / "instance", archive, ("FILE", "TABLE"))
    switch_repo(life.config, "", "file")
    start(life)
    replace_with_tables(life)
    with pytest.raises(UnfitTarget):
        start(life)
    life = worked(tmp_path / "other", archive)
    switch_repo(life.config, "", "table")
    life.go_on()
    assert life.numbers() == list(range(1, TRANSACTIONS + 1))


def test_an_instance_of_an_older_release_is_adopted(tmp_path: Path, archive: Archive) -> None:
    """It has no id, and its marker no owner."""
    life = worked(tmp_path / "instance", archive)
    (life.folder / INSTANCE_ID_FILE).unlink()
    execute(life, "DROP TABLE rplctl_channel_owner")
    life.go_on()
    assert life.numbers() == list(range(1, TRANSACTIONS + 1))
    connection = sqlite3.connect(life.folder / "target.db")
    rows = connection.execute("SELECT Instance_id, Kept_by FROM rplctl_channel_owner").fetchall()
    connection.close()
    assert rows == [(instance_id(life.folder), "marker")] and rows[0][0]


def test_a_marker_that_was_deleted_is_missed(tmp_path: Path, archive: Archive) -> None:
    """Although the owner's row is there."""
    life = worked(tmp_path / "instance", archive)
    execute(life, "DELETE FROM rplctl_commit_marker")
    with pytest.raises(UnfitTarget):
        start(life)


def test_a_reset_that_is_killed_leaves_a_position_that_starts(
    tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = worked(tmp_path / "instance", archive)

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rplctl.repository.file.FileRepository.remove", kill)
    with pytest.raises(KeyboardInterrupt):
        reset(life.config, "")
    monkeypatch.undo()
    life.go_on()
    assert life.numbers() == list(range(1, TRANSACTIONS + 1))


def test_empty_files_are_filled_in_without_a_target(tmp_path: Path) -> None:
    """REQ-6: both empty, FILE. Nobody looks into a SQLite file that does not exist."""
    config, channel = Config(tmp_path), Channel("", tmp_path)
    resolve_repositories(config, channel, engine_of(config))
    assert channel.master_info_path.exists() and channel.relay_log_info_path.exists()
    assert not (tmp_path / "target.db").exists()


def test_a_backup_of_no_instance_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match="not configured"):
        backup(lambda _: Config(tmp_path / "none"), tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


# Two instances, one target


def into(life: Life, other: Life) -> None:
    """The other's options name the first one's target."""
    path = other.folder / "rplctl.toml"
    path.write_text(path.read_text().replace(str(other.folder / "target.db"), str(life.folder / "target.db")))


@pytest.fixture
def two(tmp_path: Path, archive: Archive) -> tuple[Life, Life]:
    """Two data directories with a channel of one name and different sources, and one target; the first has worked."""
    first = worked(tmp_path / "first", archive)
    folder = tmp_path / "archive2"
    folder.mkdir()
    other_archive = Archive(folder)
    other_archive.fill()
    second = worked(tmp_path / "second", other_archive, count=0)
    reset(second.config, "")
    into(first, second)
    return first, second


def test_the_target_of_another_instance_is_refused_with_both_names(two: tuple[Life, Life]) -> None:
    first, second = two
    with pytest.raises(UnfitTarget) as refused:
        start(second)
    error = refused.value
    assert error.state is TargetState.OTHERS and "--take-over-target" in error.hint
    for life in two:
        assert instance_id(life.folder) in error.message and str(life.folder) in error.message
        assert str(life.archive.folder) in error.message
    found = check(second.config, "", CheckLimits(warning_s=60, critical_s=300), Scope.OFFLINE)
    assert "target_of_another" in {finding.code for finding in found.findings} and found.level == 2
    assert show_status(second.config, "").Target_State == "target_of_another"
    reset(second.config, "", everything=True)  # of its own records alone
    first.go_on()
    assert first.numbers() == list(range(1, TRANSACTIONS + 1))


def test_taking_over_goes_by_the_own_position_and_shuts_the_other_out(two: tuple[Life, Life]) -> None:
    """A position of the other one's log is never taken for one's own."""
    first, second = two
    end = second.archive.end_of(6)
    second.change(MasterChanges(master_log_file=end.log_name, master_log_pos=end.log_pos))
    start(second, take_over=True)
    second.receive()
    apply(second)
    assert first.numbers() == [1, 2, 3, 7, 8]
    with pytest.raises(UnfitTarget) as refused:
        start(first)
    assert refused.value.state is TargetState.OTHERS
    with pytest.raises(UnfitTarget):
        first.apply()
    start(second)


def test_an_applier_that_runs_stops_when_its_target_is_taken_over(two: tuple[Life, Life]) -> None:
    first, second = two
    target = open_target(first.config.target_url)
    store = open_position_store(first.config, first.channel, target.engine)
    info = store.open()
    start(second, take_over=True)
    second.receive()
    second.apply(1)
    with target.engine.connect() as connection, pytest.raises(LockBusy):
        store.advance(connection, info, replace(info, master_log_pos=info.master_log_pos + 1))
    target.close()


def test_a_lost_data_directory_is_replaced_by_taking_over(tmp_path: Path, archive: Archive) -> None:
    """The same source, no position here: the target's counts."""
    life = worked(tmp_path / "instance", archive)
    anew = Life(tmp_path / "anew", archive)
    shutil.copytree(life.folder, anew.folder, ignore=lambda *_: ["target.db", INSTANCE_ID_FILE, "run"])
    for path in anew.folder.glob("*.info"):
        path.unlink()
    for path in anew.folder.glob("relay-bin*"):
        path.unlink()
    made_instance_id(anew.folder)
    anew.change(MasterChanges(master_binlog_dir=str(archive.folder)))
    with pytest.raises(UnfitTarget):
        start(anew)
    start(anew, take_over=True)
    anew.receive()
    anew.apply()
    assert anew.numbers() == list(range(1, TRANSACTIONS + 1))


def test_a_copied_data_directory_goes_on_and_the_first_one_after_it(tmp_path: Path, archive: Archive) -> None:
    """One after the other they are one instance: whoever starts takes the target's position."""
    life = worked(tmp_path / "instance", archive, count=3)
    copy = Life(tmp_path / "copy", archive)
    shutil.copytree(life.folder, copy.folder, ignore=lambda *_: ["target.db"])
    start(copy)
    copy.receive()
    copy.apply(2)
    life.go_on()
    assert life.numbers() == list(range(1, TRANSACTIONS + 1))


@pytest.mark.long("test_the_target_of_another_instance_is_refused_with_both_names stays in make test.")
def test_a_copied_data_directory_with_another_source_shuts_the_first_one_out(tmp_path: Path, archive: Archive) -> None:
    life = worked(tmp_path / "instance", archive)
    set_source(life, "11111111-1111-1111-1111-111111111111")
    life.apply(1)
    copy = Life(tmp_path / "copy", archive)
    shutil.copytree(life.folder, copy.folder, ignore=lambda *_: ["target.db"])
    copy.change(MasterChanges(master_host="other", master_log_file="binlog.000001", master_log_pos=4))
    set_source(copy, "22222222-2222-2222-2222-222222222222")
    start(copy)
    copy.apply(0)
    with pytest.raises(UnfitTarget) as refused:
        start(life)
    assert "11111111" in refused.value.message and "22222222" in refused.value.message
    start(copy)


@pytest.mark.parametrize("by_gtid", [False, True])
def test_a_failover_to_another_source_goes_on(tmp_path: Path, archive: Archive, by_gtid: bool) -> None:
    """By `change-master`, in one data directory; the receiver knows the new source before the applier starts."""
    life = worked(tmp_path / "instance", archive)
    set_source(life, "11111111-1111-1111-1111-111111111111", by_gtid=by_gtid)
    life.apply(1)
    end = archive.end_of(4)
    by_position = MasterChanges(master_host="other", master_log_file=end.log_name, master_log_pos=end.log_pos)
    life.change(MasterChanges(master_host="other") if by_gtid else by_position)
    set_source(life, "22222222-2222-2222-2222-222222222222", by_gtid=by_gtid)
    start(life)


def test_another_server_at_the_same_address_is_named_by_gtid(tmp_path: Path, archive: Archive) -> None:
    """A failover of the address. The target has all that the applier has recorded, so the channel continues."""
    life = worked(tmp_path / "instance", archive)
    set_source(life, FIRST, by_gtid=True)
    life.apply(1)
    assert _noted(life) == []
    set_source(life, SECOND, by_gtid=True)
    (note,) = _noted(life)
    assert FIRST in note and "continues there by the target's GTIDs" in note
    assert note in (life.folder / "history.jsonl").read_text()
    life.apply(1)
    assert _noted(life) == [], "its rows are the new source's now"


FIRST, SECOND, THIRD = (f"{digit * 8}-1111-1111-1111-111111111111" for digit in "123")


def fail_over(life: Life, host: str, uuid: str, *, count: int = 1, is_known: bool = True) -> None:
    """By `change-master`, with GTIDs; `is_known`: the receiver has connected before the applier starts."""
    life.change(MasterChanges(master_host=host))
    if is_known:
        set_source(life, uuid, by_gtid=True)
    start(life)
    life.receive()
    apply(life, count)
    set_source(life, uuid, by_gtid=True)


@pytest.mark.parametrize("kinds", [("FILE", "FILE"), ("FILE", "TABLE")])
@pytest.mark.parametrize("is_known", [True, False])
def test_a_target_of_the_time_of_another_source_is_refused_by_gtid(
    tmp_path: Path, archive: Archive, kinds: tuple[str, str], is_known: bool
) -> None:
    """Both sources are named, and no change-master makes the target fit. It continues when the operator says so."""
    life, backup = worked(tmp_path / "instance", archive, kinds), tmp_path / "backup.db"
    set_source(life, FIRST, by_gtid=True)
    fail_over(life, "one", FIRST, is_known=is_known)
    copy_database(life.folder / "target.db", backup)
    fail_over(life, "two", SECOND, is_known=is_known)
    before = life.numbers()
    remove_file(life)
    copy_database(backup, life.folder / "target.db")
    for host, uuid in (("two", SECOND), ("three", THIRD)):
        with pytest.raises(UnfitTarget) as refused:
            start(life)
        assert "one:3306" in refused.value.message, refused.value.message
        assert f"{host}:3306" in refused.value.message
        found = check(life.config, "", CheckLimits(warning_s=60, critical_s=300), Scope.OFFLINE)
        assert "target_of_another" in {finding.code for finding in found.findings} and found.level == 2
        if uuid == SECOND:
            life.change(MasterChanges(master_host="three"))
            set_source(life, THIRD, by_gtid=True)
    assert len(refused.value.hint.splitlines()) == 3 and refused.value.hint.count("--take-over-target") == 1
    start(life, take_over=True)
    start(life)
    life.receive()
    apply(life)
    assert life.numbers()[: len(before)] == before and life.numbers() == list(range(1, TRANSACTIONS + 1))


def test_a_target_that_gives_back_a_failover_is_refused_without_a_record(tmp_path: Path, archive: Archive) -> None:
    """As after an upgrade. The file says that the target had more of the other source."""
    life, backup = worked(tmp_path / "instance", archive), tmp_path / "backup.db"
    set_source(life, FIRST, by_gtid=True)
    apply(life, 1)
    copy_database(life.folder / "target.db", backup)
    apply(life, 1)
    remove_file(life)
    copy_database(backup, life.folder / "target.db")
    set_source(life, SECOND, by_gtid=True)
    (life.channel.run_folder / "target_source.json").unlink()
    with pytest.raises(UnfitTarget) as refused:
        start(life)
    assert FIRST in refused.value.message and SECOND in refused.value.message


@pytest.mark.parametrize("everything", [True, False])
def test_reset_is_a_way_out_of_a_target_of_another_time(tmp_path: Path, archive: Archive, everything: bool) -> None:
    life, backup = worked(tmp_path / "instance", archive), tmp_path / "backup.db"
    set_source(life, FIRST, by_gtid=True)
    fail_over(life, "one", FIRST)
    copy_database(life.folder / "target.db", backup)
    fail_over(life, "two", SECOND)
    remove_file(life)
    copy_database(backup, life.folder / "target.db")
    reset(life.config, "", everything=everything)
    execute(life, "DELETE FROM probe")
    life.change(MasterChanges(master_binlog_dir=str(archive.folder), master_auto_position=False))
    life.go_on()
    assert life.numbers() == list(range(1, TRANSACTIONS + 1))


def _noted(life: Life) -> list[str]:
    with one_engine():
        notes = prepare(life.config, life.channel, StartRequest()).notes
    return [note.text for note in notes if "rows of channel" in note.text]


def set_source(life: Life, uuid: str, *, by_gtid: bool = False) -> None:
    """As the receiver does when it has connected."""
    with life.opened() as repositories:
        master = repositories.master_info.read()
        repositories.master_info.flush(replace(master, uuid=uuid, enabled_auto_position=by_gtid), force=True)


def test_a_damaged_id_is_no_id(tmp_path: Path) -> None:
    (tmp_path / INSTANCE_ID_FILE).write_text("../../etc\n")
    assert instance_id(tmp_path) == ""
    name = made_instance_id(tmp_path)
    assert instance_id(tmp_path) == name == made_instance_id(tmp_path) and len(name) == 16


def test_change_master_settles_nothing_in_a_target_of_another(two: tuple[Life, Life]) -> None:
    first, second = two
    before = first.numbers()
    change_master(second.config, "", MasterChanges(master_connect_retry=7))
    with pytest.raises(RplError):
        start(second)
    assert first.numbers() == before
    start(first)


# Other kinds of target


def opened_once(folder: Path, **options: object) -> tuple[Config, Channel]:
    """A channel in the middle of a log whose applier has opened its ledger, committed once and stopped in order."""
    config = Config(folder, **options)  # type: ignore[arg-type]
    channel = Channel("", folder)
    at = MasterChanges(master_host="db1", master_log_file="binlog.000001", master_log_pos=4)
    change_master(config, "", at)
    target = open_target(config.target_url)
    try:
        create_own_tables(target.engine)
        store = open_position_store(config, channel, target.engine)
        before = store.open()
        after = before.at(before.relay_log_position, BinlogPosition("binlog.000001", 400))
        commit_group(target, store, CommitStep(before, after), lambda: None)
        store.committed(after)
        store.close(after)
    finally:
        target.close()
        target.engine.dispose()
    said = ThreadStatus(exec_log_name="binlog.000001", exec_log_pos=400)
    channel.run_folder.mkdir(parents=True, exist_ok=True)
    said.write(channel.status_path("applier"))
    found = check(config, "", CheckLimits(warning_s=60, critical_s=300), Scope.OFFLINE)
    assert not UNFIT & {finding.code for finding in found.findings}, found
    return config, channel


def expect_lost(config: Config, channel: Channel) -> None:
    for scope in (Scope.OFFLINE, Scope.LOCAL):
        with one_engine():
            found = check(config, "", CheckLimits(warning_s=60, critical_s=300), scope)
        assert "target_lost" in {finding.code for finding in found.findings}, found
    with one_engine(), pytest.raises(UnfitTarget) as refused:
        prepare(config, channel, StartRequest())
    assert refused.value.state is TargetState.LOST


WAYS = [
    {},
    {"relay_log_info_repository": "TABLE"},
    {"master_info_repository": "TABLE", "relay_log_info_repository": "TABLE"},
    {"commit_mode": "xa"},
    {"commit_mode": "xa", "prepared_position": "pages"},
]


@pytest.mark.long("test_a_lost_target_is_critical_for_every_command_and_starts_refuse stays in make test.")
@pytest.mark.parametrize("options", WAYS)
def test_own_tables_that_were_dropped_on_mariadb_are_missed(
    tmp_path: Path, mariadb: MariadbServer, options: dict[str, str]
) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS rplctl")
    config, channel = opened_once(tmp_path, target=mariadb.url(), **options)
    mariadb.sql("DROP DATABASE rplctl")
    expect_lost(config, channel)
    mariadb.sql("CREATE DATABASE rplctl")
    expect_lost(config, channel)
    assert mariadb.sql("SHOW TABLES FROM rplctl") == []
    mariadb.sql("DROP DATABASE rplctl")


@pytest.mark.long("One way of keeping positions stays.", keeps=r"options0")
@pytest.mark.parametrize("options", WAYS[:2])
def test_a_database_that_was_made_again_on_postgresql_is_missed(
    tmp_path: Path, postgresql: PostgresqlServer, options: dict[str, str]
) -> None:
    postgresql.sql("DROP DATABASE IF EXISTS lost")
    postgresql.sql("CREATE DATABASE lost")
    with one_engine():  # psycopg warns of a connection that nobody closed, whenever it is collected
        config, channel = opened_once(tmp_path, target=postgresql.url("lost"), **options)
    postgresql.sql("DROP DATABASE lost WITH (FORCE)")
    postgresql.sql("CREATE DATABASE lost")
    with one_engine():
        expect_lost(config, channel)
    postgresql.sql("DROP DATABASE lost WITH (FORCE)")


@pytest.mark.long("test_a_lost_target_is_critical_for_every_command_and_starts_refuse stays in make test.")
def test_a_duckdb_file_that_was_removed_is_missed(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    file = tmp_path / "lost.duckdb"
    config, channel = opened_once(tmp_path / "instance", target=f"duckdb:///{file}")
    file.unlink()
    expect_lost(config, channel)
    assert not file.exists()
    shown = show_status(config, "")
    assert shown.Target_State == "target_lost"
    assert shown.Last_SQL_Hint.startswith("mount its file system again, then run: rplctl start\n")


@pytest.mark.parametrize("where", ["inside", "elsewhere"])
def test_a_lake_whose_folder_was_removed_is_missed(tmp_path: Path, where: str) -> None:
    """Also where the tables for positions are not in that folder: the lake then has fewer batches than they say."""
    pytest.importorskip("deltalake")
    folder, state = tmp_path / "lake", tmp_path / "state.db"
    target = f"delta+file://{folder}" + (f"?state={state}" if where == "elsewhere" else "")
    config, channel = opened_once(tmp_path / "instance", target=target)
    if where == "elsewhere":
        connection = sqlite3.connect(state)
        values = "('', 4, 0, '{}', '{}', '[]')"
        columns = "Channel_name, Number, Is_open, Before_it, After_it, Tables"
        connection.executescript(f"INSERT INTO rplctl_lake_batch ({columns}) VALUES {values}")
        connection.close()
    shutil.rmtree(folder)
    expect_lost(config, channel)
    assert folder.exists() is (where == "elsewhere"), "no look makes a lake anew"
