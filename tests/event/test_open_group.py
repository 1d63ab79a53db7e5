"""The transaction in transfer: in pieces of a log, however they are cut, the state is that of the whole log's scan."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rplctl.event.groups import scan_groups
from rplctl.event.open_group import OpenGroup
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition
from tests.event.logs import event, log, query

ROWS = event(EventType.WRITE_ROWS, bytes(30))
GTID = event(EventType.ANONYMOUS_GTID, bytes(25))


def follow(group: OpenGroup, *parts: bytes) -> tuple[int, bool]:
    offsets = np.cumsum([0, *map(len, parts)])
    return group.follow(b"".join(parts), offsets, 4)


@pytest.mark.parametrize("case", ["my97-torture-mixed", "ma1011-torture-mixed"])
def test_pieces_of_a_real_log_are_open_exactly_inside_its_transactions(case: str) -> None:
    data = log(case)
    scan = scan_groups(data, 4, BinlogPosition("bin.000001", 4), 1 << 40)
    ends, begins = set(scan.end.tolist()), dict(zip(scan.end.tolist(), scan.timestamp.tolist(), strict=True))
    offsets, dice, group, at, seen = scan_events(data, 4).offsets, random.Random(7), OpenGroup(), 0, 0
    checksum = 4 if scan.descriptions[0][1].checksum_algorithm else 0
    while at < len(offsets) - 1:
        stop = min(len(offsets) - 1, at + dice.randint(1, 4))
        group.follow(data, offsets[at : stop + 1], checksum)
        position = int(offsets[stop])
        assert group.is_open == (position not in ends), position
        following = int(scan.end[np.searchsorted(scan.end, position)]) if group.is_open else 0
        assert group.timestamp == begins.get(following, 0)
        seen += group.is_open
        at = stop
    assert seen > 10


def test_the_gtid_event_of_an_open_transaction_is_found_in_its_piece_only() -> None:
    group = OpenGroup()
    assert follow(group, GTID, query("BEGIN"), ROWS) == (0, False)
    assert follow(group, ROWS, ROWS) == (-1, False) and group.timestamp == 7
    assert follow(group, query("COMMIT"), GTID, query("BEGIN")) == (len(query("COMMIT")), True)
    assert follow(group, query("COMMIT")) == (-1, True) and group.timestamp == 0


def test_a_transaction_that_the_source_left_without_an_end_is_not_open() -> None:
    group = OpenGroup()
    follow(group, GTID, query("BEGIN"), ROWS)
    group.cut()
    assert not group.is_open and follow(group, GTID, query("CREATE TABLE t (a INT)")) == (-1, False)
