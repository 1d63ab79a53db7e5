"""Serves one dump of the binary log to a replica, and lists the connected replicas for SHOW REPLICAS.

Invariant: if two dumps have the same UUID, or the same server id, only the newer dump continues, because the replica
has lost its older connection.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

from rplctl.accounts import ADMIN, REPLICATION
from rplctl.channel import Channel
from rplctl.errors import BinlogFormatError
from rplctl.event.gtid import MariadbGtidState
from rplctl.front.dump.choose import choose
from rplctl.front.dump.request import DumpRequest, registered
from rplctl.front.dump.sendable import SendableLog, fatal
from rplctl.front.dump.stream import PATIENCE_S, Stream
from rplctl.front.front import ClientSession, Front, denied
from rplctl.front.wire import PacketReader
from rplctl.history import note_event
from rplctl.source.base import ReplicaIdentity
from rplctl.source.replica_id import replica_identity


def register(session: ClientSession, body: PacketReader) -> None:
    """Store the values of a replica that sends COM_REGISTER_SLAVE.

    Raises RplError 1227 if the client lacks the privilege, and 1835 if the packet is malformed.
    """
    _refuse_others(session)
    session.replica = registered(body)


def dump(session: ClientSession, front: Front, request: DumpRequest) -> None:
    """Send the events of the binary log until the client disconnects, or until the end that the client has requested.

    Before that, end an older dump of the same replica. Raises Closed if the connection ends. Raises RplError if the
    client lacks the privilege or the log cannot be sent, and OSError if a file cannot be read.
    """
    _refuse_others(session)
    log, me = front.logs.log(), identity(front)
    try:
        _refuse_other_vendor(front, log)
        name, offset = choose(log, request, me.uuid)
        _end_older(front, session, request)
        session.dump = request
        who = f"server id {request.server_id}" if session.replica else "a client"
        note_event(log.files.datadir, log.files.name, "dump", f"{who} reads the binary log from {name}:{offset} on")
        with suppress(OSError):  # a Unix socket has no such option
            milliseconds = int(PATIENCE_S * 1000)
            session.link.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        Stream(session.link, log, request, me.server_id).run(name, offset)
    except BinlogFormatError as error:
        raise fatal(f"the binary log cannot be read: {error.message}") from error
    finally:
        session.dump = None


def identity(front: Front) -> ReplicaIdentity:
    """Return the server id and the UUID that this instance shows to its replicas."""
    config = front.looks.config_of("")
    return replica_identity(config, Channel("", config.datadir))


def replicas(front: Front) -> Iterator[tuple[int, str, int, int, str]]:
    """Yield the values of each registered replica: server id, host, port, server id of its source, UUID.

    The source of these replicas is this instance.
    """
    own = identity(front).server_id
    for session in list(front.sessions.values()):
        if session.replica is not None:
            uuid = str(session.variables.get("replica_uuid") or session.variables.get("slave_uuid") or "")
            yield session.replica.server_id, session.replica.host, session.replica.port, own, uuid


def _refuse_others(session: ClientSession) -> None:
    if session.client.role not in (ADMIN, REPLICATION):
        raise denied("REPLICATION SLAVE")


def _refuse_other_vendor(front: Front, log: SendableLog) -> None:
    names = log.names()
    if names and log.start(names[-1]).description.is_mariadb != front.is_mariadb:
        wanted = "mysql" if front.is_mariadb else "mariadb"
        raise fatal(f"the binary log has the format of the other vendor: rplctl serve --mysql-flavor {wanted}")


def _end_older(front: Front, session: ClientSession, request: DumpRequest) -> None:
    for other in list(front.sessions.values()):
        if other.dump is None or other is session:
            continue
        is_same = request.uuid == other.dump.uuid if request.uuid else request.server_id == other.dump.server_id
        if is_same and (request.uuid or request.server_id):
            front.disconnect(other)


def is_by_gtid(request: DumpRequest) -> bool:
    """True if a MySQL replica has requested the dump with COM_BINLOG_DUMP_GTID."""
    return request.gtids is not None and not isinstance(request.gtids, MariadbGtidState)
