"""Check that a source has not begun a new history of its log, before a channel with GTIDs begins a new dump.

After RESET MASTER, or after a restore that lost the last transactions, a server gives the same GTIDs to other
transactions. A dump by GTID would continue among these other transactions. But each start of a server, and RESET
MASTER, begin a new log. So on such a server, the log with the received position began at another time, or ends before
this position.

Therefore the receiver first requests a dump by position, from the received position on. The log of this position
(resolution: a second) must have begun at the same time as before. The dump by GTID begins after this check.
"""

from __future__ import annotations

from typing import Final

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.event.header import CHECKSUM_LENGTH, HEADER_LENGTH, parse_header
from rplctl.event.types import EventType
from rplctl.info import MasterInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, log_number
from rplctl.recovery import RecoveryResult
from rplctl.source import DumpStart, ReplicaIdentity
from rplctl.source.base import COPY_AGAIN, fatal_reading_binlog
from rplctl.source.dump import open_stream

_WAIT_S: Final = 1.0
_NAME: Final = HEADER_LENGTH + 8  # offset of the log's name in a ROTATE


def refuse_other_history(
    info: MasterInfo, password: str, recovered: RecoveryResult, replica: ReplicaIdentity, config: Config
) -> None:
    """Raise SourceError 1236 if the server is the one that was read last, but has begun a new history of its log.

    Nothing is compared if the position was purged, or for another server, whose logs have other names and positions.
    """
    at, known = recovered.next_event, recovered.format_description
    is_comparable = bool(known) and not recovered.needs_new_relay_log and at.log_pos > FIRST_EVENT_POSITION
    if not is_comparable or not (info.uuid or info.master_server_id):
        return

    def begins(position: BinlogPosition) -> tuple[str, bytes]:
        return _begin(info, password, position, replica, config)

    try:
        if parse_header(begins(at)[1]).timestamp == parse_header(known).timestamp:
            return
    except SourceError as error:
        if error.errno in (
            er.SLAVE_FATAL_ERROR,
            er.RPL_SLAVE_FATAL_ERROR,
        ):  # another server; the dump by GTID reports any other error with these numbers
            return
        if error.errno != er.MASTER_FATAL_ERROR_READING_BINLOG:
            raise
        if log_number(begins(BinlogPosition("", FIRST_EVENT_POSITION))[0]) > log_number(at.log_name):
            return  # the position was purged
    raise fatal_reading_binlog(
        f"the source has started a new log, which lacks the transactions that were read up to {at}",
        hint=f"to copy all tables again, which replaces all their rows in the target, run: {COPY_AGAIN}",
    )


def _begin(
    info: MasterInfo, password: str, position: BinlogPosition, replica: ReplicaIdentity, config: Config
) -> tuple[str, bytes]:
    """Start a dump at the position, and return (name of the log at this position, FORMAT_DESCRIPTION of this log).

    Raises SourceError if the source rejects the position.
    """
    stream = open_stream(info, password, DumpStart(position), replica, config)
    name = position.log_name
    try:
        while True:
            batch = stream.read_batch(_WAIT_S)
            for event in map(batch.event, range(len(batch))) if batch is not None else ():
                if event[4] == EventType.FORMAT_DESCRIPTION:
                    return name, event
                if event[4] == EventType.ROTATE:
                    end = len(event) - (CHECKSUM_LENGTH if stream.identity().has_checksums else 0)
                    name = event[_NAME:end].decode("utf-8", "replace")
    finally:
        stream.close()
