"""`flush-relay-logs`, `purge-relay-logs`, `purge-binary-logs`, `recover`, `switch-repo`, `load-schema`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rplctl.cli.options import ChannelName, ChannelNames, DryRun, end, for_each, options_of, the_channel
from rplctl.cli.output import many, say, show_records
from rplctl.config import Config
from rplctl.errors import UsageError


def flush_relay_logs(context: typer.Context, channel: ChannelNames = None) -> None:
    """Begin a new relay log (FLUSH RELAY LOGS)."""
    from rplctl.command.relay_logs import flush_relay_logs as run

    options = options_of(context)

    def flush(name: str, config: Config) -> None:
        result = run(config, name)
        done = "the receiver begins a new relay log" if result.asked_receiver else "the receiver does not run"
        say(options, f"channel '{name}': {done}", {"Channel_Name": name, "Asked_Receiver": result.asked_receiver})

    end(for_each(options, channel, flush))


def purge_relay_logs(context: typer.Context, channel: ChannelNames = None, dry_run: DryRun = False) -> None:
    """Remove relay logs that are applied as a whole."""
    from rplctl.command.relay_logs import purge_relay_logs as run

    options = options_of(context)

    def purge(name: str, config: Config) -> None:
        result = run(config, name, dry_run=dry_run)
        text = f"channel '{name}': {many(len(result.removed), 'relay log')} {'would be ' if dry_run else ''}removed"
        say(options, text, {"Channel_Name": name, "Removed": list(result.removed), "Dry_Run": dry_run})

    end(for_each(options, channel, purge))


def purge_binary_logs(
    context: typer.Context,
    to: Annotated[str, typer.Option("--to", metavar="LOG", help="Remove the logs before this one.")] = "",
    before: Annotated[
        str, typer.Option("--before", metavar="TIME", help="Remove the logs last written before this time.")
    ] = "",
    channel: ChannelNames = None,
    dry_run: DryRun = False,
) -> None:
    """Remove old binary logs (PURGE BINARY LOGS)."""
    from rplctl.command.purge_binary_logs import purge_binary_logs as run

    options = options_of(context)

    def purge(name: str, config: Config) -> None:
        result = run(config, name, to=to, before=before, dry_run=dry_run)
        text = f"channel '{name}': {many(len(result.removed), 'binary log')} {'would be ' if dry_run else ''}removed"
        say(options, text, {"Channel_Name": name, "Removed": list(result.removed), "Dry_Run": dry_run})

    end(for_each(options, channel, purge))


def recover(
    context: typer.Context,
    channel: ChannelNames = None,
    refetch: Annotated[
        bool, typer.Option("--refetch", help="Remove all relay logs: the next start fetches what is not executed.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Repair the relay log, as every start does (WL#4621).

    The torn tail is cut and the next event computed.
    """
    from rplctl.command.recover import RecoverResult
    from rplctl.command.recover import recover as run

    options = options_of(context)
    results: list[RecoverResult] = []
    failed = for_each(
        options, channel, lambda name, config: results.append(run(config, name, refetch=refetch, dry_run=dry_run))
    )
    show_records(options, results, RecoverResult)
    end(failed)


def switch_repo(
    context: typer.Context,
    to: Annotated[str, typer.Option("--to", metavar="table|file", help="Where the records are to be kept.")],
    channel: ChannelNames = None,
    repository: Annotated[
        str, typer.Option("--repository", metavar="master-info|relay-log-info|both", help="Which of the two.")
    ] = "both",
    dry_run: DryRun = False,
) -> None:
    """Move repositories between FILE and TABLE (WL#2775)."""
    from rplctl.command.switch_repo import SwitchStep
    from rplctl.command.switch_repo import switch_repo as run

    options = options_of(context)
    steps: list[SwitchStep] = []
    failed = for_each(
        options, channel, lambda name, config: steps.extend(run(config, name, to, repository, dry_run=dry_run))
    )
    if not options.quiet:
        show_records(options, steps, SwitchStep)
    end(failed)


def load_schema(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Output of mysqldump --no-data.")] = None,
    channel: ChannelName = None,
    from_source: Annotated[
        bool, typer.Option("--from-source", help="Ask the source instead of reading a file.")
    ] = False,
    loaded: Annotated[
        str | None,
        typer.Option("--rows-loaded", metavar="DB.TABLE,...|all", help="Instead: say that the rows are copied by now."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Tell a channel the definitions of its tables.

    Row events do not carry them. Tables that the target lacks are made empty.
    """
    from rplctl.command.load_schema import load_schema as run
    from rplctl.command.load_schema import rows_loaded

    options = options_of(context)
    name, config = the_channel(options, channel)
    if loaded is not None:
        if file is not None or from_source or dry_run:
            raise UsageError("--rows-loaded goes with no other option but --channel")
        names = rows_loaded(config, name, loaded)
        return say(options, f"channel '{name}': rows of {', '.join(names) or 'no table'} are loaded", {"loaded": names})
    result = run(config, name, file, from_source=from_source, dry_run=dry_run)
    known = f"{many(len(result.tables), 'table')} {'would be ' if dry_run else ''}known from {result.position} on"
    text = f"channel '{name}': {known}"
    if result.empty and not options.quiet:
        sys.stderr.write(
            f"Note: {many(len(result.empty), 'table')} made empty: the rows that the source had by {result.position} "
            f"are not there ({', '.join(result.empty)}); copy them (INITIAL COPY in rplctl(1)), then "
            "rplctl load-schema --rows-loaded all\n"
        )
    say(options, text, {**asdict(result), "position": str(result.position), "tables": list(result.tables)})
