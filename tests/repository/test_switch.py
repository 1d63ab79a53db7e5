"""REQ-6 (WL#2775): all eight cells for both records, and the switch killed at every step (design D6)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from rplctl import failpoint
from rplctl.channel import Channel, hold_lock
from rplctl.command.reset import reset
from rplctl.config import Config, load_config
from rplctl.durable import replace_file
from rplctl.errors import LockBusy, RepositoryConflict, RplError, UsageError
from rplctl.option_file import store_options
from rplctl.repository import RepositoryKind, create_tables, list_channels, open_repository
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, Record
from rplctl.repository.switch import (
    DECISION,
    RECORDS,
    SwitchAction,
    carry_out,
    conflict,
    plan_switch,
    resolve_repositories,
    resume_switch,
)
from tests.kit.torture_page import count_torture
from tests.repository.conftest import MASTER, RELAY, Target, config_of, sqlite_engine

LONG = pytest.mark.long("All cells of SQLite and of MariaDB stay in make test.", keeps=r"^(?!.*(mysql|postgresql))")

FILE, TABLE = RepositoryKind.FILE, RepositoryKind.TABLE
INFO: dict[str, Any] = {MASTER_INFO.name: MASTER, RELAY_LOG_INFO.name: RELAY}
CRASH_POINTS = ("switch_after_journal", "switch_after_write", "switch_after_mark", "switch_after_delete")
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork with threads, Python ≥ 3.12


@pytest.fixture(params=list(RECORDS))
def record(request: pytest.FixtureRequest) -> Record[Any]:
    return RECORDS[request.param]


def place(record: Record[Any], kind: RepositoryKind, channel: Channel, target: Target) -> Any:
    return open_repository(record, kind, config_of(channel.datadir, str(kind)), channel, target.engine)


def put(record: Record[Any], kind: RepositoryKind, channel: Channel, target: Target) -> Any:
    """The record with data in that place; returns it."""
    info = replace(INFO[record.name], channel_name=channel.name)
    if kind is TABLE:
        create_tables(target.engine())
    place(record, kind, channel, target).flush(info, force=True)
    return info


def contents(record: Record[Any], channel: Channel, target: Target) -> tuple[Any, Any]:
    return tuple(  # type: ignore[return-value]
        p.read() if p.exists() else None for p in (place(record, kind, channel, target) for kind in (TABLE, FILE))
    )


@LONG
@pytest.mark.parametrize("wanted", [TABLE, FILE])
@pytest.mark.parametrize("cell", [(False, True), (True, True), (False, False), (True, False)])
def test_each_cell_of_the_matrix_does_what_it_says(
    record: Record[Any], cell: tuple[bool, bool], wanted: RepositoryKind, channel: Channel, target: Target
) -> None:
    info = replace(INFO[record.name], channel_name=channel.name)
    for kind, present in zip((TABLE, FILE), cell, strict=True):
        if present:
            put(record, kind, channel, target)
    config = config_of(channel.datadir, str(wanted))
    plan = plan_switch(config, channel, target.engine, record.name, wanted)
    assert plan.action is DECISION[cell, wanted]
    if cell == (True, True):
        with pytest.raises(RepositoryConflict, match="Multiple replication metadata repository instances found"):
            carry_out(plan, config, channel, target.engine)
        assert contents(record, channel, target) == (info, info), "an error changes nothing"
        return
    after = carry_out(plan, config, channel, target.engine)
    assert record.kind(after) is wanted
    has_data = any(cell)
    expected = (info if wanted is TABLE and has_data else None, info if wanted is FILE and has_data else None)
    assert contents(record, channel, target) == expected
    filled = place(record, wanted, channel, target).read()
    assert replace(filled, master_id=0) == (replace(info, master_id=0) if has_data else record.empty(channel.name))


def test_the_two_records_are_decided_each_by_itself(channel: Channel, sqlite_target: Target) -> None:
    """All four combinations of options; MasterInfo starts in the table, RelayLogInfo in the file."""
    for master_kind in (FILE, TABLE):
        for relay_kind in (FILE, TABLE):
            for record in RECORDS.values():
                for kind in (FILE, TABLE):
                    place(record, kind, channel, sqlite_target).remove()
            put(MASTER_INFO, TABLE, channel, sqlite_target)
            put(RELAY_LOG_INFO, FILE, channel, sqlite_target)
            config = replace(
                config_of(channel.datadir, "FILE", target=f"sqlite:///{channel.datadir.parent / 'target.db'}"),
                master_info_repository=str(master_kind),
                relay_log_info_repository=str(relay_kind),
            )
            resolve_repositories(config, channel, sqlite_target.engine)
            for record, kind in ((MASTER_INFO, master_kind), (RELAY_LOG_INFO, relay_kind)):
                table, file = contents(record, channel, sqlite_target)
                assert (table is not None, file is not None) == (kind is TABLE, kind is FILE)


def test_start_with_file_and_without_a_target_file_opens_no_database(
    channel: Channel, sqlite_target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(MASTER_INFO, FILE, channel, sqlite_target)
    resolve_repositories(config_of(channel.datadir, "FILE"), channel, lambda: pytest.fail("the engine was opened"))


def test_dry_run_shows_the_cell_and_changes_nothing(channel: Channel, sqlite_target: Target) -> None:
    put(MASTER_INFO, FILE, channel, sqlite_target)
    plan = plan_switch(
        config_of(channel.datadir, "FILE"), channel, sqlite_target.engine, "master-info", RepositoryKind.TABLE
    )
    assert plan.steps == (
        f"update main.slave_master_info from {channel.master_info_path}",
        f"delete {channel.master_info_path}",
    )
    assert (plan.table_has_data, plan.file_has_data, plan.action) == (False, True, SwitchAction.UPDATE_AND_DELETE)
    assert not (channel.datadir.parent / "target.db").exists()


def test_a_plan_that_no_longer_holds_under_the_lock_changes_nothing(
    record: Record[Any], channel: Channel, sqlite_target: Target
) -> None:
    """Somebody wrote the other place between the look and the lock: what was one record is two (REQ-6)."""
    info = put(record, FILE, channel, sqlite_target)
    config = config_of(channel.datadir, "FILE")
    plan = plan_switch(config, channel, sqlite_target.engine, record.name, TABLE)
    assert plan.action is SwitchAction.UPDATE_AND_DELETE
    put(record, TABLE, channel, sqlite_target)
    before = contents(record, channel, sqlite_target)
    with pytest.raises(RplError, match="changed since the switch was planned"):
        carry_out(plan, config, channel, sqlite_target.engine)
    assert contents(record, channel, sqlite_target) == before
    assert before[1] == info


def test_is_refused_while_a_thread_of_the_channel_runs(channel: Channel, sqlite_target: Target) -> None:
    put(RELAY_LOG_INFO, FILE, channel, sqlite_target)
    config = config_of(channel.datadir, "FILE")
    plan = plan_switch(config, channel, sqlite_target.engine, "relay-log-info", TABLE)
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        with hold_lock(channel, "applier"):
            os.write(ready[1], b"x")
            os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    try:
        with pytest.raises(UsageError) as error:
            carry_out(plan, config, channel, sqlite_target.engine)
        assert error.value.errno == 3081
        assert contents(RELAY_LOG_INFO, channel, sqlite_target)[1] is not None
    finally:
        os.write(done[1], b"x")
        os.waitpid(child, 0)


def test_the_default_channels_switch_leaves_the_kind_of_others(datadir: Path, sqlite_target: Target) -> None:
    store_options(datadir, "", {"server_id": 9})
    for name in ("", "east"):
        put(MASTER_INFO, FILE, Channel(name, datadir), sqlite_target)
    config = load_config(datadir)
    plan = plan_switch(config, Channel("", datadir), sqlite_target.engine, "master-info", TABLE)
    carry_out(plan, config, Channel("", datadir), sqlite_target.engine)
    assert (load_config(datadir, "").master_info_repository, load_config(datadir, "").server_id) == ("TABLE", 9)
    assert load_config(datadir, "east").master_info_repository == "FILE"
    assert list_channels(load_config(datadir, "east"), lambda _: sqlite_target.engine) == ["", "east"]


def test_what_reset_left_of_the_settings_survives_a_switch(channel: Channel, sqlite_target: Target) -> None:
    cleared = replace(RELAY, relay_log_name="", master_log_name="", master_log_pos=0, channel_name=channel.name)
    place(RELAY_LOG_INFO, FILE, channel, sqlite_target).flush(cleared, force=True)
    config = config_of(channel.datadir, "FILE")
    plan = plan_switch(config, channel, sqlite_target.engine, "relay-log-info", TABLE)
    assert plan.action is SwitchAction.FILL_IN
    carry_out(plan, config, channel, sqlite_target.engine)
    assert place(RELAY_LOG_INFO, TABLE, channel, sqlite_target).read() == cleared
    assert not channel.relay_log_info_path.exists()


@pytest.mark.long("SQLite stays; the servers execute the same statements.", keeps=r"sqlite")
@LONG
@pytest.mark.slow
@pytest.mark.parametrize("wanted", [TABLE, FILE])
def test_killed_at_each_named_point_ends_in_the_old_or_the_new_state(
    record: Record[Any], wanted: RepositoryKind, datadir: Path, target: Target
) -> None:
    """A channel for each: making the tables takes longer than a switch."""
    for number, point in enumerate(CRASH_POINTS):
        channel = Channel(f"East {number}/ä", datadir)
        info = put(record, FILE if wanted is TABLE else TABLE, channel, target)
        store_options(channel.datadir, channel.name, {record.option: str(other(wanted))}, only_this_channel=True)
        status = in_child(partial(armed_switch, record, wanted, channel, target, point))
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        is_new = point not in ("switch_after_journal", "switch_after_write")
        assert assert_settles(record, wanted, channel, target, info) is (wanted if is_new else other(wanted)), point
        place(record, wanted, channel, target).remove()


@pytest.mark.long("One record stays; the journal has the same steps for the other.", keeps=r"^relay-log-info-FILE-11$")
@pytest.mark.slow
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.torture)])
@pytest.mark.parametrize("wanted", [TABLE, FILE])
def test_killed_at_every_write_fsync_rename_and_unlink(
    record: Record[Any], wanted: RepositoryKind, tmp_path: Path, empty_target: Path, every: int
) -> None:
    """Of four calls each is the one for some record and way; `-m torture` kills at all of them for each."""
    for step in range(1 + (2 * (record is RELAY_LOG_INFO) + (wanted is TABLE)) % every, 300, every):
        channel, target, info = fresh_instance(record, wanted, tmp_path / str(step), empty_target)
        status = in_child(lambda: killed_switch(record, wanted, channel, target, step))  # noqa: B023
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        assert_settles(record, wanted, channel, target, info)
    assert step > 15, "the switch makes more than that many calls"


@pytest.mark.long("test_killed_at_every_write_fsync_rename_and_unlink stays in make test.")
@pytest.mark.slow
@pytest.mark.parametrize("every", [29, pytest.param(1, marks=pytest.mark.torture)])
@pytest.mark.parametrize("wanted", [TABLE, FILE])
def test_killed_again_while_it_resumes(
    record: Record[Any], wanted: RepositoryKind, tmp_path: Path, empty_target: Path, every: int
) -> None:
    for first, point in enumerate(CRASH_POINTS):
        # of eleven calls, which each resume makes, each is the one for some point, record and way
        step = (first + 4 * (record is RELAY_LOG_INFO) + 8 * (wanted is TABLE)) % every
        while True:
            folder = tmp_path / f"{point}-{step}"
            channel, target, info = fresh_instance(record, wanted, folder, empty_target)
            in_child(lambda: armed_switch(record, wanted, channel, target, point))  # noqa: B023
            status = in_child(lambda: killed_resume(channel, target, step + 1))  # noqa: B023
            step += every
            assert_settles(record, wanted, channel, target, info)
            count_torture("switches resumed", point, 0)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) == 0
                break


@pytest.mark.parametrize("point", CRASH_POINTS[:3])
def test_what_a_file_alone_remembers_does_not_keep_a_killed_switch_from_its_end(
    point: str, tmp_path: Path, empty_target: Path
) -> None:
    """Where the applier left it (mode marker): the copy in the table is the same record without."""
    channel, target, info = fresh_instance(RELAY_LOG_INFO, TABLE, tmp_path / "i", empty_target)
    place(RELAY_LOG_INFO, FILE, channel, target).flush(replace(info, left_at=info.place), force=True)
    in_child(lambda: armed_switch(RELAY_LOG_INFO, TABLE, channel, target, point))
    resume_switch(load_config(channel.datadir, channel.name), channel, target.engine)
    table, file = contents(RELAY_LOG_INFO, channel, target)
    assert (table or replace(file, left_at="")) == info and (table is None) != (file is None)


@pytest.mark.parametrize("point", CRASH_POINTS)
@pytest.mark.parametrize("to", [TABLE, FILE])
def test_reset_after_a_killed_switch_leaves_no_old_position(
    point: str, to: RepositoryKind, tmp_path: Path, empty_target: Path
) -> None:
    channel, target, info = fresh_instance(RELAY_LOG_INFO, to, tmp_path / "i", empty_target)
    in_child(lambda: armed_switch(RELAY_LOG_INFO, to, channel, target, point))
    reset(load_config(channel.datadir, channel.name), channel.name)
    resume_switch(load_config(channel.datadir, channel.name), channel, target.engine)
    left = [one for one in contents(RELAY_LOG_INFO, channel, target) if one is not None]
    assert all(one.place != info.place for one in left), left


@pytest.mark.parametrize("point", CRASH_POINTS[:3])
def test_a_file_edited_by_hand_after_the_crash_is_never_deleted(point: str, tmp_path: Path, empty_target: Path) -> None:
    channel, target, _ = fresh_instance(RELAY_LOG_INFO, TABLE, tmp_path / "i", empty_target)
    in_child(lambda: armed_switch(RELAY_LOG_INFO, TABLE, channel, target, point))
    edited = channel.relay_log_info_path.read_bytes().replace(b"2552", b"9999")
    replace_file(channel.relay_log_info_path, edited)
    try:
        resume_switch(load_config(channel.datadir, channel.name), channel, target.engine)
    except RepositoryConflict:
        assert point == "switch_after_mark"
    assert channel.relay_log_info_path.read_bytes() == edited


def test_a_copy_that_another_wrote_after_the_crash_is_never_deleted(tmp_path: Path, empty_target: Path) -> None:
    channel, target, info = fresh_instance(MASTER_INFO, TABLE, tmp_path / "i", empty_target)
    in_child(lambda: armed_switch(MASTER_INFO, TABLE, channel, target, "switch_after_write"))
    other_copy = replace(info, host="elsewhere")
    place(MASTER_INFO, TABLE, channel, target).flush(other_copy, force=True)
    with pytest.raises(RepositoryConflict):
        resume_switch(load_config(channel.datadir, channel.name), channel, target.engine)
    assert contents(MASTER_INFO, channel, target) == (other_copy, info)


def test_a_file_removed_by_hand_after_the_crash_leaves_the_copy(tmp_path: Path, empty_target: Path) -> None:
    channel, target, info = fresh_instance(MASTER_INFO, TABLE, tmp_path / "i", empty_target)
    in_child(lambda: armed_switch(MASTER_INFO, TABLE, channel, target, "switch_after_write"))
    channel.master_info_path.unlink()
    resume_switch(load_config(channel.datadir, channel.name), channel, target.engine)
    assert contents(MASTER_INFO, channel, target) == (info, None)
    assert load_config(channel.datadir, channel.name).master_info_repository == "TABLE"


def test_both_present_with_a_strange_journal_is_an_error_that_names_it(tmp_path: Path, empty_target: Path) -> None:
    channel, target, _ = fresh_instance(MASTER_INFO, TABLE, tmp_path / "i", empty_target)
    journal = channel.run_folder / "switch-master-info.json"
    channel.run_folder.mkdir(parents=True)
    journal.write_text(json.dumps({"repository": "master-info"}))
    with pytest.raises(RplError, match="is not a switch journal"):
        resume_switch(load_config(channel.datadir, channel.name), channel, target.engine)


def test_the_journal_holds_no_secret(tmp_path: Path, empty_target: Path) -> None:
    channel, target, _ = fresh_instance(MASTER_INFO, TABLE, tmp_path / "i", empty_target)
    in_child(lambda: armed_switch(MASTER_INFO, TABLE, channel, target, "switch_after_journal"))
    journal = (channel.run_folder / "switch-master-info.json").read_text()
    assert MASTER.user_password not in journal and MASTER.host not in journal


def other(kind: RepositoryKind) -> RepositoryKind:
    return FILE if kind is TABLE else TABLE


@pytest.fixture(scope="module")
def empty_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the tables: copied, because making them takes longer than a switch."""
    path = tmp_path_factory.mktemp("tables") / "target.db"
    create_tables(sqlite_engine(path))
    return path


