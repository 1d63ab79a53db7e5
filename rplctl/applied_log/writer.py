"""Appends to the binary log, with a subclass of the relay log's writer that begins and ends a file with other events.

    offset  content
    0       magic fe 62 69 6e
    4       FORMAT_DESCRIPTION: the source's, with rplctl's server id and `-rplctl` after its version
    then    PREVIOUS_GTIDS (MySQL) or GTID_LIST (MariaDB): the GTIDs executed before
    then    a position record: the position at the start of the file (record.py)
    then    for each commit of the target: the events of its transactions, and the position record that ends them
    end     ROTATE, if there is a next file

Invariant: the file has all events of one `write` together with their record, or none of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.applied_log.files import BinaryLogFiles
from rplctl.applied_log.record import EventPlace, PositionRecord, build_record, log_event
from rplctl.config import Config
from rplctl.durable import private_folder, write_all
from rplctl.event.format_description import FormatDescription, build_format_description
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.header import BINLOG_MAGIC
from rplctl.event.jit import ByteArray
from rplctl.event.types import EventType
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.log_file import OWN_SERVER_VERSION, Boundary
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.source.own_log import VERSION_SUFFIX

_LONGEST_VERSION = 49
_FIRST_CHECKSUM_VERSION = (5, 6, 1)


class BinaryLogWriter(RelayLogWriter):
    """The writer of a channel's newest binary log. It has `write` and `begin` instead of `append`, `open_new` and
    `rotate`.
    """

    what = "Binary log"
    failure = "Binary logging not possible. Message: the transactions applied could not be written"
    errno = er.BINLOG_LOGGING_IMPOSSIBLE
    advice = "free disk space, or set log_bin = '', then rplctl start"

    def __init__(self, files: BinaryLogFiles, config: Config, server_id: int) -> None:
        own = replace(config, sync_relay_log=config.sync_binlog, max_relay_log_size=config.max_binlog_size)
        super().__init__(files, own, server_id)
        self._files = files
        self._own_id = server_id
        self.description: FormatDescription | None = None  # the description in the open file
        self._record: PositionRecord | None = None

    def begin(self, description: FormatDescription, record: PositionRecord) -> None:
        """Begin the next file, for events of a source with this description. A ROTATE ends the file that was open.

        `record`: the position record for the start of the new file.
        """
        if self.end.log_name:
            following = RelayLogIndex(self._files).next_name()
            algorithm = self.description.checksum_algorithm if self.description else 0
            body = FIRST_EVENT_POSITION.to_bytes(8, "little") + following.encode()
            place = EventPlace(
                server_id=self._own_id, timestamp=0, begins_at=self.end.log_pos, checksum_algorithm=algorithm
            )
            self.append(log_event(EventType.ROTATE, body, place), 1)
        private_folder(self._files.datadir)
        self.description, self._record = description, record
        self.open_new(BinlogPosition("", FIRST_EVENT_POSITION))

    @property
    def is_full(self) -> bool:
        return self._size >= self._max_size

    def write(self, pieces: Iterable[ByteArray], record: PositionRecord, timestamp: int, *, durable: bool) -> None:
        """Append all parts of `pieces` and then the record. After an error, the file is as before.

        `timestamp`: the time of the last event, in seconds since 1970. `durable`: True to sync the file in any case.
        Raises RelayLogError 1598 if the file cannot be written.
        """
        self._check_usable()
        assert self.description is not None
        start = self._size
        try:
            for piece in pieces:
                write_all(self._descriptor, piece.data)
                self._size += len(piece)
            algorithm = self.description.checksum_algorithm
            event = build_record(
                record,
                EventPlace(
                    server_id=self._own_id, timestamp=timestamp, begins_at=self._size, checksum_algorithm=algorithm
                ),
            )
            write_all(self._descriptor, event)
            self._size += len(event)
        except BaseException as error:
            self._fail_and_cut("an earlier write failed", start)
            if isinstance(error, OSError):
                raise self._failure(error, self._name) from error
            raise
        self._unsynced_events += 1
        if durable or (self._sync_period and self._unsynced_events >= self._sync_period):
            self.sync()

    def _header(self, at: Boundary, checksum_algorithm: int) -> bytes:
        assert self.description is not None and self._record is not None
        now = int(time.time())
        algorithm = self.description.checksum_algorithm
        head = BINLOG_MAGIC + own_description(self.description, self._own_id, now)
        head += _executed(
            self._record,
            self.description,
            EventPlace(server_id=self._own_id, timestamp=now, begins_at=len(head), checksum_algorithm=algorithm),
        )
        return head + build_record(
            self._record,
            EventPlace(server_id=self._own_id, timestamp=now, begins_at=len(head), checksum_algorithm=algorithm),
        )


def own_description(description: FormatDescription, server_id: int, timestamp: int) -> bytes:
    """Return the FORMAT_DESCRIPTION event that begins a binary log written by rplctl.

    `description`: the source's own FORMAT_DESCRIPTION. The event names the source's server version, so a reader decodes
    the copied events as a server of that version does.
    """
    lengths, version = description.header_lengths, description.server_version
    if not description.is_mariadb and description.version_number < _FIRST_CHECKSUM_VERSION:
        lengths, version = (), OWN_SERVER_VERSION  # the old form has no field for the algorithm
    version = version.removesuffix(VERSION_SUFFIX)[: _LONGEST_VERSION - len(VERSION_SUFFIX)] + VERSION_SUFFIX
    algorithm = description.checksum_algorithm
    return build_format_description(server_id, timestamp, algorithm, version, relay_log=False, header_lengths=lengths)


def _executed(record: PositionRecord, description: FormatDescription, place: EventPlace) -> bytes:
    """Return the event with the GTIDs that were executed before the file: PREVIOUS_GTIDS, or GTID_LIST for MariaDB.

    GTID_LIST has a u32 count, and then for each domain: u32 domain, u32 server id, u64 sequence.
    """
    text = record.after.gtid_executed
    if not description.is_mariadb:
        body = MysqlGtidSet.parse(text if ":" in text else "").encode()
        return log_event(EventType.PREVIOUS_GTIDS, body, place)
    domains = sorted(MariadbGtidState.parse(text if ":" not in text else "").domains.items())
    body = len(domains).to_bytes(4, "little")
    for domain, (server, sequence) in domains:
        body += domain.to_bytes(4, "little") + server.to_bytes(4, "little") + sequence.to_bytes(8, "little")
    return log_event(EventType.GTID_LIST, body, place)
