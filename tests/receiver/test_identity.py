"""Who we are to a source, and where a connection begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver.dump_start import dump_start
from rplctl.receiver.identity import replica_identity
from rplctl.recovery import RecoveryResult

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
NEXT = BinlogPosition("binlog.000002", 1170)


def recovered(gtids: str = "") -> RecoveryResult:
    return RecoveryResult(NEXT, RelayLogPosition("", 0), True, b"", 0, (), gtids, False, ())


def test_an_identity_is_the_same_at_every_connection_and_differs_between_channels_and_instances(tmp_path: Path) -> None:
    here, there = Config(tmp_path / "a"), Config(tmp_path / "b")
    east = Channel("east", tmp_path / "a")
    assert replica_identity(here, east) == replica_identity(here, Channel("EAST", tmp_path / "a"))  # names fold case
    made = [replica_identity(here, east), replica_identity(here, Channel("", tmp_path / "a"))]
    made.append(replica_identity(there, Channel("east", tmp_path / "b")))
    assert len({one.server_id for one in made}) == len({one.uuid for one in made}) == 3


def test_a_derived_server_id_is_valid_and_clear_of_chosen_ones(tmp_path: Path) -> None:
    derived = replica_identity(Config(tmp_path), Channel("", tmp_path)).server_id
    assert 0x40000000 <= derived < 0x80000000
    assert replica_identity(Config(tmp_path, server_id=7), Channel("", tmp_path)).server_id == 7


def test_without_gtids_the_dump_begins_at_recoverys_next_event() -> None:
    start = dump_start(MasterInfo(), recovered(), RelayLogInfo())
    assert (start.position, start.by_gtid) == (NEXT, False)


def test_with_auto_position_everything_fetched_or_applied_is_told() -> None:
    info = MasterInfo(enabled_auto_position=True)
    start = dump_start(info, recovered(f"{UUID}:4-6"), RelayLogInfo(gtid_executed=f"{UUID}:1-3"))
    assert str(start.mysql_gtid_set) == f"{UUID}:1-6" and start.mariadb_gtid is None
    assert str(dump_start(info, recovered(), RelayLogInfo()).mysql_gtid_set) == ""
    assert dump_start(info, recovered(), RelayLogInfo()).by_gtid  # an empty set asks for everything


@pytest.mark.parametrize("using", [1, 2])
def test_with_mariadb_gtids_the_later_of_fetched_and_applied_counts_per_domain(using: int) -> None:
    info = replace(MasterInfo(), using_gtid=using)
    start = dump_start(info, recovered("0-1-9"), RelayLogInfo(gtid_executed="0-1-5,1-2-8"))
    assert start.mariadb_gtid == "0-1-9,1-2-8" and start.mysql_gtid_set is None
    assert dump_start(info, recovered(), RelayLogInfo()).mariadb_gtid == ""


def test_a_gtid_set_that_is_none_is_mysqls_1772_not_a_start_from_the_beginning() -> None:
    with pytest.raises(RplError) as caught:
        dump_start(MasterInfo(enabled_auto_position=True), recovered(), RelayLogInfo(gtid_executed="rubbish"))
    assert caught.value.errno == 1772
