"""Reads the event groups that arrive in the relay log, and determines which of them may have changed the copied tables.

An *event group* is a transaction, a single statement, or control events that only move the position. A copy and verify
use this module for a snapshot whose position is only known to be between two positions of the source's log
(`source.snapshot`). If no event between these two positions may change the tables in the snapshot, the snapshot has one
exact position for these tables.

A DDL statement that names a table counts as a change, because the name may then belong to another table. Invariant: in
case of doubt, a group counts as a change of the tables. Only transactions of plain rows leave no doubt, because their
events name the tables. XA COMMIT, compressed transactions and statements may be about any table.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Final

from rplctl.channel import Channel
from rplctl.errors import RelayLogError, SourceError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.gtid_arrays import gtids_at
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.jit import ByteArray
from rplctl.event.scan import GroupKind, scan_events
from rplctl.event.types import EventType
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import intact_lengths_end, last_sound_boundary, mapped_file, read_start
from rplctl.relay_log.reader import RelayGroups, RelayLogReader
from rplctl.schema.statement import TableName

_STEP_BYTES: Final = 16 << 20
_POLL_S: Final = 0.002
_DROPS: Final = re.compile(rb"\b(?:DROP|REPLACE)\b", re.IGNORECASE)
_DATABASE: Final = re.compile(rb"\b(?:DATABASE|SCHEMA)\b", re.IGNORECASE)
_NAMES_AT: Final = HEADER_LENGTH + 8  # a TABLE_MAP has `u8 length, name, NUL` twice here: database, then table


class Received:
    """A reader of the event groups in a channel's relay log, for one user, for example a copy or a verify.

    `server_id`: the server id of the source. With GTIDs, the relay log may begin with events of an earlier source,
    whose positions belong to another log.
    """

    def __init__(self, channel: Channel, server_id: int, *, by_gtid: bool) -> None:
        self._channel, self._server_id, self._by_gtid = channel, server_id, by_gtid
        self._reader: RelayLogReader | None = None

    def afresh(self) -> Received:
        """Return a new reader of the same relay log, for which no `begin…` method was called yet."""
        return Received(self._channel, self._server_id, by_gtid=self._by_gtid)

    @property
    def position(self) -> BinlogPosition:
        """The position in the source's log after the last event group that this reader has yielded."""
        return self._reader.source_position if self._reader else BinlogPosition("", 0)

    @property
    def place(self) -> BinlogPosition | None:
        """The position in the source's log after the last event group that this reader has yielded.

        It is None before the reader has begun. With GTIDs, it is also None while the next groups may be from an earlier
        source, whose log has other positions.
        """
        reader = self._reader
        if reader is None or (self._by_gtid and reader.source_server_id != self._server_id):
            return None
        return reader.source_position

    @property
    def is_lost(self) -> bool:
        """True if the relay log at the reader's position is missing.

        This relay log was applied and purged, or it will be fetched again.
        """
        return self._reader is not None and self._reader.position.log_name not in RelayLogIndex(self._channel).names()

    def begin(self) -> bool:
        """Skip all event groups that are already in the relay log, so that `new` yields only later ones.

        Return False if the receiver has written nothing yet. Raises RelayLogError if the relay log is damaged.
        """
        if self.is_lost:
            self._reader = None
        for _ in self.new():
            pass
        return self._reader is not None

    def begin_at(self, applied: RelayLogInfo) -> bool:
        """Begin at the position of the applier, which is in `applied`, or at the first relay log if the position is
        purged.

        Return False if there are no relay logs. Raises RelayLogError if the relay log is damaged.
        """
        reader = RelayLogReader(self._channel, verify_checksums=False, by_gtid=self._by_gtid)
        try:
            is_open = reader.open(applied)
        except RelayLogError:
            is_open = reader.open(RelayLogInfo())
        self._reader = reader if is_open else None
        return is_open

    def begin_after(self, place: BinlogPosition) -> bool:
        """Begin after this position of the source's log. Return False if no event group in the relay logs begins there.

        Raises RelayLogError if the relay log is damaged.
        """
        return (
            self.begin_at(
                RelayLogInfo(
                    relay_log_name="", relay_log_pos=0, master_log_name=place.log_name, master_log_pos=place.log_pos
                )
            )
            and self.position == place
            and (self.place == place or self._is_of_no_source)
        )

    @property
    def _is_of_no_source(self) -> bool:
        """True if the reader has not read an event of any source yet.

        The server id of the source is then unknown, so `place` is None for a channel with GTIDs. `begin_after` still
        accepts the position, because the relay log continues the previous one.
        """
        return self._reader is not None and self._reader.source_server_id == 0

    def new(self) -> Iterator[RelayGroups]:
        """Yield the event groups that arrived after the last call and before this one.

        Later groups are not yielded, because the source may write faster than this method reads. Raises RelayLogError
        if the relay log is damaged.
        """
        end = self._end()
        if self._reader is None:
            self._reader = self._opened()
        if self._reader is None or end is None:
            return
        try:
            while self._reader.position.is_before(end) and (groups := self._reader.groups(_STEP_BYTES)) is not None:
                yield groups
        except BaseException:
            self._reader = None  # the caller has not examined all groups of this reader
            raise

    def from_file_start(self) -> Iterator[RelayGroups]:
        """Yield the event groups of the newest relay log from its start.

        Raises RelayLogError if the relay log is damaged.
        """
        self._reader = self._opened(at_start=True)
        yield from self.new()

    def until(self, end: BinlogPosition, patience_s: float, wait: Callable[[float], bool]) -> Iterator[RelayGroups]:
        """Yield the event groups up to the position `end` in the source's log, and perhaps some later ones.

        `wait`: a function that waits for so many seconds; if it returns True, the method ends early. Raises SourceError
        if nothing has arrived for `patience_s` seconds, and RelayLogError if the relay log is damaged.
        """
        deadline = time.monotonic() + patience_s
        while True:
            for groups in self.new():
                deadline = time.monotonic() + patience_s
                yield groups
            if (self.place is not None and not self.place.is_before(end)) or wait(_POLL_S):
                return
            if time.monotonic() > deadline:
                raise SourceError(
                    f"the receiver does not reach {end}",
                    hint="the copy tries again by itself. To see why the receiver waits, run: rplctl show-status",
                    transient=True,
                )

    def _end(self) -> RelayLogPosition | None:
        """Return the end of the newest relay log, which may be inside an event, or None if there is no relay log."""
        index = RelayLogIndex(self._channel)
        try:
            return (
                RelayLogPosition(names[-1], index.path(names[-1]).stat().st_size) if (names := index.names()) else None
            )
        except FileNotFoundError:
            return None

    def _opened(self, *, at_start: bool = False) -> RelayLogReader | None:
        index = RelayLogIndex(self._channel)
        names = index.names()
        if not names:
            return None
        try:
            with mapped_file(index.path(names[-1])) as data:
                start = read_start(data).boundary
                end = start if at_start else last_sound_boundary(data[: intact_lengths_end(data, start.offset)], start)
        except FileNotFoundError:
            return None
        reader = RelayLogReader(self._channel, verify_checksums=False, by_gtid=self._by_gtid)
        at = end.source
        return (
            reader
            if reader.open(
                RelayLogInfo(
                    relay_log_name=names[-1],
                    relay_log_pos=end.offset,
                    master_log_name=at.log_name,
                    master_log_pos=at.log_pos,
                )
            )
            else None
        )


