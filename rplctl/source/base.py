"""The interface of a source of binary log events: a stream of complete raw events from a server or a folder.

A live server (connection.py, dump.py) and a folder of binary logs (binlog_folder.py) give the same stream. For each
file, the stream has an artificial ROTATE with file name and position, the file's FORMAT_DESCRIPTION, and then the
unchanged events. Invariant: a batch has only complete events in the order of the binary log, without gaps and
duplicates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from rplctl import mysql_errors as er
from rplctl.errors import SourceError
from rplctl.position import BinlogPosition
from rplctl.source_zones import SourceZones
from rplctl.system_zone import SystemZone

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"
Offsets: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive complete raw events: event i is `data[offsets[i]:offsets[i + 1]]`; `offsets` has n + 1 entries.

    Both arrays may be views of a buffer that the next `read_batch` overwrites.
    """

    data: Bytes
    offsets: Offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def event(self, i: int) -> bytes:
        """Return a copy of one event, with header and checksum."""
        return self.data[int(self.offsets[i]) : int(self.offsets[i + 1])].tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceIdentity:
    """The identity of the source, for the wrong-server check and `show-status`."""

    server_id: int  # 0 for a folder whose first event has none
    uuid: str  # '' for MariaDB and for a folder
    version: str
    is_mariadb: bool
    clock_difference: float  # source's clock minus rplctl's clock, in seconds; 0 for a folder
    clock_error: float = 0.0  # largest error of clock_difference, in seconds; 0 = not measured
    system_zone: SystemZone | None = None  # None for a folder
    has_checksums: bool = True  # events have a CRC32 until a FORMAT_DESCRIPTION changes the algorithm


@dataclass(frozen=True, slots=True)
class DumpStart:
    """The position or the set of received GTIDs with which a dump begins. With GTIDs, the source sends all other
    transactions.
    """

    position: BinlogPosition  # log_name '' = the first existing log
    mysql_gtid_set: Any | None = None  # event.gtid.MysqlGtidSet; None = by position
    mariadb_gtid: str | None = None  # `@slave_connect_state`, '' = from the first event; None = by position
    zones: SourceZones | None = None  # time zones of the channel; if set, the server's SYSTEM time zone is queried

    @property
    def by_gtid(self) -> bool:
        return self.mysql_gtid_set is not None or self.mariadb_gtid is not None


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """The ids with which this replica registers at the source. If two replicas have the same ids, the source ends the
    older dump (D07).
    """

    server_id: int
    uuid: str


class SourceStream(Protocol):
    def identity(self) -> SourceIdentity: ...

    def read_batch(self, timeout_s: float) -> EventBatch | None:
        """Return the events that have arrived, at least one; None after the timeout. Raises SourceError if the source
        reports an error or the connection is lost.
        """

    def close(self) -> None: ...


# `reset` forgets the position that the source no longer has; the copy begins at the source's end, with all tables.
NOT_THE_PROTOCOL: Final = (
    "check that --master-host and --master-port name a MySQL or MariaDB server, not a proxy that changes its "
    "answers, then run: rplctl doctor; rplctl start"
)
COPY_AGAIN: Final = "rplctl stop; rplctl reset --forget-gtids --yes; rplctl clone --replace --yes"


def fatal_reading_binlog(reason: str, *, hint: str = "") -> SourceError:
    """Return error 1236 with the server's text: for an error that a server reports, and for the same situations in a
    folder.
    """
    return SourceError(
        f"Got fatal error {er.MASTER_FATAL_ERROR_READING_BINLOG} "
        f"from master when reading data from binary log: '{reason}'",
        errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
        hint=hint,
    )


def lost_connection(detail: str) -> SourceError:
    """Return error 2013, after which the receiver reconnects."""
    message = f"error reconnecting to master: Lost connection to server during query ({detail})"
    return SourceError(message, errno=er.CR_SERVER_LOST, transient=True)
