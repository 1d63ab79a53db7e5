"""Every form of master.info and relay-log.info that a server wrote, and none that a crash or a hand may leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from rplctl.info import MasterInfo, PreparedPosition, RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository.fields import FieldError
from rplctl.repository.lines import (
    format_master_info,
    format_relay_log_info,
    parse_master_info,
    parse_relay_log_info,
)
from tests.repository.conftest import MASTER, RELAY

DATA = Path(__file__).parents[1] / "data" / "infofiles"
EAST = "mariadb10.11/07-multisource"
TEXT = st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=30)


def lines(*values: str) -> bytes:
    return "".join(f"{value}\n" for value in values).encode()


def test_our_files_begin_with_the_33_and_14_lines_of_mysql_8() -> None:
    master = format_master_info(MASTER).decode().split("\n")
    assert master[0] == "33"
    assert master[1:8] == ["binlog.000003", "4294968466", "db1.example.org", "repl", "encrypted:Zm9v", "3306", "60"]
    assert master[15:18] == ["4294967.125", "", "2 3 7"]
    assert master[33:36] == ["using_gtid=2", "do_domain_ids=2 1 3", "ignore_domain_ids=0"]
    assert master[-2:] == ["END_MARKER", ""]
    relay = format_relay_log_info(RELAY).decode().split("\n")
    assert relay[:6] == ["14", "./relay-bin.000002", "2763", "binlog.000001", "2552", "30"]
    assert relay[12:14] == ["4", "1"], "GENERATE and OFF are numbers in a file"


def test_a_mariadb_server_reads_our_file_as_its_own() -> None:
    """It reads 22 lines, passes over 11, then keys until END_MARKER; ours it does not know and passes over."""
    written = format_master_info(replace(MASTER, retry_count=86400)).split(b"\n")
    as_mariadb = b"\n".join([*written[:22], *[b""] * 11, *written[33:]])
    info = parse_master_info(as_mariadb)
    assert (info.host, info.using_gtid, info.do_domain_ids) == (MASTER.host, 2, (1, 3))


def test_mariadb_multi_source_file() -> None:
    info = parse_master_info((DATA / EAST / "master-we@0020st@002f1.info").read_bytes())
    assert (info.host, info.port, info.user_password) == ("192.0.2.10", 3399, "p w")
    assert (info.enabled_ssl, info.ssl_ca, info.ssl_key) == (True, "/etc/ssl/ca.pem", "/etc/ssl/k.pem")
    assert (info.heartbeat, info.ignored_server_ids) == (2.5, (7, 8, 9))
    assert info.retry_count == 86400, "MariaDB's 0 is its default, not 'for ever'"
    relay = parse_relay_log_info((DATA / EAST / "relay-log-we@0020st@002f1.info").read_bytes())
    assert (relay.relay_log_name, relay.sql_delay) == ("relay-bin-we@0020st@002f1.000001", 30)


def test_mariadb_domain_ids() -> None:
    info = parse_master_info((DATA / EAST / "master-dom.info").read_bytes())
    assert (info.using_gtid, info.do_domain_ids, info.ignore_domain_ids) == (1, (1, 3), ())


def test_the_tail_of_a_longer_file_says_nothing() -> None:
    tail = b"rplctl_master_id=99\nEND_MARKER\n"
    assert parse_master_info((DATA / EAST / "master-dom.info").read_bytes() + tail).master_id == 0
    assert parse_relay_log_info(lines("5", "./r.000001", "4", "b.000001", "4", "0") + tail).master_id == 0
    mysql = format_master_info(MASTER).split(b"\n")[:33]
    overwritten = b"\n".join([*mysql, b"id=2", b"rplctl_master_id=99", b"END_MARKER", b""])
    assert parse_master_info(overwritten).master_id == 0, "a server wrote over our file"


def test_our_section_counts_only_up_to_its_marker() -> None:
    whole = format_relay_log_info(RELAY)
    assert parse_relay_log_info(whole + b"rplctl_gtid_executed=other\n").gtid_executed == RELAY.gtid_executed
    with pytest.raises(FieldError, match="to END_MARKER is incomplete"):
        parse_relay_log_info(whole.replace(b"END_MARKER\n", b""))


def test_files_of_mysql_before_4_1_1() -> None:
    master = parse_master_info(lines("binlog.000007", "154", "db1", "repl", "secret", "3307", "30"))
    assert (master.master_log_name, master.host, master.port, master.connect_retry) == (
        "binlog.000007",
        "db1",
        3307,
        30,
    )
    relay = parse_relay_log_info(lines("./relay-bin.000002", "99", "binlog.000007", "154"))
    assert (relay.relay_log_pos, relay.master_log_pos) == (99, 154)


def test_mysql_5_7_writes_a_ninth_line_behind_a_count_of_seven() -> None:
    relay = parse_relay_log_info(lines("7", "./r.000001", "4", "b.000001", "154", "5", "2", "1", "east"))
    assert (relay.sql_delay, relay.number_of_workers, relay.id, relay.channel_name) == (5, 2, 1, "")


def test_mariadb_12_counts_six_and_leaves_the_sixth_empty() -> None:
    relay = parse_relay_log_info(lines("6", "./r.000001", "4", "b.000001", "154", "5", ""))
    assert (relay.sql_delay, relay.number_of_workers) == (5, 0)


def test_mariadb_12_keys_a_key_without_a_value_means_default() -> None:
    fixed = (DATA / "mariadb10.11/02-running/master.info").read_bytes().split(b"\n")[:22]
    keys = [b"heartbeat_period", b"retry_count=7", b"ssl=1", b"connect_retry", b"unknown=1", b"ssl=0", b"END_MARKER"]
    info = parse_master_info(b"\n".join([*fixed, *[b""] * 12, *keys, b""]))
    assert (info.heartbeat, info.retry_count, info.enabled_ssl, info.connect_retry) == (30.0, 7, True, 60)


def test_a_file_of_a_newer_mysql_with_more_lines_is_read_by_its_known_ones() -> None:
    newer = format_master_info(MASTER).split(b"\n")[1:33]
    assert parse_master_info(b"\n".join([b"35", *newer, b"x", b"y", b""])).host == MASTER.host


def test_an_absolute_relay_log_path_is_cut_to_its_base_name() -> None:
    relay = parse_relay_log_info(lines("/var/lib/mysql/relay-bin.000002", "99", "binlog.000007", "154"))
    assert relay.relay_log_name == "relay-bin.000002"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d[:40], "the file ends inside line 4"),
        (lambda d: d[: d.index(b"repl")], "the file ends after line 4"),
        (lambda d: d[: d.index(b"using_gtid")] + b"using_gtid=2\n", "to END_MARKER is incomplete"),
        (lambda d: d.replace(b"END_MARKER\n", b""), "to END_MARKER is incomplete"),
        (lambda d: d.removeprefix(b"33\n"), "line 1: 'binlog.000003' is not the count"),
        (lambda d: d.replace(b"db1", b"d\0\0"), "line 4 holds a NUL"),
        (lambda d: d.replace(b"4294968466", b"4 294"), "line 3 .Master_log_pos.: '4 294' is not a number"),
        (lambda d: d.replace(b"4294968466", b"-1"), "line 3 .Master_log_pos.: -1 is not within"),
        (lambda d: d.replace(b"4294968466", "٤".encode()), "line 3"),
        (lambda d: d.replace(b"binlog.000003", b"../binlog.000003"), "line 2 .Master_log_name.: '../binlog"),
        (lambda d: d.replace(b"4294967.125", b"nan"), "line 16 .Heartbeat.: 'nan' is not a number of seconds"),
        (lambda d: d.replace(b"2 3 7", b"3 3 7"), "line 18 .Ignored_server_ids."),
        (lambda d: d.replace(b"db1", b"db\xff"), "is not UTF-8"),
        (lambda d: d.replace(b"using_gtid=2", b"using_gtid=5"), "key using_gtid: 5 is not within 0 to 2"),
        (lambda d: d.replace(b"33\n", b"99999999999\n", 1), "the file ends after line"),
    ],
)
def test_damage_is_named_with_its_line(damage: object, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        parse_master_info(damage(format_master_info(MASTER)))  # type: ignore[operator]


def test_a_file_cut_anywhere_is_damaged_or_reads_as_it_was() -> None:
    """But where a server's file ends, behind the counted lines: there file.py knows more."""
    whole = format_master_info(MASTER)
    counted = len(b"\n".join(whole.split(b"\n")[:33])) + 1
    for length in range(len(whole)):
        try:
            info = parse_master_info(whole[:length])
        except FieldError:
            assert length not in (counted, len(whole) - 1)
            continue
        assert (length, info) in ((counted, without_keys(MASTER)), (len(whole) - 1, MASTER))


