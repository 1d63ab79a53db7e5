"""Observe every channel every few seconds in one thread: its state, the findings of `check`, and the last hour.

All readers receive the last observation, so many readers do not increase the load of the target. Nothing is written.

Invariant: a Moment is complete and contains its time. If a target hangs, the last Moment becomes old, but never wrong.
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
_LAG_S = (60, 300)  # seconds for a warning and for critical, the defaults of `check`


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The values of a channel at one time of the last hour."""

    at: float  # Unix seconds
    lag_s: int | None
    rows_per_s: float
    relay_log_bytes: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of all channels at one moment. `error` is the reason if the list of channels could not be read."""

    at: float = 0.0
    channels: tuple[Seen, ...] = ()
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    history: dict[str, tuple[Point, ...]] = field(default_factory=dict)
    error: RplError | None = None
    events: tuple[Event, ...] = ()  # the last EVENTS events of the history, oldest first


class Watch:
    """The observer of all channels. `find` returns the present channels with their options.

    If `checks` is True, `check` also runs for each channel, every CHECK_S seconds.
    """

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
        """Observe the channels in a thread until the block ends, at once and then every LOOK_S seconds. Yield this
        object.
        """
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
            looking.join(LOOK_S)  # the thread may hang in a silent target, and then ends with the process

    def look(self) -> None:
        """Observe the channels once, and store the result in `latest`.

        An error is not raised, but becomes a part of the result.
        """
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
        points.append(
            Point(
                at=each.at,
                lag_s=each.status.Seconds_Behind_Master,
                rows_per_s=rate,
                relay_log_bytes=each.status.Relay_Log_Space,
            )
        )


def _events(named: Sequence[tuple[str, Config]]) -> list[Event]:
    """Return the last events in the history of the whole instance. Return [] if the history cannot be read."""
    try:
        return events_of(named[0][1], last=EVENTS) if named else []
    except RplError:
        return []
