"""Test whether the channel has applied a position of its source, even directly after a failover by GTID.

After a failover, the executed position belongs to the old source until the first transaction of the new source is
applied. Positions of two sources cannot be compared. The relay log shows the source of each position, because a
FORMAT_DESCRIPTION with the source's server id comes before its events. Where the relay log continues with another
source, or with another connection by GTID, its positions may move back.

Invariant: the test is never True too early. If the relay log cannot be read, it is False.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rplctl.channel import Channel
from rplctl.command.channel.context import APPLIER, RECEIVER, Repositories, running
from rplctl.errors import RelayLogError
from rplctl.event.gtid import has_reached
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.status import read_status

if TYPE_CHECKING:
    from rplctl.command.check.source_end import SourceEnd

LOOK_BYTES = 1 << 20
IDLE = "Slave has read all relay log"


def is_applied(repositories: Repositories, position: BinlogPosition) -> bool:
    """True if everything before `position` in the present source's log is applied to the target."""
    if not repositories.relay_log_info.exists():
        return False
    channel, relay, master = repositories.channel, repositories.relay(), repositories.master_info.read()
    is_past = bool(relay.master_log_name) and not relay.exec_position.is_before(position)
    if not master.uses_gtid or (is_past and not RelayLogIndex(channel).names()):
        return is_past
    read = _read_position(channel, master)  # read before the relay log, which then holds at least this position
    may_be_all = not read.is_before(position) and read_status(channel.status_path(APPLIER)).state.startswith(IDLE)
    if not read.log_name or not (is_past or may_be_all):
        return False
    with suppress(RelayLogError, OSError):
        is_of_this_source, is_all = _look(channel, master, relay)
        return is_past if is_of_this_source else is_all and not read.is_before(position)
    return False


def is_reached(repositories: Repositories, end: SourceEnd) -> bool:
    """True if everything before this end of the source's log is applied to the target."""
    if not end.gtids:
        return is_applied(repositories, end.position)
    return has_reached(end.gtids, repositories.relay().gtid_executed)


def _read_position(channel: Channel, master: MasterInfo) -> BinlogPosition:
    """Return the read position in the present source's log. Its log_name is '' until the source has answered."""
    receiver = read_status(channel.status_path(RECEIVER))
    is_live = master.master_log_name and receiver.connected and receiver.read_log_name and RECEIVER in running(channel)
    return receiver.read_position if is_live else master.read_position


def _look(channel: Channel, master: MasterInfo, relay: RelayLogInfo) -> tuple[bool, bool]:
    """Read the relay log from the executed position on, and return two bools.

    The first is True if the executed position belongs to the present source. The second is True if no transaction
    follows this position in the relay log. Raises RelayLogError if the relay log is damaged.
    """
    from rplctl.event.scan import GroupKind
    from rplctl.relay_log.reader import RelayLogReader

    reader = RelayLogReader(channel, verify_checksums=False, by_gtid=True, source_place=master.place)
    if not reader.open(relay):
        return False, False
    source = reader.source_server_id
    is_of_this_source = not source or source == (master.master_server_id or source)
    while groups := reader.groups(LOOK_BYTES):
        for number in range(len(groups.scan)):
            if groups.scan.kind[number] != GroupKind.CONTROL:
                return is_of_this_source, False
            if groups.scan.source_position(number).is_before(relay.exec_position):
                is_of_this_source = False
    return is_of_this_source, True
