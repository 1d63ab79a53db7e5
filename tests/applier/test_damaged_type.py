"""A flipped bit in an event's type: whatever the event looks like then, nothing is passed over and nothing is changed.

The checksum tells. But a transaction in which a STOP seems to stand was cut short by its source, and an event of a type
that nobody knows seems to ask for another version of rplctl: neither is decoded by a task.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.scan import event_offsets, scan_groups
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups
from tests.applier.demo_log import demo_groups
from tests.applier.instance import Instance

WHOLE = demo_groups()
OFFSETS, TYPES = event_offsets(WHOLE.data, 4)
FLIPS = [(event, bit) for event in range(len(TYPES)) for bit in range(8)]
LIKE_STOP = [(event, 4) for event in np.flatnonzero(TYPES == EventType.TABLE_MAP).tolist()][:3]


def as_read(path: Path) -> RelayGroups:
    """Groups up to the first that is none, as the reader hands them out."""
    data, source = np.fromfile(path, np.uint8), BinlogPosition("binlog.000001", 4)
    try:
        scan = scan_groups(data, 4, source, 1 << 30)
    except BinlogFormatError as error:
        scan = scan_groups(data[: int(error.position)], 4, source, 1 << 30)
    relay = WHOLE.log_name
    description = scan.description_at(max(scan.complete_end - 1, 4))
    end = RelayLogPosition(relay, scan.complete_end)
    return RelayGroups(
        path=path,
        log_name=relay,
        data=data,
        scan=scan,
        format_description=description,
        start=WHOLE.start,
        start_source=source,
        end=end,
        end_source=scan.end_position,
    )


def state(instance: Instance) -> list[Any]:
    names = instance.query("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%\\_\\_%' ESCAPE '\\'")
    return [(name, instance.query(f'SELECT * FROM "{name}" ORDER BY 1')) for (name,) in sorted(names)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    instance = Instance(tmp_path_factory.mktemp("whole"))
    instance.apply(WHOLE)
    found = state(instance)
    instance.target.close()
    assert sum(len(rows) for _, rows in found) > 10
    return found


@pytest.mark.long("tests/stories/test_failures.py has damaged events in make test; this damage is one byte of a type.")
@pytest.mark.slow
@pytest.mark.parametrize(
    "flips",
    [
        [*LIKE_STOP, *random.Random(3970).sample(FLIPS, 9)],
        pytest.param(random.Random(4621).sample(FLIPS, 200), marks=pytest.mark.torture),
    ],
    ids=["some", "many"],
)
def test_it_stops_at_its_transaction_and_goes_on_when_it_is_fetched_again(
    flips: list[tuple[int, int]], expected: list[Any], tmp_path: Path
) -> None:
    whole = WHOLE.data.tobytes()
    for event, bit in flips:
        at = int(OFFSETS[event]) + 4
        damaged = tmp_path / f"{event}-{bit}.000001"
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        groups = as_read(damaged)
        instance = Instance(tmp_path / f"{event}-{bit}", groups)
        case = f"event {event} at {at - 4}, {EventType(int(TYPES[event])).name} ^ {1 << bit}"
        try:
            instance.apply(groups)
        except RplError as error:
            assert error.errno in (1594, 1743), f"{case}: {error.errno} {error.message}"
        position = instance.applier.info.relay_log_pos
        assert position <= at, f"{case}: at {position}"
        first = int(np.searchsorted(WHOLE.scan.start, position))
        assert position in (int(WHOLE.scan.start[first]), 4), f"{case}: in the middle of a transaction, {position}"
        instance.apply_from(WHOLE, first)
        assert state(instance) == expected, case
        instance.target.close()
