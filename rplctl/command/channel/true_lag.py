"""How far a channel is behind by the source's own clock, and when the source purges what it needs.

Both are what its threads said last; nobody is asked.

    heartbeat   the age of the newest row of pt-heartbeat in the target: whatever is between its writer and us counts,
                also an applier that does not run. As fine as the writer's interval
    source      the receiver looked at the source: all of what it had then is applied, or the age of the transaction in
                work or in transfer; a receiver that cannot keep up is seen, which Seconds_Behind_Master takes for no
                lag. In whole seconds, as the log's timestamps are

Invariant: a difference of the two clocks is measured and taken off, and no lag is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rplctl.command.process.thread_report import ThreadReport, Threads
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition

FRESH_S: Final = 180.0  # a look at the source that is older says nothing of now


@dataclass(frozen=True, slots=True)
class TrueLag:
    seconds: float | None
    source: str  # heartbeat, source; '' when it is not known


def true_lag(master: MasterInfo, relay: RelayLogInfo, threads: Threads, now: float) -> TrueLag:
    """`now`: Unix seconds by our clock."""
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
    """The log's timestamps have no more digits."""
    return float(max(0, int(value)))


def heartbeats(text: str) -> dict[int, float]:
    """Server id → Unix seconds, of `ThreadStatus.heartbeats`; what is damaged is left out."""
    found = {}
    for row in text.split(","):
        server, _, moment = row.partition(":")
        if server.isdecimal() and moment.replace(".", "", 1).isdecimal():
            found[int(server)] = float(moment)
    return found


def purge_moment(receiver: ThreadReport) -> float:
    """Unix seconds by our clock, 0 when it is not in sight. Of a receiver that sees no source it is the earliest: the
    log that it read last was written at the time of the last event that came.
    """
    said = receiver.status
    if receiver.is_connected:
        return said.source_purge_at
    if not (said.source_keeps_s and said.read_timestamp):
        return 0.0
    return said.read_timestamp - said.clock_difference + said.source_keeps_s
