"""The interface of a source of binary log events: a stream of whole raw events from a server or a folder.

A live server (connection.py, dump.py) and a folder of binary logs (binlog_folder.py) give the same stream: an
artificial ROTATE that names file and position, the file's FORMAT_DESCRIPTION, then the events byte for byte, and so
on for each file. Invariant: a batch holds whole events only, in the order of the binary log, none left out and none
twice.
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
    """Whole raw events one after another: event i is `data[offsets[i]:offsets[i + 1]]`; `offsets` has n + 1 entries.

    Both arrays may be views of a buffer that the next `read_batch` overwrites.
    """

    data: Bytes
    offsets: Offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def event(self, i: int) -> bytes:
        """A copy of one event, header and checksum included."""
        return self.data[int(self.offsets[i]) : int(self.offsets[i + 1])].tobytes()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceIdentity:
    """Who answered: for the wrong-server guard and `show-status`."""

    server_id: int  # 0 for a folder whose first event has none
    uuid: str  # '' for MariaDB and for a folder
    version: str
    is_mariadb: bool
    clock_difference: float  # source's clock minus ours, seconds; 0 for a folder
    clock_error: float = 0.0  # how wrong that can be; 0: it was not measured
    system_zone: SystemZone | None = None  # None for a folder
    has_checksums: bool = True  # events carry a CRC32 until a FORMAT_DESCRIPTION says otherwise


@dataclass(frozen=True, slots=True)
class DumpStart:
    """Where to begin: a position, or with GTIDs the set that we have (everything else is sent)."""

    position: BinlogPosition  # log_name '' = from the first log there is
    mysql_gtid_set: Any | None = None  # event.gtid.MysqlGtidSet; None = by position
    mariadb_gtid: str | None = None  # `@slave_connect_state`, '' = from the very beginning; None = by position
    zones: SourceZones | None = None  # of the channel: a server is asked for its SYSTEM time zone, too

    @property
    def by_gtid(self) -> bool:
        return self.mysql_gtid_set is not None or self.mariadb_gtid is not None


@dataclass(frozen=True, slots=True)
class ReplicaIdentity:
    """Who we are to the source: it ends the older dump of two replicas that share these (D07)."""

    server_id: int
    uuid: str


class SourceStream(Protocol):
    def identity(self) -> SourceIdentity: ...

    def read_batch(self, timeout_s: float) -> EventBatch | None:
        """Events that have arrived, at least one; None when there is none within the timeout. Raises SourceError."""

    def close(self) -> None: ...


# `reset` forgets the position that the source no longer has; the copy begins at the source's end, and takes all tables
COPY_AGAIN: Final = "rplctl stop; rplctl reset --forget-gtids --yes; rplctl clone --replace --yes"


def fatal_reading_binlog(reason: str, *, hint: str = "") -> SourceError:
    """1236 in the server's words: what the dump itself reports, and what a folder reports in the same cases."""
    return SourceError(
        f"Got fatal error {er.MASTER_FATAL_ERROR_READING_BINLOG} "
        f"from master when reading data from binary log: '{reason}'",
        errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
        hint=hint,
    )


def lost_connection(detail: str) -> SourceError:
    """2013: the reason to reconnect."""
    message = f"error reconnecting to master: Lost connection to server during query ({detail})"
    return SourceError(message, errno=er.CR_SERVER_LOST, transient=True)
