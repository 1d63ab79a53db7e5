"""Every channel, looked at each few seconds by one thread: what it is now, what `check` says of it, the last hour.

Who asks gets what was seen last, so no number of readers makes the target work more. Nothing is written.

Invariant: a Moment is whole, and tells when it was seen: a target that hangs makes it old, never wrong.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from rplctl.command.channel.context import one_engine
from rplctl.command.check.verb import Verdict, check_each, limits_of
from rplctl.command.history import history as events_of
from rplctl.command.watching.seen import Seen, seen
from rplctl.config import Config
from rplctl.deadline import Deadline
from rplctl.errors import RplError, as_rpl_error
from rplctl.history import Event

LOOK_S: Final = 2.0
CHECK_S: Final = 15.0
POINT_S: Final = 5.0
POINTS: Final = 720  # an hour
EVENTS: Final = 50
_LAG_S = (60, 300)  # a warning, critical: as `check` without options has it


@dataclass(frozen=True, slots=True)
class Point:
    """A channel's figures at one time of its last hour."""

    at: float  # Unix seconds
    lag_s: int | None
    rows_per_s: float
    relay_log_bytes: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The observation of one moment; `error`: the reason why the channels themselves could not be found."""

    at: float = 0.0
    channels: tuple[Seen, ...] = ()
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    history: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    error: RplError | None = None
    events: tuple[Event, ...] = ()  # the last EVENTS of the history, the oldest first


class Watch:
    """`find` names the channels, with their options, each time: they come and go. `checks`: `check` is asked, too."""

    def __init__(self, find: Callable[[], Sequence[tuple[str, Config]]], *, checks: bool = False) -> None:
        self._find, self._checks = find, checks
        self._checked = 0.0  # time.monotonic()
        self._deadline = Deadline()
        self._events: tuple[Event, ...] = ()
        self._points: dict[str, deque[Point]] = {}
        self._rows: dict[str, tuple[float, int]] = {}  # row changes at the last point
        self.latest = Moment()

    @contextmanager
    def running(self) -> Iterator[Watch]:
        """Looked at once, then again and again by a thread, for the block."""
        is_over = threading.Event()

        def go() -> None:
            with one_engine():
                while not is_over.is_set():
                    self.look()
                    seen_once.set()
                    is_over.wait(LOOK_S)

        seen_once = threading.Event()
        looking = threading.Thread(target=go, daemon=True)
        looking.start()
        seen_once.wait(LOOK_S)
        try:
            yield self
        finally:
            is_over.set()
            looking.join(LOOK_S)  # one that hangs in a target that does not answer ends with the process

    def look(self) -> None:
        """Once, now. Raises nothing: what cannot be seen is part of the moment."""
        try:
            named = list(self._find())
        except (RplError, OSError) as error:
            self.latest = Moment(time.time(), error=as_rpl_error(error))
            return
        channels = tuple(seen(config, name) for name, config in named)
        verdicts = self.latest.verdicts
        if self._checks and time.monotonic() - self._checked >= CHECK_S:
            self._deadline.begin()
            found = check_each(named, lambda config: limits_of(config, *_LAG_S), deadline=self._deadline)
            verdicts = {verdict.channel: verdict for verdict in found}
            self._checked = time.monotonic()
            self._events = tuple(_events(named))
        for each in channels:
            self._add_point(each)
        history = {each.channel: tuple(self._points.get(each.channel, ())) for each in channels}
        self.latest = Moment(time.time(), channels, verdicts, history, events=self._events)

    def _add_point(self, each: Seen) -> None:
        points = self._points.setdefault(each.channel, deque(maxlen=POINTS))
        if not each.status or points and abs(each.at - points[-1].at) < POINT_S:
            return
        rows = each.status.Row_Changes_Applied
        then, before = self._rows.get(each.channel, (each.at, rows))
        rate = max(0, rows - before) / (each.at - then) if each.at > then else 0.0
        self._rows[each.channel] = each.at, rows
        points.append(Point(each.at, each.status.Seconds_Behind_Master, rate, each.status.Relay_Log_Space))


def _events(named: Sequence[tuple[str, Config]]) -> list[Event]:
    """The events of the whole instance; one that cannot be read has none."""
    try:
        return events_of(named[0][1], last=EVENTS) if named else []
    except RplError:
        return []
