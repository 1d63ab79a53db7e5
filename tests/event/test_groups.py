from __future__ import annotations

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.events import build_rotate, parse_event, parse_gtid
from rplctl.event.format_description import build_format_description, parse_format_description
from rplctl.event.groups import GroupKind, GroupScan, scan_groups
from rplctl.event.header import FLAG_ARTIFICIAL, FLAG_IGNORABLE, parse_header
from rplctl.event.packets import deframe
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition
from tests.event.logs import BOUNDED, DUMPS, bounds, event, events, log, positioned, query

ALL = 1 << 40
START = BinlogPosition("bin.000001", 4)
MYSQL = next(events(log("my97-torture-mixed")))
MARIADB = next(events(log("ma1011-torture-mixed")))
DESCRIPTION = parse_format_description(MYSQL)
K = GroupKind

GTID = event(EventType.ANONYMOUS_GTID, bytes(25))
BEGIN = query("BEGIN")
COMMIT = query("COMMIT")
XID = event(EventType.XID, bytes(8))
MAP = event(EventType.TABLE_MAP, bytes(30))
ROWS = event(EventType.WRITE_ROWS, bytes(30))


def mariadb_gtid(flags: int, more: bytes = bytes(6)) -> bytes:
    return event(EventType.MARIADB_GTID, bytes(12) + bytes([flags]) + more)


def scanned(*parts: bytes, start: BinlogPosition = START) -> GroupScan:
    return scan_groups(positioned(parts, start.log_pos), 0, start, ALL, DESCRIPTION)


def kinds(*parts: bytes) -> list[GroupKind]:
    return [GroupKind(kind) for kind in scanned(*parts).kind.tolist()]


# What another program found for the same transaction → what we may call it.
AGREES = {
    "xid": {K.ROWS, K.ORDERED, K.STATEMENT},
    "commit": {K.ROWS, K.ORDERED, K.STATEMENT},
    "stmt": {K.QUERY, K.XA},
    "rollback": {K.ROLLED_BACK, K.STATEMENT},
    "xa_prepare": {K.XA, K.ROWS},
    "payload": {K.ROWS},
}


@pytest.mark.parametrize("case", BOUNDED)
def test_every_transaction_of_a_real_log_is_found_with_end_kind_and_gtid(case: str) -> None:
    data = log(case)
    scan = scan_groups(data, 4, START, ALL)
    assert scan.complete_end == len(data)
    assert scan.start.tolist() == [4, *scan.end[:-1].tolist()]
    found = [number for number in range(len(scan)) if scan.gtid_offset[number] >= 0]
    expected = bounds(case)
    ends = [scan.source_position(number) for number in found]
    assert ends == [BinlogPosition("bin.000001", end) for end, _, _ in expected]
    for number, (_, kind, gtid) in zip(found, expected, strict=True):
        assert GroupKind(int(scan.kind[number])) in AGREES[kind]
        at = int(scan.gtid_offset[number])
        description = scan.description_at(at)
        assert description is not None
        parsed = parse_gtid(data[at : at + parse_header(data, at).event_length], description)
        assert str(parsed) == gtid or gtid == "TAGGED"
        assert scan.timestamp[number] == parse_header(data, at).timestamp


@pytest.mark.parametrize("case", ["ma1011-crash-inuse", "my97-crash-inuse", "mariadb-compressed", "mysql-tagged"])
def test_a_log_torn_at_any_byte_ends_at_its_last_complete_group(case: str) -> None:
    data = log(case)
    ends = [4, *scan_groups(data, 4, START, ALL).end.tolist()]
    for size in range(4, len(data), 7):
        assert scan_groups(data[:size], 4, START, ALL).complete_end == max(end for end in ends if end <= size)


