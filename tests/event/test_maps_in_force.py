"""A rows event is read with the last map of its id before it, whatever other tables' maps lie between."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from rplctl.event.maps_in_force import maps_in_force


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=60), st.integers(0, 1 << 48))
def test_each_event_has_the_last_map_of_its_id(log: list[tuple[bool, int]], lowest: int) -> None:
    """Two kinds of map for each of four ids: a table altered keeps its id where a server reuses it."""
    ids = [(lowest + kind // 2 * 64) % (1 << 48) for kind in range(8)]
    last: dict[int, int] = {}
    maps, events, expected = [], [], []
    for place, (is_map, kind) in enumerate(log):
        if is_map:
            maps.append((place, kind))
            last[ids[kind]] = kind
        else:
            events.append((place, ids[kind]))
            expected.append(last.get(ids[kind], -1))
    map_starts, kinds = np.array(maps, np.int64).reshape(-1, 2).T
    event_starts, event_ids = np.array(events, np.int64).reshape(-1, 2).T
    assert maps_in_force(map_starts, kinds, np.array(ids), event_starts, event_ids).tolist() == expected
