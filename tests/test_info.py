"""The two records: field order is line order, positions come as positions."""

from __future__ import annotations

from dataclasses import fields

from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition


def test_the_first_fields_stand_in_the_order_of_mysqls_lines() -> None:
    names = [f.name for f in fields(MasterInfo)]
    assert names[:7] == [
        "master_log_name",
        "master_log_pos",
        "host",
        "user_name",
        "user_password",
        "port",
        "connect_retry",
    ]
    assert names[31] == "gtid_only"  # line 33 of master.info, whose first line is the count
    assert [f.name for f in fields(RelayLogInfo)][:4] == [
        "relay_log_name",
        "relay_log_pos",
        "master_log_name",
        "master_log_pos",
    ]


def test_a_record_moves_to_both_positions_at_once() -> None:
    moved = RelayLogInfo(sql_delay=5).at(RelayLogPosition("r.000002", 9), BinlogPosition("b.000003", 7))
    assert (moved.relay_log_position, moved.exec_position) == (
        RelayLogPosition("r.000002", 9),
        BinlogPosition("b.000003", 7),
    )
    assert moved.sql_delay == 5


def test_a_source_is_a_server_or_a_folder() -> None:
    assert not MasterInfo().is_configured
    assert MasterInfo(host="h").is_configured
    assert MasterInfo(master_binlog_dir="/b").is_configured
    assert MasterInfo().with_read_position(BinlogPosition("b.000001", 4)).read_position == BinlogPosition("b.000001", 4)
