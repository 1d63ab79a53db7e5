"""The requests that a replica sends to a MySQL or a MariaDB server before a dump, and the request for the dump.

These requests are the same as in recorded conversations of real replicas (MariaDB 10.5, 10.11, 11.8; MySQL 9.7). The
functions only return statements and bytes. connection.py and dump.py send them.

    COM_REGISTER_SLAVE (0x15)   u32 server_id, host, user, password (u8 length each), u16 port, u32 rank, u32 0
    COM_BINLOG_DUMP (0x12)      u32 position, u16 flags, u32 server_id, file name
    COM_BINLOG_DUMP_GTID (0x1e) u16 flags, u32 server_id, u32 name length, name, u64 position, u32 data length, GTID set
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from rplctl import mysql_errors as er
from rplctl.errors import SourceError
from rplctl.source.base import DumpStart, ReplicaIdentity
from rplctl.sql_text import Grammar, Sql, matched, text_literal, written

if TYPE_CHECKING:
    from rplctl.event.gtid import MysqlGtidSet

COM_BINLOG_DUMP = 0x12
COM_REGISTER_SLAVE = 0x15
COM_BINLOG_DUMP_GTID = 0x1E

# The replica requests ANNOTATE_ROWS events, because otherwise end_log_pos would skip events that it does not receive.
BINLOG_SEND_ANNOTATE_ROWS_EVENT = 2
USE_HEARTBEAT_EVENT_V2 = 2  # in MySQL, this bit requests heartbeats with 64-bit positions; old servers ignore it
MARIADB_SLAVE_CAPABILITY_GTID = 4
MAX_POSITION_OF_A_DUMP_BY_FILE = 0xFFFFFFFF


def session_statements(is_mariadb: bool, heartbeat_s: float, replica: ReplicaIdentity) -> list[Sql]:
    """Return the SET statements that a replica executes before it registers.

    `heartbeat_s`: seconds between heartbeats, 0 = none. The variables for MySQL have both spellings, because MySQL 5.7
    only knows "master" and "slave".
    """
    period = round(heartbeat_s * 1e9)  # nanoseconds
    statements = list[Sql]()
    if is_mariadb:
        if period:
            statements.append(written("SET @master_heartbeat_period= {}", period))
        statements.append(written("SET @master_binlog_checksum= @@global.binlog_checksum"))
        statements.append(written("SET @mariadb_slave_capability={}", MARIADB_SLAVE_CAPABILITY_GTID))
        return statements
    if period:
        statements.append(written("SET @master_heartbeat_period = {}, @source_heartbeat_period = {}", period, period))
    statements.append(
        written(
            "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum"
        )
    )
    uuid = text_literal(replica.uuid)
    statements.append(written("SET @slave_uuid = {}, @replica_uuid = {}", uuid, uuid))
    return statements


def mariadb_gtid_statements(connect_state: str) -> list[Sql]:
    """Return the SET statements before a dump by GTID from a MariaDB server.

    `connect_state`: the GTIDs after which the dump begins, one `domain-server-sequence` for each domain. Raises
    SourceError if it has another form.
    """
    if any(c not in "0123456789-," for c in connect_state):
        raise SourceError(
            f"Malformed MariaDB GTID position '{connect_state}'",
            errno=er.GTID_POSITION_NOT_FOUND_IN_BINLOG,
            hint="to see the applied GTIDs, which must have the form DOMAIN-SERVER-SEQUENCE with commas between them, "
            "run: rplctl show-status --field Executed_Gtid_Set",
        )
    return [
        written("SET @slave_connect_state='{}'", matched(Grammar.MARIADB_GTIDS, connect_state)),
        written("SET @slave_gtid_strict_mode=0"),
        written("SET @slave_gtid_ignore_duplicates=0"),
    ]


def register_request(replica: ReplicaIdentity) -> bytes:
    """Return the payload of COM_REGISTER_SLAVE.

    Host, user and password are empty, because a server uses them only for SHOW REPLICAS.
    """
    return struct.pack("<I3xHII", replica.server_id, 0, 0, 0)


def dump_request(start: DumpStart, is_mariadb: bool, replica: ReplicaIdentity) -> tuple[int, bytes]:
    """Return the command byte and the payload of the request for a dump.

    Raises SourceError if the position is beyond 4 GiB, because the protocol has only 32 bits for it.
    """
    if start.mysql_gtid_set is not None and not is_mariadb:
        return COM_BINLOG_DUMP_GTID, _gtid_request(start.mysql_gtid_set, replica)
    by_gtid = start.mariadb_gtid is not None
    name = b"" if by_gtid else start.position.log_name.encode()
    position = 4 if by_gtid else max(4, start.position.log_pos)
    if position > MAX_POSITION_OF_A_DUMP_BY_FILE:
        raise SourceError(
            f"COM_BINLOG_DUMP cannot request position {start.position}, which is beyond 4 GiB",
            errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
            hint="to replicate by GTID, run: rplctl change-master "
            f"{'--master-use-gtid slave_pos' if is_mariadb else '--master-auto-position 1'}; rplctl start",
        )
    flags = BINLOG_SEND_ANNOTATE_ROWS_EVENT if is_mariadb else USE_HEARTBEAT_EVENT_V2
    return COM_BINLOG_DUMP, struct.pack("<IHI", position, flags, replica.server_id) + name


def _gtid_request(gtids: MysqlGtidSet, replica: ReplicaIdentity) -> bytes:
    encoded = gtids.encode()
    head = struct.pack("<HII", USE_HEARTBEAT_EVENT_V2, replica.server_id, 0)
    return head + struct.pack("<QI", 4, len(encoded)) + encoded
