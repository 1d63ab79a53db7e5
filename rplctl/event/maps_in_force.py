"""Find the table map for each rows event: the last table map before the event that has the same table id."""

from __future__ import annotations

from typing import Any

import numpy as np

from rplctl.event.jit import lean_kernel
from rplctl.event.rows import Ints


def maps_in_force(map_places: Ints, map_kinds: Ints, ids: Ints, event_places: Ints, event_ids: Ints) -> Ints:
    """Return the kind of the table map that is in force for each rows event, or -1 if there is none.

    `map_places` and `event_places` are positions in the log, in log order: offsets, or indexes of events. `map_kinds`
    has the kind of each map: its index among the distinct maps. `ids` has the table id of each kind.
    """
    slots = np.full(max(16, 1 << (2 * len(ids)).bit_length()), -1, np.int64)  # table id → its last kind; half empty
    found = np.empty(len(event_places), np.int64)
    _follow(map_places, map_kinds, ids, event_places, event_ids, slots, found)
    return found


@lean_kernel
def _slot_of(slots: Any, ids: Any, table_id: Any) -> Any:
    mask = np.uint64(len(slots) - 1)
    slot = (np.uint64(table_id) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & mask
    while slots[slot] >= 0 and ids[slots[slot]] != table_id:
        slot = (slot + np.uint64(1)) & mask
    return slot


@lean_kernel
def _follow(
    map_places: Any, map_kinds: Any, ids: Any, event_places: Any, event_ids: Any, slots: Any, found: Any
) -> None:
    following = 0
    for i in range(len(event_places)):
        while following < len(map_places) and map_places[following] < event_places[i]:
            kind = map_kinds[following]
            slots[_slot_of(slots, ids, ids[kind])] = kind
            following += 1
        found[i] = slots[_slot_of(slots, ids, event_ids[i])]
