"""REQ-6 (WL#2775) as an operator meets it: switch-repo, and a start whose options changed, on SQLite, all 16 cells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config as AlembicConfig

from rplctl.channel import Channel
from rplctl.command.channel.context import engine_of
from rplctl.command.process import preparation
from rplctl.commit.participants.choice import pages_path
from rplctl.commit.xid import xid_prefix
from rplctl.config import Config, load_config
from rplctl.errors import RplError
from rplctl.failpoint import ENVIRONMENT
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.option_file import store_options
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.install import migrations_folder
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.repository.shadow_page import ShadowPageFile
from rplctl.repository.switch import DECISION, RECORDS, SwitchAction
from tests.cli.program import Program
from tests.kit import fork_server

FILE, TABLE = RepositoryKind.FILE, RepositoryKind.TABLE
RELAY = RelayLogInfo(master_id=1).at(RelayLogPosition("relay-bin.000001", 4), BinlogPosition("binlog.000003", 1170))
INFO: dict[str, Any] = {
    "master-info": MasterInfo(host="db1", master_log_name="binlog.000003", master_log_pos=1170, master_id=1),
    "relay-log-info": RELAY,
}
TEXT = "Multiple replication metadata repository instances found with data in them. Unable to decide which is the"
CELLS = [(False, True), (True, True), (False, False), (True, False)]


@pytest.fixture(scope="module")
def empty_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    engine = engine_of(Config(folder))()
    create_tables(engine)
    engine.dispose()  # the last connection takes the write-ahead log into the file
    return folder / "target.db"


@pytest.fixture
def instance(program: Program, empty_target: Path) -> Program:
    program.datadir.mkdir(mode=0o700)
    (program.datadir / "target.db").write_bytes(empty_target.read_bytes())
    return program


def place(program: Program, name: str, kind: RepositoryKind) -> Any:
    config = load_config(program.datadir)
    return open_repository(RECORDS[name], kind, config, Channel("", program.datadir), engine_of(config))


def put(program: Program, name: str, cell: tuple[bool, bool]) -> None:
    for kind, present in zip((TABLE, FILE), cell, strict=True):
        if present:
            place(program, name, kind).flush(INFO[name], force=True)


def cell_of(program: Program, name: str) -> tuple[bool, bool]:
    return place(program, name, TABLE).exists(), place(program, name, FILE).exists()


def after(cell: tuple[bool, bool], wanted: RepositoryKind) -> tuple[bool, bool]:
    if DECISION[cell, wanted] is SwitchAction.ERROR:
        return cell
    return (any(cell) and wanted is TABLE, any(cell) and wanted is FILE)


@pytest.mark.parametrize("wanted", [TABLE, FILE])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", list(RECORDS))
def test_switch_repo_does_what_each_cell_says(
    instance: Program, name: str, cell: tuple[bool, bool], wanted: RepositoryKind
) -> None:
    other = next(n for n in RECORDS if n != name)
    put(instance, other, (False, True))  # the channel is known by its other record
    put(instance, name, cell)
    shown = instance("switch-repo", "--to", wanted.lower(), "--repository", name, "--dry-run", "--json")
    assert cell_of(instance, name) == cell, "a dry run changes nothing"
    done = instance("switch-repo", "--to", wanted.lower(), "--repository", name)
    if DECISION[cell, wanted] is SwitchAction.ERROR:
        assert (shown.code, done.code, TEXT in done.err, "hint: keep the record whose position" in done.err) == (
            5,
            5,
            True,
            True,
        )
    else:
        row = json.loads(shown.out)[0]
        assert (row["Table_has_data"], row["File_has_data"], row["Wanted"]) == (*cell, wanted)
        assert row["Action"] == DECISION[cell, wanted] and row["Steps"]
        assert done.code == 0, done.err
        assert RECORDS[name].kind(load_config(instance.datadir)) is wanted
    assert cell_of(instance, name) == after(cell, wanted)
    assert cell_of(instance, other) == (False, True), "each record is decided by itself"


class Started(RplError):
    """The repositories were settled and the threads would start now."""


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def spawn(*_: object, **__: object) -> None:
        raise Started("would start")

    monkeypatch.setattr(preparation, "spawn", spawn)
    monkeypatch.setattr(preparation, "seed_models", lambda *_: None)


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("wanted", [TABLE, FILE])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", list(RECORDS))
def test_a_start_with_another_option_does_what_each_cell_says(
    instance: Program, name: str, cell: tuple[bool, bool], wanted: RepositoryKind
) -> None:
    other = next(n for n in RECORDS if n != name)
    put(instance, other, (False, True))
    put(instance, name, cell)
    store_options(instance.datadir, "", {RECORDS[name].option: str(wanted)})
    done = instance("start")
    if DECISION[cell, wanted] is SwitchAction.ERROR:
        assert (done.code, TEXT in done.err) == (5, True)
    elif cell == (False, False) and name == "master-info":
        assert done.code == 4, "there is no source to start from"
    else:
        assert (done.code, "would start" in done.err or cell == (False, False)) == (1, True), done.err
        assert cell_of(instance, name) == after(cell, wanted)


@pytest.mark.usefixtures("no_threads")
def test_a_start_upgrades_tables_of_an_older_layout(instance: Program) -> None:
    kinds = {record.option: "TABLE" for record in RECORDS.values()}
    store_options(instance.datadir, "", kinds)
    for name in RECORDS:
        put(instance, name, (True, False))
    engine = engine_of(load_config(instance.datadir))()
    with engine.connect() as connection, connection.begin():
        migrations = AlembicConfig()
        migrations.set_main_option("script_location", str(migrations_folder()))
        migrations.attributes |= {"connection": connection, "rep_engine": ""}
        command.downgrade(migrations, "0001")
    engine.dispose()
    shown = instance("show-status")
    assert (shown.code, "older version" in shown.err, "run: rplctl start\n" in shown.err) == (1, True, True), shown.err
    assert "would start" in instance("start").err
    assert cell_of(instance, "master-info") == cell_of(instance, "relay-log-info") == (True, False)
    assert place(instance, "relay-log-info", TABLE).read().exec_position == RELAY.exec_position


@pytest.mark.usefixtures("no_threads")
@pytest.mark.parametrize("relay_kind", [FILE, TABLE])
@pytest.mark.parametrize("master_kind", [FILE, TABLE])
def test_mixed_options_are_settled_each_by_itself(
    instance: Program, master_kind: RepositoryKind, relay_kind: RepositoryKind
) -> None:
    put(instance, "master-info", (True, False))
    put(instance, "relay-log-info", (False, True))
    options = {"master_info_repository": str(master_kind), "relay_log_info_repository": str(relay_kind)}
    store_options(instance.datadir, "", options)
    assert "would start" in instance("start").err
    assert cell_of(instance, "master-info") == (master_kind is TABLE, master_kind is FILE)
    assert cell_of(instance, "relay-log-info") == (relay_kind is TABLE, relay_kind is FILE)


@pytest.mark.parametrize("role", ["receiver", "applier"])
def test_a_switch_is_refused_while_a_thread_runs(instance: Program, role: str) -> None:
    for name in RECORDS:
        put(instance, name, (False, True))
    channel = Channel("", instance.datadir)
    xid_prefix(channel)
    ShadowPageFile(pages_path(channel)).create(RELAY_LOG_INFO.format(RELAY))  # a running applier's, commit_mode=xa
    code = "from pathlib import Path; from rplctl.channel import *\n" + (
        f"with hold_lock(Channel('', Path({str(instance.datadir)!r})), {role!r}): print('held', flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        done = instance("switch-repo", "--to", "table")
        assert (done.code, "ERROR 3081" in done.err, "run: rplctl stop" in done.err) == (2, True, True)
        assert cell_of(instance, "master-info") == cell_of(instance, "relay-log-info") == (False, True)
        assert pages_path(channel).exists()
        holder.communicate("\n")


@pytest.mark.long("tests/repository/test_switch.py kills a switch at the same steps in make test.")
@pytest.mark.slow
@pytest.mark.parametrize("to", ["table", "file"])
@pytest.mark.parametrize(
    "point", ["switch_after_journal", "switch_after_write", "switch_after_mark", "switch_after_delete"]
)
def test_a_switch_killed_at_a_crash_point_is_harmless_and_the_next_one_ends_it(
    instance: Program, point: str, to: str
) -> None:
    for name in RECORDS:
        put(instance, name, (False, True) if to == "table" else (True, False))
    kinds = {record.option: "FILE" if to == "table" else "TABLE" for record in RECORDS.values()}
    store_options(instance.datadir, "", kinds)
    command = ["--datadir", str(instance.datadir), "switch-repo", "--to", to]
    killed = fork_server.run(command, "", {**os.environ, ENVIRONMENT: f"{point}=kill"}, 600)
    assert killed.returncode == -signal.SIGKILL
    shown = instance("show-status", "--json")
    assert (shown.code, json.loads(shown.out)[0]["Exec_Master_Log_Pos"]) == (0, 1170)
    assert instance("switch-repo", "--to", to).code == 0
    for name in RECORDS:
        assert cell_of(instance, name) == (to == "table", to == "file")


def test_a_switch_of_both_is_written_to_the_journal_of_changes(instance: Program) -> None:
    for name in RECORDS:
        put(instance, name, (False, True))
    assert instance("switch-repo", "--to", "table").code == 0
    log = (instance.datadir / "history.jsonl").read_text()
    assert "switch-repo --to table --repository master-info" in log and "relay-log-info" in log


def test_an_unknown_channel_is_not_switched(instance: Program) -> None:
    done = instance("switch-repo", "--to", "table", "--channel", "nope")
    assert (done.code, "ERROR 3074" in done.err) == (4, True)