def changed(groups: RelayGroups, number: int, tables: frozenset[TableName] | None, seen: MysqlGtidSet) -> bool:
    """True if the event group with this number may have changed one of `tables`.

    `tables`: lower-case names, None for any table. `seen`: GTIDs whose transactions do not count.
    """
    scan = groups.scan
    kind, gtid_at = int(scan.kind[number]), scan.gtid_offset[number : number + 1]
    if kind == GroupKind.CONTROL and gtid_at[0] < 0:
        return False
    if seen and gtid_at[0] >= 0:
        gtids = gtids_at(groups.data, gtid_at, scan.description_at)[0]
        if gtids and gtids.is_subset_of(seen):
            return False
    if kind != GroupKind.ROWS or scan.has_payload[number] or tables is None:
        return True
    events = scan_events(groups.data[: int(scan.end[number])], int(scan.start[number]))
    maps = events.offsets[:-1][events.type_codes == EventType.TABLE_MAP].tolist()
    return any(_table(groups.data, at) in tables for at in maps)


def named_by_ddl(groups: RelayGroups, number: int, tables: frozenset[TableName]) -> bool:
    """True if the event group with this number is a statement whose text may name one of these tables, or drop their
    database.

    The text may name the database. Otherwise, the event contains the default database of the session.
    """
    scan = groups.scan
    is_half = scan.kind[number] == GroupKind.CONTROL and scan.gtid_offset[number] >= 0  # MariaDB's START ALTER
    if scan.kind[number] != GroupKind.QUERY and not is_half:
        return False
    start, end = int(scan.start[number]), int(scan.end[number])
    if EventType.QUERY_COMPRESSED in scan_events(groups.data[:end], start).type_codes:
        return True
    text = groups.data[start:end].tobytes()
    drops = bool(_DROPS.search(text) and _DATABASE.search(text))  # one pattern for both words would be quadratic
    return any(_may_name(text, database, "" if drops else name) for database, name in tables)


