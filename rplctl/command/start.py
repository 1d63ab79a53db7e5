"""START SLAVE: bring the channel's threads up; with `until_synced` or `foreground` stay until they are done.

What is running already is left as it is and noted (3083). Several channels in one process: process/start_shared.py.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rplctl.command.channel.context import APPLIER, Note, administer
from rplctl.command.check.sync_record import note_synced
from rplctl.command.process.child import Child, leave_running, terminate, wait_until_it_runs
from rplctl.command.process.preparation import Prepared, note_started, prepare
from rplctl.command.process.service import Service
from rplctl.command.process.start_request import Begun, Progress, StartRequest, StartResult, Until, check_request
from rplctl.command.process.supervise import Run, position_at_end, supervise
from rplctl.config import Config
from rplctl.deadline import one_deadline
from rplctl.errors import StoppedEarly, TargetError
from rplctl.own_process import signals_to

TARGET_PAUSE_S = 2.0


def start(
    config: Config,
    channel_name: str,
    request: StartRequest,
    progress: Progress | None = None,
    begun: Begun = lambda result: None,
) -> StartResult:
    """Raises NotConfigured, UsageError 1277, RepositoryConflict, and what the threads end with at once; of one that
    stays until something is reached WaitTimeout or StoppedEarly. `begun` is called when it stays, once all runs.
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


def _stay(ready: Prepared, started: list[Child], progress: Progress | None, service: Service) -> StartResult:
    has_until = ready.request.until != Until() and any(child.role == APPLIER for child in started)
    run = Run(ready.config, ready.channel, started, ready.wanted, has_until, service)
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
) -> tuple[Prepared, list[Child]]:
    """Under systemd a target that holds our records may come up after us: it is waited for, as the applier does."""
    while True:
        try:
            with one_deadline():
                return bring_up(config, channel_name, request)
        except TargetError as error:
            if not (service.is_asked and error.transient):
                raise
            service.say(READY="1", STATUS=f"waits for the target: {error.message}", WATCHDOG="1")
            time.sleep(TARGET_PAUSE_S)


def bring_up(config: Config, channel_name: str, request: StartRequest) -> tuple[Prepared, list[Child]]:
    """The threads that are to run and do not yet."""
    with administer(config, channel_name) as repositories:
        ready = prepare(repositories.config, repositories.channel, request)
        started: list[Child] = []
        try:
            for role in ready.roles:
                started.append(ready.spawn(role))
            for child in started:
                wait_until_it_runs(child)
        except BaseException:
            for child in started:
                terminate(child)
            ready.take_back()
            raise
    note_started(ready.config, ready.channel, request, [child.role for child in started])
    if started and ready.config.channel_group:
        ready = replace(ready, notes=(*ready.notes, _apart(ready.config.channel_group, channel_name)))
    return ready, started


def _apart(group: str, channel: str) -> Note:
    text = (
        f"channel '{channel}' has processes of its own; rplctl stop --group {group} and rplctl start --group {group} "
        "bring it into the group's"
    )
    return Note(text)


@contextmanager
def ended_by_signals(channel: str, when: str = "while it was being started") -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does: what was begun is taken back. Raises StoppedEarly."""

    class Terminated(BaseException): ...

    def end(*_: object) -> None:
        raise Terminated

    try:
        with signals_to(end, signal.SIGTERM):
            yield
    except Terminated:
        text = f"channel '{channel}' was stopped by SIGTERM {when}"
        raise StoppedEarly(text, channel=channel, hint="nothing is lost: rplctl start") from None