def without_keys(info: MasterInfo) -> MasterInfo:
    ours = {"master_id": 0, "master_server_id": 0, "flushed_relay_log_name": "", "flushed_relay_log_pos": 0}
    return replace(info, using_gtid=0, do_domain_ids=(), tls_ciphersuites=None, **ours)  # type: ignore[arg-type]


@given(st.binary(max_size=400))
@example(b"14\n" + b"\n" * 20)
@example(b"33\n" + b"0\n" * 40)
def test_no_bytes_raise_anything_but_a_field_error(data: bytes) -> None:
    for parse in (parse_master_info, parse_relay_log_info):
        try:
            parse(data)
        except FieldError:
            pass


@given(host=TEXT, password=TEXT, tls=st.none() | TEXT, position=st.integers(0, (1 << 63) - 1), flag=st.booleans())
def test_any_values_come_back(host: str, password: str, tls: str | None, position: int, flag: bool) -> None:
    master = replace(
        MASTER, host=host, user_password=password, tls_ciphersuites=tls, master_log_pos=position, gtid_only=flag
    )
    assert parse_master_info(format_master_info(master)) == master
    relay = RelayLogInfo(master_log_pos=position, privilege_checks_username=tls, gtid_executed=host)
    assert parse_relay_log_info(format_relay_log_info(relay)) == relay


