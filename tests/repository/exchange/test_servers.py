"""Real files of MariaDB 10.5, 10.11 and 11.8 in every state, and MySQL's rows, through import and export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.errors import UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.exchange.servers import Server, export_info, import_info, without_relay_logs
from rplctl.repository.lines import END_MARKER
from tests.repository.conftest import MASTER, RELAY

DATA = Path(__file__).parents[2] / "data" / "infofiles"
SOME_RELAY = b"5\n./relay-bin.000002\n1354\nmysql-bin.000001\n1055\n0\n"
SOME_MASTER = (DATA / "mariadb10.11/02-running/master.info").read_bytes()


@pytest.mark.parametrize("path", sorted(DATA.rglob("master*.info")), ids=lambda p: str(p.relative_to(DATA)))
def test_a_real_master_info_of_mariadb_comes_back_byte_for_byte(path: Path) -> None:
    real = path.read_bytes()
    written = real[: real.index(b"END_MARKER\n") + len(END_MARKER) + 1]  # behind it: a longer predecessor's tail
    master, relay = import_info(real, SOME_RELAY, "")
    assert export_info(master, relay, Server.MARIADB).master_info == written


@pytest.mark.parametrize("path", sorted(DATA.rglob("relay-log*.info")), ids=lambda p: str(p.relative_to(DATA)))
def test_a_real_relay_log_info_of_mariadb_comes_back_byte_for_byte(path: Path) -> None:
    real = path.read_bytes()
    written = b"".join(line + b"\n" for line in real.split(b"\n")[:6])
    master, relay = import_info(SOME_MASTER, real, "")
    assert export_info(master, relay, Server.MARIADB).relay_log_info == written


def test_the_rows_of_mysql_9_written_as_files_come_back_byte_for_byte() -> None:
    """The row of slave_master_info holds the values of the file's lines in their order; NULL is an empty line."""
    master_row, relay_row = (
        line.split("\t") for line in (DATA / "mysql97-repositories.tsv").read_text().splitlines()[:2]
    )
    words = {"NULL": "", "STREAM": "1", "OFF": "1"}
    master_lines = [words.get(value, value) for value in master_row]
    master_lines[15] = "30.000"
    master_file = ("\n".join(master_lines) + "\n").encode()
    relay_file = ("\n".join(words.get(value, value) for value in relay_row) + "\n").encode()
    assert (master_file.count(b"\n"), relay_file.count(b"\n")) == (33, 15)
    master, relay = import_info(master_file, relay_file, "")
    files = export_info(master, relay, Server.MYSQL_8_0)
    assert (files.master_info, files.relay_log_info, files.lost) == (master_file, relay_file, ())
    assert (master.host, master.retry_count, relay.exec_position.log_pos) == ("127.0.0.1", 10, 1559)


def test_mysql_5_6_and_5_7_end_after_their_own_lines() -> None:
    for server, master_lines, relay_lines in ((Server.MYSQL_5_6, 23, 8), (Server.MYSQL_5_7, 25, 9)):
        files = export_info(MASTER, RELAY, server)
        assert files.master_info.count(b"\n") == int(files.master_info.split(b"\n")[0]) == master_lines
        assert (files.relay_log_info.count(b"\n"), files.relay_log_info.split(b"\n")[0]) == (relay_lines, b"7")


@pytest.mark.parametrize("server", list(Server))
def test_what_a_form_can_hold_survives_export_and_import(server: Server) -> None:
    plain = MasterInfo(
        master_log_name="binlog.000012",
        master_log_pos=(1 << 40) + 7,
        host="db1",
        user_name="repl",
        user_password="p w",
        heartbeat=2.5,
        ssl_ca="/etc/ssl/ca.pem",
        enabled_ssl=True,
        ignored_server_ids=(3, 7),
        channel_name="east",
    )
    files = export_info(plain, replace(RELAY, gtid_executed="", channel_name="east"), server)
    master, relay = import_info(files.master_info, files.relay_log_info, "east")
    assert master == plain
    assert relay.relay_log_position == RELAY.relay_log_position
    assert relay.exec_position == RELAY.exec_position
    assert relay.sql_delay == RELAY.sql_delay


def test_what_a_form_has_no_line_for_is_named() -> None:
    master = replace(MASTER, retry_count=5, bind="eth1")
    assert export_info(master, RELAY, Server.MARIADB).lost == (
        "master.info bind",
        "master.info retry_count",
        "master.info tls_ciphersuites",
        "relay-log.info privilege_checks_username",
        "relay-log.info require_table_primary_key_check",
    )
    assert export_info(MASTER, RELAY, Server.MYSQL_8_0).lost == ("master.info using_gtid", "master.info do_domain_ids")


def test_without_relay_logs_fetches_again_from_what_was_executed() -> None:
    master, relay = without_relay_logs(MASTER, RELAY)
    assert master.read_position == relay.exec_position == RELAY.exec_position
    assert (relay.relay_log_name, relay.relay_log_pos, master.flushed_relay_log_name) == ("", 0, "")


def test_a_damaged_file_is_named_with_its_line() -> None:
    with pytest.raises(UsageError, match=r"master\.info: line 3 \(Master_log_pos\)") as error:
        import_info(SOME_MASTER.replace(b"\n1064\n", b"\nx\n"), SOME_RELAY, "")
    assert error.value.errno == 1201
    with pytest.raises(UsageError, match=r"relay-log\.info: .*the file ends after line 3") as error:
        import_info(SOME_MASTER, b"5\n./relay-bin.000002\n1354\n", "")
    assert error.value.errno == 1872


def test_a_newline_cannot_be_exported() -> None:
    with pytest.raises(UsageError, match="newline"):
        export_info(replace(MASTER, host="a\nb"), RelayLogInfo(), Server.MYSQL_8_0)