def fresh_instance(
    record: Record[Any], wanted: RepositoryKind, folder: Path, empty_target: Path
) -> tuple[Channel, Target, Any]:
    folder.mkdir()
    shutil.copyfile(empty_target, folder / "target.db")
    channel = Channel("", folder)
    target = Target("sqlite", lambda: sqlite_engine(folder / "target.db"))
    info = put(record, other(wanted), channel, target)
    store_options(folder, "", {record.option: str(other(wanted))}, only_this_channel=True)
    return channel, target, info


def assert_settles(
    record: Record[Any], wanted: RepositoryKind, channel: Channel, target: Target, info: Any
) -> RepositoryKind:
    """Readable before the next command, by whatever the options say; after it: one place, and the options name it.

    The kind that the resume ended in; then the switch is done once more, to its end.
    """
    kind = record.kind(load_config(channel.datadir, channel.name))
    assert place(record, kind, channel, target).read() == info
    config: Config = resume_switch(load_config(channel.datadir, channel.name), channel, target.engine)
    stored = load_config(channel.datadir, channel.name)
    assert record.kind(config) is record.kind(stored)
    expected = (info, None) if record.kind(stored) is TABLE else (None, info)
    assert contents(record, channel, target) == expected
    assert list(channel.run_folder.glob("switch-*.json")) == []
    plan = plan_switch(config, channel, target.engine, record.name, wanted)
    carry_out(plan, config, channel, target.engine)
    assert place(record, wanted, channel, target).read() == info
    return record.kind(stored)


