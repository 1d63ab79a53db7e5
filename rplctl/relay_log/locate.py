"""Finds the place in the relay logs for a position in the source's log, and checks the order of relay logs.

Invariant: a place that is found is between two transactions, and has exactly the requested source position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, RelayLogError, for_channel
from rplctl.event.header import HEADER_LENGTH, parse_header
from rplctl.event.jit import ByteArray
from rplctl.event.scan import GroupKind, GroupScan
from rplctl.info import RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, RelayLogPosition, log_number, numbered_log_name
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import (
    Boundary,
    boundary_after,
    first_groups,
    intact_lengths_end,
    last_boundary,
    last_sound_boundary,
    mapped_file,
    read_start,
    start_of,
    walk,
)


@dataclass(frozen=True, slots=True)
class RelayLogPlace:
    """A position in a relay log, between two transactions, together with the position in the source's log."""

    log_name: str
    boundary: Boundary

    @property
    def position(self) -> RelayLogPosition:
        return RelayLogPosition(self.log_name, self.boundary.offset)


def boundary_at(path: Path, offset: int) -> Boundary | None:
    """Return the boundary (file offset and source position) at exactly this offset of the file.

    A boundary is between two transactions. Return None if the offset is inside a transaction or past the end of the
    file, or if the file is damaged before the offset.
    """
    try:
        with mapped_file(path) as data:
            if offset > len(data):
                return None
            at = last_boundary(data[:offset], read_start(data).boundary)
            return at if at.offset == offset else None
    except (FileNotFoundError, BinlogFormatError):
        return None


def find_place(index: RelayLogIndex, source: BinlogPosition) -> RelayLogPlace | None:
    """Return the place (file and offset) in the relay logs for this position in the source's log.

    Return None if the relay logs end before the position, so that the receiver must fetch more. Raises RelayLogError if
    the relay logs begin after the position or lack events before it, or if the position `source` is inside a
    transaction.
    """
    names = index.names()
    for name in reversed(names):
        start = start_of(index.path(name))
        if start is None or not (start.log_name or name == names[0]) or source.is_before(start):
            continue
        place = _find_in_file(index, name, source)
        if place is None and name != names[-1]:
            raise _unreachable(index, source, f"the relay logs have a gap after {name}")
        return place
    if names:
        raise _unreachable(index, source, f"the first relay log {names[0]} begins after this position")
    return None


def first_fetched(
    index: RelayLogIndex, names: Sequence[str], info: RelayLogInfo, *, by_gtid: bool
) -> BinlogPosition | None:
    """Return the position in the source's log at which the receiver began to fetch, if the applier has applied nothing
    yet.

    Return None if something is applied, if the applier's first relay log is missing, or if the start of a relay log is
    damaged. If the relay logs are out of order, a channel without GTIDs began to fetch at the lowest start position.
    For a channel with GTIDs, return None if they are out of order, because its relay logs may have positions of several
    sources.
    """
    first = info.relay_log_name or numbered_log_name(index.channel.relay_log_base, 1)
    at_start = info.relay_log_pos <= FIRST_EVENT_POSITION and not (info.master_log_name or info.gtid_executed)
    begins = [start_of(index.path(name)) for name in names]
    known = [start for start in begins if start is not None and start.log_name]
    if not at_start or not names or names[0] != first or len(known) < len(begins):
        return None
    if not out_of_order(index, names, by_gtid=by_gtid):
        return known[0]
    return None if by_gtid else min(known, key=BinlogPosition.order_key)


def out_of_order(index: RelayLogIndex, names: Sequence[str], *, by_gtid: bool) -> str:
    """Return a text that proves that the relay logs are out of order, or '' if they are in order.

    The relay logs are out of order if a relay log does not begin where the previous one ends. To save time, a channel
    without GTIDs checks this only for each relay log that does not begin after the start of the previous one. Every
    wrong order has such a relay log. A channel with GTIDs checks all relay logs, because they may contain positions of
    several sources.
    """
    for name, following in pairwise(names):
        start, begins = start_of(index.path(name)), start_of(index.path(following))
        if start is None or begins is None or (not by_gtid and start.is_before(begins)):
            continue
        with mapped_file(index.path(name)) as data:
            first = read_start(data).boundary
            ends = last_sound_boundary(data[: intact_lengths_end(data, first.offset)], first).source
        if not follows(ends, begins):
            return f"{name} can be read to {ends}, {following} begins at {named(begins)}"
    return ""


