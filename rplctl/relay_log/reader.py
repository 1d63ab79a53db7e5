"""Reads the relay log for the applier, in another process than the receiver, which writes it.

An *event group* is a transaction, a single statement, or control events between them. Invariants:
* Only complete, intact groups are returned, in the order of the source and without a gap. So each file must begin
  where the previous one ended.
* A position in the relay log is used only if a transaction ends there *and* it agrees with the executed position.
  Otherwise, the executed position is looked up in the relay logs, because they may have been fetched again (WL#4621). A
  channel with GTIDs looks up the executed GTIDs instead. After a failover to another source, the same transactions have
  other positions.
* If the next events have not arrived yet, `open` returns False, and `groups` returns None. Damage raises
  RelayLogError 1594. The error is `transient` if the receiver's recovery can repair the damage. So the applier tries
  again, for example if both threads were just started and the receiver has not yet run recovery.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.errors import BinlogFormatError, RelayLogError, for_channel
from rplctl.event.format_description import CHECKSUM_OFF, FormatDescription
from rplctl.event.header import parse_header
from rplctl.event.jit import ByteArray
from rplctl.event.scan import GroupKind, GroupScan, scan_groups
from rplctl.info import RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, RelayLogPosition
from rplctl.relay_log.gtid import find_place_by_gtid
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.locate import RelayLogPlace, boundary_at, find_place, out_of_order
from rplctl.relay_log.log_file import (
    boundary_after,
    first_groups,
    intact_end,
    mapped_file,
    new_descriptions,
    read_start,
    start_of,
)
from rplctl.relay_log.useful import reason_not_to_apply

FETCH_AGAIN = "to fetch the relay logs again, run: rplctl stop; rplctl recover --refetch; rplctl start"
RECOVER = "to repair the relay logs, run: rplctl stop; rplctl recover; rplctl start"


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayGroups:
    """Complete event groups of one relay log that share one format description. `scan` has their offsets in the file.

    An event group is a transaction, a single statement, or control events that only move the position.
    """

    path: Path
    log_name: str
    data: ByteArray  # the mapped file, which stays valid before `end.log_pos`
    scan: GroupScan
    format_description: FormatDescription | None  # None: the source sent none yet, so all groups are of kind CONTROL
    start: RelayLogPosition
    start_source: BinlogPosition
    end: RelayLogPosition  # Relay_Log_Pos after these groups are applied
    end_source: BinlogPosition  # Exec_Master_Log_Pos after these groups are applied


class RelayLogReader:
    """A reader of one channel's relay logs.

    Each call of `groups` returns the next transactions, and moves the reader's position past them.

    `verify_checksums`: if False, the reader does not verify CRC32, because the code that decodes the events does it
    (for example the Spark tasks, in parallel). `by_gtid`: True if the reader finds its position by the executed GTIDs.
    Such a reader raises a transient error if the relay log at its position is fetched again, because only `open` can
    find the position. `source_place`: MasterInfo's address of the source. If it is not empty, `open` checks that the
    relay logs come from this source.
    """

    def __init__(
        self, channel: Channel, *, verify_checksums: bool = True, by_gtid: bool = False, source_place: str = ""
    ) -> None:
        self._channel = channel
        self._by_gtid, self.source_place = by_gtid, source_place
        self._index = RelayLogIndex(channel)
        self._verify = verify_checksums
        self._place: RelayLogPlace | None = None
        self._seen_size = -1  # the size of the current file when it had no further group
        self._seen: tuple[object, ...] | None = None  # the state of the index and this file at that time

    @property
    def position(self) -> RelayLogPosition:
        """The relay log position of the next event group, or the empty position before `open` has succeeded."""
        return self._place.position if self._place else RelayLogPosition("", 0)

    @property
    def source_position(self) -> BinlogPosition:
        return self._place.boundary.source if self._place else BinlogPosition("", FIRST_EVENT_POSITION)

    @property
    def source_server_id(self) -> int:
        """The server id of the source that sent the events before the position, or 0 if it is unknown."""
        event = self._place.boundary.source_format_description if self._place else b""
        return parse_header(event).server_id if event else 0

    def open(self, info: RelayLogInfo) -> bool:
        """Move the reader to the applier's position in `info`.

        Return False if the receiver has not fetched this position yet. The caller then tries again later. If `info` has
        no usable relay log position, the executed GTIDs or the executed position determine the position. If `info` has
        neither of them, the reader begins at the start of the first relay log. Raises RelayLogError if no position is
        found.
        """
        self._place, self._seen_size = None, -1
        names = self._index.names()
        place = self.source_place
        if place and (why := reason_not_to_apply(self._index, names, info, place, by_gtid=self._by_gtid)):
            raise self._useless(why, info)
        if info.relay_log_name in names:
            at = boundary_at(self._index.path(info.relay_log_name), info.relay_log_pos)
            if at and (not info.master_log_name or at.source == info.exec_position):
                self._place = RelayLogPlace(info.relay_log_name, at)
        if self._place is None and self._by_gtid and info.gtid_executed:
            self._place = find_place_by_gtid(self._index, info.gtid_executed)
        elif self._place is None and info.master_log_name:
            self._place = find_place(self._index, info.exec_position)
        elif self._place is None and names:
            if info.relay_log_name:
                raise self._error(f"relay log position {info.relay_log_position} is not the end of a transaction")
            with mapped_file(self._index.path(names[0])) as data:
                self._place = RelayLogPlace(names[0], read_start(data).boundary)
        if self._place is not None and not info.master_log_name:
            self._check_order(names)
        return self._place is not None

    def _useless(self, why: str, info: RelayLogInfo) -> RelayLogError:
        """Return the error for relay logs that do not continue the stored records, with the reason `why`.

        The error is transient, because the receiver's recovery removes these relay logs when it connects.
        """
        return RelayLogError(
            why,
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            channel=self._channel.name,
            position=str(info.exec_position),
            hint=f"to fetch the relay logs again, run: {for_channel('rplctl stop; rplctl start', self._channel.name)}",
            transient=True,
        )

    def locate(self, exec_position: BinlogPosition) -> RelayLogPosition | None:
        """Return the position in the relay log for a position in the source's log.

        Return None if the relay log ends before `exec_position`. Raises RelayLogError if the relay log is damaged.
        """
        place = find_place(self._index, exec_position)
        return place.position if place else None

    def groups(self, limit_bytes: int) -> RelayGroups | None:
        """Return the next complete event groups (transactions) and move the reader past them.

        Return None if no complete event group has arrived yet. The groups are in one file and have one format
        description. There is at least one group, and they have about `limit_bytes` bytes at most. Raises RelayLogError
        1594 if the next event is damaged.
        """
        if self._place is None:
            return None
        before = self._looks()
        if before is not None and before == self._seen and self._seen_size >= 0:
            return None
        while True:
            names = self._index.names()  # read before the file, because a file with a listed successor is finished
            if self._place.log_name not in names:
                self._look_up_again()
                return None
            is_last = self._place.log_name == names[-1]
            try:
                found = self._next_groups(self._place, limit_bytes, is_last)
            except FileNotFoundError:
                self._look_up_again()
                return None
            except RelayLogError:
                if is_last or not self.continues(names):
                    raise
                found = None  # the damaged bytes are after the end of a finished file
            if found is not None:
                return found
            if is_last:
                self._seen = before
                return None
            self._enter(names[names.index(self._place.log_name) + 1])

    def _looks(self) -> tuple[object, ...] | None:
        """Return a value that changes if the index was replaced or if the current file has another size.

        `groups` compares two such values, to find out quickly that nothing has arrived. Return None if a file is
        missing.
        """
        assert self._place is not None
        try:
            index = self._index.channel.relay_log_index_path.stat()
            size = self._index.path(self._place.log_name).stat().st_size
        except OSError:  # the error is reported when these files are read
            return None
        return index.st_ino, index.st_mtime_ns, self._place.log_name, size

    def continues(self, names: list[str]) -> bool:
        """True if the next relay log in `names` begins exactly at the reader's position."""
        following = names[names.index(self._place.log_name) + 1] if self._place else ""
        return bool(following) and start_of(self._index.path(following)) == self.source_position

    def _next_groups(self, place: RelayLogPlace, limit_bytes: int, is_last: bool) -> RelayGroups | None:
        path = self._index.path(place.log_name)
        with mapped_file(path) as data:
            if len(data) == self._seen_size:
                return None
            # Recovery may have cut the file at a damaged transaction before the reader's position.
            if len(data) < place.boundary.offset:
                raise FileNotFoundError(path)
            scan = self._scan(data, place, limit_bytes, is_last)
            if not len(scan):
                self._seen_size = len(data) if is_last else -1
                return None
            scan, description = one_description(scan, place.boundary.description)
            end = boundary_after(data, place.boundary, scan)
        self._place, self._seen_size = RelayLogPlace(place.log_name, end), -1
        start, source = place.position, place.boundary.source
        return RelayGroups(
            path=path,
            log_name=place.log_name,
            data=data,
            scan=scan,
            format_description=description,
            start=start,
            start_source=source,
            end=self._place.position,
            end_source=end.source,
        )

    def _scan(self, data: ByteArray, place: RelayLogPlace, limit_bytes: int, is_last: bool) -> GroupScan:
        """Return a scan of the complete event groups from `place` up to the first damaged event.

        Raises RelayLogError if the very next event is damaged. `is_last`: True if the file is the newest one, in which
        recovery can repair the damage.
        """
        at = place.boundary
        damage: BinlogFormatError | None = None
        try:
            scan = scan_groups(data, at.offset, at.source, limit_bytes, at.description)
        except BinlogFormatError as error:
            damage = error
            scan = scan_groups(data[: int(error.position)], at.offset, at.source, limit_bytes, at.description)
        if self._verify and len(scan):
            algorithm = at.description.checksum_algorithm if at.description else CHECKSUM_OFF
            intact = intact_end(data[: scan.complete_end], at.offset, algorithm)
            if intact < scan.complete_end:
                text = "Event crc check failed! Most likely there is event corruption."
                damage = BinlogFormatError(f"{text} Offset {intact}", position=str(intact))
                scan = first_groups(scan, int(np.searchsorted(scan.end, intact, side="right")))
        if damage is not None and not len(scan):
            raise self._error(
                f"Relay log read failure: Could not parse relay log event entry: {place.log_name}: {damage.message}",
                hint=RECOVER if is_last else FETCH_AGAIN,
                transient=True,
            ) from damage
        return scan

    def _enter(self, name: str) -> None:
        """Move the reader to the start of the next relay log, which must begin where the current one ended.

        If the next relay log begins earlier, because it was fetched again, the events that were already read are
        skipped. Raises RelayLogError if events are missing or if the start of the file is damaged.
        """
        assert self._place is not None
        here = self._place.boundary.source
        try:
            with mapped_file(self._index.path(name)) as data:
                start = read_start(data)
        except BinlogFormatError as error:
            raise self._error(f"Relay log read failure: {name}: {error.message}", transient=True) from error
        begins = start.source
        if not begins.log_name:  # a part of the header is lost, so the order of the files is unknown
            raise self._error(f"relay log {name} does not say where it begins", transient=True)
        if begins == here or not here.log_name:
            self._place = RelayLogPlace(name, start.boundary)
        elif self._by_gtid:
            raise self._error(f"relay log {name} begins at {begins}, but the position is {here}", transient=True)
        elif begins.is_before(here):  # the file was fetched again from an earlier position
            place = find_place(self._index, here)
            if place is None or place.log_name == self._place.log_name:
                raise self._error(f"relay log {name} begins at {begins} but does not reach {here}", transient=True)
            self._place = place
        else:
            raise self._error(
                f"events are missing between {here} in {self._place.log_name} and {begins} in {name}",
                hint=FETCH_AGAIN,
                transient=True,
            )
        self._seen_size = -1

    def _check_order(self, names: list[str]) -> None:
        """Raise RelayLogError if the relay logs do not follow one another.

        This check is only necessary if no executed position confirms the reader's position.
        """
        try:
            wrong = out_of_order(self._index, names, by_gtid=self._by_gtid)
        except FileNotFoundError:  # the receiver's recovery is replacing the relay logs
            self._place = None
            return
        if wrong:
            self._place = None
            raise self._error(f"the relay logs are out of order: {wrong}", transient=True)

    def _look_up_again(self) -> None:
        """Find the reader's source position again, after the relay log with this position was removed or cut.

        With GTIDs, raise a transient RelayLogError instead, because only `open` can find the position again.
        """
        assert self._place is not None
        if self._by_gtid:
            raise self._error(f"relay log {self._place.log_name} was fetched again", transient=True)
        found = find_place(self._index, self._place.boundary.source)
        if found is not None:
            self._place, self._seen_size = found, -1

    def _error(self, message: str, *, hint: str = RECOVER, transient: bool = False) -> RelayLogError:
        return RelayLogError(
            message,
            errno=er.SLAVE_RELAY_LOG_READ_FAILURE,
            channel=self._channel.name,
            position=str(self.position),
            hint=hint,
            transient=transient,
        )


def one_description(scan: GroupScan, in_force: FormatDescription | None) -> tuple[GroupScan, FormatDescription | None]:
    """Return the first event groups of the scan that share one FORMAT_DESCRIPTION, together with this description.

    `in_force`: the description in force at the start of the scan, None before the first one.
    """
    for offset, description in new_descriptions(scan):
        group = int(np.searchsorted(scan.start, offset))
        if not _reads_alike(description, in_force) and np.any(scan.kind[:group] != GroupKind.CONTROL):
            return first_groups(scan, group), in_force
        in_force = description
    return scan, in_force


def _reads_alike(one: FormatDescription, other: FormatDescription | None) -> bool:
    return other is not None and replace(one, created=0) == replace(other, created=0)
