"""Another user of the machine at the ports of our Spark: its own RPC as it is sent on the wire, py4j's, and junk.

A program: `stranger.py USER-ID PORT… PATH…`; prints a JSON list of [place, what was tried, what came back]. Loads
nothing but the standard library, for the user may read nothing else.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys

# StopExecutor of the local scheduler as Java serialises it (Scala's proxy for an object): what stopped our executor.
STOP_EXECUTOR = bytes.fromhex(
    "aced0005737200267363616c612e72756e74696d652e4d6f64756c6553657269616c697a6174696f6e50726f787900000000000000010200014c"
    "000b6d6f64756c65436c6173737400114c6a6176612f6c616e672f436c6173733b78707672002e6f72672e6170616368652e737061726b2e7363"
    "686564756c65722e6c6f63616c2e53746f704578656375746f72246679915b415816fa0200007870"
)
ENDPOINTS = ("LocalSchedulerBackendEndpoint", "BlockManagerMaster", "HeartbeatReceiver", "MapOutputTracker")
RPC_REQUEST = 3
MESSAGE_TYPES = range(-1, 16)
WAIT_S = 0.3


def spark_message(kind: int, body: bytes) -> bytes:
    """Frame length, type, request id, body length, body (org.apache.spark.network.protocol)."""
    rest = struct.pack(">bqi", kind, 1, len(body)) + body
    return struct.pack(">q", 8 + len(rest)) + rest


def to_endpoint(port: int, name: str, content: bytes) -> bytes:
    """A request of Spark's RPC (RequestMessage of org.apache.spark.rpc.netty)."""
    texts = [struct.pack(">H", len(text)) + text.encode() for text in ("127.0.0.1", name)]
    body = b"\0\1" + texts[0] + struct.pack(">i", port) + texts[1] + content
    return spark_message(RPC_REQUEST, body)


def attempts(port: int) -> dict[str, bytes]:
    tried = {f"stop by {name}": to_endpoint(port, name, STOP_EXECUTOR) for name in ENDPOINTS}
    tried |= {f"message {kind}": spark_message(kind, b"/files/x" * 8) for kind in MESSAGE_TYPES}
    for name in (b"/files/x", b"/jars/x", b"/", b"/../etc/passwd"):
        request = b"\6" + struct.pack(">i", len(name)) + name
        tried[f"stream {name!r}"] = struct.pack(">q", 8 + len(request)) + request
    tried["a huge frame"] = struct.pack(">q", 1 << 40) + bytes(1000)
    tried["zeros"] = bytes(100_000)
    tried["py4j: shut down"] = b"s\n"
    tried["py4j: call"] = b"c\nz:java.lang.System\nexit\ni0\ne\n"
    tried["py4j: wrong token"] = b"A\nnot-the-token\nc\nz:java.lang.System\nexit\ni0\ne\n"
    tried["py4j: help"] = b"h\nl\nt\nnNone\nbTrue\ne\n"
    return tried


def answer(family: int, address: object, message: bytes) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(WAIT_S)
        try:
            connection.connect(address)  # type: ignore[arg-type]
            connection.sendall(message)
            return connection.recv(400).hex()
        except TimeoutError:
            return ""
        except OSError as error:
            return type(error).__name__


def main(user: int, places: list[str]) -> list[tuple[str, str, str]]:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    found = []
    for place in places:
        if place.startswith("/"):
            found.append((place, "connect", answer(socket.AF_UNIX, place, b"\0" * 8)))
            continue
        for what, message in attempts(int(place)).items():
            found.append((place, what, answer(socket.AF_INET, ("127.0.0.1", int(place)), message)))
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(int(sys.argv[1]), sys.argv[2:])))
