from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.events import (
    AnnotateRows,
    BinlogCheckpoint,
    GtidList,
    HeartbeatEvent,
    Ignorable,
    IncidentEvent,
    Intvar,
    LoadBlock,
    Rand,
    Rotate,
    Stop,
    UserVar,
    XaPrepare,
    XidEvent,
    build_rotate,
    parse_event,
)
from rplctl.event.format_description import FormatDescription, build_format_description, parse_format_description
from rplctl.event.gtid_event import MariadbGtid, MariadbGtidExtra, MariadbGtidFlag, MysqlGtid, Xid, parse_gtid
from rplctl.event.header import BINLOG_MAGIC, FLAG_ARTIFICIAL, FLAG_IGNORABLE, parse_header
from rplctl.event.query import ExecuteLoadQuery, parse_execute_load, parse_query
from rplctl.event.types import EventType
from tests.event.logs import BOUNDED, bounds, described, event, events, log, query

MYSQL = parse_format_description(next(events(log("my97-torture-mixed"))))
MARIADB = parse_format_description(next(events(log("ma1011-torture-mixed"))))
ROWS = {23, 24, 25, 30, 31, 32, 39, 40, *range(166, 172)}


@pytest.mark.parametrize("case", [*BOUNDED, "mariadb-compressed", "mysql-tagged"])
def test_every_event_of_a_real_log_is_read(case: str) -> None:
    for raw, description in described(log(case)):
        if raw[4] not in ROWS:
            assert parse_event(raw, description) is not None


def test_mysql_gtids_carry_times_lengths_and_versions() -> None:
    data = log("my97-torture-mixed")
    gtids = [parse_gtid(raw, d) for raw, d in described(data) if raw[4] == EventType.GTID]
    ends = [end for end, _, _ in bounds("my97-torture-mixed")]
    first = gtids[0]
    assert isinstance(first, MysqlGtid)
    assert first.immediate_server_version == first.original_server_version == 90704
    assert first.immediate_commit_time == first.original_commit_time
    assert abs(first.immediate_commit_time / 1e6 - parse_header(data, 158).timestamp) < 2
    lengths = [gtid.transaction_length for gtid in gtids if isinstance(gtid, MysqlGtid)]
    assert lengths[1:] == [end - start for start, end in zip(ends, ends[1:], strict=False)]


def test_tagged_gtids_carry_the_same() -> None:
    raws = [(raw, d) for raw, d in described(log("mysql-tagged")) if raw[4] == EventType.GTID_TAGGED]
    gtids = [parse_gtid(raw, d) for raw, d in raws]
    uuid = "ec97b2de-e55d-11f1-897b-02fc00000001"
    assert [str(gtid) for gtid in gtids] == [f"{uuid}:tag_a:1", f"{uuid}:tag_a:2", f"{uuid}:zz:1"]
    first = gtids[0]
    assert isinstance(first, MysqlGtid)
    assert (first.immediate_server_version, first.original_server_version) == (90704, 90704)
    assert first.immediate_commit_time == first.original_commit_time > 1_700_000_000_000_000
    assert first.transaction_length == 339 - 158
    assert (first.last_committed, first.sequence_number) == (0, 1)


def test_an_anonymous_gtid_says_so() -> None:
    gtids = [parse_gtid(raw, d) for raw, d in described(log("my97-torture-nogtid")) if raw[4] == 34]
    assert {str(gtid) for gtid in gtids} == {"ANONYMOUS"}


def test_gtids_of_mysql_56_and_57_are_shorter() -> None:
    old = bytes(17) + (5).to_bytes(8, "little")
    assert parse_gtid(event(33, old), MYSQL) == MysqlGtid(server_uuid="00000000-0000-0000-0000-000000000000", number=5)
    clock = old + b"\2" + (3).to_bytes(8, "little") + (4).to_bytes(8, "little")
    parsed = parse_gtid(event(33, clock), MYSQL)
    assert isinstance(parsed, MysqlGtid)
    assert (parsed.last_committed, parsed.sequence_number, parsed.transaction_length) == (3, 4, 0)


