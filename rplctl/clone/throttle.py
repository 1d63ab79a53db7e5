"""Limits the load that a copy causes on the source and on the target.

The limits are in a file, which is read before each chunk, so an operator can change them during a copy. Every `rplctl
clone` writes the file. A new file also makes the applier read the clone state again. Without the file, the defaults
apply. Invariant: a copy that exceeds a limit waits between two chunks, where it has no locks, only its open snapshot.
While a snapshot is open, the source cannot purge old row versions. If too many of them accumulate, the copy closes the
snapshot.
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
    from rplctl.schema.bounds import Query

MAX_LOAD: Final = 25
MAX_LAG_S: Final = 10
LOAD_THREADS: Final = 2
_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLimits:
    """The limits of a copy, as the options of `rplctl clone` set them. The value 0 means no limit.

    `max_load`: the highest value of the status variable Threads_running on the source. `max_rate`: MB (10^6 bytes) that
    are read per second. `load_threads`: the number of connections to a target that is a server. `read_from`: the
    address of a replica to read; '' means the source. `max_history`: the highest number of old row versions that the
    source has not purged. `lag_of`: addresses of replicas, separated by commas. `max_lag`: the seconds by which each of
    these replicas may be behind.
    """

    max_load: int = MAX_LOAD
    max_rate: float = 0.0
    load_threads: int = LOAD_THREADS
    read_from: str = ""
    max_history: int = 0
    lag_of: str = ""
    max_lag: int = MAX_LAG_S


Lag = Callable[[str], "int | None"]  # HOST[:PORT] of a replica → seconds; None: stopped or unreachable


class HistoryGrows(Exception):
    """The error if too many old row versions accumulate on the source, so that the snapshot must be closed.

    Later, another snapshot continues the copy.
    """


def read_limits(channel: Channel) -> SourceLimits:
    """Return the limits from the file. Return the defaults if the file is missing or damaged.

    Raises UnfitFile if the file is not a regular file.
    """
    try:
        stored = parsed_json(read_plain(channel.clone_orders_path))
        load, rate = int(stored["max_load"]), float(stored["max_rate"])
        threads, read_from = int(stored.get("load_threads", LOAD_THREADS)), str(stored.get("read_from", ""))
        lag_of, max_lag = str(stored.get("lag_of", "")), int(stored.get("max_lag", MAX_LAG_S))
        return SourceLimits(
            max_load=load,
            max_rate=rate,
            load_threads=max(1, threads),
            read_from=read_from,
            max_history=int(stored.get("max_history", 0)),
            lag_of=lag_of,
            max_lag=max_lag,
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, OverflowError):
        return SourceLimits()


def write_limits(channel: Channel, **given: Any) -> None:
    """Write the given fields of SourceLimits to the file. Fields that are None or not given keep their values.

    Raises OSError if the file cannot be written.
    """
    changes = {name: value for name, value in given.items() if value is not None}
    limits = replace(read_limits(channel), **changes)
    replace_file(channel.clone_orders_path, json.dumps(asdict(limits)).encode())


def orders_seen(channel: Channel) -> tuple[int, int]:
    """Return a value that changes whenever `write_limits` writes the file. Return (0, 0) without a file.

    The applier compares the values to notice a new `rplctl clone`.
    """
    try:
        found = channel.clone_orders_path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


class Throttle:
    """The throttle of a copy, which waits before a chunk until all limits permit it.

    `stop` ends every wait. `says` is called with the reason for a wait, and with '' when the copy continues.
    """

    def __init__(self, channel: Channel, stop: threading.Event, says: Callable[[str], None]) -> None:
        self._channel, self._stop, self._says = channel, stop, says
        self._free_at = 0.0  # time.monotonic() at which the rate permits the next chunk
        self._asked_again_at, self._asked_for = 0.0, SourceLimits()  # the next poll of replicas that were not behind

    def wait(self, query: Query, lag: Lag, *, holds_snapshot: bool) -> None:
        """Wait before a chunk until all limits permit the chunk.

        `query` runs queries outside the snapshot. `lag` returns the lag of a replica. `holds_snapshot`: True if a
        snapshot is open, so that old row versions accumulate. Raises HistoryGrows if there are too many of them, and
        SourceError if the source reports an error.
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
        """True if the source has too many old row versions, so that no snapshot may be opened now.

        A snapshot would prevent the source from purging these row versions. In this case, the status of the copy shows
        that the copy waits for the purge.
        """
        history = _too_much_history(query, read_limits(self._channel))
        self._says(f"Waiting: {history}" if history else "")
        return bool(history)

    def _behind(self, lag: Lag, limits: SourceLimits) -> str:
        """Return the reason to wait for a replica that is too far behind. Return '' if no replica is too far behind.

        Each poll of a replica needs a connection. So after a poll that finds no reason to wait, the replicas are not
        polled again for a second.
        """
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
        """Add `count` bytes that were read, so that `wait` can limit the rate."""
        if rate := read_limits(self._channel).max_rate:
            self._free_at = max(self._free_at, time.monotonic() - _AGAIN_S) + count / (rate * 1e6)


def _busy(query: Query, limits: SourceLimits) -> str:
    running = int(query(written("SHOW GLOBAL STATUS LIKE 'Threads_running'"))[0][1]) if limits.max_load else 0
    is_busy = running > limits.max_load
    return f"Threads_running is {running} on the source, --max-load {limits.max_load}" if is_busy else ""


def _too_much_history(query: Query, limits: SourceLimits) -> str:
    length = history_length(query) if limits.max_history else 0
    is_long = length > limits.max_history
    return f"InnoDB's history has {length} old versions, --max-history {limits.max_history}" if is_long else ""


def history_length(query: Query) -> int:
    """Return InnoDB's history list length, the number of old row versions that are not purged yet.

    Raises SourceError 1227 if MySQL refuses the query, because the account lacks the privilege PROCESS.
    """
    found = query(written("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'"))  # only MariaDB has it
    if found:
        return int(found[0][1])
    try:
        rows = query(written("SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"))
    except SourceError as error:
        if error.errno == er.SPECIFIC_ACCESS_DENIED_ERROR:
            error.hint = (
                "on the source, give the account of the channel the privilege: GRANT PROCESS ON *.* TO 'USER'@'HOST'\n"
                "To copy without this limit, run: rplctl clone --max-history 0"
            )
        raise
    return int(rows[0][0])
