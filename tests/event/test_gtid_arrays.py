"""GTIDs as arrays: the same as those of the events one by one, in recorded logs of both vendors."""

from __future__ import annotations

import time

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.format_description import parse_format_description
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_arrays import commit_times, gtids_at, numbers_by_source
from rplctl.event.gtid_event import MariadbGtid, parse_gtid
from rplctl.event.scan import event_offsets
from rplctl.event.types import EventType
from tests.event.logs import event, events, log

NAMED = [EventType.GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID]


@pytest.mark.parametrize("case", ["my97-torture-compress-l1", "mariadb-compressed", "mysql-tagged"])
def test_they_are_those_of_the_events_one_by_one(case: str) -> None:
    raw = log(case)
    description = parse_format_description(next(events(raw)))
    starts, types = event_offsets(raw, 4)
    offsets = starts[:-1][np.isin(types, NAMED)]
    assert len(offsets)
    mysql, mariadb, count = MysqlGtidSet(), MariadbGtidState(), 0
    for at in offsets.tolist():
        gtid = parse_gtid(next(events(raw, at)), description)
        if isinstance(gtid, MariadbGtid):
            mariadb = mariadb.add(gtid.domain, gtid.server_id, gtid.sequence)
        else:
            mysql = mysql.add(gtid.server_uuid, gtid.number, gtid.tag)
        count += 1
    data = np.frombuffer(raw, np.uint8)
    assert gtids_at(data, offsets, lambda _: description) == (mysql, mariadb)
    times = [
        getattr(parse_gtid(next(events(raw, at)), description), "immediate_commit_time", 0) for at in offsets.tolist()
    ]
    assert commit_times(data, offsets, lambda _: description).tolist() == times and any(times) == case.startswith("my")
    found = numbers_by_source(data, offsets, lambda _: description)
    assert sum(len(numbers) for _, numbers in found.values()) == count
    for source, (which, numbers) in found.items():
        gtid = parse_gtid(next(events(raw, int(offsets[which[0]]))), description)
        if isinstance(gtid, MariadbGtid):
            assert (gtid.domain, gtid.sequence) == (source, numbers[0])
        else:
            assert ((gtid.server_uuid, gtid.tag), gtid.number) == (source, numbers[0])


def test_none_are_none() -> None:
    nothing = np.zeros(0, np.int64)
    assert gtids_at(np.zeros(0, np.uint8), nothing, lambda _: None) == (MysqlGtidSet(), MariadbGtidState())


def _gtid_events(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Of so many sources, in turn; and where each begins."""
    one = event(EventType.GTID, bytes(25) + b"\2" + bytes(16))
    data = np.tile(np.frombuffer(one, np.uint8), count).reshape(count, -1)
    names = np.random.default_rng(1).integers(0, 256, (count, 16), np.uint8)
    data[:, 20:36], data[:, 36] = names, 1
    return data.reshape(-1), np.arange(count) * len(one)


@pytest.mark.long("Thirty thousand sources in one log are rare.")
def test_the_work_grows_with_the_events_not_with_the_square_of_their_sources() -> None:
    def cost(count: int) -> float:
        data, offsets = _gtid_events(count)
        times = []
        for _ in range(3):
            begin = time.process_time()
            known, _ = gtids_at(data, offsets, lambda _: None)
            assert len(known.intervals) == count and len(numbers_by_source(data, offsets, lambda _: None)) == count
            assert MysqlGtidSet.parse(str(known)) == known
            times.append(time.process_time() - begin)
        return min(times)

    assert cost(8_000) < 9 * cost(2_000), "four times as many sources; 16 times the work would be quadratic"


@pytest.mark.parametrize("case", ["my97-torture-compress-l1", "mariadb-compressed"])
def test_a_gtid_event_that_is_cut_short_is_refused(case: str) -> None:
    raw = next(e for e in events(log(case)) if e[4] in NAMED)
    for length in range(19, 31):
        short = raw[:9] + length.to_bytes(4, "little") + raw[13:length]
        for read in (gtids_at, numbers_by_source):
            with pytest.raises(BinlogFormatError, match="cut short"):
                read(np.frombuffer(short + bytes(40), np.uint8), np.zeros(1, np.int64), lambda _: None)
