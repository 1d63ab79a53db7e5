"""Compute the lag of a channel by the source's own clock, and the time at which the source purges the log that the
channel needs.

Both values come from the last reports of the channel's threads, without a query to a server. The lag has one of two
origins:

    heartbeat   the age of the newest pt-heartbeat row in the target. It includes every delay after the row was
                written, and also grows while the applier is stopped. Its precision is the interval of the heartbeats.
    source      0 if the channel has applied everything that the receiver saw at the source. Otherwise the age of the
                transaction that is applied or received now, in whole seconds like the timestamps in the log. It
                includes the delay of a slow receiver, which Seconds_Behind_Master does not include.

Invariant: the difference between the two clocks is measured and subtracted, and no lag is negative.
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
    """Return the channel's lag and its origin: a heartbeat or the source's log.

    `now` is the local time in Unix seconds.
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
    """Return the time of each server's newest heartbeat by server id, in Unix seconds by the source's clock.

    `text` is `ThreadStatus.heartbeats`, the list of `SERVER_ID:SECONDS` that the applier reports. Damaged entries are
    skipped.
    """
    found = {}
    for row in text.split(","):
        server, _, moment = row.partition(":")
        if server.isdecimal() and moment.replace(".", "", 1).isdecimal():
            found[int(server)] = float(moment)
    return found


def purge_moment(receiver: ThreadReport) -> float:
    """Return the local time, in Unix seconds, at which the source purges the log that the receiver needs.

    Return 0 if the time is unknown. A disconnected receiver does not know when its last log was closed. The log was
    written at least until the last received event, so the result is then the earliest possible time.
    """
    said = receiver.status
    if receiver.is_connected:
        return said.source_purge_at
    if not (said.source_keeps_s and said.read_timestamp):
        return 0.0
    return said.read_timestamp - said.clock_difference + said.source_keeps_s
