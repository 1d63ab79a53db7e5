"""Let a channel continue by the GTIDs of a target that is a backup from the time of another source.

A start does this only if the operator requests it (`take_over_target`). Invariant: the target's position decides where
the channel continues. All relay logs that this instance has fetched are removed. The owner's row in the target changes
last. Until then, each start refuses the target.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.command.channel.change_plan import first_place
from rplctl.command.channel.change_store import keep_models
from rplctl.command.channel.context import Repositories
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.relay_log.purge import purge_all


def continue_by_gtid(repositories: Repositories) -> None:
    """Move the channel's position to the GTIDs in the target. After an interruption, it can be called again.

    The caller holds the lock in the target that excludes other appliers. Raises TargetError if the target reports an
    error.
    """
    from rplctl.commit.belonging import claim_restored

    channel, stored = repositories.channel, repositories.relay_log_info
    purge_all(channel)
    unread = repositories.master().with_read_position(BinlogPosition("", FIRST_EVENT_POSITION))
    repositories.master_info.flush(replace(unread, flushed_relay_log_name="", flushed_relay_log_pos=0), force=True)
    info = stored.read()
    marker, _ = repositories.marker()
    if marker is not None:
        info = info.moved_to(marker)
    keep_models(repositories, info)
    begin = info.at(first_place(channel), BinlogPosition("", FIRST_EVENT_POSITION))
    stored.flush(replace(begin, left_at=""), force=True)
    claim_restored(repositories.config, channel, repositories.engine())
