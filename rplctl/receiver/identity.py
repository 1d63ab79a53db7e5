"""Who this instance is to a source: server id, and a uuid that stays the same from one connection to the next.

MySQL sources end the older of two dumps with the same uuid, MariaDB sources with the same server id; so a reconnect
gets rid of its own dead predecessor, and two channels must not share them.
"""

from __future__ import annotations

import uuid

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.source import ReplicaIdentity
from rplctl.source.replica_id import replica_name, replica_server_id


def replica_identity(config: Config, channel: Channel) -> ReplicaIdentity:
    """`server_id` of the options; when 0, one derived from host, instance folder and channel."""
    name = replica_name(config, channel)
    return ReplicaIdentity(replica_server_id(config, channel), str(uuid.uuid5(uuid.NAMESPACE_OID, name)))
