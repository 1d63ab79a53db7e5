"""The server id of a channel: `server_id` of the options; when 0, derived from host, instance folder and channel."""

from __future__ import annotations

import socket
import zlib

from rplctl.channel import Channel
from rplctl.config import Config

_DERIVED = 0x40000000  # derived ids stay clear of the small numbers that people choose


def replica_name(config: Config, channel: Channel) -> str:
    """What ids are derived from: the same from one connection to the next, another for each channel."""
    return f"{socket.gethostname()}:{config.datadir.resolve()}:{channel.name.lower()}:{config.server_id}"


def replica_server_id(config: Config, channel: Channel) -> int:
    return config.server_id or _DERIVED | (zlib.crc32(replica_name(config, channel).encode()) & 0x3FFFFFFF)
