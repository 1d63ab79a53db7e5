"""START SLAVE: start the threads of a channel. With `until_synced` or `foreground`, wait until they end.

If a thread already runs, it is unchanged, and the result has a note (3083). To start several channels in one process,
see process/start_shared.py.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from rplctl.applier.options import StartOptions
from rplctl.applier.spark.session import keeps_tasks
from rplctl.command.channel.context import APPLIER, Note, Repositories, administer, running
from rplctl.command.check.sync_record import note_synced
from rplctl.command.process.child import Child, go_on, leave_running, spawn_early, terminate, wait_until_it_runs
from rplctl.command.process.service import Service
from rplctl.command.process.start_request import (
    Begun,
    Progress,
    StartRequest,
    StartResult,
    UntilOptions,
    check_request,
    environment_of,
)
from rplctl.command.process.supervise import SupervisedRun, position_at_end, supervise
from rplctl.config import Config
from rplctl.deadline import one_deadline
from rplctl.errors import StoppedEarly, TargetError
from rplctl.own_process import signals_to
from rplctl.repository.base import RepositoryKind

if TYPE_CHECKING:
    from rplctl.command.process.preparation import PreparedChannel

TARGET_PAUSE_S = 2.0


def start(
    config: Config,
    channel_name: str,
    request: StartRequest,
    progress: Progress | None = None,
    begun: Begun = lambda result: None,
) -> StartResult:
    """Start the threads of the channel. With `until_synced` or `foreground`, call `begun` when they run, and wait.

    `progress` receives the position while the command waits. Raises NotConfigured if the channel does not exist, and
    UsageError 1277 for a wrong UNTIL condition. Raises RepositoryConflict if a record is in both repositories, and the
    error of a thread that ends at once. Raises WaitTimeout or StoppedEarly if the wait ends before its condition is
    met.
    """
    check_request(request)
    if not (request.foreground or request.until_synced):
        ready, started = bring_up(config, channel_name, request)
        leave_running(started)
        return ready.result(started)
    with ended_by_signals(channel_name):
        service = Service()
        ready, started = _bring_up_in_time(config, channel_name, request, service)
        service.say(READY="1")
        try:
            begun(ready.result(started))
            return _stay(ready, started, progress, service)
        finally:
            for child in started:
                if child.exit_code() is None:
                    terminate(child)


def _stay(ready: PreparedChannel, started: list[Child], progress: Progress | None, service: Service) -> StartResult:
    has_until = ready.request.until != UntilOptions() and any(child.role == APPLIER for child in started)
    run = SupervisedRun(
        config=ready.config,
        channel=ready.channel,
        children=started,
        wanted=ready.wanted,
        has_until=has_until,
        service=service,
    )
    ending = supervise(run, ready.request.max_time_s, progress)
    if ready.wanted is None:
        at = position_at_end(ready.config, ready.channel)
        return replace(ready.result(started), ended=str(ending), at=at if at.log_name else None)
    if not ready.request.is_passing:
        note_synced(ready.channel, ready.wanted.asked_at, str(ready.wanted.position))
    synced_to = ready.wanted.position
    return replace(ready.result(started), synced_to=synced_to, ended=str(ending), at=synced_to)


def _bring_up_in_time(
    config: Config, channel_name: str, request: StartRequest, service: Service
) -> tuple[PreparedChannel, list[Child]]:
    """Start the threads, and return when they run. Under systemd, first wait until the target is available.

    At boot, the target may start later than rplctl. An applier waits for the target by itself. But if MasterInfo or
    RelayLogInfo is stored in the target, the threads cannot start without the target.
    """
    may_be_early = True
    while True:
        try:
            with one_deadline():
                return bring_up(config, channel_name, request, may_be_early=may_be_early)
        except TargetError as error:
            if not (service.is_asked and error.transient):
                raise
            service.say(READY="1", STATUS=f"waits for the target: {error.message}", WATCHDOG="1")
            time.sleep(TARGET_PAUSE_S)
            may_be_early = False  # do not start Java for each attempt


def bring_up(
    config: Config, channel_name: str, request: StartRequest, *, may_be_early: bool = True
) -> tuple[PreparedChannel, list[Child]]:
    """Start the requested threads that do not run yet, and wait until they run. Return them with the prepared channel.

    `may_be_early` permits that the applier starts before the channel is prepared (`begun_early`).
    """
    with administer(config, channel_name) as repositories, ExitStack() as opened:
        early = opened.enter_context(begun_early(repositories, request)) if may_be_early else None
        from rplctl.command.process.preparation import note_started, prepare  # while Java starts

        ready = prepare(repositories.config, repositories.channel, request)
        started: list[Child] = []
        try:
            for role in ready.roles:
                if role == APPLIER and early is not None:
                    go_on(early, ready.argument)
                    started.append(early)
                else:
                    started.append(ready.spawn(role))
            for child in started:
                wait_until_it_runs(child)
        except BaseException:
            for child in started:
                terminate(child)
            raise
    note_started(ready.config, ready.channel, request, [child.role for child in started])
    if started and ready.config.channel_group:
        ready = replace(ready, notes=(*ready.notes, _separate_start(ready.config.channel_group, channel_name)))
    return ready, started


@contextmanager
def begun_early(repositories: Repositories, request: StartRequest) -> Iterator[Child | None]:
    """Start the applier before its channel is prepared, because Java needs seconds to start. Yield the process.

    This is done only if Spark decodes all rows on this host (spark=always). Yield None if no applier is to be started,
    or if no file shows that the channel exists. If the block does not let the applier go on, it is stopped afterwards.
    """
    config, channel = repositories.config, repositories.channel
    given = {"spark_master": request.spark_master, "spark_conf": request.spark_conf}
    options = json.dumps(given | {"insecure_cluster": request.insecure_cluster})
    record = repositories.master_info
    is_known = channel.log_path(APPLIER).exists() or (record.kind is RepositoryKind.FILE and record.exists())
    is_wanted = APPLIER in request.roles and keeps_tasks(StartOptions.from_json(options).on(config))
    if not is_wanted or not is_known or APPLIER in running(channel):
        yield None
        return
    early = spawn_early(channel, [options], environment_of(config, request, keeps_password=False))
    try:
        yield early
    finally:
        if early.options is not None and not early.options.closed:
            terminate(early)
            early.options.close()


def _separate_start(group: str, channel: str) -> Note:
    text = (
        f"channel '{channel}' runs in processes of its own; to move it into the processes of the group, run: "
        f"rplctl stop --group {group}; rplctl start --group {group}"
    )
    return Note(text)


@contextmanager
def ended_by_signals(channel: str, when: str = "while it was being started") -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that processes that the block has started are stopped.

    Raises StoppedEarly if SIGTERM arrives during the block. `when` completes the text of this error.
    """

    class Terminated(BaseException): ...

    def end(*_: object) -> None:
        raise Terminated

    try:
        with signals_to(end, signal.SIGTERM):
            yield
    except Terminated:
        text = f"channel '{channel}' was stopped by SIGTERM {when}"
        error = StoppedEarly(text, channel=channel, hint="nothing is lost. To continue, run: rplctl start")
        error.by_signal = True
        raise error from None
