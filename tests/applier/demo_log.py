"""A recorded binary log (the demo's) as if the receiver had just written it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rplctl.demo
from rplctl.event.scan import scan_groups
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups

FOLDER = Path(rplctl.demo.__file__).parent / "data"


def demo_groups(name: str = "binlog.000001", limit_bytes: int = 1 << 30) -> RelayGroups:
    return groups_of(FOLDER / name, limit_bytes)


def groups_of(path: Path, limit_bytes: int = 1 << 30) -> RelayGroups:
    """Of any binary log of a server, its name ending in six digits."""
    name = path.name
    data = np.fromfile(path, np.uint8)
    scan = scan_groups(data, 4, BinlogPosition(name, 4), limit_bytes)
    relay = f"relay-bin.{name[-6:]}"
    return RelayGroups(
        path=path,
        log_name=relay,
        data=data,
        scan=scan,
        format_description=scan.description_at(int(scan.end[-1])),
        start=RelayLogPosition(relay, 4),
        start_source=BinlogPosition(name, 4),
        end=RelayLogPosition(relay, int(scan.end[-1])),
        end_source=scan.end_position,
    )
