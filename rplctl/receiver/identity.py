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
from rplctl.source import ReplicaIdentity

_DERIVED = 0x40000000  # derived ids stay clear of the small numbers that people choose


def replica_identity(config: Config, channel: Channel) -> ReplicaIdentity:
    """`server_id` of the options; when 0, one derived from host, instance folder and channel."""
    name = f"{socket.gethostname()}:{config.datadir.resolve()}:{channel.name.lower()}:{config.server_id}"
    server_id = config.server_id or _DERIVED | (zlib.crc32(name.encode()) & 0x3FFFFFFF)
    return ReplicaIdentity(server_id, str(uuid.uuid5(uuid.NAMESPACE_OID, name)))
