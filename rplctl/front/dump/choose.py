"""Finds the log file and the offset at which a dump begins, and refuses a dump that cannot continue (error 1236).

    client                    start of the dump
    MariaDB, with GTIDs       the newest log before which all transactions are included in the replica's GTID position
    MySQL, with a GTID set    the newest log before which all transactions are included in the replica's GTID set
    file and offset           this offset in this file; '' is the first log. Tools request this, and also a receiver of
                              rplctl that compares its relay logs with the source

Invariant: the logs contain every transaction that the replica lacks, from the start of the dump on.
"""

from __future__ import annotations

import os

from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.jit import byte_view
from rplctl.event.scan import event_offsets
from rplctl.front.dump.request import DumpRequest
from rplctl.front.dump.sendable import CHUNK, SendableLog, fatal, purged
from rplctl.plain_file import closing_descriptor, open_plain
from rplctl.position import FIRST_EVENT_POSITION
from rplctl.relay_log.index import RelayLogIndex


def choose(log: SendableLog, request: DumpRequest, own_uuid: str) -> tuple[str, int]:
    """Return the name of the log file and the offset at which the dump begins.

    `own_uuid`: the UUID of this instance. Raises RplError 1236 if the dump cannot continue after the requested GTIDs,
    or at the requested position. Raises OSError if a file cannot be read.
    """
    names = log.names()
    if not names:
        raise fatal("the binary log is empty: no transaction was applied since log_bin was set")
    if request.gtids is None:
        return _by_position(log, request, names)
    if log.start(names[-1]).description.is_mariadb != isinstance(request.gtids, MariadbGtidState):
        raise fatal("the GTIDs of the replica and those of the binary log are of different vendors")
    if isinstance(request.gtids, MariadbGtidState):
        _refuse_diverged(request.gtids, MariadbGtidState.parse(log.executed()))
        for name in reversed(names):
            if MariadbGtidState.parse(log.start(name).executed).is_subset_of(request.gtids):
                return name, FIRST_EVENT_POSITION
    else:
        _refuse_own(request.gtids, MysqlGtidSet.parse(log.executed()), own_uuid)
        for name in reversed(names):
            if MysqlGtidSet.parse(log.start(name).executed).is_subset_of(request.gtids):
                return name, FIRST_EVENT_POSITION
    raise fatal(
        "the logs that hold the GTID state of this replica were purged, or log_bin was set later: "
        f"the first log, {names[0]}, begins after '{log.start(names[0]).executed[:500]}'"
    )


def _refuse_diverged(wanted: MariadbGtidState, executed: MariadbGtidState) -> None:
    for domain, (server, number) in wanted.domains.items():
        ours = executed.domains.get(domain)
        if ours is not None and (number > ours[1] or (number == ours[1] and server != ours[0])):
            raise fatal(
                f"the replica begins at GTID {domain}-{server}-{number}, which is not in the master's binlog: "
                f"the last one of the domain is {domain}-{ours[0]}-{ours[1]}"
            )


def _refuse_own(wanted: MysqlGtidSet, executed: MysqlGtidSet, own_uuid: str) -> None:
    """Raise RplError 1236 if the replica has more GTIDs with the UUID of this instance than this instance itself.

    `wanted`: the GTIDs of the replica. `executed`: the GTIDs of this instance. A MySQL server makes the same check.
    """
    own = {source: spans for source, spans in wanted.intervals.items() if source[0] == own_uuid}
    if more := MysqlGtidSet(own).subtract(executed):
        raise fatal(f"the replica has more GTIDs than the source has, of the source's own server_uuid: {more}")


def _by_position(log: SendableLog, request: DumpRequest, names: list[str]) -> tuple[str, int]:
    name = request.log_name or names[0]
    if name not in names:
        raise purged(name)
    if request.position > FIRST_EVENT_POSITION and not _is_boundary(log, name, request.position):
        raise fatal(f"the client begins at an impossible position: no event of {name} begins at {request.position}")
    return name, request.position


def _is_boundary(log: SendableLog, name: str, position: int) -> bool:
    """True if an event begins at the position, or if the sendable part of the log ends at the position."""
    end = log.look(name).end
    with closing_descriptor(open_plain(RelayLogIndex(log.files).path(name), follow=False)) as descriptor:
        offset = FIRST_EVENT_POSITION
        while offset < position <= end:
            data = byte_view(os.pread(descriptor, min(CHUNK, end - offset), offset))
            offsets, types = event_offsets(data)
            if len(types):
                if offset + int(offsets[-1]) >= position:
                    return bool((offsets == position - offset).any())
                offset += int(offsets[-1])
            elif len(data) < HEADER_LENGTH:
                return False
            else:
                offset += int.from_bytes(data[9:13].tobytes(), "little")
    return offset == position