def ddl_after(groups: RelayGroups, place: BinlogPosition, tables: frozenset[TableName]) -> BinlogPosition | None:
    """Return the position after the first event group past `place` that may be a DDL statement about one of the tables.

    Return None if there is no such group. `named_by_ddl` decides about each group.
    """
    ends = ((number, groups.scan.source_position(number)) for number in range(len(groups.scan)))
    return next((at for number, at in ends if place.is_before(at) and named_by_ddl(groups, number, tables)), None)


def _may_name(text: bytes, database: str, name: str) -> bool:
    """True if the text of an event may name the table. An empty `name` means any table of the database.

    A name with characters outside ASCII may be logged in any character set, so such a name counts as found. The event
    may contain a number directly before the name of the database, and bytes of this number may look like letters. So
    the name of the database is found inside words, too.
    """
    if name and name.isascii() and "`" not in name:
        word = rb"(?<![\w$])" + re.escape(name.encode()) + rb"(?![\w$])"
        if re.search(word, text, re.IGNORECASE) is None:
            return False
    return not database.isascii() or "`" in database or database.lower().encode() in text.lower()


def alike(name: TableName) -> TableName:
    """Return the names of database and table in lower case, because sources may log a name in different
    letter cases.
    """
    return name[0].casefold(), name[1].casefold()


def gtids_of(groups: RelayGroups, count: int) -> MysqlGtidSet:
    """Return the GTIDs of the first `count` event groups in `groups`."""
    offsets = groups.scan.gtid_offset[:count]
    return gtids_at(groups.data, offsets[offsets >= 0], groups.scan.description_at)[0]


def count_up_to(groups: RelayGroups, end: BinlogPosition) -> int:
    """Return the number of event groups that end at or before the position `end` of the source's log."""
    ends = (groups.scan.source_position(number) for number in range(len(groups.scan)))
    return next((number for number, at in enumerate(ends) if end.is_before(at)), len(groups.scan))


def _table(data: ByteArray, at: int) -> TableName:
    at += _NAMES_AT
    length = int(data[at])
    database = data[at + 1 : at + 1 + length]
    at += length + 2
    table = data[at + 1 : at + 1 + int(data[at])]
    one, other = (part.tobytes().decode("utf-8", "surrogateescape") for part in (database, table))
    return alike((one, other))