def test_mariadb_gtids_carry_xa_and_alter() -> None:
    gtids = [parse_gtid(raw, d) for raw, d in described(log("mariadb-compressed")) if raw[4] == 162]
    by_number = {gtid.sequence: gtid for gtid in gtids if isinstance(gtid, MariadbGtid)}
    assert str(by_number[6]) == "0-4911-6"
    assert by_number[6].extra == MariadbGtidExtra.START_ALTER
    assert by_number[7].extra == MariadbGtidExtra.COMMIT_ALTER
    assert by_number[7].alter_sequence == 6
    assert by_number[16].flags & MariadbGtidFlag.PREPARED_XA
    assert by_number[17].flags & MariadbGtidFlag.COMPLETED_XA
    assert by_number[16].xid == by_number[17].xid == Xid(format_id=1, gtrid=b"longenoughxid", bqual=b"")


def test_a_query_carries_its_session() -> None:
    raw = next(raw for raw, _ in described(log("my97-torture-mixed")) if raw[4] == 2 and b"CREATE TABLE nopk" in raw)
    parsed = parse_query(raw, MYSQL)
    assert parsed.sql == "CREATE TABLE nopk (a INT, b VARCHAR(20))"
    assert (parsed.database, parsed.error_code, parsed.uses_temporary_tables) == ("tt_keys", 0, False)
    context = parsed.context
    assert (context.client_collation, context.connection_collation, context.server_collation) == (255, 255, 255)
    assert (context.catalog, context.flags2, context.sql_mode) == ("std", 0, 1168113696)
    assert (context.updated_databases, context.sql_require_primary_key) == (("tt_keys",), False)


def test_mysql_97_logs_cascade_triggers_with_statements() -> None:
    queries = [parse_query(raw, d) for raw, d in described(log("my97-torture-mixed")) if raw[4] == 2]
    assert {q.context.enable_cascade_triggers for q in queries} == {None, False}


def test_a_compressed_query_is_the_statement() -> None:
    queries = [parse_query(raw, d) for raw, d in described(log("mariadb-compressed")) if raw[4] == 165]
    assert "CREATE TABLE my (a INT) ENGINE=MyISAM" in [q.sql for q in queries]
    alters = [q.context.gtid_extra for q in queries if q.sql.startswith("ALTER")]
    assert alters == [MariadbGtidExtra.START_ALTER, MariadbGtidExtra.COMMIT_ALTER]


def status_query(status: bytes, sql: bytes = b"x") -> bytes:
    return event(2, bytes(8) + b"\1" + bytes(2) + len(status).to_bytes(2, "little") + status + b"d\0" + sql)


def test_status_variables_that_are_rare_are_read() -> None:
    parts = (
        b"\x02\x03std\0",
        b"\x03\x02\0\x05\0",
        b"\x05\x06+02:00",
        b"\x07\x09\0",
        b"\x08\x08\0",
        b"\x09" + bytes(8),
        b"\x0a" + bytes(4),
        b"\x0b\x04root\x09localhost",
        b"\x0c\x02a\0b\0",
        b"\x0d\x40\x42\x0f",
        b"\x10\1",
        b"\x11\x07" + bytes(7),
        b"\x13\1",
        b"\x14\1",
        b"\x82\x04\x09" + bytes(7),
        b"\x83\x01\x2d\0\xe0\0",
    )
    status = b"".join(parts)
    context = parse_query(status_query(status), MYSQL).context
    assert (context.catalog, context.auto_increment, context.time_zone) == ("std", (2, 5), "+02:00")
    assert (context.lc_time_names, context.database_collation, context.invoker) == (9, 8, ("root", "localhost"))
    assert (context.updated_databases, context.microseconds, context.ddl_xid) == (("a", "b"), 1_000_000, 7)
    assert (context.explicit_defaults_for_timestamp, context.default_table_encryption) == (True, True)
    assert (context.alter_sequence, context.character_set_collations) == (9, ((45, 224),))
    assert parse_query(status_query(b"\x0c\xfe"), MYSQL).context.updated_databases is None