def test_a_scan_in_pieces_is_the_scan_of_the_whole() -> None:
    data = log("ma1011-torture-mixed")
    whole = scan_groups(data, 4, START, ALL)
    at, source, description, kinds, ends = 4, START, None, [], []
    while at < len(data):
        piece = scan_groups(data, at, source, 1000, description)
        assert len(piece) > 0
        kinds += piece.kind.tolist()
        ends += [piece.source_position(number) for number in range(len(piece))]
        at, source, description = piece.complete_end, piece.end_position, piece.description_at(at)
    assert kinds == whole.kind.tolist()
    assert ends == [whole.source_position(number) for number in range(len(whole))]


def test_a_limit_gives_at_least_one_group() -> None:
    data = log("my97-torture-mixed")
    assert len(scan_groups(data, 4, START, 1)) == 1


@pytest.mark.parametrize("case", DUMPS)
def test_positions_of_a_dump_stream_are_those_of_the_source(case: str) -> None:
    """Heartbeats carry the source's position; MariaDB 11.8 has no end_log_pos inside transactions."""
    stream = log(case)
    data = deframe(stream, len(stream), 1).events.tobytes()
    scan = scan_groups(data, 0, BinlogPosition("", 4), ALL)
    assert scan.complete_end == len(data)
    assert scan.end_position.log_name.rpartition(".")[2] in ("000002", "000003")
    assert scan.end_position.log_pos == parse_header(list(events(data, 0))[-1]).end_log_pos
    for number in range(len(scan)):
        last = list(events(data[: scan.end[number]], int(scan.start[number])))[-1]
        end_log_pos = parse_header(last).end_log_pos
        if end_log_pos and last[4] not in (EventType.ROTATE, EventType.FORMAT_DESCRIPTION):
            assert scan.source_end[number] == end_log_pos


def test_kinds_of_the_small_transactions() -> None:
    savepoint, back, insert = query("SAVEPOINT `a`"), query("ROLLBACK TO `a`"), query("INSERT INTO t VALUES (1)")
    intvar, load = event(EventType.INTVAR, bytes(9)), event(EventType.EXECUTE_LOAD_QUERY, bytes(40))
    cases: dict[GroupKind, list[tuple[bytes, ...]]] = {
        K.ROWS: [(GTID, BEGIN, MAP, ROWS, XID), (BEGIN, MAP, ROWS, COMMIT), (mariadb_gtid(0), MAP, ROWS, XID)],
        K.QUERY: [
            (GTID, query("create table t (a int)")),
            (query("DROP TABLE t"),),
            (mariadb_gtid(1), query("FLUSH TABLES")),
        ],
        K.STATEMENT: [
            (GTID, BEGIN, insert, XID),
            (mariadb_gtid(0), intvar, insert, XID),
            (intvar, insert),
            (load,),
            (GTID, BEGIN, insert, query("ROLLBACK")),
            (mariadb_gtid(0), query("DROP TABLE t"), query("ROLLBACK")),
        ],
        K.ORDERED: [(GTID, BEGIN, MAP, ROWS, savepoint, MAP, ROWS, back, XID)],
        K.ROLLED_BACK: [(GTID, BEGIN, MAP, ROWS, query("ROLLBACK"))],
        K.XA: [
            (GTID, query("XA START X'61',X'',1"), MAP, ROWS, query("XA END X'61',X'',1"), event(38, bytes(13))),
            (mariadb_gtid(64), MAP, ROWS, query("XA END X'61',X'',1"), event(38, bytes(13))),
            (GTID, query("XA COMMIT X'61',X'',1")),
            (mariadb_gtid(128), query("XA ROLLBACK X'61',X'',1")),
        ],
        K.INCIDENT: [(event(EventType.INCIDENT, bytes(3)),), (GTID, event(EventType.INCIDENT, bytes(3)))],
        K.CONTROL: [(event(EventType.HEARTBEAT),), (event(99, flags=FLAG_IGNORABLE),), (event(EventType.STOP),)],
    }
    for kind, examples in cases.items():
        for parts in examples:
            assert kinds(*parts, GTID, BEGIN, XID) == [kind, K.ROWS], (kind, parts)


