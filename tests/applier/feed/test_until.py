"""START SLAVE UNTIL: nothing past the condition is planned, and the applier knows when it is there."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from uuid import UUID

import numpy as np
import pytest

from rplctl.applier.feed.until import groups_before, is_met
from rplctl.applier.options import AFTER_GTIDS, Until
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.scan import GroupKind
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, log_number, numbered_log_name
from tests.applier.demo_log import demo_groups
from tests.applier.feed.test_gtids import gtid_groups, mariadb_event, mysql_event

GROUPS = demo_groups()
COUNT = len(GROUPS.scan)


def test_until_a_source_position_runs_the_group_that_begins_before_it() -> None:
    scan = GROUPS.scan
    real = int(np.flatnonzero(scan.kind == GroupKind.ROWS)[5])
    before, after = scan.source_position(real - 1), scan.source_position(real)
    at_start = Until(kind="master_pos", log_name=before.log_name, log_pos=before.log_pos)
    inside = Until(kind="master_pos", log_name=before.log_name, log_pos=before.log_pos + 1)
    at_end = Until(kind="master_pos", log_name=after.log_name, log_pos=after.log_pos)
    assert [groups_before(GROUPS, until, "") for until in (at_start, inside, at_end)] == [real, real + 1, real + 1]


def test_until_a_relay_position_counts_in_its_own_file_only() -> None:
    at = int(GROUPS.scan.start[7])
    assert groups_before(GROUPS, Until(kind="relay_pos", log_name=GROUPS.log_name, log_pos=at), "") == 7
    assert groups_before(GROUPS, Until(kind="relay_pos", log_name="relay-bin.000009", log_pos=4), "") == COUNT
    assert groups_before(GROUPS, Until(kind="relay_pos", log_name="relay-bin.000000", log_pos=400), "") == 0


def gtid_number(sequence: int) -> int:
    """The group that holds GTID 0-1-`sequence` of the demo."""
    at = GROUPS.scan.gtid_offset
    found = [
        n
        for n in range(COUNT)
        if at[n] >= 0 and int.from_bytes(GROUPS.data[at[n] + 19 : at[n] + 27].tobytes(), "little") == sequence
    ]
    return found[0]


def test_sql_before_gtids_stops_before_the_first_listed_one() -> None:
    assert groups_before(GROUPS, Until(kind="sql_before_gtids", gtids="0-1-9"), "") == gtid_number(9)


def test_sql_after_gtids_runs_the_group_that_completes_the_set() -> None:
    assert groups_before(GROUPS, Until(kind="sql_after_gtids", gtids="0-1-9"), "") == gtid_number(9) + 1
    assert groups_before(GROUPS, Until(kind="sql_after_gtids", gtids="0-1-99999"), "") == COUNT


def test_every_source_position_lets_through_what_begins_before_it() -> None:
    scan, log = GROUPS.scan, GROUPS.start_source.log_name
    begins = [GROUPS.start_source, *(scan.source_position(number) for number in range(COUNT - 1))]
    places = {(place.log_name, place.log_pos + more) for place in begins for more in (-1, 0, 1)}
    for name, position in [*places, (numbered_log_name("binlog", log_number(log) + 9), 4), ("binlog.000000", 9999)]:
        wanted = BinlogPosition(name, position)
        expected = next((n for n, begin in enumerate(begins) if not begin.is_before(wanted)), COUNT)
        assert groups_before(GROUPS, Until(kind="master_pos", log_name=name, log_pos=position), "") == expected, wanted


@pytest.mark.parametrize("seed", range(30))
def test_mysqls_gtids_in_any_order_stop_where_one_by_one_they_do(seed: int) -> None:
    random = Random(seed)
    servers = [UUID(int=n) for n in (1, 2, 3)]
    given = [(random.choice(servers), random.randint(1, 8), random.choice((33, 33, 33, 34))) for _ in range(20)]
    groups = gtid_groups([mysql_event(*one) for one in given])
    listed = {(random.choice(servers), random.randint(1, 9)) for _ in range(random.randint(1, 5))}
    done = {(random.choice(servers), random.randint(1, 9)) for _ in range(3)} - (listed if seed % 2 else set())
    text, executed = (str(MysqlGtidSet.parse(",".join(f"{s}:{n}" for s, n in some))) for some in (listed, done))
    real = [(server, number) if kind == 33 else None for server, number, kind in given]  # 34: anonymous
    before = next((n for n, one in enumerate(real) if one in listed), 20)
    assert groups_before(groups, Until(kind="sql_before_gtids", gtids=text), executed) == before
    after = next((n for n in range(21) if listed <= done | set(real[:n])), 20)
    for kind in AFTER_GTIDS:
        assert groups_before(groups, Until(kind=kind, gtids=text), executed) == after


@pytest.mark.parametrize("seed", range(30))
def test_mariadbs_gtids_count_by_domain(seed: int) -> None:
    random = Random(seed)
    last = [0, 0, 0]
    given = []
    for _ in range(20):
        domain = random.randrange(3)
        last[domain] += random.randint(1, 3)
        given.append((domain, random.randint(1, 2), last[domain]))
    groups = gtid_groups([mariadb_event(*one) for one in given])
    listed = {domain: random.randint(1, 12) for domain in random.sample(range(3), random.randint(1, 3))}
    text = ",".join(f"{domain}-1-{sequence}" for domain, sequence in listed.items())
    before = next((n for n, (domain, _, at) in enumerate(given) if at >= listed.get(domain, 99)), 20)
    assert groups_before(groups, Until(kind="sql_before_gtids", gtids=text), "") == before
    wanted = [
        next((n for n, (domain, _, at) in enumerate(given) if domain == of and at >= sequence), 20)
        for of, sequence in listed.items()
        if of or sequence > 2
    ]
    assert groups_before(groups, Until(kind="sql_after_gtids", gtids=text), "0-9-2") == min(
        max(wanted, default=-1) + 1, 20
    )


def test_until_is_met_at_the_position_and_not_before() -> None:
    info = RelayLogInfo(gtid_executed="0-1-8").at(GROUPS.end, GROUPS.end_source)
    there = Until(kind="master_pos", log_name=GROUPS.end_source.log_name, log_pos=GROUPS.end_source.log_pos)
    assert is_met(there, info)
    assert not is_met(replace(there, log_pos=there.log_pos + 1), info)
    assert is_met(Until(kind="relay_pos", log_name=GROUPS.log_name, log_pos=5), info)
    assert not is_met(Until(), info)
    assert is_met(Until(kind="sql_after_gtids", gtids="0-1-8"), info)
    assert not is_met(Until(kind="sql_after_gtids", gtids="0-1-9"), info)
    assert is_met(Until(kind="master_gtid_pos", gtids="0-1-8"), info)
    assert not is_met(Until(kind="master_gtid_pos", gtids="0-1-9"), info)
    assert is_met(Until(kind="sql_before_gtids", gtids="0-1-8"), info)
    assert not is_met(Until(kind="sql_before_gtids", gtids="0-1-9"), info)


def test_mysqls_sets_are_compared_as_sets() -> None:
    server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    info = RelayLogInfo(gtid_executed=f"{server}:1-5")
    assert is_met(Until(kind="sql_after_gtids", gtids=f"{server}:3-5"), info)
    assert not is_met(Until(kind="sql_after_gtids", gtids=f"{server}:3-6"), info)
    assert is_met(Until(kind="sql_before_gtids", gtids=f"{server}:5-9"), info)
    assert not is_met(Until(kind="sql_before_gtids", gtids=f"{server}:6-9"), info)
