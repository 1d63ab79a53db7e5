"""Skipping by GTID: exactly that transaction becomes an empty one, whatever stands before and behind it."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from rplctl.applier.feed.plan import BatchKind, plan_batches
from rplctl.applier.feed.skip import SkipList
from rplctl.event.events import MariadbGtid, parse_gtid
from rplctl.event.gtid import is_executed
from rplctl.event.scan import GroupKind
from rplctl.skip_list import clear, read_count, read_gtids, write_count, write_gtids
from tests.applier.demo_log import demo_groups
from tests.applier.feed.test_gtids import gtid_groups, mariadb_event, mysql_event
from tests.applier.instance import Instance


def opened(folder: Path) -> SkipList:
    skips = SkipList(folder)
    skips.open()
    return skips


def test_a_listed_transaction_is_committed_as_an_empty_one(tmp_path: Path) -> None:
    groups = demo_groups("binlog.000001")
    number = next(n for n in range(40, len(groups.scan)) if groups.scan.kind[n] == GroupKind.ROWS)
    at = int(groups.scan.gtid_offset[number])
    assert groups.format_description is not None
    length = int.from_bytes(groups.data[at + 9 : at + 13].tobytes(), "little")
    gtid = parse_gtid(groups.data[at : at + length].tobytes(), groups.format_description)
    assert isinstance(gtid, MariadbGtid)
    text = f"{gtid.domain}-{gtid.server_id}-{gtid.sequence}"
    write_gtids(tmp_path, [text, "9-9-9"])
    skips = opened(tmp_path)
    assert skips.groups(groups, len(groups.scan)) == [number]
    assert skips.groups(groups, number) == []
    plan = list(plan_batches(groups, len(groups.scan), skipped=[number]))
    assert [b.kind for b in plan if b.first <= number < b.last] == [BatchKind.SKIP]
    assert [b.first for b in plan] == [0, *(b.last for b in plan[:-1])]
    instance = Instance(tmp_path / "instance")
    changes = sum(instance.applier.apply(batch) for batch in plan if batch.last <= number + 1)
    assert instance.applier.info.exec_position == groups.scan.source_position(number)
    assert skips.committed(instance.applier.info.gtid_executed) == (text,)
    assert read_gtids(tmp_path) == ("9-9-9",)
    other = Instance(tmp_path / "other")
    assert other.apply(groups, number + 1) > changes
    for made in (instance, other):
        made.target.close()


def test_of_either_vendor_only_what_is_listed_is_passed_over(tmp_path: Path) -> None:
    server = UUID(int=7)
    write_gtids(tmp_path, [f"{server}:2-3", "1-5-8", "2-5-9"])
    groups = gtid_groups([mysql_event(server, number) for number in (1, 3, 4, 2, 3)])
    assert opened(tmp_path).groups(groups, 5) == [1, 3, 4]
    assert opened(tmp_path).groups(groups, 4) == [1, 3]
    groups = gtid_groups([mariadb_event(*gtid) for gtid in [(1, 5, 8), (1, 6, 8), (2, 5, 8), (2, 5, 9), (1, 5, 9)]])
    assert opened(tmp_path).groups(groups, 5) == [0, 3]


def test_the_number_is_taken_before_anything_is_skipped_and_the_rest_is_kept(tmp_path: Path) -> None:
    """A number that were still there after a kill would skip good transactions."""
    write_count(tmp_path, 3)
    skips = opened(tmp_path)
    assert (skips.count, read_count(tmp_path)) == (3, 0)
    skips.count = 2
    skips.keep_rest()
    assert read_count(tmp_path) == 2
    opened(tmp_path).count = 0
    assert read_count(tmp_path) == 0
    clear(tmp_path)
    assert (read_count(tmp_path), read_gtids(tmp_path)) == (0, ())


def test_executed_is_asked_in_the_vendor_s_notation() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    assert is_executed(f"{uuid}:5", f"{uuid}:1-9") and not is_executed(f"{uuid}:5-10", f"{uuid}:1-9")
    assert is_executed("0-1-5", "0-1-5") and not is_executed("0-1-6", "0-1-5") and not is_executed("1-1-1", "0-1-5")
    assert not is_executed(f"{uuid}:5", "0-1-9") and not is_executed("0-1-5", "")
