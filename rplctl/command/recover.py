"""`skip` and `recover`: the operator's ways past a transaction, and relay log recovery by hand (WL#4621)."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.channel import Channel
from rplctl.command.instance import (
    APPLIER,
    RECEIVER,
    administer,
    open_repositories,
    read_master_info,
    running,
    write_skip_count,
)
from rplctl.command.journal import append_journal
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.errors import UsageError
from rplctl.info import RelayLogInfo


@dataclass(frozen=True, slots=True)
class SkipResult:
    channel: str
    count: int


def skip(config: Config, channel_name: str, count: int) -> SkipResult:
    """The next start passes over this many transactions (sql_slave_skip_counter). Raises UsageError 3085."""
    channel = Channel(channel_name, config.datadir)
    if count < 0:
        raise UsageError(f"skip {count}: a number of transactions, 0 to take it back")
    private_folder(channel.run_folder)
    with administer(channel):
        read_master_info(open_repositories(config, channel_name), channel_name)
        if APPLIER in running(channel):
            raise UsageError(
                "This operation cannot be performed with a running slave sql thread; "
                f"run STOP SLAVE SQL_THREAD FOR CHANNEL '{channel_name}' first.",
                errno=3085,
                channel=channel_name,
                hint="rplctl stop --applier",
            )
        write_skip_count(channel, count)
        append_journal(config, f"'skip {count}' for channel '{channel_name}'")
    return SkipResult(channel_name, count)


@dataclass(frozen=True, slots=True)
class RecoverResult:
    """Field names are columns."""

    Channel_name: str
    Next_event: str
    Relay_log_end: str
    Truncated_bytes: int
    Notes: str


def recover(config: Config, channel_name: str, *, dry_run: bool = False) -> RecoverResult:
    """What every start does first, by hand. Raises UsageError 3021 while the receiver runs."""
    from rplctl.recovery import recover_relay_log

    channel = Channel(channel_name, config.datadir)
    with administer(channel):
        if RECEIVER in running(channel) and not dry_run:
            raise UsageError(
                "This operation cannot be performed with a running slave io thread; "
                f"run STOP SLAVE IO_THREAD FOR CHANNEL '{channel_name}' first.",
                errno=3021,
                channel=channel_name,
                hint="rplctl stop --receiver",
            )
        repositories = open_repositories(config, channel_name)
        master = read_master_info(repositories, channel_name)
        stored = repositories.relay_log_info
        relay = stored.read() if stored.exists() else RelayLogInfo(channel_name=channel_name)
        result = recover_relay_log(channel, config, master, relay, dry_run=dry_run)
    return RecoverResult(
        channel_name,
        str(result.next_event),
        str(result.relay_end) if result.relay_end.log_name else "",
        result.truncated_bytes,
        "; ".join(result.notes),
    )
