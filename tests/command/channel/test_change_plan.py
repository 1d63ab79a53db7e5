"""CHANGE MASTER as a function of records: what is kept, forgotten and derived (MySQL manual)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges, check_changes
from rplctl.command.channel.change_plan import (
    change_notes,
    check_dependencies,
    check_own_id,
    check_way,
    default_heartbeat,
    new_master_info,
    new_relay_log_info,
    purges_relay_logs,
)
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.source.replica_id import replica_identity
from tests.relay_log.stream import FakeSource, write_relay_log

MASTER = MasterInfo(
    host="db1", port=3306, uuid="u", master_server_id=9, heartbeat=1.0, master_log_name="b.000007", master_log_pos=900
)
RELAY = RelayLogInfo().at(RelayLogPosition("relay-bin.000003", 500), BinlogPosition("b.000006", 400))


def planned(folder: Path, changes: MasterChanges, *, purges: bool = True, master: MasterInfo = MASTER) -> MasterInfo:
    return new_master_info(Config(folder), changes, master, RELAY.exec_position, purges)


@pytest.mark.parametrize("changes", [{"master_host": "db2"}, {"master_port": 3307}, {"master_binlog_dir": "/"}])
def test_another_source_forgets_who_it_was_and_where_it_stood(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert purges_relay_logs(MasterChanges(**changes), MASTER)
    new = planned(tmp_path, MasterChanges(**changes))
    assert (new.uuid, new.master_server_id, new.read_position) == ("", 0, BinlogPosition("", 4))
    assert new.heartbeat == default_heartbeat(Config(tmp_path))


@pytest.mark.parametrize("changes", [{"master_host": "db1"}, {"master_port": 3306}, {"master_binlog_dir": ""}])
def test_naming_the_same_source_forgets_who_it_was_not_where_it_stood(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert not purges_relay_logs(MasterChanges(**changes), MASTER)
    new = planned(tmp_path, MasterChanges(**changes), purges=False)
    assert (new.uuid, new.master_server_id, new.read_position) == ("", 0, MASTER.read_position)
    assert new.heartbeat == default_heartbeat(Config(tmp_path))


def test_a_position_that_is_given_counts_and_is_at_least_the_first_event(tmp_path: Path) -> None:
    new = planned(tmp_path, MasterChanges(master_log_file="b.000001", master_log_pos=0))
    assert new.read_position == BinlogPosition("b.000001", 4) and new.uuid == "u"


def test_purged_relay_logs_are_fetched_again_from_the_executed_position(tmp_path: Path) -> None:
    changes = MasterChanges(master_connect_retry=5)
    assert planned(tmp_path, changes, purges=True).read_position == RELAY.exec_position
    assert planned(tmp_path, changes, purges=False).read_position == MASTER.read_position


@pytest.mark.parametrize("changes", [{"master_auto_position": True}, {"master_use_gtid": "slave_pos"}])
def test_gtids_take_the_place_of_the_file_position(tmp_path: Path, changes: dict[str, object]) -> None:
    assert planned(tmp_path, MasterChanges(**changes)).read_position == BinlogPosition("", 4)  # type: ignore[arg-type]


def test_server_and_folder_take_turns(tmp_path: Path) -> None:
    folder = planned(tmp_path, MasterChanges(master_binlog_dir=os.fspath(tmp_path)))
    assert (folder.host, folder.master_binlog_dir) == ("", os.path.realpath(tmp_path))
    assert planned(tmp_path, MasterChanges(master_host="db1"), master=folder).master_binlog_dir == ""


def test_a_heartbeat_below_a_millisecond_is_none(tmp_path: Path) -> None:
    changes = MasterChanges(master_heartbeat_period=0.0005)
    assert planned(tmp_path, changes).heartbeat == 0.0
    assert [note.errno for note in change_notes(Config(tmp_path), changes, MASTER, MASTER)] == [1703]


def test_a_relay_position_must_be_a_transaction_end_and_brings_its_source_position(tmp_path: Path) -> None:
    channel, source = Channel("", tmp_path), FakeSource()
    end = write_relay_log(channel, source, 3)
    given = MasterChanges(relay_log_file=end.log_name, relay_log_pos=end.log_pos, master_delay=60)
    new = new_relay_log_info(channel, given, RELAY, (MASTER, MASTER), purges=False)
    assert (new.relay_log_position, new.exec_position, new.sql_delay) == (end, source.position, 60)
    for offset, name in ((end.log_pos - 1, end.log_name), (end.log_pos, "relay-bin.000099")):
        wrong = MasterChanges(relay_log_file=name, relay_log_pos=offset)
        with pytest.raises(UsageError) as caught:
            new_relay_log_info(channel, wrong, RELAY, (MASTER, MASTER), purges=False)
        shown = "this relay log" if name == end.log_name else "one of the relay logs (relay-bin.000001)"
        command = f"rplctl show-relaylog-events --in {name if name == end.log_name else 'FILE'}"
        assert caught.value.errno == 1380
        assert f"to list the events of {shown}, run: {command}\n" in caught.value.hint


def test_gtids_for_anonymous_transactions_are_off_local_or_a_uuid(tmp_path: Path) -> None:
    def stored(value: str) -> tuple[str, str]:
        changes = MasterChanges(assign_gtids_to_anonymous_transactions=value)
        new = new_relay_log_info(Channel("", tmp_path), changes, RELAY, (MASTER, MASTER), purges=True)
        return new.assign_gtids_to_anonymous_transactions_type, new.assign_gtids_to_anonymous_transactions_value

    assert (stored("off"), stored("Local")) == (("OFF", ""), ("LOCAL", ""))
    text = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    assert stored(text.upper()) == ("UUID", text)
    with pytest.raises(UsageError) as caught:
        check_changes(MasterChanges(assign_gtids_to_anonymous_transactions="nope"))
    assert (caught.value.errno, caught.value.message) == (1525, "Incorrect UUID value: 'nope'")


def test_our_own_id_cannot_be_ignored_while_it_is_wanted(tmp_path: Path) -> None:
    channel, config = Channel("", tmp_path), Config(tmp_path)
    own = replica_identity(config, channel).server_id
    changes = MasterChanges(ignore_server_ids=(3, own))
    check_own_id(config, channel, changes)
    with pytest.raises(UsageError) as caught:
        check_own_id(replace(config, replicate_same_server_id=True), channel, changes)
    assert caught.value.errno == 1650 and str(own) in caught.value.message


def test_an_active_auto_position_refuses_coordinates_given_later(tmp_path: Path) -> None:
    active = replace(MASTER, enabled_auto_position=True)
    with pytest.raises(UsageError) as caught:
        check_dependencies(MasterChanges(master_log_pos=4), active, RELAY)
    assert caught.value.errno == 1776 and "rplctl change-master --master-auto-position 0" in caught.value.hint
    check_dependencies(MasterChanges(master_log_pos=4, master_auto_position=False), active, RELAY)


@pytest.mark.parametrize(
    ("executed", "changes", "vendor"),
    [
        ("0-1-100", MasterChanges(master_host="db2", master_auto_position=True), "MySQL"),
        (
            "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5",
            MasterChanges(master_host="db2", master_use_gtid="slave_pos"),
            "MariaDB",
        ),
    ],
)
def test_gtids_of_one_vendor_are_no_position_at_a_source_of_the_other(
    executed: str, changes: MasterChanges, vendor: str
) -> None:
    with pytest.raises(UsageError, match=f"cannot change to a {vendor} source: the applied GTIDs") as caught:
        check_way(changes, MASTER, replace(RELAY, gtid_executed=executed))
    assert caught.value.errno == 1776
    assert caught.value.hint.endswith("run: rplctl clone --replace --yes; rplctl start")
    check_way(replace(changes, master_auto_position=None, master_use_gtid=None), MASTER, RELAY)


UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
AUTO, AUTO_OFF = {"master_auto_position": True}, {"master_auto_position": False}
GTID, GTID_OFF = {"master_use_gtid": "slave_pos"}, {"master_use_gtid": "no"}
ASSIGN, ASSIGN_OFF = ({"assign_gtids_to_anonymous_transactions": value} for value in ("local", "off"))
ASSIGN_UUID = {"assign_gtids_to_anonymous_transactions": UUID}
FILE = {"master_log_file": "x.000001"}
# stored, given, errno, end of the hint: as MySQL 9.x answers to AUTO and ASSIGN; MariaDB's GTID knows neither
BY_GTID: list[tuple[dict[str, Any], dict[str, Any], int, str]] = [
    ({}, AUTO | ASSIGN, 4014, "--master-auto-position 0"),
    ({}, AUTO | ASSIGN_OFF, 0, ""),
    ({}, AUTO_OFF | ASSIGN, 0, ""),
    ({}, AUTO | FILE | ASSIGN, 1776, "--master-log-pos POSITION"),
    ({}, GTID | ASSIGN, 4014, ""),
    ({}, GTID | ASSIGN_OFF, 0, ""),
    ({}, GTID_OFF | ASSIGN_UUID, 0, ""),
    ({}, AUTO | GTID, 1210, ""),
    (AUTO, ASSIGN, 4014, "--master-auto-position 0"),
    (AUTO, ASSIGN_UUID, 4014, "--master-auto-position 0"),
    (AUTO, ASSIGN_OFF, 0, ""),
    (AUTO, AUTO_OFF | ASSIGN, 0, ""),
    (AUTO, {"master_port": 4}, 0, ""),
    (AUTO, FILE, 1776, ""),
    (AUTO, GTID, 1210, "--master-auto-position 0"),
    (AUTO, AUTO_OFF | GTID, 0, ""),
    (ASSIGN, AUTO, 4014, "--assign-gtids-to-anonymous-transactions off"),
    (ASSIGN_UUID, AUTO, 4014, "--assign-gtids-to-anonymous-transactions off"),
    (ASSIGN, AUTO_OFF, 0, ""),
    (ASSIGN, ASSIGN_UUID, 0, ""),
    (ASSIGN, AUTO | ASSIGN_OFF, 0, ""),
    (ASSIGN, AUTO | FILE, 1776, ""),
    (ASSIGN, FILE, 0, ""),
    (ASSIGN, GTID, 4014, "--assign-gtids-to-anonymous-transactions off"),
    (ASSIGN, GTID | ASSIGN_OFF, 0, ""),
    (GTID, ASSIGN, 4014, "--master-use-gtid no"),
    (GTID, GTID_OFF | ASSIGN, 0, ""),
    (GTID, ASSIGN | FILE, 0, ""),
    (GTID, AUTO, 1210, "--master-use-gtid no"),
    (GTID, AUTO | GTID_OFF, 0, ""),
]


@pytest.mark.parametrize(("stored", "given", "errno", "hint"), BY_GTID)
def test_what_finds_a_position_by_gtid_and_gtids_given_to_what_has_none_exclude_each_other_also_later(
    tmp_path: Path, stored: dict[str, Any], given: dict[str, Any], errno: int, hint: str
) -> None:
    config = Config(tmp_path)
    change_master(config, "", MasterChanges(master_host="db1", **stored))
    before = (tmp_path / "master.info").read_bytes(), (tmp_path / "relay-log.info").read_bytes()
    if not errno:
        change_master(config, "", MasterChanges(**given))
        return
    with pytest.raises(UsageError) as caught:
        change_master(config, "", MasterChanges(**given))
    assert caught.value.errno == errno and hint in caught.value.hint
    assert ((tmp_path / "master.info").read_bytes(), (tmp_path / "relay-log.info").read_bytes()) == before


def test_a_position_given_alone_turns_mariadbs_gtid_mode_off_and_says_so(tmp_path: Path) -> None:
    by_gtid = replace(MASTER, using_gtid=2)
    for given in (FILE, {"master_log_pos": 4}, {"relay_log_pos": 4}):
        changes = MasterChanges(**given)
        new = planned(tmp_path, changes, master=by_gtid)
        notes = {note.errno: note.text for note in change_notes(Config(tmp_path), changes, by_gtid, new)}
        assert new.using_gtid == 0 and "from 'Slave_Pos' to 'No'" in notes[4190]
    assert planned(tmp_path, MasterChanges(master_host="db2"), master=by_gtid).using_gtid == 2


def test_notes_have_mysqls_numbers(tmp_path: Path) -> None:
    def notes(changes: MasterChanges) -> list[int]:
        return [note.errno for note in change_notes(Config(tmp_path), changes, MASTER, MASTER)]

    assert notes(MasterChanges(master_log_file="b.000001")) == [3023]
    assert notes(MasterChanges(master_heartbeat_period=1000.0)) == [1704]
    assert notes(MasterChanges(password="x")) == [1759]
    assert notes(MasterChanges(master_use_gtid="current_pos", master_log_pos=4)) == [1618]
    assert notes(MasterChanges(master_connect_retry=5)) == []


def test_a_channel_cannot_lose_its_only_source(tmp_path: Path) -> None:
    of_folder = MasterInfo(master_binlog_dir=str(tmp_path))
    with pytest.raises(UsageError, match="MASTER_HOST") as caught:
        check_dependencies(MasterChanges(master_binlog_dir=""), of_folder, RelayLogInfo())
    assert caught.value.errno == 1210
    check_dependencies(MasterChanges(master_binlog_dir="", master_host="db1"), of_folder, RelayLogInfo())
    check_dependencies(MasterChanges(master_binlog_dir=""), MASTER, RELAY)
