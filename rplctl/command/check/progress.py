"""Test whether the receiver keeps up with the source's binary log, for `check --online`.

Seconds_Behind_Master uses only events that were read. It is 0 while a receiver hangs, or is too slow to read anything.
The end of a busy source's log moves on, so that the receiver never reaches it. So the test reads the end only once, and
then waits until the receiver has read up to this position.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from rplctl.channel import Channel
from rplctl.command.check.findings import Finding, found
from rplctl.command.check.repository import Stored
from rplctl.command.check.source_end import SourceEnd, source_end
from rplctl.command.process.thread_report import ThreadReport, report_of
from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.event.gtid import has_reached
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition

PATIENCE_S = 3.0
_POLL_S = 0.1


def known_end(config: Config, stored: Stored) -> SourceEnd | None:
    """Return the end of the source's log. Return None if the end is unknown, because another finding reports this."""
    if stored.master is None or not stored.master.is_configured:
        return None
    try:
        return source_end(config, stored.master, _relay(stored, stored.master))
    except RplError:
        return None


def _relay(stored: Stored, master: MasterInfo) -> RelayLogInfo:
    return stored.relay or RelayLogInfo(channel_name=master.channel_name)


def check_progress(channel: Channel, stored: Stored, end: SourceEnd | None) -> Iterator[Finding]:
    """Yield a finding if the receiver does not read up to `end` within PATIENCE_S seconds."""
    master = stored.master
    if master is None or end is None:
        return
    relay = _relay(stored, master)
    if not end.position.log_name or not (end.is_comparable or end.gtids):
        return
    receiver = report_of(channel, "receiver")
    before = _read(receiver, master)
    deadline = time.monotonic() + PATIENCE_S
    while not _has_read(receiver, master, relay, end):
        if not receiver.runs or time.monotonic() > deadline:
            yield _behind(receiver, before, _read(receiver, master), relay, end)
            return
        time.sleep(_POLL_S)
        receiver = report_of(channel, "receiver")


def _read(receiver: ThreadReport, master: MasterInfo) -> BinlogPosition:
    return receiver.status.read_position if receiver.is_connected else master.read_position


def _has_read(receiver: ThreadReport, master: MasterInfo, relay: RelayLogInfo, end: SourceEnd) -> bool:
    if end.gtids:
        return has_reached(end.gtids, receiver.status.retrieved_gtid_set, relay.gtid_executed)
    read = _read(receiver, master)
    return bool(read.log_name) and not read.is_before(end.position)


def _behind(
    receiver: ThreadReport, before: BinlogPosition, now: BinlogPosition, relay: RelayLogInfo, end: SourceEnd
) -> Finding:
    same = now.log_name == end.position.log_name and not end.gtids
    by = f", {end.position.log_pos - now.log_pos} bytes behind" if same else ""
    executed = relay.exec_position.or_else("nothing")
    text = (
        f"the source's binary log ends at {end.position}, read is {now.or_else('nothing')}{by}, executed is {executed}"
    )
    if not receiver.runs:
        return found("source_ahead", f"{text}; the receiver does not run", "rplctl start")
    if now == before:
        return found("receiver_stuck", f"{text}; nothing came within {PATIENCE_S:g} s", "rplctl stop; rplctl start")
    return found("receiver_behind", text, "the network, or the disk of the relay logs, is slower than the source")
