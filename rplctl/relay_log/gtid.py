"""Retrieved_Gtid_Set: the GTIDs of the complete transactions in the relay logs; and places found by GTID.

MySQL: a set, `uuid[:tag]:1-5:7,…`. MariaDB: the last GTID of each domain, `0-1-5,1-1-8`. Invariant: a transaction that
recovery cuts off is not in it, so that the source sends it again.

    GTID 33          (behind the header) flags 1, uuid 16, number 8
    MariaDB 162      sequence number 8, domain id 4; the server id is the header's
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rplctl import mysql_errors as er
from rplctl.errors import BinlogFormatError, RelayLogError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet, is_executed
from rplctl.event.gtid_event import MysqlGtid, parse_gtid
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.jit import ByteArray
from rplctl.event.scan import GroupScan
from rplctl.event.types import EventType
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import LogPlace, follows
from rplctl.relay_log.log_file import Boundary, boundary_after, event_at, first_groups, mapped_file, read_start, walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UUID = slice(HEADER_LENGTH + 1, HEADER_LENGTH + 17)
_NUMBER = slice(HEADER_LENGTH + 17, HEADER_LENGTH + 25)
_SEQUENCE = slice(HEADER_LENGTH, HEADER_LENGTH + 8)
_DOMAIN = slice(HEADER_LENGTH + 8, HEADER_LENGTH + 12)
_SERVER = slice(5, 9)
_NEEDED = HEADER_LENGTH + 25


def retrieved_gtids(index: RelayLogIndex, names: Sequence[str], last_size: int) -> str:
    """GTIDs of all complete transactions in these relay logs (the last one up to `last_size`); '' for none.

    Reads every header in them: asked for only by channels that use GTIDs. Raises BinlogFormatError when a relay log
    does not begin where the one before it ends.
    """
    numbers: dict[str, list[NDArray[np.uint64]]] = {}  # `uuid[:tag]` → transaction numbers
    domains: dict[int, str] = {}
    end: Boundary | None = None
    for name in names:
        with mapped_file(index.path(name)) as data:
            data = data[: last_size if name == names[-1] else len(data)]
            end = _begins_behind(end, name, read_start(data).boundary)
            for scan, after in walk(data, end):
                _collect(data, scan, numbers, domains)
                end = after
    return _text(numbers, domains)


def find_place_by_gtid(index: RelayLogIndex, executed: str) -> LogPlace | None:
    """Before the first transaction that is not in `executed`, else the end of the relay log; None without one.

    Raises RelayLogError 1594, transient: recovery mends or fetches again what cannot be read or is out of order.
    """
    found: LogPlace | None = None
    place: LogPlace | None = None
    before: Boundary | None = None
    try:
        for name in index.names():
            with mapped_file(index.path(name)) as data:
                before = _begins_behind(before, name, read_start(data).boundary)
                for scan, after in walk(data, before):
                    number = _first_not_in(executed, data, scan) if found is None else None
                    if number is not None:
                        at = boundary_after(data, before, first_groups(scan, number)) if number else before
                        found = LogPlace(name, at)
                    before = after
                place = LogPlace(name, before)
    except (OSError, BinlogFormatError) as error:
        raise RelayLogError(
            f"The executed GTIDs were not found in the relay logs: {error}",
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            channel=index.channel.name,
            hint="rplctl start --receiver",
            transient=True,
        ) from error
    return found or place


def _begins_behind(end: Boundary | None, name: str, start: Boundary) -> Boundary:
    """`start`, where a relay log begins. Raises BinlogFormatError when that is not the end of the one before it."""
    if end is not None and not follows(end.source, start.source):
        raise BinlogFormatError(f"{name} begins at {start.source}, the relay log before it ends at {end.source}")
    return start


def _first_not_in(executed: str, data: ByteArray, scan: GroupScan) -> int | None:
    """Number of the first group with a GTID that is not executed."""
    numbers: dict[str, list[NDArray[np.uint64]]] = {}
    domains: dict[int, str] = {}
    _collect(data, scan, numbers, domains)
    if not (numbers or domains) or is_executed(_text(numbers, domains), executed):
        return None
    mysql = MysqlGtidSet.parse(executed if ":" in executed else "")
    mariadb = MariadbGtidState.parse("" if ":" in executed else executed)
    for number in np.flatnonzero(scan.gtid_offset >= 0).tolist():
        offset = int(scan.gtid_offset[number])
        description = scan.description_at(offset)
        assert description is not None
        gtid = parse_gtid(event_at(data, offset), description)
        if isinstance(gtid, MysqlGtid):
            is_known = gtid.is_anonymous or mysql.contains(gtid.server_uuid, gtid.number, gtid.tag)
        else:
            is_known = mariadb.contains(gtid.domain, gtid.sequence)
        if not is_known:
            return int(number)
    return None


def _text(numbers: dict[str, list[NDArray[np.uint64]]], domains: dict[int, str]) -> str:
    if domains:
        return ",".join(domains[domain] for domain in sorted(domains))
    text = ",".join(f"{key}:{_intervals(np.concatenate(values))}" for key, values in numbers.items())
    return str(MysqlGtidSet.parse(text))


def _collect(
    data: ByteArray, scan: GroupScan, numbers: dict[str, list[NDArray[np.uint64]]], domains: dict[int, str]
) -> None:
    offsets = scan.gtid_offset[scan.gtid_offset >= 0]
    codes = data[offsets + 4]
    plain = offsets[codes == EventType.GTID]
    plain = plain[plain + _NEEDED <= len(data)]
    if len(plain):
        keys = data[plain[:, None] + np.arange(_UUID.start, _UUID.stop)]
        values = data[plain[:, None] + np.arange(_NUMBER.start, _NUMBER.stop)].view("<u8").ravel()
        for key in np.unique(keys, axis=0):
            of_key = values[(keys == key).all(axis=1)]
            numbers.setdefault(str(uuid.UUID(bytes=key.tobytes())), []).append(of_key)
    for offset in offsets[codes == EventType.GTID_TAGGED].tolist():
        description = scan.description_at(offset)
        gtid = parse_gtid(event_at(data, offset), description) if description else None
        if isinstance(gtid, MysqlGtid):
            key_text = f"{gtid.server_uuid}:{gtid.tag}" if gtid.tag else gtid.server_uuid
            numbers.setdefault(key_text, []).append(np.array([gtid.number], dtype=np.uint64))
    for offset in offsets[codes == EventType.MARIADB_GTID].tolist():
        domain = int.from_bytes(data[offset + _DOMAIN.start : offset + _DOMAIN.stop].tobytes(), "little")
        server = int.from_bytes(data[offset + _SERVER.start : offset + _SERVER.stop].tobytes(), "little")
        sequence = int.from_bytes(data[offset + _SEQUENCE.start : offset + _SEQUENCE.stop].tobytes(), "little")
        domains[domain] = f"{domain}-{server}-{sequence}"


def _intervals(values: NDArray[np.uint64]) -> str:
    """Transaction numbers → `1-5:7`."""
    values = np.unique(values)
    breaks = np.flatnonzero(np.diff(values) != 1)
    firsts = values[np.concatenate(([0], breaks + 1))].tolist()
    lasts = values[np.concatenate((breaks, [len(values) - 1]))].tolist()
    return ":".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(firsts, lasts, strict=True))
