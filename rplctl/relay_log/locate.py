"""Finds relay log coordinates for source coordinates, and checks transaction ends and the order of relay logs.

Invariant: a position that is found is between two transactions, and has exactly the requested source position.
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
    """A position in a relay log, between two transactions, with the position in the source's log."""

    log_name: str
    boundary: Boundary

    @property
    def position(self) -> RelayLogPosition:
        return RelayLogPosition(self.log_name, self.boundary.offset)


def boundary_at(path: Path, offset: int) -> Boundary | None:
    """Return the boundary at exactly this offset; None if it is in a transaction, past the end, or damaged."""
    try:
        with mapped_file(path) as data:
            if offset > len(data):
                return None
            at = last_boundary(data[:offset], read_start(data).boundary)
            return at if at.offset == offset else None
    except (FileNotFoundError, BinlogFormatError):
        return None


def find_place(index: RelayLogIndex, source: BinlogPosition) -> RelayLogPlace | None:
    """Return the relay log position of this source position; None if the relay log ends before it.

    The receiver then has to fetch more. Raises RelayLogError if the relay logs begin after the source position or have
    a gap at it, or if the source position is inside a transaction.
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
    """Return the source position at which fetching began, if nothing is applied yet; None if it cannot be determined.

    None also if the applier's first relay log is gone or a start is damaged. If the first relay log exists, no relay
    log was removed. If relay logs without GTIDs are out of order, the lowest start is where fetching began.
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
    """Return a text that proves that relay logs are out of order: one does not begin where the one before it ends; ''
    if they are in order.

    Without GTIDs, only a log that begins no later than its predecessor is checked: if any two logs are out of order,
    there is such a log. With GTIDs, positions of several sources occur, so all are read.
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
    """True if a relay log that begins at `begins` may follow one that ends at `ends`.

    A log with an unknown begin, whose header is damaged, follows no other log.
    """
    return bool(begins.log_name) and (ends == begins or not ends.log_name)


def named(place: BinlogPosition | None) -> str:
    """Return a position as text for messages."""
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
    """Return the number of the first group that ends at or after the source position."""
    numbers = np.array([log_number(name) for name in scan.log_names], dtype=np.int64)[scan.source_log]
    wanted = log_number(source.log_name)
    reached = (numbers > wanted) | ((numbers == wanted) & (scan.source_end >= source.log_pos))
    return int(np.argmax(reached)) if reached.any() else None


def _boundary_in(
    data: ByteArray, before: Boundary, scan: GroupScan, group: int, source: BinlogPosition
) -> Boundary | None:
    """Return the boundary of a group at the source position; None if the position is inside the group.

    It is after the group if the group ends exactly at the position. It is before the group if the group only moves
    positions, or begins at the position: after its log's FORMAT_DESCRIPTION, which moves no position as a relay log's
    second event.
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
    """Return a transient error with the reason `why`: the receiver's recovery discards unusable relay logs and fetches
    again.
    """
    return RelayLogError(
        f"the relay logs do not have the executed position {source}: {why}",
        errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
        channel=index.channel.name,
        position=str(source),
        hint="to fetch the relay logs from this position again, run: "
        f"{for_channel('rplctl stop; rplctl start', index.channel.name)}",
        transient=True,
    )
