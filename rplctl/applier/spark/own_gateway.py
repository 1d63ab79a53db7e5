"""The door to our JVM: it is started to keep its files private, and nothing else is ever spoken to in its place.

py4j proves to the JVM who we are (a token), but nothing proves the JVM to us: when it has died, any local user may
listen on its port, and what is answered there names files whose content is unpickled. Invariant: each connection goes
to a socket that this user listens on; a port belongs to one user as long as somebody listens.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkConf

_PRIVATE = 0o077  # a umask
_TABLES = ("tcp", "tcp6")
_LISTENS = "0A"


class Stranger(ConnectionRefusedError):
    """Another user listens where our JVM did."""


class OwnSocket(socket.socket):
    """Connects to processes of this user only. Raises Stranger."""

    def connect(self, address: Any) -> None:
        super().connect(address)
        if listeners(address[1]) - {os.geteuid()}:
            self.close()
            raise Stranger(f"port {address[1]} of Spark's Java process is another user's now")


class _Door:
    """What py4j takes for a context of TLS: it asks it to wrap each of its sockets before it connects."""

    def wrap_socket(self, plain: socket.socket, server_hostname: str) -> OwnSocket:
        timeout = plain.gettimeout()
        own = OwnSocket(plain.family, plain.type, plain.proto, plain.detach())
        own.settimeout(timeout)
        return own


def open_gateway(conf: SparkConf) -> Any:
    """Start the JVM. Raises PySparkException, OSError."""
    from py4j.protocol import INPUT_CONVERTER
    from pyspark.java_gateway import launch_gateway

    gateway: Any = launch_gateway(conf, {"umask": _PRIVATE})  # type: ignore[no-untyped-call]
    gateway.java_parameters.ssl_context = _Door()
    # PySpark's own are for NumPy's values and dates, which we do not send; they load pyspark.testing, and pandas
    # with it where there is one: 0.1 s in the middle of a batch, and its memory
    own = [converter for converter in INPUT_CONVERTER if type(converter).__module__.startswith("py4j.")]
    gateway._gateway_client.converters = own
    return gateway


def listeners(port: int) -> set[int]:
    """User ids of those that listen on the TCP port of this machine."""
    found = set()
    for table in _TABLES:
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:  # no IPv6
            continue
        for line in lines:
            _, local, _, state, _, _, _, user, *_ = line.split()
            if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                found.add(int(user))
    return found
