"""Runs of plain events: where they end, the 64-bit position behind them, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest

from rplctl.event.checksum import verify_events
from rplctl.event.events import MariadbGtid, parse_gtid
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import FLAG_ARTIFICIAL
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.receiver.event_runs import EventFilter, follow, next_run
from rplctl.source import EventBatch
from tests.source.binlogs import description, event, mariadb_gtid, query, rotate

GIB4 = 1 << 32
DESCRIPTION = parse_format_description(description())


def batch(*events: bytes) -> EventBatch:
    return EventBatch(np.frombuffer(b"".join(events), np.uint8), np.cumsum([0, *map(len, events)], dtype=np.int64))


def xid(end_log_pos: int, server_id: int = 4711, flags: int = 0) -> bytes:
    return event(EventType.XID, bytes(8), end_log_pos, server_id=server_id, flags=flags)


@pytest.mark.parametrize("stop", [rotate("b.000002", 0), description(), event(27, b"b", 5), event(41, b"b", 5)])
def test_a_run_ends_at_what_the_receiver_must_see(stop: bytes) -> None:
    run = next_run(batch(xid(100), xid(200), stop, xid(300)), 0, 4, EventFilter((77,)))
    assert (run.stop, run.position, run.kept) == (2, 200, 2)
    assert run.data.tobytes() == xid(100) + xid(200)
    assert isinstance(run.position, int)


@pytest.mark.parametrize(
    ("position", "end_log_pos", "expected"),
    [
        (4, 120, 120),
        (120, 120, 120),
        (GIB4 - 10, 30, GIB4 + 30),  # the header's 32 bits wrap
        (3 * GIB4 + 500, 700, 3 * GIB4 + 700),
        (3 * GIB4 + 500, 499, 4 * GIB4 + 499),
    ],
)
def test_positions_have_64_bits(position: int, end_log_pos: int, expected: int) -> None:
    assert follow(position, end_log_pos, 50, artificial=False) == expected
    assert next_run(batch(xid(end_log_pos)), 0, position, EventFilter((77,))).position == expected


def test_events_without_a_position_count_by_their_length_unless_artificial() -> None:
    in_group, made_up = xid(0), xid(0, flags=FLAG_ARTIFICIAL)
    run = next_run(batch(in_group, made_up, in_group), 0, 1000, EventFilter((77,)))
    assert run.position == 1000 + 2 * len(in_group)
    assert follow(1000, 0, 31, artificial=True) == 1000
    assert follow(1000, 0, 31, artificial=False) == 1031


def test_our_own_and_ignored_servers_are_left_out_but_move_the_position() -> None:
    events = [xid(100), xid(200, server_id=77), xid(300, server_id=5), xid(400)]
    run = next_run(batch(*events), 0, 4, EventFilter((77, 5)))
    assert run.data.tobytes() == events[0] + events[3]
    assert (run.kept, run.position, run.ends_dropped) == (2, 400, False)
    run = next_run(batch(*events[:3]), 1, 100, EventFilter((77, 5)))
    assert (run.kept, run.position, run.ends_dropped, len(run.data)) == (0, 300, True, 0)


def test_with_replicate_same_server_id_our_own_events_stay() -> None:
    events = [xid(100), xid(200, server_id=77), xid(300, server_id=5)]
    assert next_run(batch(*events), 0, 4, EventFilter((5,))).data.tobytes() == events[0] + events[1]
    assert next_run(batch(*events), 0, 4, EventFilter(())).kept == 3


@pytest.mark.parametrize(("do", "ignore"), [((), (3,)), ((1, 2), ())])
def test_a_domain_is_left_out_as_whole_groups_also_over_batches(do: tuple[int, ...], ignore: tuple[int, ...]) -> None:
    events = EventFilter((77,), do, ignore)
    first = [mariadb_gtid(1, 1, 100), query("a", 200), mariadb_gtid(3, 1, 300), query("b", 400)]
    second = [query("still b", 500), mariadb_gtid(2, 1, 600), query("c", 700)]
    run = next_run(batch(*first), 0, 4, events)
    assert run.data.tobytes() == b"".join(first[:2]) and events.skipping and run.kept == 2
    run = next_run(batch(*second), 0, run.position, events)
    empty, kept = run.data.tobytes()[: -len(b"".join(second[1:]))], run.data.tobytes()[-len(b"".join(second[1:])) :]
    assert kept == b"".join(second[1:]) and run.kept == 4
    assert scan_events(empty).type_codes.tolist() == [EventType.MARIADB_GTID, EventType.XID]
    assert (run.position, events.skipping, bool(events.dropped)) == (700, False, False)


def test_empty_transactions_are_in_the_order_of_the_log_and_one_for_each_domain() -> None:
    """Of MariaDB. The number of a GTID may be lower than that of an earlier one of the domain."""
    events = EventFilter((77,), (), (3, 4))
    dropped = [mariadb_gtid(3, 9, 100), query("a", 200), mariadb_gtid(4, 1, 300), query("b", 400)]
    dropped += [mariadb_gtid(3, 5, 500), query("c", 600)]
    kept = [mariadb_gtid(1, 1, 700), query("d", 800)]
    run = next_run(batch(*dropped, *kept, *dropped[:2]), 0, 4, events)
    found = run.data.tobytes()
    index = scan_events(found)
    gtids = [
        parse_gtid(found[a:b], DESCRIPTION)
        for a, b, code in zip(index.offsets, index.offsets[1:], index.type_codes, strict=False)
        if code == EventType.MARIADB_GTID
    ]
    assert [(g.domain, g.sequence) for g in gtids if isinstance(g, MariadbGtid)] == [(4, 1), (3, 5), (1, 1)]
    assert verify_events(run.data, index.offsets, 1) == -1 and run.ends_dropped and events.dropped
    events.dropped.cut()
    assert events.dropped.take(4) == (b"", 0)
