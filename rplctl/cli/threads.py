"""`start`, `stop`, `wait`, `skip`, `reset`: what runs and ends a channel."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from rplctl.cli.globals import Globals
from rplctl.cli.options import (
    AllChannels,
    ChannelName,
    ChannelNames,
    DryRun,
    SeveralChannels,
    Yes,
    end,
    for_each,
    names_of,
    options_of,
    roles_of,
    seconds,
    the_channel,
)
from rplctl.cli.output import confirm, many, one_list, say, say_notes
from rplctl.cli.progress import progress_unless
from rplctl.config import Config
from rplctl.errors import RplError, StoppedEarly, UsageError, WaitTimeout
from rplctl.position import BinlogPosition

if TYPE_CHECKING:
    from rplctl.command.start import StartRequest, StartResult

Receiver = Annotated[bool, typer.Option("--receiver", "--io-thread", help="Only the receiver (I/O thread).")]
Applier = Annotated[bool, typer.Option("--applier", "--sql-thread", help="Only the applier (SQL thread).")]


def start(
    context: typer.Context,
    channel: SeveralChannels = None,
    every: AllChannels = False,
    receiver: Receiver = False,
    applier: Applier = False,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay until a thread ends or SIGTERM comes (systemd, containers).")
    ] = False,
    until_synced: Annotated[
        bool, typer.Option("--until-synced", help="Apply all that the source has now, stop what was started, exit 0.")
    ] = False,
    max_time: Annotated[
        str | None,
        typer.Option("--max-time", metavar="SECONDS", help="With --foreground or --until-synced: stop then."),
    ] = None,
    until_master_log_file: Annotated[
        str | None,
        typer.Option(
            "--until-master-log-file", "--until-source-log-file", metavar="FILE", help="Stop at this log of the source,"
        ),
    ] = None,
    until_master_log_pos: Annotated[
        int | None,
        typer.Option(
            "--until-master-log-pos", "--until-source-log-pos", metavar="N", help="and at this position in it."
        ),
    ] = None,
    until_relay_log_file: Annotated[
        str | None, typer.Option("--until-relay-log-file", metavar="FILE", help="Stop at this relay log,")
    ] = None,
    until_relay_log_pos: Annotated[
        int | None, typer.Option("--until-relay-log-pos", metavar="N", help="and at this position in it.")
    ] = None,
    until_sql_before_gtids: Annotated[
        str | None,
        typer.Option("--until-sql-before-gtids", metavar="SET", help="Stop before the first of these GTIDs."),
    ] = None,
    until_sql_after_gtids: Annotated[
        str | None, typer.Option("--until-sql-after-gtids", metavar="SET", help="Stop when all of these are applied.")
    ] = None,
    shared_session: Annotated[
        bool, typer.Option("--shared-session", help="One applier process with one Spark for all these channels.")
    ] = False,
    spark_master: Annotated[
        str, typer.Option("--spark-master", metavar="URL", help="local[N], spark://..., yarn or k8s://....")
    ] = "",
    crash_points: Annotated[
        str, typer.Option("--crash-points", metavar="NAME=kill[@N],...", help="For tests: die at the Nth pass there.")
    ] = "",
) -> None:
    """Start receiver and applier (START SLAVE)."""
    from rplctl.command.start import StartRequest, Until
    from rplctl.command.start import start as run

    options = options_of(context)
    until = Until(
        until_master_log_file,
        until_master_log_pos,
        until_relay_log_file,
        until_relay_log_pos,
        until_sql_before_gtids,
        until_sql_after_gtids,
    )
    request = StartRequest(
        roles_of(receiver, applier),
        until,
        until_synced,
        foreground,
        seconds(max_time, "--max-time"),
        spark_master,
        crash_points,
    )
    if shared_session:
        with one_list(options):
            failed = _start_shared(options, names_of(options, channel, every=every), request)
        return end(failed)
    if (until != Until() or foreground) and len(names_of(options, channel, every=every)) > 1:
        raise UsageError(
            "Multiple channels exist on the slave. Please provide channel name as an argument.",
            errno=3079,
            hint="add --channel NAME",
        )
    turn = Turns(request)

    def start_one(name: str, config: Config) -> None:
        mine = turn.of(name)
        with progress_unless(options.quiet or not until_synced) as progress, turn.watched():
            result = run(config, name, mine, progress, lambda begun: _say_begun(options, begun, foreground))
        _say_started(options, result)

    end(for_each(options, channel, start_one, every=every))


class Turns:
    """Channels that are synced one after the other: a signal ends all of it, and --max-time is for all together."""

    def __init__(self, request: StartRequest) -> None:
        self._request = request
        self._is_over = False
        self._deadline = None if request.max_time_s is None else time.monotonic() + request.max_time_s

    def of(self, name: str) -> StartRequest:
        """The request with the time that is left. Raises StoppedEarly, WaitTimeout."""
        hint = "rplctl start does what is left"
        if self._is_over:
            raise StoppedEarly(f"channel '{name}' was not started: a signal came before", channel=name, hint=hint)
        if self._deadline is None:
            return self._request
        left = self._deadline - time.monotonic()
        if left <= 0 < (self._request.max_time_s or 0):
            raise WaitTimeout(f"channel '{name}' was not started: --max-time was over", channel=name, hint=hint)
        return replace(self._request, max_time_s=max(0.0, left))

    @contextmanager
    def watched(self) -> Iterator[None]:
        try:
            yield
        except StoppedEarly as error:
            self._is_over = "SIGTERM" in error.message
            raise


def _say_begun(options: Globals, result: StartResult, foreground: bool) -> None:
    if foreground and options.format != "json" and result.started:
        _say_started(options, result)


def _start_shared(options: Globals, names: list[str], request: StartRequest) -> int:
    from rplctl.cli import report
    from rplctl.command.process.start_shared import start_shared

    failed = 0
    for name, outcome in start_shared(options.config, names, request).items():
        if isinstance(outcome, RplError):
            report(outcome, name)
            failed = failed or outcome.exit_code
        else:
            _say_started(options, outcome)
    return failed


def _say_started(options: Globals, result: StartResult) -> None:
    name = result.channel
    say_notes(options, result.notes)
    how = {"reached": "reached its UNTIL and stopped", "stop": "stopped by rplctl stop", "signal": "stopped by SIGTERM"}
    done = f"channel '{name}' is at {result.synced_to}" if result.synced_to else ""
    if result.ended and not done:
        at = f" at {result.at}" if result.at and result.at.log_name else ""
        done = f"channel '{name}': {how.get(result.ended, 'stopped after --max-time')}{at}"
    what = f"channel '{name}': {' and '.join(result.started)} started" if result.started else ""
    say(
        options,
        done or what or f"channel '{name}' is running",
        {
            "Channel_Name": name,
            "Started": list(result.started),
            "Already_Running": list(result.already_running),
            "Synced_To": str(result.synced_to) if result.synced_to else None,
            "Ended": result.ended or None,
            "Position": str(result.at) if result.at and result.at.log_name else None,
        },
    )


def stop(
    context: typer.Context,
    channel: SeveralChannels = None,
    every: AllChannels = False,
    receiver: Receiver = False,
    applier: Applier = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="SECONDS", help="Wait this long for a transaction end, then kill.")
    ] = "60",
) -> None:
    """Stop both at a transaction end (STOP SLAVE)."""
    from rplctl.command.process.child import ServesOthers
    from rplctl.command.stop import stop as run

    options = options_of(context)
    limit = seconds(timeout, "--timeout") or 0.0
    left: list[str] = []  # in a process that others keep alive: again once those have ended

    def stop_one(name: str, config: Config) -> None:
        patience = limit if name not in left else 0.0
        try:
            result = run(config, name, roles_of(receiver, applier), patience)
        except ServesOthers:
            if name in left or len(names_of(options, channel)) < 2:
                raise
            left.append(name)
            return
        say_notes(options, result.notes)
        text = f"channel '{name}': {' and '.join(result.stopped) or 'nothing'} stopped"
        row = {"Channel_Name": name, "Stopped": list(result.stopped), "Killed": list(result.killed)}
        say(options, text, row)

    with one_list(options):
        failed = for_each(options, channel, stop_one, every=every)
        failed = failed or (for_each(options, list(left), stop_one) if left else 0)
    end(failed)


def wait(
    context: typer.Context,
    channel: ChannelName = None,
    state: Annotated[str, typer.Option("--state", metavar="running|synced|stopped", help="State to wait for.")] = "",
    pos: Annotated[
        str | None, typer.Option("--pos", metavar="FILE:POS", help="Source position that must be applied.")
    ] = None,
    timeout: Annotated[str | None, typer.Option("--timeout", metavar="SECONDS", help="Give up then, exit 9.")] = None,
) -> None:
    """Wait for a state or a position (MASTER_POS_WAIT)."""
    from rplctl.command.wait import wait as run

    options = options_of(context)
    position = BinlogPosition.parse(pos) if pos is not None else None
    limit = seconds(timeout, "--timeout")
    name, config = the_channel(options, channel)
    result = run(config, name, state=state, position=position, timeout_s=limit)
    row = {"Channel_Name": name, "Position": str(result.executed), "Waited": round(result.waited_s, 3)}
    say(options, f"channel '{name}' is {state or f'past {position}'}", row)


def skip(
    context: typer.Context,
    number: Annotated[int | None, typer.Argument(metavar="N", help="Transactions, 1 if not given; 0: none.")] = None,
    count: Annotated[int | None, typer.Option("--count", metavar="N", help="The same as N.")] = None,
    gtid: Annotated[
        str, typer.Option("--gtid", metavar="GTID,...", help="Instead: the transactions with these GTIDs.")
    ] = "",
    channel: ChannelName = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Pass over transactions.

    N of them at the next start (sql_slave_skip_counter), or each GTID's when it is reached.
    """
    from rplctl.command.recover import skip as run

    options = options_of(context)
    if (number is not None) + (count is not None) + bool(gtid) > 1:
        raise UsageError("give a number of transactions or GTIDs, and either once")
    wanted = None if gtid else next((n for n in (number, count) if n is not None), 1)
    name, config = _channel_to_skip(options, channel, wanted)
    if wanted != 0 and not dry_run:
        run(config, name, wanted, gtid, dry_run=True)  # refuses what cannot be before anybody is asked
        what = f"The transaction {gtid}" if gtid else many(wanted or 0, "transaction")
        confirm(f"{what} of channel '{name}' will never be applied.", yes=yes)
    result = run(config, name, wanted, gtid, dry_run=dry_run)
    say_notes(options, result.notes)
    parts = [f"{many(result.count, 'transaction')} at its next start"] if wanted is not None or result.count else []
    parts += [f"GTID {', '.join(result.gtids)}"] if result.gtids else []
    say(
        options,
        f"channel '{name}' {'would skip' if dry_run else 'skips'} {' and '.join(parts) or 'nothing'}",
        {
            "Channel_Name": name,
            "Skip_Counter": result.count,
            "Skip_Gtids": list(result.gtids),
            "Dry_Run": dry_run,
        },
    )