def test_an_unknown_status_variable_stops() -> None:
    with pytest.raises(BinlogFormatError, match="status variable 77"):
        parse_query(status_query(b"\x4d\0"), MYSQL)


def test_a_statement_is_text_in_its_clients_charset() -> None:
    status = b"\x04\x08\0\x08\0\x08\0"
    assert parse_query(status_query(status, b"SELECT '\xe9'"), MYSQL).sql == "SELECT 'é'"
    with pytest.raises(BinlogFormatError):
        _ = parse_query(status_query(b"\x04\x2d\0\x2d\0\x2d\0", b"SELECT '\xe9'"), MYSQL).sql


def test_load_data_names_its_file_within_the_statement() -> None:
    sql = b"LOAD DATA INFILE 'f' INTO TABLE t"
    place = (3).to_bytes(4, "little") + (17).to_bytes(4, "little") + (20).to_bytes(4, "little") + b"\1"
    head = bytes(8) + b"\1" + bytes(4) + place + b"d\0"
    parsed = parse_execute_load(event(18, head + sql), MYSQL)
    assert isinstance(parsed, ExecuteLoadQuery)
    assert parsed.query.sql_bytes[parsed.name_start : parsed.name_end] == b"'f'"
    assert (parsed.file_id, parsed.duplicate_handling) == (3, 1)
    with pytest.raises(BinlogFormatError, match="file name"):
        parse_execute_load(event(18, head[:21] + b"\xff" + head[22:] + sql), MYSQL)
    with pytest.raises(BinlogFormatError, match="file name"):
        parse_execute_load(query("x"), MYSQL)


SMALL_EVENTS = [
    (event(16, (7).to_bytes(8, "little")), XidEvent(7)),
    (event(38, b"\1\1\0\0\0\2\0\0\0\1\0\0\0abc"), XaPrepare(Xid(format_id=1, gtrid=b"ab", bqual=b"c"), one_phase=True)),
    (event(161, b"\5\0\0\0b.001xx"), BinlogCheckpoint("b.001")),
    (event(160, b"SELECT 1"), AnnotateRows(b"SELECT 1")),
    (event(29, b"\x08SELECT 1"), AnnotateRows(b"SELECT 1")),
    (event(27, b"b.001", end_log_pos=99), HeartbeatEvent("b.001", 99)),
    (event(41, b"\1\5b.001\2\x09\xfe\0\0\0\0\1\0\0\0\0"), HeartbeatEvent("b.001", 1 << 32)),
    (event(26, b"\1\0\4LOST"), IncidentEvent(1, "LOST")),
    (event(26, b"\1\0"), IncidentEvent(1, "")),
    (event(3), Stop()),
    (event(5, b"\2" + (9).to_bytes(8, "little")), Intvar(2, 9)),
    (event(13, (1).to_bytes(8, "little") + (2).to_bytes(8, "little")), Rand(1, 2)),
    (event(14, b"\1\0\0\0v\1"), UserVar(name="v", kind=0, collation=63, value=None, unsigned=False)),
    (
        event(14, b"\1\0\0\0v\0\2\x08\0\0\0\2\0\0\0ab\1"),
        UserVar(name="v", kind=2, collation=8, value=b"ab", unsigned=True),
    ),
    (event(17, b"\3\0\0\0data"), LoadBlock(3, b"data")),
    (event(9, b"\3\0\0\0more"), LoadBlock(3, b"more")),
    (event(11, b"\3\0\0\0"), LoadBlock(3, b"")),
    (event(37, b"view"), Ignorable(37)),
    (event(200, b"x", flags=FLAG_IGNORABLE), Ignorable(200)),
    (event(163, b"\1\0\0\x10\1\0\0\0\2\0\0\0\3" + bytes(7)), GtidList(((1, 2, 3),), 1)),
]


