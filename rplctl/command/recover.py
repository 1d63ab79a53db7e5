"""`recover`: run the recovery of the relay logs by hand (WL#4621)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rplctl.channel import Channel
from rplctl.command.channel.change_store import resolve_position
from rplctl.command.channel.context import RECEIVER, administer, refuse_while_running
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.history import note_event
from rplctl.info import RelayLogInfo
from rplctl.position import RelayLogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.purge import purge_all


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoverResult:
    """The result of a recovery. The field names are the column names."""

    Channel_name: str
    Next_event: str
    Relay_log_end: str
    Truncated_bytes: int
    Notes: str


def recover(config: Config, channel_name: str, *, refetch: bool = False, dry_run: bool = False) -> RecoverResult:
    """Run the recovery of the relay logs, as each start does.

    `refetch` also removes all relay logs, so that the next start fetches everything that is not executed. Raises
    UsageError 3021 if the receiver runs and, with `refetch`, UsageError 3081 if any thread runs.
    """
    from rplctl.recovery import recover_relay_log

    with administer(config, channel_name, dry_run=dry_run) as repositories:
        channel = repositories.channel
        if refetch and not dry_run:
            refuse_while_running(channel)
        if not dry_run:
            refuse_while_running(channel, RECEIVER)
        master, relay = repositories.master(), repositories.relay()
        removed: list[str] = []
        if refetch:
            if not (relay.master_log_name or relay.gtid_executed or master.uses_gtid):
                relay = _at_its_beginning(channel, relay)
                if not dry_run:  # store the position before the relay logs, which contain it, are removed
                    resolve_position(repositories, dry_run=False)
                    repositories.relay_log_info.flush(relay, force=True)
            removed = RelayLogIndex(channel).names() if dry_run else purge_all(channel)
        result = recover_relay_log(channel, master, relay, dry_run=dry_run)
        if refetch and dry_run:
            result = replace(result, next_event=relay.exec_position, relay_end=RelayLogPosition("", 0))
    notes = [f"{len(removed)} relay logs are removed"] if removed else []
    if not dry_run:
        text = f"{'recover --refetch' if refetch else 'recover'}: next event {result.next_event}"
        note_event(config.datadir, channel_name, "recover", text)
    return RecoverResult(
        Channel_name=channel_name,
        Next_event=str(result.next_event),
        Relay_log_end=result.relay_end.or_else(""),
        Truncated_bytes=result.truncated_bytes,
        Notes="; ".join([*notes, *result.notes]),
    )


def _at_its_beginning(channel: Channel, relay: RelayLogInfo) -> RelayLogInfo:
    """Return `relay` with the first source position in the relay logs as its position, because nothing is executed yet.

    Raises UsageError if this position is unknown.
    """
    from rplctl.relay_log.locate import first_fetched

    index = RelayLogIndex(channel)
    begun = first_fetched(index, index.names(), relay, by_gtid=False)
    if begun is None:
        raise UsageError(
            "nothing is executed yet, so the position to fetch from is unknown",
            hint="to set the position, run: rplctl change-master --master-log-file FILE --master-log-pos POSITION",
        )
    return relay.at(relay.relay_log_position, begun)