def test_xa_commit_in_one_phase_is_a_commit_like_any_other() -> None:
    one_phase = event(EventType.XA_PREPARE, b"\1" + bytes(12))
    assert kinds(GTID, query("XA START X'61',X'',1"), MAP, ROWS, query("XA END X'61',X'',1"), one_phase) == [K.ROWS]


def test_words_are_compared_without_regard_to_case_and_only_as_words() -> None:
    assert kinds(GTID, query("begin"), ROWS, query("commit")) == [K.ROWS]
    assert kinds(GTID, query("BEGIN ")) == [K.QUERY]
    assert kinds(GTID, BEGIN, query("COMMITTED"), query("savepoint x"), XID) == [K.STATEMENT]
    assert kinds(GTID, BEGIN, query("release savepoint x"), XID) == [K.ORDERED]


def test_start_alter_of_mariadb_moves_positions_and_commit_alter_is_the_ddl() -> None:
    data = log("mariadb-compressed")
    scan = scan_groups(data, 4, START, ALL)
    rows = zip(scan.end.tolist(), scan.kind.tolist(), scan.gtid_offset.tolist(), strict=True)
    by_end = {end: (GroupKind(kind), gtid_offset >= 0) for end, kind, gtid_offset in rows}
    assert by_end[2567] == (K.CONTROL, True)  # START ALTER
    assert by_end[2738] == (K.QUERY, True)  # COMMIT ALTER
    assert kinds(mariadb_gtid(1, b"\x08" + bytes(8)), query("ALTER TABLE t ADD a INT")) == [K.CONTROL]  # ROLLBACK ALTER
    assert kinds(mariadb_gtid(3, bytes(8) + b"\x02"), query("ALTER TABLE t ADD a INT")) == [K.CONTROL]


def test_a_compressed_transaction_is_marked_for_a_look_inside() -> None:
    scan = scan_groups(log("my97-torture-compress-l1"), 4, START, ALL)
    assert scan.has_payload.sum() == 28
    assert set(scan.kind[scan.has_payload].tolist()) == {K.ROWS}


def test_an_unknown_event_ends_the_scan_as_a_group_of_its_own_kind() -> None:
    scan = scanned(GTID, BEGIN, ROWS, XID, event(99), GTID, BEGIN, XID)
    assert scan.kind.tolist() == [K.ROWS, K.UNKNOWN]
    inside = scanned(GTID, BEGIN, ROWS, event(172), ROWS, XID)
    assert inside.kind.tolist() == [K.UNKNOWN]
    assert kinds(GTID, BEGIN, event(99, flags=FLAG_IGNORABLE), ROWS, XID) == [K.ROWS]


@pytest.mark.parametrize("cut", [MYSQL, event(EventType.STOP), build_rotate(1, "bin.000002", 4)])
def test_a_transaction_that_the_source_cut_short_is_passed_over(cut: bytes) -> None:
    scan = scanned(GTID, BEGIN, MAP, ROWS, cut, GTID, BEGIN, XID)
    assert scan.kind.tolist() == [K.CONTROL, K.CONTROL, K.ROWS]
    assert scan.gtid_offset[0] == -1
    assert scan.row_events.tolist() == [0, 0, 0]
    assert scan.end[0] == len(GTID + BEGIN + MAP + ROWS)


def test_joining_the_same_log_inside_a_transaction_stops() -> None:
    with pytest.raises(BinlogFormatError, match="reconnected in the middle"):
        scanned(GTID, BEGIN, build_rotate(1, START.log_name, 4))


def test_a_transaction_inside_another_stops() -> None:
    for parts in ((GTID, BEGIN, GTID), (GTID, GTID), (GTID, BEGIN, BEGIN), (mariadb_gtid(0), mariadb_gtid(0))):
        with pytest.raises(BinlogFormatError, match="inside another"):
            scanned(*parts)