@pytest.mark.parametrize(("raw", "expected"), SMALL_EVENTS, ids=lambda value: type(value).__name__)
def test_a_small_event_is_its_value(raw: bytes, expected: object) -> None:
    assert parse_event(raw, MYSQL) == expected


@pytest.mark.parametrize(
    "raw", [raw for raw, _ in SMALL_EVENTS if raw[4] not in (3, 9, 17, 26, 27, 29, 37, 41, 160, 200)]
)
def test_a_small_event_that_is_cut_short_stops(raw: bytes) -> None:
    short = event(raw[4], raw[19:-4][: 3 if raw[4] != 161 else 6])
    with pytest.raises(BinlogFormatError):
        parse_event(short, MYSQL)


@pytest.mark.parametrize(
    "raw",
    [
        query(""),
        event(EventType.ANNOTATE_ROWS),
        event(EventType.ROWS_QUERY, b"\0"),
        event(EventType.MARIADB_GTID, bytes(8) + bytes(4) + b"\x08"),
    ],
)
def test_what_the_vendors_tools_reject_stops(raw: bytes) -> None:
    """A statement that is not there, a GTID without its padding."""
    with pytest.raises(BinlogFormatError):
        parse_event(raw, MARIADB)


@pytest.mark.parametrize("type_code", [0, 1, 6, 7, 20, 99, 172, 255, EventType.WRITE_ROWS])
def test_an_event_that_nobody_defined_or_expects_stops_with_its_type(type_code: int) -> None:
    with pytest.raises(BinlogFormatError, match=f"event type {type_code} "):
        parse_event(event(type_code, bytes(40)), MYSQL)


def test_start_encryption_stops_with_a_way_out() -> None:
    with pytest.raises(BinlogFormatError, match="encrypted binlog") as caught:
        parse_event(event(EventType.START_ENCRYPTION, bytes(17)), MARIADB)
    assert caught.value.hint


def test_gtid_lists_of_mariadb_give_the_state() -> None:
    lists = [parse_event(raw, d) for raw, d in described(log("ma1011-crash-inuse-next")) if raw[4] == 163]
    assert isinstance(lists[0], GtidList)
    last = {gtid.split("-")[0]: gtid for _, _, gtid in bounds("ma1011-crash-inuse")}
    assert str(lists[0].state) == ",".join(last[domain] for domain in sorted(last))


@pytest.mark.parametrize("algorithm", [0, 1])
def test_a_rotate_that_we_build_is_read_back(algorithm: int) -> None:
    raw = build_rotate(5, "bin.000002", 1 << 33, algorithm)
    description: FormatDescription = replace(MYSQL, checksum_algorithm=algorithm)
    assert parse_event(raw, description) == Rotate("bin.000002", 1 << 33)
    header = parse_header(raw)
    assert (header.timestamp, header.end_log_pos, header.flags) == (0, 0, FLAG_ARTIFICIAL)


def test_a_rotate_without_a_name_stops() -> None:
    with pytest.raises(BinlogFormatError, match="without a log name"):
        parse_event(event(4, bytes(8)), MYSQL)


def test_mariadb_binlog_reads_a_relay_log_of_our_events(tmp_path: Path) -> None:
    tool = shutil.which("mariadb-binlog")
    if tool is None:
        pytest.skip("mariadb-binlog is not installed (package mariadb-client)")
    path = tmp_path / "relay-bin.000001"
    source = log("ma1011-crash-inuse")
    ours = build_format_description(9, 1_700_000_000, 1, "10.11.0-MariaDB-rplctl")
    path.write_bytes(BINLOG_MAGIC + ours + build_rotate(1, "mysql-bin.000001", 4) + source[4:])
    run = subprocess.run([tool, "--verify-binlog-checksum", path], capture_output=True, text=True, check=True)
    assert "Rotate to mysql-bin.000001  pos: 4" in run.stdout
    assert len(re.findall(r"GTID \d+-\d+-\d+", run.stdout)) == len(bounds("ma1011-crash-inuse"))
