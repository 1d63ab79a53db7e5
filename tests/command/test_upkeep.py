"""skip, recover, switch-repo, show-channels, doctor as functions: what they return, change and refuse."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.channel import Channel, hold_lock
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import open_repositories
from rplctl.command.doctor import doctor
from rplctl.command.recover import recover
from rplctl.command.show_channels import show_channels
from rplctl.command.show_status import show_status
from rplctl.command.skip import SkipResult, skip
from rplctl.command.switch_repo import switch_repo
from rplctl.config import Config, load_config
from rplctl.errors import LockBusy, NotConfigured, RepositoryConflict, UsageError
from rplctl.skip_list import read_gtids
from rplctl.target.dialect import FAIL

DEMO = os.fspath(demo.BINLOG_FOLDER)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = Config(tmp_path)
    change_master(config, "", MasterChanges(master_binlog_dir=DEMO))
    return config


def test_skip_counts_from_nought_and_needs_a_channel(config: Config, tmp_path: Path) -> None:
    assert skip(config, "", 3).count == 3
    with pytest.raises(UsageError, match="number of transactions"):
        skip(config, "", -1)
    with pytest.raises(NotConfigured):
        skip(Config(tmp_path / "other"), "", 1)


def test_skip_by_gtid_is_kept_until_taken_back_and_notes_what_is_behind(config: Config) -> None:
    planned = skip(config, "", None, "0-1-7", dry_run=True)
    assert planned.gtids == ("0-1-7",) and not read_gtids(Channel("", config.datadir).run_folder)
    assert skip(config, "", None, "0-1-7, 1-2-3").gtids == ("0-1-7", "1-2-3")
    assert skip(config, "", 2).gtids == ("0-1-7", "1-2-3")
    assert show_status(config, "").Skip_Gtids == "0-1-7,1-2-3"
    assert "skip --gtid 0-1-7, 1-2-3" in (config.datadir / "history.jsonl").read_text()
    with pytest.raises(UsageError, match="GTID list"):
        skip(config, "", None, "0-1")
    repository = open_repositories(config, "").relay_log_info
    repository.flush(replace(repository.read(), gtid_executed="0-1-9"), force=True)
    again = skip(config, "", None, "0-1-8")
    assert again.gtids == ("0-1-7", "1-2-3") and "already executed" in again.notes[0].text
    with pytest.raises(UsageError, match="DOMAIN-SERVER-NUMBER"):
        skip(config, "", None, "3e11fa47-71ca-11e1-9e33-c80aa9429562:5")
    assert skip(config, "", 0) == SkipResult("", 0, (), (), dry_run=False)


def test_recover_says_what_it_would_do_and_changes_nothing_with_dry_run(config: Config) -> None:
    before = {path.name: path.read_bytes() for path in config.datadir.glob("*.*")}
    planned = recover(config, "", dry_run=True)
    assert {path.name: path.read_bytes() for path in config.datadir.glob("*.*")} == before
    done = recover(config, "")
    assert (planned.Next_event, planned.Truncated_bytes) == (done.Next_event, 0)


def test_switch_repo_moves_both_repositories_there_and_back(config: Config) -> None:
    there = switch_repo(config, "", "table")
    assert {step.Repository for step in there} == {"master-info", "relay-log-info"}
    assert all(step.File_has_data and not step.Table_has_data for step in there)
    assert not (config.datadir / "master.info").exists()
    moved = load_config(config.datadir)
    assert moved.master_info_repository == moved.relay_log_info_repository == "TABLE"
    switch_repo(moved, "", "file")
    assert (config.datadir / "master.info").exists()


def test_switch_repo_with_dry_run_shows_the_cell_and_moves_nothing(config: Config) -> None:
    steps = switch_repo(config, "", "table", "master-info", dry_run=True)
    assert [(s.Repository, s.Wanted) for s in steps] == [("master-info", "TABLE")]
    assert (config.datadir / "master.info").exists()


def test_switch_repo_refuses_two_holders_of_data_and_unknown_kinds(config: Config) -> None:
    kept = (config.datadir / "master.info").read_bytes()
    switch_repo(config, "", "table", "master-info")
    (config.datadir / "master.info").write_bytes(kept)
    (config.datadir / "master.info").chmod(0o600)
    with pytest.raises(RepositoryConflict):
        switch_repo(load_config(config.datadir), "", "file", "master-info")
    with pytest.raises(UsageError, match="--to nowhere"):
        switch_repo(config, "", "nowhere")


def test_two_commands_at_once_do_not_work_on_one_channel(config: Config) -> None:
    with hold_lock(Channel("", config.datadir), "admin"), pytest.raises(LockBusy):
        skip(config, "", 1)


def test_a_damaged_channel_does_not_hide_the_others(config: Config) -> None:
    change_master(config, "second", MasterChanges(master_binlog_dir=DEMO))
    (config.datadir / "relay-log-second.info").write_text("14\nnonsense\nx\n")
    lines = {line.Channel_Name: line for line in show_channels(config, lambda _: config)}
    assert set(lines) == {"", "second"}
    assert lines[""].Source == DEMO
    assert lines["second"].Last_Error


def test_doctor_says_what_each_value_of_spark_costs_or_gives_up(config: Config) -> None:
    """Of the instance, and of a channel that has another value."""
    always, auto = replace(config, spark="always"), replace(config, spark="auto")
    shown = {line.Check: line for line in doctor(always, [""], lambda _: auto)}
    assert shown["spark"].Detail.startswith("always: Spark decodes all rows; each start takes some seconds of CPU time")
    assert shown["channel '' spark"].Detail.startswith("auto: the applier itself decodes batches of up to 4 MB")
    assert "channel '' spark" not in {line.Check for line in doctor(auto, [""])}


def test_doctor_finds_what_is_wrong_and_names_the_repair(config: Config) -> None:
    sound = doctor(config)
    assert not [finding for finding in sound if finding.Result == FAIL], sound
    broken = doctor(replace(config, java_home="/nowhere"))
    java = next(finding for finding in broken if finding.Check == "java")
    assert java.Result == FAIL
    assert java.Detail
