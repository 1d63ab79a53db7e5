"""The scenarios of tests/tools/record_scenarios.py as the applier sees them, and an applier that goes by groups."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rplctl.applier.feed.plan import Batch, BatchKind
from rplctl.event.scan import GroupKind, scan_groups
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups
from tests.applier.instance import Instance

FOLDER = Path(__file__).parents[1] / "data/scenarios"
LOG = "binlog.000001"


def scenario(name: str) -> RelayGroups:
    path = FOLDER / f"{name}.binlog"
    data = np.fromfile(path, np.uint8)
    scan = scan_groups(data, 4, BinlogPosition(LOG, 4), len(data))
    start, end = (RelayLogPosition("relay-bin.000001", at) for at in (4, int(scan.end[-1])))
    description = scan.description_at(int(scan.end[-1]))
    return RelayGroups(
        path=path,
        log_name=start.log_name,
        data=data,
        scan=scan,
        format_description=description,
        start=start,
        start_source=BinlogPosition(LOG, 4),
        end=end,
        end_source=scan.end_position,
    )


def numbers_of(groups: RelayGroups, *kinds: GroupKind) -> list[int]:
    """The groups of these kinds, in their order."""
    return [int(n) for n in np.flatnonzero(np.isin(groups.scan.kind, kinds))]


def apply_in_order(instance: Instance, groups: RelayGroups, start: int = 0, stop: int | None = None) -> int:
    """Groups start … stop - 1, each as a transaction of its own in the order of its events; the row changes."""
    whole = Batch(kind=BatchKind.BULK, groups=groups, first=start, last=len(groups.scan) if stop is None else stop)
    return sum(instance.applier.apply(batch) for batch in whole.one_by_one())
