"""The identity of this instance at a source: a server id, and a uuid that is the same for each connection.

MySQL sources end the older of two dumps with the same uuid, MariaDB sources with the same server id. So a reconnect
ends its own lost predecessor, and two channels must not have the same ids.
"""

from __future__ import annotations

import socket
import uuid
import zlib

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.source.base import ReplicaIdentity

_DERIVED = 0x40000000  # derived ids do not collide with the small numbers that people choose


def replica_name(config: Config, channel: Channel) -> str:
    """Return the name from which the channel's ids are derived. It is the same for each connection, and different for
    each channel.
    """
    return f"{socket.gethostname()}:{config.datadir.resolve()}:{channel.name.lower()}:{config.server_id}"


def replica_server_id(config: Config, channel: Channel) -> int:
    """Return the option `server_id` or, if it is 0, an id that is derived from host, instance folder and channel."""
    return config.server_id or _DERIVED | (zlib.crc32(replica_name(config, channel).encode()) & 0x3FFFFFFF)


def replica_identity(config: Config, channel: Channel) -> ReplicaIdentity:
    name = replica_name(config, channel)
    return ReplicaIdentity(replica_server_id(config, channel), str(uuid.uuid5(uuid.NAMESPACE_OID, name)))
