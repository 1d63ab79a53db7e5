"""`purge-relay-logs`: remove the relay logs that are completely applied."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.applied_log.files import binary_log_files
from rplctl.command.channel.change_store import after_pending_change
from rplctl.command.channel.context import APPLIER, Note, Repositories, administer, running
from rplctl.config import Config
from rplctl.position import RelayLogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.purge import purge_applied


@dataclass(frozen=True, slots=True)
class RemovedLogs:
    """The result of a purge: the relay logs or binary logs that the command has removed, or would remove in a dry
    run.
    """

    channel: str
    removed: tuple[str, ...]
    dry_run: bool
    notes: tuple[Note, ...] = ()


def purge_relay_logs(config: Config, channel_name: str, *, dry_run: bool = False) -> RemovedLogs:
    """Remove the relay logs that are completely applied and, with `log_bin`, also written to the binary log.

    Raises NotConfigured if the channel does not exist, and TargetError if the applier does not run and the target does
    not answer. Then nobody knows whether the target was restored from a backup.
    """
    from rplctl.applied_log.end import logged_record

    with administer(config, channel_name, dry_run=dry_run) as repositories:
        channel = repositories.channel
        repositories.master()
        notes: tuple[Note, ...] = ()
        if APPLIER not in running(channel):
            repositories, notes = after_pending_change(repositories, dry_run=dry_run)
        position = _applied_to(repositories)
        record = logged_record(binary_log_files(repositories.config, channel))
        if record is not None and record.after.relay_log_position.is_before(position):
            position = record.after.relay_log_position  # the binary log still needs the transactions after it
        names = RelayLogIndex(channel).names()
        if position.log_name not in names:
            return RemovedLogs(channel_name, (), dry_run, notes)
        applied = names[: names.index(position.log_name)]
        removed = applied if dry_run else purge_applied(channel, position)
        return RemovedLogs(channel_name, tuple(removed), dry_run, notes)


def _applied_to(repositories: Repositories) -> RelayLogPosition:
    """Return the relay log position up to which the target has the transactions."""
    info = repositories.relay()
    if APPLIER in running(repositories.channel) or not repositories.target_has("rplctl_commit_marker"):
        return info.relay_log_position
    from rplctl.commit.marker import has_gone_back

    marker, _ = repositories.marker()
    is_restored = marker is not None and has_gone_back(repositories.channel.name, repositories.engine(), info)
    return marker.relay_log_position if marker is not None and is_restored else info.relay_log_position
