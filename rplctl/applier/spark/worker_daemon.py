"""The program that Spark starts to get Python workers (setting `spark.python.daemon.module`).

The applier has forked a process with all modules loaded (loaded_daemon.py). This program sends to that process the
streams, the environment and the arguments from Spark. Then it waits, because Spark treats the end of its daemon as a
failure. On another machine, an executor has no loaded process. There, this program loads everything itself.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress

SOCKET_VARIABLE = "RPLCTL_PYTHON_SOCKET"


def handed_over() -> bool:
    """Hand over this process's streams and environment to the loaded process, and wait until that process ends.

    False if there is no loaded process.
    """
    if not (path := os.environ.get(SOCKET_VARIABLE)):
        return False
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        message = json.dumps({"environment": dict(os.environ), "arguments": sys.argv})
        socket.send_fds(connection, [message.encode()], [0, 1, 2])
        if connection.recv(1):
            with suppress(OSError):
                connection.recv(1)
            return True
    return False


def main() -> None:
    """Run Spark's daemon in the loaded process if there is one, or else in this process."""
    if not handed_over():
        from rplctl.applier.spark.loaded_daemon import serve

        serve()


if __name__ == "__main__":
    main()
