"""The identity of a channel at its source: a server id and a UUID, which are the same for each connection.

If two dumps have the same UUID (MySQL) or the same server id (MariaDB), the source ends the older dump. So a new
connection ends the dump of the channel's last connection, which may be lost. Two channels must not have the same ids,
because each of them would end the dump of the other.
"""

from __future__ import annotations

import socket
import uuid
import zlib

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.source.base import ReplicaIdentity

_DERIVED = 0x40000000  # added to derived ids, so that they differ from the small numbers that people choose


def replica_name(config: Config, channel: Channel) -> str:
    """Return the name from which the channel's ids are derived.

    The name is the same for each connection of a channel, and different for each channel.
    """
    return f"{socket.gethostname()}:{config.datadir.resolve()}:{channel.name.lower()}:{config.server_id}"


def replica_server_id(config: Config, channel: Channel) -> int:
    """Return the server id: the option `server_id`, or an id derived from `replica_name` if the option is 0."""
    return config.server_id or _DERIVED | (zlib.crc32(replica_name(config, channel).encode()) & 0x3FFFFFFF)


def replica_identity(config: Config, channel: Channel) -> ReplicaIdentity:
    name = replica_name(config, channel)
    return ReplicaIdentity(replica_server_id(config, channel), str(uuid.uuid5(uuid.NAMESPACE_OID, name)))
