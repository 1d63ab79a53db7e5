"""The interface of a source of binary log events: a stream of complete raw events from a server or a folder.

A live server (connection.py, dump.py) and a folder of binary logs (binlog_folder.py) provide the same stream. Each file
begins with an artificial ROTATE event, which has the name of the file and a position. The FORMAT_DESCRIPTION of the
file and its other events follow, unchanged.
Invariant: a batch contains only complete events, in the order of the binary log, without gaps and duplicates.
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
    """Consecutive complete events of a binary log, as raw bytes.

    Event i is `data[offsets[i]:offsets[i + 1]]`, so `offsets` has one entry more than there are events. Both arrays may
    be views of a buffer that the next call of `read_batch` overwrites.
    """

    data: Bytes
    offsets: Offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def event(self, i: int) -> bytes:
        """Return a copy of event number `i`, with its header and checksum."""
        return self.data[int(self.offsets[i]) : int(self.offsets[i + 1])].tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceIdentity:
    """The identity and the state of the source at a connection, to detect a wrong server and for `show-status`."""

    server_id: int  # 0 for a folder whose first event has no server id
    uuid: str  # '' for MariaDB and for a folder
    version: str
    is_mariadb: bool
    clock_difference: float  # source's clock minus rplctl's clock, in seconds; 0 for a folder
    clock_error: float = 0.0  # the largest possible error of clock_difference, in seconds; 0 = not measured
    system_zone: SystemZone | None = None  # None for a folder, and if the zone is unknown
    has_checksums: bool = True  # True if the first events have a CRC32; a FORMAT_DESCRIPTION may change this


@dataclass(frozen=True, slots=True)
class DumpStart:
    """The start of a dump: a position, or the GTIDs of all transactions that were already received.

    If the start has GTIDs, the source sends all transactions that are not among these GTIDs.
    """

    position: BinlogPosition  # log_name '' = the first existing log
    mysql_gtid_set: Any | None = None  # a MysqlGtidSet (event/gtid.py); None = no GTIDs of MySQL
    mariadb_gtid: str | None = None  # value of @slave_connect_state; '' = first event; None = no GTIDs of MariaDB
    zones: SourceZones | None = None  # the time zones of the channel; None = do not query the source's SYSTEM zone

    @property
    def by_gtid(self) -> bool:
        return self.mysql_gtid_set is not None or self.mariadb_gtid is not None


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """The server id and the UUID with which this replica registers at the source.

    If two replicas have the same ids, the source ends the dump of the older connection (D07).
    """

    server_id: int
    uuid: str


class SourceStream(Protocol):
    def identity(self) -> SourceIdentity: ...

    def read_batch(self, timeout_s: float) -> EventBatch | None:
        """Wait for events, and return those that have arrived. Return None if none arrives within `timeout_s` seconds.

        Raises SourceError if the source reports an error, or if the connection is lost.
        """

    def close(self) -> None: ...


# hints of several modules; `reset` removes the position, and `clone` copies all tables from the end of the source's log
NOT_THE_PROTOCOL: Final = (
    "to check that the source is a MySQL or MariaDB server, not a proxy that changes its answers, run: rplctl doctor\n"
    "To continue after you have repaired the source or the proxy, run: rplctl start"
)
COPY_AGAIN: Final = "rplctl stop; rplctl reset --forget-gtids --yes; rplctl clone --replace --yes; rplctl start"


def fatal_reading_binlog(reason: str, *, hint: str = "") -> SourceError:
    """Return error 1236 in the words of a MySQL replica.

    `reason`: the text of the server, or the same text for a folder of binary logs with the same problem.
    """
    return SourceError(
        f"Got fatal error {er.MASTER_FATAL_ERROR_READING_BINLOG} "
        f"from master when reading data from binary log: '{reason}'",
        errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
        hint=hint,
    )


def lost_connection(detail: str) -> SourceError:
    """Return error 2013 for a lost connection. The error is transient, so the receiver reconnects."""
    message = f"error reconnecting to master: Lost connection to server during query ({detail})"
    return SourceError(message, errno=er.CR_SERVER_LOST, transient=True)
