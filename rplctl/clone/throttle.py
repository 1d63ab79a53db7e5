"""How much of both servers a copy may take: read before each chunk, so that an operator can change it meanwhile.

The file of the limits is written by every `rplctl clone`: that it is another one tells the applier to look into its
ledger, too. Without it the limits are the usual ones. Invariant: a copy that is throttled waits between two chunks,
where it holds nothing of the source's but its snapshot; and gives that up, too, where old versions of rows grow too
many, for as long as one is open none of them is purged.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.durable import replace_file
from rplctl.errors import SourceError
from rplctl.plain_file import parsed_json, read_plain
from rplctl.sql_text import written

if TYPE_CHECKING:
    from rplctl.clone.bounds import Query

MAX_LOAD: Final = 25
MAX_LAG_S: Final = 10
LOAD_THREADS: Final = 2
_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_load`: Threads_running of the source; `max_rate`: MB (10^6 bytes) a second. 0: none. `load_threads`:
    connections to a target that is a server; `read_from`: the replica that is read, '' = the source. `max_history`: old
    versions of rows that are not purged. `lag_of`: replicas, with commas; `max_lag`: seconds, of each of them.
    """

    max_load: int = MAX_LOAD
    max_rate: float = 0.0
    load_threads: int = LOAD_THREADS
    read_from: str = ""
    max_history: int = 0
    lag_of: str = ""
    max_lag: int = MAX_LAG_S


Lag = Callable[[str], "int | None"]  # HOST[:PORT] of a replica → seconds; None: it stands still, or is away


class HistoryGrows(Exception):
    """The snapshot has to be given up; another goes on with what was read of it."""


def read_limits(channel: Channel) -> Limits:
    """The usual ones where the file is junk. Raises UnfitFile."""
    try:
        stored = parsed_json(read_plain(channel.clone_orders_path))
        load, rate = int(stored["max_load"]), float(stored["max_rate"])
        threads, read_from = int(stored.get("load_threads", LOAD_THREADS)), str(stored.get("read_from", ""))
        lag_of, max_lag = str(stored.get("lag_of", "")), int(stored.get("max_lag", MAX_LAG_S))
        return Limits(load, rate, max(1, threads), read_from, int(stored.get("max_history", 0)), lag_of, max_lag)
    except (FileNotFoundError, ValueError, KeyError, TypeError, OverflowError):
        return Limits()


def write_limits(channel: Channel, **given: Any) -> None:
    """Fields of Limits; what is not given, or None, stays as it is. Raises OSError."""
    changes = {name: value for name, value in given.items() if value is not None}
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
    """The throttle of one reader. `says`: the reason why it waits, '' when it continues; `stop` ends every wait."""

    def __init__(self, channel: Channel, stop: threading.Event, says: Callable[[str], None]) -> None:
        self._channel, self._stop, self._says = channel, stop, says
        self._free_at = 0.0  # time.monotonic() from which on the rate is kept
        self._asked_again_at, self._asked_for = 0.0, Limits()  # of replicas, none of which was behind

    def wait(self, query: Query, lag: Lag, *, holds_snapshot: bool) -> None:
        """Before a chunk: until the source has room for it. `query` asks beside the snapshot; `lag`: how far a replica
        is behind. Raises SourceError, HistoryGrows.
        """
        while not self._stop.is_set():
            limits = read_limits(self._channel)
            ahead = self._free_at - time.monotonic() if limits.max_rate else 0.0
            if holds_snapshot and (history := _too_much_history(query, limits)):
                raise HistoryGrows(history)
            if reason := _busy(query, limits) or self._behind(lag, limits):
                self._says(f"Waiting: {reason}")
            elif ahead > 0:
                self._says(f"Waiting: --max-rate {limits.max_rate:g} MB/s")
            else:
                self._says("")
                return
            self._stop.wait(min(ahead, _AGAIN_S) if ahead > 0 and not reason else _AGAIN_S)

    def has_history(self, query: Query) -> bool:
        """True if no snapshot may be opened now, because the source would purge nothing while it is open."""
        history = _too_much_history(query, read_limits(self._channel))
        self._says(f"Waiting: {history}" if history else "")
        return bool(history)

    def _behind(self, lag: Lag, limits: Limits) -> str:
        """Each replica is asked once in a while: that takes a connection."""
        if time.monotonic() < self._asked_again_at and limits == self._asked_for:
            return ""
        for address in filter(None, limits.lag_of.split(",")):
            if (behind := lag(address)) is None:
                return f"the replica {address} does not replicate, or cannot be asked"
            if behind > limits.max_lag:
                return f"the replica {address} is {behind} s behind, --max-lag {limits.max_lag}"
        self._asked_again_at, self._asked_for = time.monotonic() + _AGAIN_S, limits
        return ""

    def took(self, count: int) -> None:
        """So many bytes have come."""
        if rate := read_limits(self._channel).max_rate:
            self._free_at = max(self._free_at, time.monotonic() - _AGAIN_S) + count / (rate * 1e6)


def _busy(query: Query, limits: Limits) -> str:
    running = int(query(written("SHOW GLOBAL STATUS LIKE 'Threads_running'"))[0][1]) if limits.max_load else 0
    is_busy = running > limits.max_load
    return f"Threads_running is {running} on the source, --max-load {limits.max_load}" if is_busy else ""


def _too_much_history(query: Query, limits: Limits) -> str:
    length = history_length(query) if limits.max_history else 0
    is_long = length > limits.max_history
    return f"InnoDB's history has {length} old versions, --max-history {limits.max_history}" if is_long else ""


def history_length(query: Query) -> int:
    """InnoDB's History list length. Raises SourceError 1227 where a MySQL does not tell it."""
    found = query(written("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'"))  # of MariaDB
    if found:
        return int(found[0][1])
    try:
        rows = query(written("SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"))
    except SourceError as error:
        if error.errno == er.SPECIFIC_ACCESS_DENIED_ERROR:
            error.hint = "GRANT PROCESS ON *.* to the replication account; or rplctl clone --max-history 0"
        raise
    return int(rows[0][0])