def _channel_to_skip(options: Globals, given: str | None, count: int | None) -> tuple[str, Config]:
    """Raises UsageError 3086 where the server would not know which thread the counter is for, else 3079."""
    try:
        return the_channel(options, given)
    except UsageError as error:
        if error.errno != 3079 or not count:
            raise
        raise UsageError(
            "When sql_slave_skip_counter > 0, it is not allowed to start more than one SQL thread by using "
            "'START SLAVE [SQL_THREAD]'. Value of sql_slave_skip_counter can only be used by one SQL thread at a "
            "time. Please use 'START SLAVE [SQL_THREAD] FOR CHANNEL' to start the SQL thread which will use the value "
            "of sql_slave_skip_counter.",
            errno=3086,
            hint="add --channel NAME",
        ) from None


def reset(
    context: typer.Context,
    channel: ChannelNames = None,
    everything: Annotated[bool, typer.Option("--all", help="Forget the connection and the channel, too.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Forget position and relay logs (RESET SLAVE).

    The replicated tables stay.
    """
    from rplctl.command.stop import reset as run

    options = options_of(context)

    def reset_one(name: str, config: Config) -> None:
        if not dry_run:
            what = "its connection settings and position are" if everything else "its position is"
            confirm(f"Channel '{name}' is reset: {what} forgotten.", yes=yes)
        result = run(config, name, everything=everything, dry_run=dry_run)
        would = "would be " if dry_run else ""
        text = f"channel '{name}' {would}reset, {many(len(result.removed_relay_logs), 'relay log')} {would}removed"
        row = {
            "Channel_Name": name,
            "Removed_Relay_Logs": list(result.removed_relay_logs),
            "Removed_Channel": result.removed_channel,
            "Dry_Run": dry_run,
        }
        say(options, text, row)

    end(for_each(options, channel, reset_one))