def follows(ends: BinlogPosition, begins: BinlogPosition) -> bool:
    """True if a relay log that begins at `begins` may follow a relay log that ends at `ends`.

    Both are positions in the source's log. If the header of a relay log is damaged, its begin is unknown, and the
    result is False.
    """
    return bool(begins.log_name) and (ends == begins or not ends.log_name)


def named(place: BinlogPosition | None) -> str:
    """Return a position as text for messages. Without a log name, the text is "an unknown position"."""
    return str(place) if place is not None and place.log_name else "an unknown position"


def _find_in_file(index: RelayLogIndex, name: str, source: BinlogPosition) -> RelayLogPlace | None:
    with mapped_file(index.path(name)) as data:
        at = read_start(data).boundary
        if at.source == source:
            return RelayLogPlace(name, at)
        intact = data[: intact_lengths_end(data, at.offset)]
        before = at
        for scan, after in walk(intact, at):
            group = _first_at_or_after(scan, source)
            if group is not None:
                boundary = _boundary_in(data, before, scan, group, source)
                if boundary is None:
                    raise _unreachable(index, source, f"it is inside a transaction of {name}")
                return RelayLogPlace(name, boundary)
            before = after
    return None


def _first_at_or_after(scan: GroupScan, source: BinlogPosition) -> int | None:
    """Return the index of the first event group (transaction) in the scan that ends at or after the position `source`.

    Return None if all event groups in the scan end before `source`.
    """
    numbers = np.array([log_number(name) for name in scan.log_names], dtype=np.int64)[scan.source_log]
    wanted = log_number(source.log_name)
    reached = (numbers > wanted) | ((numbers == wanted) & (scan.source_end >= source.log_pos))
    return int(np.argmax(reached)) if reached.any() else None


def _boundary_in(
    data: ByteArray, before: Boundary, scan: GroupScan, group: int, source: BinlogPosition
) -> Boundary | None:
    """Return the boundary (file offset and source position) at a source position where an event group ends or begins.

    `group`: the index of the event group in the scan. `before`: the boundary at the start of the scan. If the group
    ends at the position, the boundary is after the group. If the group begins there, or only moves the position (kind
    CONTROL), the boundary is before the group, with `source` as its source position. Return None if the position is
    inside the group.
    """
    if scan.source_position(group) == source:
        return boundary_after(data, before, first_groups(scan, group + 1))
    if scan.kind[group] != GroupKind.CONTROL and not _begins_at(data, scan, group, source):
        return None
    earlier = boundary_after(data, before, first_groups(scan, group)) if group else before
    return replace(earlier, source=source)


def _begins_at(data: ByteArray, scan: GroupScan, group: int, source: BinlogPosition) -> bool:
    first = int(scan.start[group])
    header = parse_header(data[first : first + HEADER_LENGTH].tobytes())
    begins = (header.end_log_pos - header.event_length) & 0xFFFFFFFF
    is_known = header.end_log_pos and scan.source_position(group).log_name == source.log_name
    return bool(is_known) and begins == source.log_pos & 0xFFFFFFFF


def _unreachable(index: RelayLogIndex, source: BinlogPosition, why: str) -> RelayLogError:
    """Return a transient error with the reason `why`, for a position that the relay logs do not have.

    The error is transient because the receiver's recovery discards such relay logs and fetches them again.
    """
    return RelayLogError(
        f"the relay logs do not contain the executed position {source}: {why}",
        errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
        channel=index.channel.name,
        position=str(source),
        hint="to fetch the relay logs from this position again, run: "
        f"{for_channel('rplctl stop; rplctl start', index.channel.name)}",
        transient=True,
    )
