"""GTIDs as arrays: the same as those of the events one by one, in recorded logs of both vendors."""

from __future__ import annotations

import numpy as np
import pytest

from rplctl.event.format_description import parse_format_description
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_arrays import gtids_at, numbers_by_source
from rplctl.event.gtid_event import MariadbGtid, parse_gtid
from rplctl.event.scan import event_offsets
from rplctl.event.types import EventType
from tests.event.logs import events, log

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
