"""Who this instance is to a source: server id, and a uuid that stays the same from one connection to the next.

MySQL sources end the older of two dumps with the same uuid, MariaDB sources with the same server id; so a reconnect
gets rid of its own dead predecessor, and two channels must not share them.
"""

from __future__ import annotations

import socket
import uuid
import zlib

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.source.base import ReplicaIdentity

_DERIVED = 0x40000000  # derived ids stay clear of the small numbers that people choose


def replica_name(config: Config, channel: Channel) -> str:
    """Return the name from which ids are derived: the same for each connection, another for each channel."""
    return f"{socket.gethostname()}:{config.datadir.resolve()}:{channel.name.lower()}:{config.server_id}"


def replica_server_id(config: Config, channel: Channel) -> int:
    """`server_id` of the options; when 0, one derived from host, instance folder and channel."""
    return config.server_id or _DERIVED | (zlib.crc32(replica_name(config, channel).encode()) & 0x3FFFFFFF)


def replica_identity(config: Config, channel: Channel) -> ReplicaIdentity:
    name = replica_name(config, channel)
    return ReplicaIdentity(replica_server_id(config, channel), str(uuid.uuid5(uuid.NAMESPACE_OID, name)))
