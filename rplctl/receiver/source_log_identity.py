"""Is the source's log the one we read before, or another of the same name? RESET MASTER begins the names anew.

A position beyond the new log's end the source refuses itself (1236); one within it would be read on from, silently, in
the middle of other transactions. A log is known by when it was begun: the timestamp of its FORMAT_DESCRIPTION, which
the source sends at each connection and the relay log keeps (resolution: a second). Asked by position only, and only
when the relay log ends whole, at that position.
"""

from __future__ import annotations

from rplctl.event.header import parse_header
from rplctl.info import MasterInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.recovery import RecoveryResult
from rplctl.source.base import fatal_reading_binlog


def known_log(info: MasterInfo, recovered: RecoveryResult) -> bytes:
    """FORMAT_DESCRIPTION of the source's log that the next event is in; b'' when it is not known or does not matter."""
    by_gtid = info.enabled_auto_position or info.using_gtid != 0
    return b"" if by_gtid or recovered.needs_new_relay_log else recovered.format_description


def refuse_log_begun_anew(known: bytes, sent: bytes, position: BinlogPosition) -> None:
    """Raises SourceError 1236 when the log that is sent from `position` on was not begun when the known one was."""
    if not known or position.log_pos <= FIRST_EVENT_POSITION:
        return
    if parse_header(known).timestamp == parse_header(sent).timestamp:
        return
    raise fatal_reading_binlog(
        f"{position.log_name} is not the log that was read up to {position.log_pos}: the source has begun it anew",
        hint="provision the target anew, then rplctl change-master --master-log-file … --master-log-pos …",
    )
