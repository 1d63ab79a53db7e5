"""The small kernels under the group scanner: numbers at an offset, event classes, words of SQL, the source position."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rplctl.event import event_classes, query_words as words
from rplctl.event.bytes_at import u16, u24, u32
from rplctl.event.format_description import build_format_description, parse_format_description
from rplctl.event.group_kernel import BACKWARDS, BAD_LENGTH, COLUMNS, ENCRYPTED, REGISTERS, TABLE_FULL, run_groups
from rplctl.event.group_position import CHECKSUM, INEXACT, POSITION, description_checksum, move_position
from rplctl.event.header import FLAG_ARTIFICIAL, FLAG_RELAY_LOG
from rplctl.event.query_words import query_word
from rplctl.event.types import CLASS_TABLE, EventType
from tests.event.logs import event, events, log, positioned, query


def view(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(data, np.uint8)


@given(st.binary(min_size=12, max_size=12), st.integers(0, 8))
def test_numbers_are_little_endian_and_unsigned(data: bytes, at: int) -> None:
    assert u16(view(data), at) == int.from_bytes(data[at : at + 2], "little")
    assert u24(view(data), at) == int.from_bytes(data[at : at + 3], "little")
    assert u32(view(data), at) == int.from_bytes(data[at : at + 4], "little")


WORDS = {
    "BEGIN": words.WORD_BEGIN,
    "begin": words.WORD_BEGIN,
    "COMMIT": words.WORD_COMMIT,
    "ROLLBACK": words.WORD_ROLLBACK,
    "rollback": words.WORD_ROLLBACK,
    "ROLLBACK TO `a`": words.WORD_SAVEPOINT,
    "SAVEPOINT `a`": words.WORD_SAVEPOINT,
    "RELEASE SAVEPOINT a": words.WORD_SAVEPOINT,
    "XA START X'61',X'',1": words.WORD_XA_START,
    "XA BEGIN 'a'": words.WORD_XA_START,
    "XA END X'61',X'',1": words.WORD_XA_END,
    "XA PREPARE 'a'": words.WORD_XA_END,
    "XA COMMIT X'61',X'',1": words.WORD_XA_FINISH,
    "XA ROLLBACK 'a'": words.WORD_XA_FINISH,
    # what only begins like one of them
    "BEGINNING": words.WORD_OTHER,
    "COMMITTED": words.WORD_OTHER,
    "BEGIN ": words.WORD_OTHER,
    "XA RECOVER": words.WORD_OTHER,
    "INSERT INTO t VALUES ('BEGIN')": words.WORD_OTHER,
    "": words.WORD_OTHER,
}


@pytest.mark.parametrize("sql", WORDS)
def test_a_statement_is_known_by_its_first_word_whatever_its_case_and_place(sql: str) -> None:
    data = b"XXBEGIN" + sql.encode() + b"COMMIT"
    assert query_word(view(data), 7, 7 + len(sql)) == WORDS[sql]


@given(st.binary(max_size=20))
def test_no_bytes_are_taken_for_a_word_they_do_not_spell(sql: bytes) -> None:
    found = query_word(view(sql + b"\0"), 0, len(sql))
    upper = bytes(byte - 32 if 97 <= byte <= 122 else byte for byte in sql)
    assert (found == words.WORD_BEGIN) == (upper == b"BEGIN")
    assert (found == words.WORD_COMMIT) == (upper == b"COMMIT")


def test_every_event_type_that_we_name_has_a_class_and_no_other_number_has() -> None:
    never_sent = {EventType.UNKNOWN, EventType.START_V3, EventType.SLAVE}
    known = {code for code in range(256) if CLASS_TABLE[code] != event_classes.UNKNOWN}
    named = {int(code) for code in EventType}
    assert known <= named
    unclassed = {EventType(code).name for code in named - known}
    # pre-5.0 events: no server that we can read from writes them, so meeting one means stop (D12)
    assert not unclassed & {"QUERY", "XID", "GTID", "TABLE_MAP", "MARIADB_GTID", "TRANSACTION_PAYLOAD", "GTID_TAGGED"}
    assert {int(code) for code in never_sent} & known == set()
    assert not CLASS_TABLE.flags.writeable


# the source position (64-bit) from 32-bit headers


def moved(data: bytes, position: int, event_class: int, *, inexact: int = 0) -> tuple[bool, list[int]]:
    registers = np.array([position, 4, inexact], np.int64)
    ok = move_position(view(data), registers, 0, event_class)
    return bool(ok), registers.tolist()


GIB4 = 1 << 32


@pytest.mark.parametrize(
    ("before", "end_log_pos", "after"),
    [(4, 500, 500), (500, 500, 500), (GIB4 - 10, 90, GIB4 + 90), (7 * GIB4 + 5, 1000, 7 * GIB4 + 1000)],
)
def test_a_position_past_4_gib_is_carried_on(before: int, end_log_pos: int, after: int) -> None:
    ok, registers = moved(event(EventType.XID, bytes(8), end_log_pos=end_log_pos), before, event_classes.XID)
    assert ok and registers[POSITION] == after


def test_a_position_that_goes_back_is_refused_but_for_artificial_events() -> None:
    back = event(EventType.XID, bytes(8), end_log_pos=400)
    assert moved(back, 500, event_classes.XID) == (False, [500, 4, 0])
    artificial = event(EventType.HEARTBEAT, b"b.000001", end_log_pos=400, flags=FLAG_ARTIFICIAL)
    assert moved(artificial, 500, event_classes.CONTROL)[0]


def test_events_without_a_position_are_counted_by_their_length_until_one_has_it() -> None:
    """MariaDB 11.4 and later write 0 inside of groups."""
    inside = event(EventType.TABLE_MAP, bytes(30))
    ok, registers = moved(inside, 500, event_classes.TABLE_MAP, inexact=10)
    assert ok and (registers[POSITION], registers[INEXACT]) == (500, 10 + len(inside))
    ok, registers = moved(event(EventType.XID, bytes(8), end_log_pos=900), 500, event_classes.XID, inexact=99)
    assert (registers[POSITION], registers[INEXACT]) == (900, 0)


def test_a_rotate_sets_all_64_bits_and_our_own_events_set_nothing() -> None:
    turn = event(EventType.ROTATE, (5 * GIB4 + 4).to_bytes(8, "little") + b"b.000002", end_log_pos=77)
    assert moved(turn, 500, event_classes.ROTATE) == (True, [5 * GIB4 + 4, 4, 0])
    own = event(EventType.ROTATE, bytes(8) + b"relay-bin.000002", end_log_pos=77, flags=FLAG_RELAY_LOG)
    assert moved(own, 500, event_classes.ROTATE) == (True, [500, 4, 0])


@pytest.mark.parametrize(
    ("version", "algorithm", "length"),
    [
        ("8.0.40", 1, 4),
        ("8.0.40", 0, 0),
        ("10.11.19-MariaDB-log", 1, 4),
        ("5.6.1-m5", 1, 4),
        ("5.5.60-log", 1, 0),
        ("5.1.73", 1, 0),
        ("5.3.12-MariaDB-log", 1, 4),
    ],
)
def test_servers_before_5_6_1_have_no_checksums_whatever_their_last_bytes_say(
    version: str, algorithm: int, length: int
) -> None:
    data = build_format_description(1, 7, algorithm, version, relay_log=False)
    registers = np.array([4, 9, 0], np.int64)
    move_position(view(data), registers, 0, event_classes.DESCRIPTION)
    assert registers[CHECKSUM] == description_checksum(view(data), 0, len(data)) == length


def test_the_kernel_reads_a_real_description_as_the_parser_does() -> None:
    for case in ("my97-torture-mixed", "ma1011-torture-mixed"):
        data = next(events(log(case)))
        assert description_checksum(view(data), 0, len(data)) == parse_format_description(data).checksum_length


# the kernel itself: what it reports instead of raising, and what it does when its tables are full


MYSQL = next(events(log("my97-torture-mixed")))
GROUPS = [query(f"CREATE TABLE t{number} (a INT)") for number in range(20)]


def run(data: bytes, rows: int = 100, marks: int = 16) -> tuple[int, int, int]:
    """Groups found, error and its offset, with tables of these sizes."""
    registers = np.zeros(REGISTERS, np.int64)
    registers[:2] = 4, 0
    table, mark_table = np.zeros((rows, COLUMNS), np.int64), np.zeros((marks, 2), np.int64)
    count, _, error, at = run_groups(
        view(data), 0, 1 << 30, registers, view(b"b.000001"), CLASS_TABLE, table, mark_table
    )
    return int(count), int(error), int(at)


def test_tables_that_are_too_small_are_reported_not_overrun() -> None:
    data = positioned([MYSQL, *GROUPS])
    count, error, _ = run(data, rows=30)
    assert (count, error) == (21, 0)  # the description is a group of its own: it only moves the position
    for rows in range(2, 21):
        count, error, at = run(data, rows=rows)
        assert error == TABLE_FULL and count <= rows and 0 < at < len(data)
    assert run(data, marks=0)[1] == TABLE_FULL


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (event(EventType.XID, bytes(8))[:9] + b"\x05\0\0\0" + bytes(20), BAD_LENGTH),
        (event(EventType.XID, bytes(8))[:9] + b"\xff\xff\xff\xff" + bytes(20), BAD_LENGTH),
        (event(EventType.START_ENCRYPTION, bytes(17)), ENCRYPTED),
        (query("CREATE TABLE u (a INT)", end_log_pos=9), BACKWARDS),
    ],
    ids=["shorter than a header", "longer than any event", "encrypted", "position goes back"],
)
def test_an_error_is_reported_with_its_offset_and_the_groups_before_it(broken: bytes, code: int) -> None:
    data = positioned([MYSQL, *GROUPS])
    assert run(data + broken) == (21, code, len(data))


def test_a_torn_last_event_is_no_error() -> None:
    data = positioned([MYSQL, *GROUPS])
    last = len(GROUPS[-1])
    for cut in (1, 4, last - 18, last - 1):
        assert run(data[:-cut])[:2] == (20, 0)
