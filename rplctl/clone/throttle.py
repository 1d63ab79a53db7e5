"""How much of both servers a copy may take: read before each chunk, so that an operator can change it meanwhile.

The file of the limits is written by every `rplctl clone`: that it is another one tells the applier to look into its
ledger, too. Without it the limits are the usual ones. Invariant: a copy that is throttled waits between two chunks,
where it holds nothing of the source's but its snapshot.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rplctl.channel import Channel
from rplctl.durable import replace_file
from rplctl.plain_file import parsed_json, read_plain

if TYPE_CHECKING:
    from rplctl.clone.bounds import Query

MAX_LOAD: Final = 25
LOAD_THREADS: Final = 2
_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_load`: Threads_running of the source; `max_rate`: MB (10^6 bytes) a second. 0: none. `load_threads`:
    connections to a target that is a server; `read_from`: the replica that is read, '' = the source.
    """

    max_load: int = MAX_LOAD
    max_rate: float = 0.0
    load_threads: int = LOAD_THREADS
    read_from: str = ""


def read_limits(channel: Channel) -> Limits:
    """The usual ones where the file is junk. Raises UnfitFile."""
    try:
        stored = parsed_json(read_plain(channel.clone_orders_path))
        load, rate = int(stored["max_load"]), float(stored["max_rate"])
        threads, read_from = int(stored.get("load_threads", LOAD_THREADS)), str(stored.get("read_from", ""))
        return Limits(load, rate, max(1, threads), read_from)
    except (FileNotFoundError, ValueError, KeyError, TypeError, OverflowError):
        return Limits()


def write_limits(
    channel: Channel,
    max_load: int | None = None,
    max_rate: float | None = None,
    load_threads: int | None = None,
    read_from: str | None = None,
) -> None:
    """What is not given stays as it is. Raises OSError."""
    given = {"max_load": max_load, "max_rate": max_rate, "load_threads": load_threads, "read_from": read_from}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    limits = replace(read_limits(channel), **changes)
    replace_file(channel.clone_orders_path, json.dumps(asdict(limits)).encode())


def orders_seen(channel: Channel) -> tuple[int, int]:
    """Another one after each `write_limits`."""
    try:
        found = channel.clone_orders_path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


class Throttle:
    """Of one reading end. `says`: why it waits, '' when it goes on; `stop` ends every wait."""

    def __init__(self, channel: Channel, stop: threading.Event, says: Callable[[str], None]) -> None:
        self._channel, self._stop, self._says = channel, stop, says
        self._free_at = 0.0  # time.monotonic() from which on the rate is kept

    def wait(self, query: Query) -> None:
        """Before a chunk: until the source has room for it. `query` asks beside the snapshot. Raises SourceError."""
        while not self._stop.is_set():
            limits = read_limits(self._channel)
            ahead = self._free_at - time.monotonic() if limits.max_rate else 0.0
            running = int(query("SHOW GLOBAL STATUS LIKE 'Threads_running'")[0][1]) if limits.max_load else 0
            if running > limits.max_load:
                self._says(f"Waiting: Threads_running is {running} on the source, --max-load {limits.max_load}")
            elif ahead > 0:
                self._says(f"Waiting: --max-rate {limits.max_rate:g} MB/s")
            else:
                self._says("")
                return
            self._stop.wait(min(ahead, _AGAIN_S) if 0 < ahead and running <= limits.max_load else _AGAIN_S)

    def took(self, count: int) -> None:
        """So many bytes have come."""
        if rate := read_limits(self._channel).max_rate:
            self._free_at = max(self._free_at, time.monotonic() - _AGAIN_S) + count / (rate * 1e6)
