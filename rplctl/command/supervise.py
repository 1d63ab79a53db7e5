"""Staying with a started channel: `--foreground` (systemd, containers) and `--until-synced` (cron).

Ends when the position is reached, a thread fails, time is up or SIGTERM/SIGINT comes; whatever this command started is
stopped first, what others started goes on. SIGINT becomes KeyboardInterrupt after that, SIGTERM a normal return.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from rplctl.channel import Channel
from rplctl.command.applied import is_applied
from rplctl.command.instance import APPLIER, RECEIVER, open_repositories, running
from rplctl.command.process import Child, error_of, terminate
from rplctl.command.source_end import SourceEnd
from rplctl.config import Config
from rplctl.errors import NotRunning, WaitTimeout
from rplctl.position import BinlogPosition
from rplctl.status import read_status

if TYPE_CHECKING:
    from rplctl.command.start import Progress

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Run:
    """A started channel: `wanted` is where it is to arrive, None = goes on until told to stop."""

    config: Config
    channel: Channel
    children: list[Child]
    wanted: SourceEnd | None


def supervise(run: Run, max_time_s: float | None, progress: Progress | None) -> None:
    """Raises the error of a thread that ends, WaitTimeout when `max_time_s` passes before `wanted` is reached."""
    deadline = time.monotonic() + max_time_s if max_time_s is not None else None
    with _signals() as caught:
        try:
            while not caught and not _is_done(run):
                if deadline is not None and time.monotonic() > deadline:
                    if run.wanted is not None:
                        raise _not_in_time(run, max_time_s or 0)
                    break
                if progress and run.wanted is not None:
                    progress(executed_position(run.channel), run.wanted.position)
                time.sleep(_POLL_S)
        finally:
            for child in sorted(run.children, key=lambda child: child.role != RECEIVER):
                if child.exit_code() is None:
                    terminate(child)
    if signal.SIGINT in caught:
        raise KeyboardInterrupt


def _is_done(run: Run) -> bool:
    for child in run.children:
        code = child.exit_code()
        if code:
            raise error_of(child, code)
        if code == 0 and (child.role == APPLIER or len(run.children) == 1):
            return True  # UNTIL reached, or stopped by `rplctl stop`
    if run.wanted is None or (run.wanted.is_comparable and any(child.role == APPLIER for child in run.children)):
        return False  # the applier ends by itself once everything wanted is applied
    if APPLIER not in running(run.channel):
        status = read_status(run.channel.status_path(APPLIER))
        raise NotRunning(
            status.last_error or f"the applier of channel '{run.channel.name}' stopped",
            errno=status.last_errno,
            channel=run.channel.name,
        )
    return _is_synced(run, run.wanted)


def _is_synced(run: Run, wanted: SourceEnd) -> bool:
    """By the repository, the authority."""
    repositories = open_repositories(run.config, run.channel.name)
    if not wanted.gtids:
        return is_applied(run.channel, repositories, wanted.position)
    from rplctl.binlog.gtid import is_executed

    stored = repositories.relay_log_info
    return is_executed(wanted.gtids, stored.read().gtid_executed if stored.exists() else "")


def executed_position(channel: Channel) -> BinlogPosition:
    """The applier's own word, cheap enough to ask ten times a second: for progress only."""
    status = read_status(channel.status_path(APPLIER))
    return BinlogPosition(status.exec_log_name, status.exec_log_pos)


def _not_in_time(run: Run, max_time_s: float) -> WaitTimeout:
    return WaitTimeout(
        f"channel '{run.channel.name}' is not at {run.wanted.position if run.wanted else ''} after {max_time_s:g} s",
        channel=run.channel.name,
        position=str(executed_position(run.channel)),
        hint="nothing is lost: the next start goes on from there",
    )


@contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that came during the block; the previous handlers are put back. Only the main thread gets any."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield caught
        return
    previous = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield caught
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
