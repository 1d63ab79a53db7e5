from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from rplctl.errors import BinlogFormatError, UsageError
from rplctl.event.events import PreviousGtids, parse_event
from rplctl.event.gtid import GtidHistory, MariadbGtidState, MysqlGtidSet, has_reached
from rplctl.event.gtid_event import decode_gtid_set
from rplctl.event.types import EventType
from tests.event.logs import described, log

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        (" , ", ""),
        (f"{A}:1", f"{A}:1"),
        (f"{A.upper()}:1-5:7-7:6", f"{A}:1-7"),
        (f"{A.replace('-', '')}:5-9", f"{A}:5-9"),
        (f"{B}:1,\n{A}:3 - 4", f"{A}:3-4,{B}:1"),
        (f"{A}:1-3:5,{A}:4", f"{A}:1-5"),
        (f"{A}:9-5", ""),
        (f"{A}:1:Tag_1:1-2:4:other:7", f"{A}:1:other:7:tag_1:1-2:4"),
        (f"{A}:z:1,{A}:a:1,{A}:3", f"{A}:3:a:1:z:1"),
        (f"{A}:1-9223372036854775806", f"{A}:1-9223372036854775806"),
    ],
)
def test_a_set_is_printed_as_the_server_prints_it(text: str, printed: str) -> None:
    assert str(MysqlGtidSet.parse(text)) == printed


@pytest.mark.parametrize(
    "text",
    [
        "x",
        A,
        f"{A}:",
        f"{A}:0",
        f"{A}:1-",
        f"{A}:-1",
        f"{A}:1;{B}:2",
        f"{A[:-1]}:1",
        f"{A}:tag",
        f"{A}:1:tag",
        f"{A}:t:u:1",
        f"{A}:9223372036854775807",
        f"{A}:1tag:1",
        f"{A}:{'t' * 33}:1",
        f"{A[:8]}{A[9:]}:1",
        f"{A}:1 2",
    ],
)
def test_a_malformed_set_is_error_1772_with_the_text(text: str) -> None:
    with pytest.raises(UsageError, match="Malformed GTID set specification") as caught:
        MysqlGtidSet.parse(text)
    assert caught.value.errno == 1772
    assert text in caught.value.message


def test_previous_gtids_of_a_real_log_with_tags_are_read_and_written_back_byte_for_byte() -> None:
    found = [(e, d) for e, d in described(log("mysql-tagged-next")) if e[4] == EventType.PREVIOUS_GTIDS]
    ((event, description),) = found
    parsed = parse_event(event, description)
    assert isinstance(parsed, PreviousGtids)
    assert str(parsed.gtids) == "ec97b2de-e55d-11f1-897b-02fc00000001:1:tag_a:1-2:zz:1"  # as @@gtid_executed showed it
    assert parsed.gtids.encode() == event[19:-4]


def test_a_set_without_tags_is_encoded_for_every_server() -> None:
    encoded = MysqlGtidSet.parse(f"{A}:1-3:5").encode()
    assert encoded[:24] == b"\1" + bytes(7) + bytes.fromhex(A.replace("-", ""))
    assert encoded[24:] == b"".join(n.to_bytes(8, "little") for n in (2, 1, 4, 5, 6))
    assert MysqlGtidSet().encode() == bytes(8)


@pytest.mark.parametrize(
    "data", [b"\1" + bytes(7), b"\xff" * 8, bytes(9), b"\1" + bytes(23) + b"\1" + bytes(7) + bytes(16)]
)
def test_a_broken_encoding_stops(data: bytes) -> None:
    with pytest.raises(BinlogFormatError):
        decode_gtid_set(data)


numbers = st.sets(st.tuples(st.sampled_from([A, B]), st.sampled_from(["", "t", "u"]), st.integers(1, 30)), max_size=40)


def of(members: set[tuple[str, str, int]]) -> MysqlGtidSet:
    result = MysqlGtidSet()
    for server, tag, number in members:
        result = result.add(server, number, tag)
    return result


