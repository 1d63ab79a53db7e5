"""Computes the time at which the source will purge the log that a channel reads next.

A server purges a closed log after a retention time, or when the total size of all logs exceeds a limit. It never purges
its current log. No server reports when it closed a log. But the log was still open when the server wrote the last event
that rplctl has read from it. So the result is the earliest possible time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rplctl.position import BinlogPosition, log_number
from rplctl.source.clock import Clock, clock_of
from rplctl.source.survey import Ask
from rplctl.sql_text import joined, text_literal, written

_DAY_S: Final = 86400
VARIABLES: Final = (
    "log_bin",
    "server_id",
    "server_uuid",
    "binlog_expire_logs_seconds",
    "binlog_expire_logs_auto_purge",
    "expire_logs_days",
    "max_binlog_total_size",  # MariaDB since 11.4
    "binlog_space_limit",  # Percona Server
)


@dataclass(frozen=True, slots=True)
class Kept:
    """The binary logs, variables and clock of a source at one time.

    `at`: this time in Unix seconds, by rplctl's clock. `logs`: the name and the size in bytes of each log, the oldest
    first; empty if the source has no binary log.
    """

    at: float
    clock: Clock
    variables: Mapping[str, str]
    logs: Mapping[str, int]

    @property
    def keeps_s(self) -> float:
        """The retention time of a closed log in seconds. 0 means no limit."""
        if self.variables.get("binlog_expire_logs_auto_purge", "ON").upper() == "OFF":
            return 0.0
        seconds = _number(self.variables, "binlog_expire_logs_seconds")
        return seconds or _number(self.variables, "expire_logs_days") * _DAY_S

    @property
    def keeps_bytes(self) -> float:
        """The total size of the source's binary logs, in bytes, above which it purges the oldest. 0 means no limit."""
        return _number(self.variables, "max_binlog_total_size") or _number(self.variables, "binlog_space_limit")

    @property
    def end(self) -> BinlogPosition:
        """The end of the newest log. If there is no log, `log_name` is ''."""
        if not self.logs:
            return BinlogPosition("", 0)
        newest = max(self.logs, key=log_number)
        return BinlogPosition(newest, self.logs[newest])


def _number(variables: Mapping[str, str], name: str) -> float:
    text = variables.get(name, "")
    return float(text) if text.replace(".", "", 1).isdecimal() else 0.0


def purged_gtids(ask: Ask, kept: Kept) -> str:
    """Return the GTIDs of the transactions before the oldest existing log. Return '' if there are no such GTIDs.

    Raises SourceError if the source reports an error.
    """
    if "server_uuid" in kept.variables:  # MySQL's
        return str(ask(written("SELECT @@GLOBAL.gtid_purged"))[0][0])
    oldest = min(kept.logs, key=log_number)
    events = ask(written("SHOW BINLOG EVENTS IN {} LIMIT 3", text_literal(oldest)))
    return next((str(row[5]).strip("[]") for row in events if row[2] == "Gtid_list"), "")


def look(ask: Ask) -> Kept:
    """Query the source for its binary logs, variables and clock.

    Raises SourceError if the source reports an error, for example 1227 if the account lacks the privilege.
    """
    began = time.time()
    clock = clock_of(began, float(ask(written("SELECT UNIX_TIMESTAMP(NOW(6))"))[0][0]), time.time())
    names = joined(", ", map(text_literal, VARIABLES))
    rows = ask(written("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", names))
    variables = {str(n): str(v) for n, v in rows}
    logs = ask(written("SHOW BINARY LOGS")) if variables.get("log_bin") == "ON" else []
    return Kept(time.time(), clock, variables, {str(row[0]): int(row[1]) for row in logs})


def bytes_written(before: Kept, after: Kept) -> int | None:
    """Return the number of bytes that the source has written to its log between two states.

    Return None if the newest log of the first state no longer exists or is shorter, for example after RESET MASTER.
    """
    end = before.end
    if end.log_name not in after.logs or after.logs[end.log_name] < end.log_pos:
        return None
    first = log_number(end.log_name)
    return sum(size for name, size in after.logs.items() if log_number(name) >= first) - end.log_pos


def purge_at(kept: Kept, read: BinlogPosition, read_at: float, bytes_per_s: float) -> float | None:
    """Return the earliest time at which the source purges the log of the read position.

    Return None if no purge is expected. The time is in Unix seconds, by rplctl's clock. `read`: the read position.
    `read_at`: the time of the last read event, by the source's clock. `bytes_per_s`: the rate at which the source
    writes its log; 0 = unknown.
    """
    if read.log_name not in kept.logs or read.log_name == kept.end.log_name:
        return None
    moments = []
    if kept.keeps_s and read_at:
        moments.append(read_at - kept.clock.difference + kept.keeps_s)
    if kept.keeps_bytes and bytes_per_s > 0:
        number = log_number(read.log_name)
        needed = sum(size for name, size in kept.logs.items() if log_number(name) >= number)
        moments.append(kept.at + (kept.keeps_bytes - needed) / bytes_per_s)
    return min(moments, default=None)
