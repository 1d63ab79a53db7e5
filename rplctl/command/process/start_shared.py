"""Start several channels whose appliers share one process and one Spark (`--shared-session`).

The receivers of these channels share another process. An error of one channel does not stop the others. In the
foreground, the command waits while both processes live. If one of them ends, the command stops all channels. A
supervisor (systemd, Kubernetes) then starts all of them again.
"""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from rplctl import mysql_errors as er
from rplctl.channel import Channel, hold_lock
from rplctl.command.channel.context import (
    ADMIN,
    APPLIER,
    RECEIVER,
    channels_stay,
    engine_of,
    files_may_change,
    one_engine,
)
from rplctl.command.process.child import (
    STOP_TIMEOUT_S,
    Child,
    error_of,
    leave_running,
    spawn_shared,
    stop_running,
    terminate,
    wait_until_it_runs,
)
from rplctl.command.process.preparation import PreparedChannel, note_started, prepare
from rplctl.command.process.service import Service
from rplctl.command.process.start_request import StartRequest, StartResult, UntilOptions, check_request, environment_of
from rplctl.config import Config
from rplctl.errors import RplError, UsageError, file_error
from rplctl.own_process import signals_to
from rplctl.renaming import finish_rename

_LOOK_S = 0.5
Outcome = dict[str, StartResult | RplError]


def start_shared(
    config_of: Callable[[str], Config],
    names: Sequence[str],
    request: StartRequest,
    begun: Callable[[Outcome], None] = lambda outcome: None,
) -> Outcome:
    """Start each channel, and return its result or its error. `config_of` returns the options of a channel.

    If the command stays in the foreground, it calls `begun` after the start. Raises UsageError 1277 if the request has
    an UNTIL condition, and LockBusy 1205 if the instance is locked. In the foreground, raises RplError if a process
    ends by itself.
    """
    if request.until != UntilOptions() or request.until_synced:
        raise UsageError(
            "--shared-session cannot be used with --until-synced or an UNTIL option",
            errno=er.BAD_SLAVE_UNTIL_COND,
            hint="to start the channels in processes of their own, run: rplctl start --all --until-synced",
        )
    check_request(request)
    # Raise the limit of open files: an applier needs six for each channel, and the usual limit is 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if not request.foreground:
        outcome, children = _bring_up(config_of, names, request)
        leave_running(children)
        return outcome
    signals: list[int] = []
    with signals_to(lambda number, _: signals.append(number), signal.SIGTERM, signal.SIGINT):
        outcome, children = _bring_up(config_of, names, request)
        begun(outcome)
        _stay(children, signals)
    return outcome


def _stay(children: Sequence[Child], signals: Sequence[int]) -> None:
    """Wait for a signal or the end of a process, and then stop the other processes. `signals` receives the signals.

    Raises RplError if a process has ended by itself.
    """
    service, each = Service(), {child.popen.pid: child for child in children}
    service.say(READY="1")
    while not signals and not any(child.exit_code() is not None for child in each.values()):
        service.say(WATCHDOG="1")
        time.sleep(_LOOK_S)
    first = next((child for child in each.values() if child.exit_code() is not None), None)
    for child in each.values():
        terminate(child)
    if first is not None and not signals:
        if code := first.exit_code():
            raise error_of(first, code)


def _bring_up(
    config_of: Callable[[str], Config], names: Sequence[str], request: StartRequest
) -> tuple[Outcome, list[Child]]:
    datadir = config_of(names[0]).datadir
    outcome: Outcome = {}
    started: dict[str, list[Child]] = {}
    ready: dict[str, PreparedChannel] = {}
    with one_engine(), ExitStack() as held:
        held.enter_context(files_may_change(datadir))
        held.enter_context(channels_stay(datadir))
        for name in dict.fromkeys(names):
            with _reported_in_its_place(name, outcome):
                channel = Channel(name, datadir)
                finish_rename(config_of(name), name, engine_of)
                held.enter_context(hold_lock(channel, ADMIN))
                ready[name] = prepare(config_of(name), channel, request)
        try:
            for role in (RECEIVER, APPLIER):
                those = [one for name, one in ready.items() if role in one.roles and name not in outcome]
                for child in _spawn(role, those):
                    name = child.channel.name
                    started.setdefault(name, []).append(child)
                    with _reported_in_its_place(name, outcome):
                        wait_until_it_runs(child)
        except BaseException:
            for child in (child for children in started.values() for child in children):
                terminate(child)
            raise
        finally:
            for name, one in ready.items():
                if name in outcome or name not in started:
                    _end(one, started.get(name, []))
    for name in started:
        if name not in outcome:
            note_started(ready[name].config, ready[name].channel, request, [child.role for child in started[name]])
    results = {name: one.result(started.get(name, [])) for name, one in ready.items()}
    outcome = {name: outcome.get(name) or results[name] for name in dict.fromkeys(names)}
    return outcome, [child for children in started.values() for child in children]


def _spawn(role: str, those: Sequence[PreparedChannel]) -> list[Child]:
    if not those:
        return []
    keeps_password = any(one.keeps_password for one in those)
    environment = environment_of(those[0].config, those[0].request, keeps_password=keeps_password)
    return spawn_shared(role, {one.channel: one.argument for one in those}, environment)


def _end(one: PreparedChannel, children: Sequence[Child]) -> None:
    """Stop the started threads of a channel whose other threads did not start. A single `start` does the same."""
    for child in children:
        if child.role == RECEIVER and child.exit_code() is None:
            stop_running(child.channel, RECEIVER, STOP_TIMEOUT_S)


@contextmanager
def _reported_in_its_place(name: str, outcome: Outcome) -> Iterator[None]:
    try:
        yield
    except RplError as error:
        outcome[name] = error
    except OSError as error:
        outcome[name] = file_error(error, name)
