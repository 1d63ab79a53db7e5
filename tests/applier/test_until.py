"""START SLAVE UNTIL: nothing past the condition is planned, and the applier knows when it is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rplctl.applier.options import Until
from rplctl.applier.until import groups_before, is_met
from rplctl.binlog.scan import GroupKind
from rplctl.info import RelayLogInfo
from tests.applier.demo_log import demo_groups

GROUPS = demo_groups()
COUNT = len(GROUPS.scan)


def test_until_a_source_position_runs_the_group_that_begins_before_it() -> None:
    scan = GROUPS.scan
    real = int(np.flatnonzero(scan.kind == GroupKind.ROWS)[5])
    before, after = scan.source_position(real - 1), scan.source_position(real)
    at_start = Until("master_pos", before.log_name, before.log_pos)
    inside = Until("master_pos", before.log_name, before.log_pos + 1)
    at_end = Until("master_pos", after.log_name, after.log_pos)
    assert [groups_before(GROUPS, until, "") for until in (at_start, inside, at_end)] == [real, real + 1, real + 1]


def test_until_a_relay_position_counts_in_its_own_file_only() -> None:
    at = int(GROUPS.scan.start[7])
    assert groups_before(GROUPS, Until("relay_pos", GROUPS.log_name, at), "") == 7
    assert groups_before(GROUPS, Until("relay_pos", "relay-bin.000009", 4), "") == COUNT
    assert groups_before(GROUPS, Until("relay_pos", "relay-bin.000000", 400), "") == 0


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
    assert groups_before(GROUPS, Until("sql_before_gtids", gtids="0-1-9"), "") == gtid_number(9)


def test_sql_after_gtids_runs_the_group_that_completes_the_set() -> None:
    assert groups_before(GROUPS, Until("sql_after_gtids", gtids="0-1-9"), "") == gtid_number(9) + 1
    assert groups_before(GROUPS, Until("sql_after_gtids", gtids="0-1-99999"), "") == COUNT


def test_until_is_met_at_the_position_and_not_before() -> None:
    info = RelayLogInfo(gtid_executed="0-1-8").at(GROUPS.end, GROUPS.end_source)
    there = Until("master_pos", GROUPS.end_source.log_name, GROUPS.end_source.log_pos)
    assert is_met(there, info)
    assert not is_met(replace(there, log_pos=there.log_pos + 1), info)
    assert is_met(Until("relay_pos", GROUPS.log_name, 5), info)
    assert not is_met(Until(), info)
    assert is_met(Until("sql_after_gtids", gtids="0-1-8"), info)
    assert not is_met(Until("sql_after_gtids", gtids="0-1-9"), info)
    assert is_met(Until("sql_before_gtids", gtids="0-1-8"), info)
    assert not is_met(Until("sql_before_gtids", gtids="0-1-9"), info)


def test_mysqls_sets_are_compared_as_sets() -> None:
    server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    info = RelayLogInfo(gtid_executed=f"{server}:1-5")
    assert is_met(Until("sql_after_gtids", gtids=f"{server}:3-5"), info)
    assert not is_met(Until("sql_after_gtids", gtids=f"{server}:3-6"), info)
    assert is_met(Until("sql_before_gtids", gtids=f"{server}:5-9"), info)
    assert not is_met(Until("sql_before_gtids", gtids=f"{server}:6-9"), info)