@given(numbers, numbers)
def test_set_operations_are_those_of_sets_of_numbers(
    first: set[tuple[str, str, int]], second: set[tuple[str, str, int]]
) -> None:
    left, right = of(first), of(second)
    assert left.union(right) == of(first | second)
    assert left.subtract(right) == of(first - second)
    assert left.is_subset_of(right) == (first <= second)
    assert left.count() == len(first)
    assert bool(left) == bool(first)
    assert all(left.contains(server, number, tag) for server, tag, number in first)
    assert MysqlGtidSet.parse(str(left)) == decode_gtid_set(left.encode()) == left
    assert hash(MysqlGtidSet.parse(str(left))) == hash(left)


def test_the_state_of_mariadb_is_one_transaction_per_domain() -> None:
    state = MariadbGtidState.parse("1-2-7, 0-1-5")
    assert str(state) == "0-1-5,1-2-7"
    assert str(state.add(0, 9, 6)) == "0-9-6,1-2-7"
    assert str(state.union(MariadbGtidState.parse("0-3-4,2-1-1"))) == "0-1-5,1-2-7,2-1-1"
    assert state.contains(1, 7)
    assert not state.contains(1, 8)
    assert not state.contains(5, 1)
    assert MariadbGtidState.parse("0-7-4").is_subset_of(state)
    assert not MariadbGtidState.parse("0-1-6").is_subset_of(state)
    assert not MariadbGtidState.parse("")
    assert len({state, MariadbGtidState.parse("0-1-5,1-2-7")}) == 1


@pytest.mark.parametrize(
    "text", ["0-1", "0-1-x", "0-1-5,", "-1-2-3", "4294967296-1-1", "0-1-18446744073709551616", "0-+1-2"]
)
def test_a_malformed_state_is_error_1941(text: str) -> None:
    with pytest.raises(UsageError, match="Could not parse GTID list") as caught:
        MariadbGtidState.parse(text)
    assert caught.value.errno == 1941


def test_only_numbers_of_one_server_of_a_domain_show_an_order() -> None:
    """Server 2 wrote 0-2-150 and then server 1 wrote 0-1-101, the last transaction of the log."""
    end = "0-3-90,0-2-150,0-1-101,4-1-7"
    assert [has_reached(end, f"{last},4-1-7") for last in ("0-1-101", "0-1-102", "0-2-151", "0-5-200")] == [True] * 4
    assert [has_reached(end, f"{last},4-1-7") for last in ("0-1-100", "0-2-150", "0-3-90", "0-5-9")] == [False] * 4
    assert not has_reached(end, "0-1-101") and has_reached(end, "0-1-101", "4-1-8")  # executed, retrieved
    assert not has_reached("0-1-101", f"{A}:1-200")
    sorted_by_number = GtidHistory.parse("0-1-101,0-2-150")
    reached = [sorted_by_number.is_surely_ahead_of(MariadbGtidState.parse(f"0-{last}")) for last in ("1-101", "2-150")]
    assert reached == [False, False]
    assert sorted_by_number.is_surely_ahead_of(MariadbGtidState.parse("0-1-100"), MariadbGtidState.parse("1-1-9"))


def test_a_domain_twice_is_error_1943() -> None:
    with pytest.raises(UsageError, match="duplicate domain id 0") as caught:
        MariadbGtidState.parse("0-1-5,0-2-6")
    assert caught.value.errno == 1943


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60))),
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60))),
)
def test_sets_are_subtracted_and_looked_into_as_sets_of_numbers(
    whole: list[tuple[int, int]], less: list[tuple[int, int]]
) -> None:
    def numbers(spans: list[tuple[int, int]]) -> set[int]:
        return {number for first, last in spans for number in range(first, last + 1)}

    def built(spans: list[tuple[int, int]]) -> MysqlGtidSet:
        return MysqlGtidSet.parse(",".join(f"{A}:{first}-{last}" for first, last in spans))

    left = built(whole).subtract(built(less))
    assert {n for n in range(62) if left.contains(A, n)} == numbers(whole) - numbers(less)


@pytest.mark.parametrize("tag", [b"\xff", b"A", b"1", b"a-b", b"a" * 33, b"a,b"])
def test_a_binary_set_with_a_tag_that_cannot_be_one_is_refused(tag: bytes) -> None:
    raw = MysqlGtidSet.parse(f"{A}:tag:1").encode().replace(b"\x06tag", bytes([2 * len(tag)]) + tag)
    with pytest.raises(BinlogFormatError, match="tag"):
        decode_gtid_set(raw)