def test_positions_pass_four_gibibytes() -> None:
    start = BinlogPosition("bin.000001", (1 << 32) - 150)
    scan = scanned(GTID, BEGIN, ROWS, XID, GTID, BEGIN, XID, start=start)
    assert scan.source_end.tolist()[-1] == start.log_pos + len(GTID + BEGIN + ROWS + XID + GTID + BEGIN + XID)
    assert scan.source_end[0] > 1 << 32


def test_end_positions_that_go_backwards_stop() -> None:
    data = positioned([GTID, BEGIN, XID], 5000)
    with pytest.raises(BinlogFormatError, match="backwards"):
        scan_groups(data, 0, BinlogPosition("bin.000001", 100_000), ALL, DESCRIPTION)


def test_events_without_end_position_count_by_their_length() -> None:
    data = mariadb_gtid(0) + MAP + ROWS + XID
    scan = scan_groups(data, 0, START, ALL, DESCRIPTION)
    assert scan.end_position.log_pos == 4 + len(data)


def test_artificial_events_and_our_own_do_not_move_the_source_position() -> None:
    source = BinlogPosition("bin.000007", 900)
    ours = build_format_description(9, 1, 1, "8.0.0-rplctl")
    again = MYSQL[:13] + bytes(4) + MYSQL[17:]
    list_event = event(EventType.GTID_LIST, bytes(4), flags=FLAG_ARTIFICIAL)
    data = ours + build_rotate(1, source.log_name, source.log_pos) + MYSQL + again + list_event
    scan = scan_groups(data, 0, BinlogPosition("x.1", 4), ALL)
    assert [scan.source_position(n) for n in range(5)] == [BinlogPosition("x.1", 4)] + [source] * 4


def test_a_real_rotate_moves_into_the_next_log() -> None:
    rotate = event(EventType.ROTATE, (4).to_bytes(8, "little") + b"bin.000002")
    scan = scanned(GTID, BEGIN, XID, rotate, MYSQL)
    assert scan.source_position(1) == BinlogPosition("bin.000002", 4)
    assert scan.log_names == ("bin.000001", "bin.000002")


def test_a_description_switches_the_checksum_for_what_follows() -> None:
    off = build_format_description(1, 0, 0, "8.0.0-x", relay_log=False)
    begin = BEGIN[:9] + (len(BEGIN) - 4).to_bytes(4, "little") + BEGIN[13:-4]
    gtid, xid = (event(code, bytes(25), checksum=False) for code in (EventType.ANONYMOUS_GTID, EventType.XID))
    plain = gtid + begin + xid
    scan = scan_groups(MYSQL + off + plain, 0, START, ALL)
    assert scan.kind.tolist() == [K.CONTROL, K.CONTROL, K.ROWS]
    assert [description.checksum_algorithm for _, description in scan.descriptions] == [1, 0]


def test_an_encrypted_log_stops() -> None:
    with pytest.raises(BinlogFormatError, match="encrypted binlog"):
        scan_groups(log("mariadb-encrypted"), 4, START, ALL)


def test_tables_grow_with_the_number_of_groups() -> None:
    data = positioned([event(EventType.HEARTBEAT)] * 5000)
    assert len(scan_groups(data, 0, START, ALL, DESCRIPTION)) == 5000
    rotates = b"".join(build_rotate(1, f"bin.{number:06}", 4) for number in range(2, 300))
    assert scan_groups(rotates, 0, START, ALL, DESCRIPTION).end_position.log_name == "bin.000299"


@pytest.mark.parametrize("position", [0, 3, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_rotate_to_where_no_event_can_begin_is_refused(position: int) -> None:
    description = build_format_description(1, 0, 1, "9.1.0", relay_log=False)
    rotate = build_rotate(1, "bin.000002", position)
    with pytest.raises(BinlogFormatError, match="at which no event can begin"):
        parse_event(rotate, parse_format_description(description))
    if position > 3:
        with pytest.raises(BinlogFormatError):
            scan_groups(description + rotate, 0, START, 1 << 20)
