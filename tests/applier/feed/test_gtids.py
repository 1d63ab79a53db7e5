"""The executed set after a batch: every GTID of it and no other, in the vendor's notation."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import numpy as np

from rplctl.applier.feed.gtids import executed_after
from rplctl.applier.feed.plan import Batch, BatchKind
from rplctl.event.scan import GroupKind
from rplctl.relay_log.reader import RelayGroups
from tests.applier.demo_log import demo_groups

SERVER = uuid.UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")


def test_mariadbs_last_gtid_of_each_domain_is_kept() -> None:
    groups = demo_groups()
    batch = Batch(kind=BatchKind.BULK, groups=groups, first=0, last=len(groups.scan))
    last = executed_after("1-7-5", batch)
    assert last.startswith("0-1-")
    assert last.endswith(",1-7-5")
    half = Batch(kind=BatchKind.BULK, groups=groups, first=0, last=len(groups.scan) // 2)
    rest = Batch(kind=BatchKind.BULK, groups=groups, first=len(groups.scan) // 2, last=len(groups.scan))
    assert executed_after(executed_after("1-7-5", half), rest) == last


def mysql_batch(numbers: list[int]) -> Batch:
    """A batch whose groups begin with MySQL GTID events of these numbers."""
    groups = gtid_groups([mysql_event(SERVER, n) for n in numbers])
    return Batch(kind=BatchKind.BULK, groups=groups, first=0, last=len(numbers))


def mysql_event(server: uuid.UUID, number: int, kind: int = 33) -> bytes:
    head = bytes(4) + bytes([kind]) + bytes(4) + (44).to_bytes(4, "little") + bytes(6)
    return head + b"\x01" + server.bytes + number.to_bytes(8, "little")


def mariadb_event(domain: int, server: int, sequence: int) -> bytes:
    head = bytes(4) + bytes([162]) + server.to_bytes(4, "little") + (31).to_bytes(4, "little") + bytes(6)
    return head + sequence.to_bytes(8, "little") + domain.to_bytes(4, "little")


def gtid_groups(events: list[bytes]) -> RelayGroups:
    """Groups that begin with these events (offsets only; nothing else is read)."""
    groups = demo_groups()
    count = len(events)
    scan: Any = replace(
        groups.scan,
        kind=np.full(count, GroupKind.ROWS),
        gtid_offset=np.cumsum([0] + [len(e) for e in events[:-1]]),
        start=np.zeros(count, np.int64),
        end=np.zeros(count, np.int64),
    )
    data = np.frombuffer(b"".join(events), np.uint8)
    return replace(groups, scan=scan, data=data)


def test_mysqls_numbers_join_to_intervals() -> None:
    assert executed_after("", mysql_batch([3, 1, 2, 7, 8, 10])) == f"{SERVER}:1-3:7-8:10"
    assert executed_after(f"{SERVER}:4-6", mysql_batch([1, 2, 3, 7])) == f"{SERVER}:1-7"


def test_gtids_of_the_other_vendors_server_are_forgotten() -> None:
    """The channel has another source now, by file and position."""
    assert executed_after("0-27878-7", mysql_batch([3])) == f"{SERVER}:3"
    groups = demo_groups()
    assert executed_after(
        f"{SERVER}:1-3", Batch(kind=BatchKind.BULK, groups=groups, first=0, last=len(groups.scan))
    ).startswith("0-1-")


def test_groups_without_gtids_leave_the_set_alone() -> None:
    groups = demo_groups()
    batch = Batch(kind=BatchKind.SKIP, groups=groups, first=0, last=1)
    assert executed_after("0-9-9", batch) == "0-9-9"
