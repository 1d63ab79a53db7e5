"""CHANGE MASTER in each server's words; that real servers take it is in tests/stories/test_move_replica.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository.exchange.servers import Server
from rplctl.repository.exchange.statement import change_master_statement

MASTER = MasterInfo(
    host="db1", user_name="repl", user_password="it's \\", bind="10.0.0.1", tls_version="TLSv1.3", get_public_key=True,
    ignored_server_ids=(3, 7), master_log_name="b.000009", master_log_pos=99,
)  # fmt: skip
RELAY = RelayLogInfo(sql_delay=30).at(RelayLogPosition("relay-bin.000001", 4), BinlogPosition("b.000003", 1170))


@pytest.mark.parametrize("server", list(Server))
def test_the_executed_position_and_what_the_server_knows(server: Server) -> None:
    text = change_master_statement(MASTER, RELAY, server)
    prefix = "SOURCE" if server is Server.MYSQL_8_0 else "MASTER"
    assert f"{prefix}_LOG_FILE='b.000003'" in text and f"{prefix}_LOG_POS=1170" in text
    assert f"{prefix}_PASSWORD='it''s \\\\'" in text and f"{prefix}_DELAY=30" in text
    assert "IGNORE_SERVER_IDS=(3, 7)" in text
    assert ("_BIND" in text, "USE_GTID" in text) == (server is not Server.MARIADB, server is Server.MARIADB)
    assert ("TLS_VERSION" in text) == (server in (Server.MYSQL_5_7, Server.MYSQL_8_0))
    assert ("GET_SOURCE_PUBLIC_KEY=1" in text) == (server is Server.MYSQL_8_0)


def test_a_channel_is_named_where_the_vendor_names_it() -> None:
    named = replace(MASTER, channel_name="east")
    assert change_master_statement(named, RELAY, Server.MARIADB).startswith("CHANGE MASTER 'east' TO")
    assert change_master_statement(named, RELAY, Server.MYSQL_8_0).rstrip().endswith("FOR CHANNEL 'east';")


def test_with_gtids_there_is_no_position_and_the_set_is_a_comment() -> None:
    master = replace(MASTER, enabled_auto_position=True)
    text = change_master_statement(master, replace(RELAY, gtid_executed="uuid:1-9"), Server.MYSQL_8_0)
    assert "SOURCE_LOG_FILE" not in text and "SOURCE_AUTO_POSITION=1" in text
    assert "-- SET GLOBAL gtid_purged='uuid:1-9';" in text
