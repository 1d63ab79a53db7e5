"""Positions of Maxwell, Debezium, Canal and Tungsten, in the forms that their own clients print."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rplctl.errors import UsageError
from rplctl.repository.exchange.tools import (
    Imported,
    import_canal,
    import_debezium,
    import_maxwell,
    import_tungsten,
)

UUID = "4a792a7a-e547-11f1-801b-02fc00000001"
MAXWELL_TSV = (
    "server_id\tbinlog_file\tbinlog_position\tgtid_set\tclient_id\theartbeat_at\tlast_heartbeat_read\n"
    "1\tmaster.000004\t5194\tNULL\tmaxwell\tNULL\t1763689400000\n"
)
MAXWELL_VERTICAL = f"""*************************** 1. row ***************************
          server_id: 1
        binlog_file: master.000004
    binlog_position: 5194
           gtid_set: {UUID}:1-9
          client_id: maxwell
"""
DEBEZIUM = {"ts_sec": 1763689400, "file": "mysql-bin.000003", "pos": 154, "server_id": 223344}
CANAL: dict[str, Any] = {
    "clientDatas": [
        {
            "clientIdentity": {"clientId": 1001, "destination": "example", "filter": ""},
            "cursor": {
                "identity": {"slaveId": -1, "sourceAddress": {"address": "db1", "port": 3307}},
                "postion": {
                    "gtid": "",
                    "included": False,
                    "journalName": "mysql-bin.000003",
                    "position": 4905,
                    "serverId": 1,
                    "timestamp": 1590000000000,
                },
            },
        }
    ],
    "destination": "example",
}
TUNGSTEN = """*************************** 1. row ***************************
          task_id: 0
            seqno: 17
           fragno: 0
        last_frag: 1
        source_id: db1
     epoch_number: 0
          eventid: mysql-bin.000004:0000000000000123;-1
  applied_latency: 0
         shard_id: app
"""


def position(imported: Imported) -> tuple[str, int]:
    assert imported.master_info.read_position == imported.relay_log_info.exec_position
    assert imported.relay_log_info.relay_log_name == ""
    assert imported.master_info.channel_name == imported.relay_log_info.channel_name == "east"
    return imported.relay_log_info.master_log_name, imported.relay_log_info.master_log_pos


def test_maxwell_row() -> None:
    imported = import_maxwell(MAXWELL_TSV, "east")
    assert position(imported) == ("master.000004", 5194)
    assert not imported.master_info.enabled_auto_position


def test_maxwell_row_with_gtids_turns_auto_position_on() -> None:
    imported = import_maxwell(MAXWELL_VERTICAL, "east")
    assert imported.relay_log_info.gtid_executed == f"{UUID}:1-9"
    assert imported.master_info.enabled_auto_position


@pytest.mark.parametrize("prefix", ["", '["my",{"server":"my"}]\t'])
def test_debezium_offset(prefix: str) -> None:
    imported = import_debezium(prefix + json.dumps(DEBEZIUM), "east")
    assert position(imported) == ("mysql-bin.000003", 154)
    assert imported.notes == ()


def test_debezium_inside_a_transaction_says_that_it_is_applied_again() -> None:
    imported = import_debezium(json.dumps({**DEBEZIUM, "event": 2, "row": 1}), "east")
    assert "applied again" in imported.notes[0]


def test_debezium_mariadb_gtids_turn_slave_pos_on() -> None:
    imported = import_debezium(json.dumps({**DEBEZIUM, "gtids": "0-1-270,1-2-9"}), "east")
    assert imported.master_info.using_gtid == 2 and not imported.master_info.enabled_auto_position
    assert imported.relay_log_info.gtid_executed == "0-1-270,1-2-9"


@pytest.mark.parametrize("snapshot", [True, "true", "INITIAL", "last"])
def test_debezium_inside_its_snapshot_is_refused(snapshot: object) -> None:
    with pytest.raises(UsageError, match="snapshot is not finished"):
        import_debezium(json.dumps({**DEBEZIUM, "snapshot": snapshot}), "east")


def test_canal_cursor_with_its_misspelt_key() -> None:
    imported = import_canal(json.dumps(CANAL), "east")
    assert position(imported) == ("mysql-bin.000003", 4905)
    assert (imported.master_info.host, imported.master_info.port) == ("db1", 3307)
    assert "begins a transaction" in imported.notes[0]


def test_canal_with_two_clients_is_not_guessed() -> None:
    with pytest.raises(UsageError, match="2 clients"):
        import_canal(json.dumps({"clientDatas": CANAL["clientDatas"] * 2}), "east")


def test_tungsten_row() -> None:
    assert position(import_tungsten(TUNGSTEN, "east")) == ("mysql-bin.000004", 123)


def test_tungsten_with_part_of_a_transaction_is_refused() -> None:
    with pytest.raises(UsageError, match="applied in part"):
        import_tungsten(TUNGSTEN.replace("last_frag: 1", "last_frag: 0"), "east")


@pytest.mark.parametrize(
    ("convert", "text"),
    [
        (import_maxwell, ""),
        (import_maxwell, MAXWELL_TSV + "2\tmaster.000004\t4\tNULL\tother\tNULL\t0\n"),
        (import_maxwell, MAXWELL_TSV.replace("master.000004", "../../etc/passwd")),
        (import_maxwell, MAXWELL_TSV.replace("5194", "-5")),
        (import_maxwell, MAXWELL_TSV.replace("5194", "3")),
        (import_debezium, "not json"),
        (import_debezium, "[1]"),
        (import_debezium, '{"file": "mysql-bin.000003"}'),
        (import_debezium, json.dumps({**DEBEZIUM, "event": "x"})),
        (import_debezium, json.dumps({**DEBEZIUM, "pos": 1 << 64})),
        (import_debezium, '{"source_lsn": "0/16B3748"}'),
        (import_canal, "{}"),
        (import_canal, json.dumps({"clientDatas": [{"cursor": {"identity": {}}}]})),
        (import_tungsten, TUNGSTEN.replace("mysql-bin.000004:0000000000000123;-1", "42")),
    ],
)
def test_what_names_no_position_is_refused(convert: Any, text: str) -> None:
    with pytest.raises(UsageError):
        convert(text, "east")
