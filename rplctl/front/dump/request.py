"""Parses the requests of a replica or a tool that reads the binary log.

    COM_REGISTER_SLAVE (0x15)   u32 server_id; host, user, password (u8 length each); u16 port, u32 rank, u32 source id
    COM_BINLOG_DUMP (0x12)      u32 position, u16 flags, u32 server_id, file name
    COM_BINLOG_DUMP_GTID (0x1e) u16 flags, u32 server_id, u32 name length, name, u64 position, u32 data length, GTID set

Before these requests, the client sets user variables: the heartbeat period, the checksum, its UUID, and the GTID
position of a MariaDB replica.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.event.gtid_event import decode_gtid_set
from rplctl.front.wire import PacketReader

_NON_BLOCK, _ANNOTATE = 1, 2  # flags; from a MySQL replica, the second flag means heartbeats with 64-bit positions


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """The values that a replica has sent with COM_REGISTER_SLAVE, for SHOW REPLICAS."""

    server_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRequest:
    """The parameters of one dump.

    `gtids`: the transactions that the client has; None if the client requests a file and a position instead.
    """

    server_id: int
    uuid: str
    gtids: MysqlGtidSet | MariadbGtidState | None
    is_strict: bool  # True if the MariaDB replica has gtid_strict_mode
    log_name: str  # '' = the first log
    position: int
    ends: bool  # True if the dump ends at the end of the logs, and does not wait for new events
    has_second_flag: bool
    has_checksums: bool  # True if the client accepts events with checksums
    heartbeat_s: float  # 0 = no heartbeats
    until: MariadbGtidState | None  # the GTIDs at which the dump ends (MariaDB's START SLAVE UNTIL master_gtid_pos)
    is_until_before: bool  # True if the dump ends before these GTIDs, and not after them


def registered(body: PacketReader) -> Replica:
    """Parse COM_REGISTER_SLAVE. Raises RplError 1835 if the packet is malformed."""
    server_id = body.integer(4)
    host, _, _ = (body.take(body.integer(1)) for _ in range(3))
    return Replica(server_id=server_id, host=host.decode("utf-8", "replace"), port=body.integer(2))


def by_position(body: PacketReader, settings: Mapping[str, object]) -> DumpRequest:
    """Return the parameters of a dump from COM_BINLOG_DUMP and from the user variables (`settings`).

    A MariaDB replica that uses GTIDs has set its GTID position in a variable. Raises RplError if the packet or a value
    is malformed.
    """
    position, flags, server_id = body.integer(4), body.integer(2), body.integer(4)
    log_name = body.rest().rstrip(b"\0").decode("utf-8", "replace")
    state = settings.get("slave_connect_state")
    gtids = None if state is None else MariadbGtidState.parse(str(state))
    return _request(gtids, (flags, server_id), settings, log_name=log_name, position=max(4, position))


def by_gtid_set(body: PacketReader, settings: Mapping[str, object]) -> DumpRequest:
    """Return the parameters of a dump from COM_BINLOG_DUMP_GTID and from the user variables (`settings`).

    Raises RplError if the packet or a value is malformed.
    """
    flags, server_id = body.integer(2), body.integer(4)
    body.take(body.integer(4))
    body.integer(8)
    gtids = decode_gtid_set(body.take(body.integer(4)))
    return _request(gtids, (flags, server_id), settings)


def _request(
    gtids: MysqlGtidSet | MariadbGtidState | None,
    numbers: tuple[int, int],
    settings: Mapping[str, object],
    *,
    log_name: str = "",
    position: int = 4,
) -> DumpRequest:
    flags, server_id = numbers
    checksum = _setting(settings, "source_binlog_checksum", "master_binlog_checksum")
    period = _setting(settings, "source_heartbeat_period", "master_heartbeat_period") or "0"
    if not period.isdecimal() or len(period) > 20:
        raise RplError(f"'{period[:40]}' is not a heartbeat period", errno=er.WRONG_ARGUMENTS)
    until = settings.get("slave_until_gtid")
    return DumpRequest(
        server_id=server_id,
        uuid=_setting(settings, "replica_uuid", "slave_uuid").lower(),
        gtids=gtids,
        is_strict=_setting(settings, "slave_gtid_strict_mode") == "1",
        log_name=log_name,
        position=position,
        ends=bool(flags & _NON_BLOCK),
        has_second_flag=bool(flags & _ANNOTATE),
        has_checksums=checksum.upper() == "CRC32",
        heartbeat_s=int(period) / 1e9,
        until=None if until is None else MariadbGtidState.parse(str(until)),
        is_until_before=_setting(settings, "slave_gtid_until_before_gtids") == "1",
    )


def _setting(settings: Mapping[str, object], *names: str) -> str:
    return next((str(settings[name]) for name in names if settings.get(name) is not None), "")
