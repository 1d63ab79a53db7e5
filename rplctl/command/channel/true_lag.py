"""The lag of a channel by the source's own clock, and the time at which the source purges the log that it needs.

Both come from the last reports of the channel's threads, without a query to a server.

    heartbeat   the age of the newest pt-heartbeat row in the target. It includes every delay after the row was written,
                even an applier that does not run. Its precision is the interval of the heartbeats
    source      0 if everything is applied that the receiver saw at the source, else the age of the transaction that is
                applied or received now, in whole seconds like the log's timestamps. It includes the delay of a slow
                receiver, which Seconds_Behind_Master does not see

Invariant: the difference of the two clocks is measured and subtracted, and no lag is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rplctl.command.process.thread_report import ThreadReport, Threads
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition

FRESH_S: Final = 180.0  # seconds; an older report about the source is ignored


@dataclass(frozen=True, slots=True)
class TrueLag:
    seconds: float | None
    source: str  # heartbeat, source; '' if the lag is unknown


def true_lag(master: MasterInfo, relay: RelayLogInfo, threads: Threads, now: float) -> TrueLag:
    """Return the channel's lag, and whether it is from a heartbeat or from the source's log. `now`: Unix seconds by the
    local clock.
    """
    said, applied = threads.receiver.status, threads.applier.status
    there = now + said.clock_difference
    beats = heartbeats(applied.heartbeats)
    if beats:
        newest = beats.get(master.master_server_id) or max(beats.values())
        return TrueLag(_seconds(there - newest), "heartbeat")
    if not (threads.receiver.is_connected and threads.applier.runs) or now - said.source_seen > FRESH_S:
        return TrueLag(None, "")
    if threads.applier.silent_since is not None:
        return TrueLag(None, "")
    began = applied.last_event_timestamp or said.transfer_timestamp
    if master.read_position != relay.exec_position and began:
        return TrueLag(_whole_seconds(there - began), "source")
    if relay.exec_position.is_before(BinlogPosition(said.source_log_name, said.source_log_pos)):
        return TrueLag(_whole_seconds(there - said.read_timestamp), "source")
    return TrueLag(0.0, "source")


def _seconds(value: float) -> float:
    return round(max(0.0, value), 3)


def _whole_seconds(value: float) -> float:
    """Return the lag in whole seconds, because the log's timestamps have no fractions."""
    return float(max(0, int(value)))


def heartbeats(text: str) -> dict[int, float]:
    """Return the newest heartbeat of each server in Unix seconds, by server id, from `ThreadStatus.heartbeats`. Damaged
    entries are skipped.
    """
    found = {}
    for row in text.split(","):
        server, _, moment = row.partition(":")
        if server.isdecimal() and moment.replace(".", "", 1).isdecimal():
            found[int(server)] = float(moment)
    return found


def purge_moment(receiver: ThreadReport) -> float:
    """Return the time at which the source purges the log that the receiver needs, in Unix seconds by the local clock; 0
    if it is unknown. For a disconnected receiver this is the earliest possible time: its last log was written at least
    until the time of the last event.
    """
    said = receiver.status
    if receiver.is_connected:
        return said.source_purge_at
    if not (said.source_keeps_s and said.read_timestamp):
        return 0.0
    return said.read_timestamp - said.clock_difference + said.source_keeps_s
