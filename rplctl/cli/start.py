"""Define the options of `start`, and start the channels one after the other, or together in shared processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rplctl import mysql_errors as er
from rplctl.cli.globals import Globals
from rplctl.cli.options import (
    ALL_CHANNELS,
    ONLY_APPLIER,
    ONLY_RECEIVER,
    SEVERAL_CHANNELS,
    end,
    for_each,
    members,
    names_of,
    option,
    roles_of,
    seconds,
    switch,
)
from rplctl.cli.output import one_list, report, say
from rplctl.cli.progress import progress_unless
from rplctl.config import Config
from rplctl.errors import NAME_CHANNEL, RplError, StoppedEarly, UsageError, WaitTimeout

if TYPE_CHECKING:
    from rplctl.command.process.start_request import StartRequest, StartResult


def start(
    options: Globals,
    channel: list[str] | None = SEVERAL_CHANNELS,
    every: bool = ALL_CHANNELS,
    receiver: bool = ONLY_RECEIVER,
    applier: bool = ONLY_APPLIER,
    foreground: bool = switch("--foreground", "Run until a thread ends or SIGTERM arrives (systemd, containers)."),
    until_synced: bool = switch("--until-synced", "Apply everything the source has now, stop, and exit 0."),
    max_time: str | None = option(
        "--max-time", "SECONDS", "With --foreground or --until-synced, stop after this many seconds."
    ),
    until_master_log_file: str | None = option(
        ("--until-master-log-file", "--until-source-log-file"),
        "FILE",
        "Stop at --until-master-log-pos in this binary log of the source.",
    ),
    until_master_log_pos: int | None = option(
        ("--until-master-log-pos", "--until-source-log-pos"), "N", "Position in --until-master-log-file."
    ),
    until_relay_log_file: str | None = option(
        "--until-relay-log-file", "FILE", "Stop at --until-relay-log-pos in this relay log."
    ),
    until_relay_log_pos: int | None = option("--until-relay-log-pos", "N", "Position in --until-relay-log-file."),
    until_sql_before_gtids: str | None = option(
        "--until-sql-before-gtids", "SET", "Stop before the first of these GTIDs."
    ),
    until_sql_after_gtids: str | None = option(
        "--until-sql-after-gtids", "SET", "Stop when all of these GTIDs are applied."
    ),
    shared_session: bool = switch(
        "--shared-session", "Run all receivers in one process, and all appliers in another process."
    ),
    group: str = option("--group", "NAME", "With --shared-session, start the channels of this channel_group.", ""),
    spark_master: str = option("--spark-master", "URL", "Spark master: local[N], spark://..., yarn or k8s://...", ""),
    spark_conf: list[str] | None = option("--spark-conf", "NAME=VALUE", "Spark property; may be repeated."),
    insecure_cluster: bool = switch(
        "--insecure-cluster", "Use a Spark cluster that neither authenticates nor encrypts."
    ),
    take_over_target: bool = switch("--take-over-target", "Use a target whose rows belong to another instance."),
    crash_points: str = option(
        "--crash-points", "NAME=kill[@N],...", "For tests: exit when a thread reaches this point for the Nth time.", ""
    ),
) -> None:
    """Start the receiver and the applier (START SLAVE)."""
    from rplctl.command.process.start_request import StartRequest, UntilOptions
    from rplctl.command.start import start as run

    until = UntilOptions(
        master_log_file=until_master_log_file,
        master_log_pos=until_master_log_pos,
        relay_log_file=until_relay_log_file,
        relay_log_pos=until_relay_log_pos,
        sql_before_gtids=until_sql_before_gtids,
        sql_after_gtids=until_sql_after_gtids,
    )
    request = StartRequest(
        roles=roles_of(receiver, applier),
        until=until,
        until_synced=until_synced,
        foreground=foreground,
        max_time_s=seconds(max_time, "--max-time"),
        spark_master=spark_master,
        crash_points=crash_points,
        spark_conf=",".join(spark_conf or ()),
        insecure_cluster=insecure_cluster,
        take_over_target=take_over_target,
    )
    if group:
        channel = members(options, group, channel, every=every)
    if shared_session or group:
        with one_list(options):
            failed = _start_shared(options, names_of(options, channel, every=every), request)
        return end(failed)
    if (until != UntilOptions() or foreground) and len(names_of(options, channel, every=every)) > 1:
        raise UsageError(er.SLAVE_MULTIPLE_CHANNELS_CMD_TEXT, errno=er.SLAVE_MULTIPLE_CHANNELS_CMD, hint=NAME_CHANNEL)
    turn = Turns(request)

    def start_one(name: str, config: Config) -> None:
        mine = turn.of(name)
        with turn.watched(), progress_unless(options.quiet or not until_synced) as progress:
            result = run(config, name, mine, progress, lambda begun: _say_begun(options, begun, foreground))
        _say_started(options, result)

    end(for_each(options, channel, start_one, every=every))


class Turns:
    """The rules for channels that start one after the other: a signal ends all of them, and --max-time is their total
    time.
    """

    def __init__(self, request: StartRequest) -> None:
        self._request = request
        self._is_over = False
        self._deadline = None if request.max_time_s is None else time.monotonic() + request.max_time_s

    def of(self, name: str) -> StartRequest:
        """Return the request for channel `name`, with the time that remains.

        Raises StoppedEarly after a signal, and WaitTimeout if no time remains.
        """
        hint = "to start the remaining channels, run: rplctl start"
        if self._is_over:
            raise StoppedEarly(f"channel '{name}' was not started because of a signal", channel=name, hint=hint)
        if self._deadline is None:
            return self._request
        left = self._deadline - time.monotonic()
        if left <= 0 < (self._request.max_time_s or 0):
            raise WaitTimeout(f"channel '{name}' was not started before the end of --max-time", channel=name, hint=hint)
        return replace(self._request, max_time_s=max(0.0, left))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note if SIGTERM ends the block, so that the remaining channels are not started.

        Ctrl-C also ends all channels. Before that, the error of the present channel is printed.
        """
        try:
            yield
        except StoppedEarly as error:
            self._is_over = error.by_signal
            raise
        except KeyboardInterrupt as interrupt:
            if isinstance(interrupt.__cause__, RplError):
                report(interrupt.__cause__)
            raise


def _say_begun(options: Globals, result: StartResult, foreground: bool) -> None:
    if foreground and options.format != "json" and result.started:
        _say_started(options, result)


def _start_shared(options: Globals, names: list[str], request: StartRequest) -> int:
    from rplctl.command.process.start_shared import Outcome, start_shared

    def say_all(outcome: Outcome) -> None:
        for name, one in outcome.items():
            if isinstance(one, RplError):
                report(one, name)
            else:
                _say_started(options, one)

    outcome = start_shared(options.config, names, request, say_all)
    if not request.foreground:
        say_all(outcome)
    return next((one.exit_code for one in outcome.values() if isinstance(one, RplError)), 0)


def _say_started(options: Globals, result: StartResult) -> None:
    name = result.channel
    how = {"reached": "reached its UNTIL and stopped", "stop": "stopped by rplctl stop", "signal": "stopped by SIGTERM"}
    done = f"channel '{name}' is at {result.synced_to}" if result.synced_to else ""
    if result.ended and not done:
        at = f" at {result.at}" if result.at else ""
        done = f"channel '{name}': {how.get(result.ended, 'stopped after --max-time')}{at}"
    what = f"channel '{name}': {' and '.join(result.started)} started" if result.started else ""
    say(options, done or what or f"channel '{name}' is running", result)
