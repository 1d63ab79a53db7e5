"""The dump requests, byte for byte as recorded from real replicas."""

from __future__ import annotations

import pytest

from rplctl.errors import SourceError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.position import BinlogPosition
from rplctl.source import DumpStart, ReplicaIdentity
from rplctl.source.flavor import (
    COM_BINLOG_DUMP,
    COM_BINLOG_DUMP_GTID,
    dump_request,
    mariadb_gtid_statements,
    register_request,
    session_statements,
)

MYSQL = ReplicaIdentity(0x131C, "07cb8219-e54c-11f1-bcab-02fc00000001")


def test_a_dump_by_position_as_mysql_9_asks_for_it() -> None:
    start = DumpStart(BinlogPosition("binlog.000001", 4))
    recorded = bytes.fromhex("04000000 0200 1c130000") + b"binlog.000001"
    assert dump_request(start, False, MYSQL) == (COM_BINLOG_DUMP, recorded)


def test_a_dump_by_gtid_as_mysql_9_asks_for_it() -> None:
    gtids = MysqlGtidSet.parse("0698c77c-e54c-11f1-b87b-02fc00000001:1-5")
    recorded = bytes.fromhex(
        "0200 1c130000 00000000 0400000000000000 30000000 0100000000000000"
        "0698c77ce54c11f1b87b02fc00000001 0100000000000000 0100000000000000 0600000000000000"
    )
    start = DumpStart(BinlogPosition("", 4), mysql_gtid_set=gtids)
    assert dump_request(start, False, MYSQL) == (COM_BINLOG_DUMP_GTID, recorded)


def test_a_dump_by_gtid_of_mariadb_names_no_log() -> None:
    start = DumpStart(BinlogPosition("mysql-bin.000001", 700), mariadb_gtid="0-4881-5")
    recorded = bytes.fromhex("04000000 0200 12130000")
    assert dump_request(start, True, ReplicaIdentity(0x1312, "")) == (COM_BINLOG_DUMP, recorded)
    assert mariadb_gtid_statements("0-4881-5")[0] == "SET @slave_connect_state='0-4881-5'"


def test_a_position_beyond_32_bits_is_refused_instead_of_cut() -> None:
    with pytest.raises(SourceError, match="4 GiB"):
        dump_request(DumpStart(BinlogPosition("b.000001", 1 << 32)), True, MYSQL)


def test_a_gtid_position_is_no_way_to_smuggle_sql() -> None:
    with pytest.raises(SourceError, match="Malformed"):
        mariadb_gtid_statements("0-1-1'; DROP TABLE t; --")


def test_registration_as_recorded() -> None:
    assert register_request(MYSQL)[:4] == bytes.fromhex("1c130000") and len(register_request(MYSQL)) == 17


@pytest.mark.parametrize("is_mariadb", [True, False])
def test_a_heartbeat_period_of_0_is_not_asked_for(is_mariadb: bool) -> None:
    assert any("1500000000" in text for text in session_statements(is_mariadb, 1.5, MYSQL))
    assert not any("heartbeat" in text for text in session_statements(is_mariadb, 0, MYSQL))