def switch(record: Record[Any], wanted: RepositoryKind, channel: Channel, target: Target) -> None:
    config = load_config(channel.datadir, channel.name)
    carry_out(plan_switch(config, channel, target.engine, record.name, wanted), config, channel, target.engine)


def armed_switch(record: Record[Any], wanted: RepositoryKind, channel: Channel, target: Target, point: str) -> None:
    os.environ[failpoint.ENVIRONMENT] = f"{point}=kill"
    failpoint.rearm()
    switch(record, wanted, channel, target)


def killed_switch(record: Record[Any], wanted: RepositoryKind, channel: Channel, target: Target, step: int) -> None:
    kill_before_call(step)
    switch(record, wanted, channel, target)


def killed_resume(channel: Channel, target: Target, step: int) -> None:
    kill_before_call(step)
    resume_switch(load_config(channel.datadir, channel.name), channel, target.engine)


def kill_before_call(step: int) -> None:
    """SIGKILL this process before the step-th call that changes a file; a write gets half of its bytes out."""
    calls = 0

    def killing(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == step:
                if name == "write":
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in ("open", "write", "fsync", "replace", "unlink", "mkdir", "ftruncate", "pwrite"):
        setattr(os, name, killing(name))


def in_child(body: Callable[[], None]) -> int:
    """Run it in a forked process; its wait status."""
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
    return os.waitpid(child, 0)[1]


def test_of_two_records_the_hint_moves_the_file_and_deletes_the_row(channel: Channel, sqlite_target: Target) -> None:
    put(MASTER_INFO, FILE, channel, sqlite_target)
    put(MASTER_INFO, TABLE, channel, sqlite_target)
    plan = plan_switch(config_of(channel.datadir, "FILE"), channel, sqlite_target.engine, "master-info", TABLE)
    hint = conflict(plan).hint or ""
    assert f"mv {channel.master_info_path} elsewhere" in hint
    assert "row from main.slave_master_info" in hint


@pytest.mark.parametrize("patience", [30.0, 0.0], ids=["waits", "gives up"])
def test_a_switch_waits_a_while_for_another_one(
    channel: Channel, sqlite_target: Target, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    put(MASTER_INFO, FILE, channel, sqlite_target)
    config = config_of(channel.datadir, "FILE")
    plan = plan_switch(config, channel, sqlite_target.engine, "master-info", TABLE)
    monkeypatch.setattr("rplctl.repository.switch.LOCK_PATIENCE_S", patience)
    with ExitStack() as other:
        other.enter_context(hold_lock(channel, "switch"))
        if patience:
            Timer(0.3, other.close).start()
            carry_out(plan, config, channel, sqlite_target.engine)
        else:
            with pytest.raises(LockBusy):
                carry_out(plan, config, channel, sqlite_target.engine)
    assert (contents(MASTER_INFO, channel, sqlite_target)[0] is not None) == bool(patience)
