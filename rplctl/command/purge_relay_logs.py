"""`purge-relay-logs`: remove the relay logs that are completely applied."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.applied_log.files import binary_log_files
from rplctl.command.channel.context import Note, administer
from rplctl.config import Config
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

    Raises NotConfigured if the channel does not exist.
    """
    from rplctl.applied_log.end import logged_record

    with administer(config, channel_name, dry_run=dry_run) as repositories:
        channel = repositories.channel
        repositories.master()
        position = repositories.relay().relay_log_position
        record = logged_record(binary_log_files(repositories.config, channel))
        if record is not None and record.after.relay_log_position.is_before(position):
            position = record.after.relay_log_position  # the binary log still needs the transactions after it
        names = RelayLogIndex(channel).names()
        if position.log_name not in names:
            return RemovedLogs(channel_name, (), dry_run)
        applied = names[: names.index(position.log_name)]
        removed = applied if dry_run else purge_applied(channel, position)
        return RemovedLogs(channel_name, tuple(removed), dry_run)