PREPARED = replace(
    RELAY,
    prepared=PreparedPosition(
        xid="rplctl:00:11:22",
        relay=RelayLogPosition("relay bin%.000002", 456),
        source=BinlogPosition("bin log.000003", 1 << 40),
        gtid_executed="0-1-7,\n1-2-3",
    ),
)


def test_a_prepared_position_is_a_line_behind_the_end_marker() -> None:
    """WL#3970: prepare adds the line, everything before it stays what MySQL reads; commit takes it away."""
    data = format_relay_log_info(PREPARED)
    assert data.startswith(format_relay_log_info(RELAY))
    line = data.removeprefix(format_relay_log_info(RELAY)).decode()
    assert line.startswith("prepared: pos456 Xidrplctl:00:11:22 ") and line.count("\n") == 1
    assert parse_relay_log_info(data) == PREPARED
    assert parse_relay_log_info(data.replace(line.encode(), b"")) == RELAY


def test_where_the_applier_left_it_is_a_line_before_the_end_marker_that_nobody_else_reads() -> None:
    left = replace(RELAY, left_at="relay bin.000001:4 b.000001:170")
    data = format_relay_log_info(left)
    before, line, after = data.partition(b"rplctl_left_at=relay bin.000001:4 b.000001:170\n")
    assert line and before + after == format_relay_log_info(RELAY)
    assert parse_relay_log_info(data) == left
    stale_tail = format_relay_log_info(RELAY) + line
    assert parse_relay_log_info(stale_tail) == RELAY


@pytest.mark.parametrize("line", ["prepared: pos1", "prepared: pos1 Xidx relay=./r.000001 source=nowhere gtid="])
def test_a_prepared_line_that_cannot_be_read_is_an_error_not_nothing(line: str) -> None:
    with pytest.raises(FieldError, match="prepared"):
        parse_relay_log_info(format_relay_log_info(RELAY) + f"{line}\n".encode())
