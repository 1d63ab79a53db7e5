"""Suspects are settled by position: the source's rows at a place of its log, the target's at that place or behind it.

What the relay log touches between the two is looked at again, MOST_ROUNDS times, and is then `in motion`, never a
difference; where it has touched all before the applier comes there, nobody waits for that. Where the target holds
still, all that the relay log touches behind its place is in motion. Of the rest the target decides: the source's rows
go through the ordinary encoder into a temporary table, and both tables are read alike. Invariant: a difference is told
of rows that no event was under way for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from rplctl.clone.received import Received
from rplctl.errors import NotRunning, WaitTimeout
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.images import Images
from rplctl.position import BinlogPosition
from rplctl.schema.source_catalog import read_table
from rplctl.source.snapshot import LogPlace, Step, locked_rows, snapshot
from rplctl.source.survey import log_end
from rplctl.sql_text import NOTHING, Sql
from rplctl.verify.key_values import Key, to_json
from rplctl.verify.log_keys import ChangedKeys
from rplctl.verify.pair import Pair
from rplctl.verify.report_file import Difference, Kind
from rplctl.verify.source_side import Source, rows_of_keys, rows_with_hashes
from rplctl.verify.target_side import Row, TargetSide

MOST_ROUNDS: Final = 5
_SOURCE_S: Final = 30.0  # for the source to show what is received, and for the receiver to bring it
_STILL_S: Final = 600.0  # without any progress of the applier
_REPORT_S: Final = 2.0
_POLL_S: Final = 0.02


class Altered(Exception):
    """The table's definition is another one than it was when the table was begun."""


class Unjudged(Exception):
    """The relay logs between the places of both sides are purged, so nobody knows which rows were under way."""


class Applied(Protocol):
    """The transactions that the channel has applied."""

    def has(self, position: BinlogPosition) -> bool:
        """All up to there."""

    def executed(self) -> BinlogPosition:
        """At least what any of its rows shows that was read before."""

    def runs(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Resolution:
    """`again`: keys that were touched."""

    differences: list[Difference]
    again: list[Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    source: Source
    side: TargetSide
    received: Received
    applied: Applied
    stopped: Callable[[float], bool]  # waits so long; True when it is to end
    tells: Callable[[str], None] = lambda _: None  # what it waits for; '' when it goes on
    holds_still: bool = False  # the target, and no applier runs
    receives: bool = True  # a receiver runs; asked of a target that holds still

    @property
    def rounds(self) -> int:
        """How often rows in motion are looked at: where the target holds still they stay in motion."""
        return 1 if self.holds_still else MOST_ROUNDS

    def resolve(self, pair: Pair, keys: list[Key]) -> Resolution:
        """All of them. Raises Altered, Unjudged, SourceError, TargetError, WaitTimeout, NotRunning."""
        found: list[Difference] = []
        for _ in range(self.rounds):
            if not keys:
                break
            with self.staged(pair, partial(rows_of_keys, self.source, pair, keys), keys=keys) as changed:
                if not changed.has_all(keys):
                    staged, rows = self.side.read(pair, keys)
                    self.look(changed)
                    found += _compared(pair, staged, rows, keys, changed)
            keys = [key for key in keys if key in changed]
        return Resolution(found, keys)

    def resolve_hashes(self, pair: Pair, hashes: set[int]) -> tuple[int, int, bool]:
        """Return the number of missing and of extra rows of a table without a key, and whether it was in motion."""
        for _ in range(self.rounds):
            with self.staged(pair, partial(rows_with_hashes, self.source, pair, hashes)) as changed:
                if not changed.is_all:
                    staged, rows = self.side.count(pair, hashes)
                    self.look(changed)
            if not changed.is_all:
                return (staged - rows).total(), (rows - staged).total(), False
        return 0, 0, True

    def look(self, changed: ChangedKeys) -> BinlogPosition:
        """At all up to the target's place. Raises Unjudged."""
        place, at = self.applied.executed(), self.source.at
        if self.holds_still:  # `staged` has looked at all behind it
            return place
        if at is None or place != at:
            if at is not None and not self.received.begin_behind(at):
                raise Unjudged
            changed.look_until(place, _SOURCE_S, self.stopped)
            if at is not None and self.received.is_lost:
                raise Unjudged
        return place

    @contextmanager
    def staged(
        self,
        pair: Pair,
        rows: Callable[[Sql], Iterator[Images]],
        keeps: Collection[Key] = (),
        *,
        keys: Sequence[Key] = (),
    ) -> Iterator[ChangedKeys]:
        """The source's rows are staged, and the target has all up to their place, or all `keys` were touched.
        `keeps`: see TouchedKeys.
        """
        if at := self.source.at:
            self.side.stage(pair, rows(NOTHING))
            yield ChangedKeys(self.received, pair, at, MysqlGtidSet.parse(""))
            return
        still = self.applied.executed() if self.holds_still else None
        if still is None:
            self._begin()
        elif not self.received.begin_behind(still):
            raise Unjudged
        source = self.source
        is_exact = source.step is Step.EXACT
        least = LogPlace(self.received.place if is_exact else None)  # delivered comes before visible
        has_snapshot = source.step is not Step.SHARE_LOCK
        opened = (
            snapshot(source.query, source.step, least, _SOURCE_S)
            if has_snapshot
            else locked_rows(source.query, source.step, _SOURCE_S)
        )
        with opened as held:
            if read_table(source.about, pair.source.database, pair.source.name)[0] != pair.source:
                raise Altered
            self.side.stage(pair, rows(held.locking))
            high = held.high().position
        seen = MysqlGtidSet.parse("" if is_exact else held.low.gtids)
        assert high is not None
        if still:
            changed = ChangedKeys(self.received, pair, still, MysqlGtidSet.parse(""), keeps)
            if self.receives:
                changed.look_until(high, _SOURCE_S, self.stopped)
            else:
                changed.look()
                self._refuse_unreceived(high)
        else:
            changed = ChangedKeys(self.received, pair, held.low.position, seen, keeps)
            self._wait(high, changed, keys)
        yield changed

    def _begin(self) -> None:
        while not self.received.begin():
            if self.stopped(_POLL_S) or not self.applied.runs():
                raise _not_running("nothing is received from the source")

    def _refuse_unreceived(self, high: BinlogPosition) -> None:
        place = self.received.place
        if place is None or place.is_before(high):
            raise NotRunning(
                f"no receiver runs: the relay log ends at {self.received.position}, and the source's log at {high}",
                hint="rplctl start --receiver, then this again",
            )

    def catch_up(self) -> None:
        """Until the target has what the source has logged by now, if it moves at all. Raises SourceError, NotRunning,
        WaitTimeout.
        """
        if not self.holds_still:
            self._wait(self.source.at or log_end(self.source.about))

    def _wait(self, position: BinlogPosition, changed: ChangedKeys | None = None, keys: Sequence[Key] = ()) -> None:
        last, began = None, time.monotonic()
        while not self.applied.has(position):
            if changed is not None:
                changed.look()
                if changed.has_all(keys):
                    break
            if (now := self.applied.executed()) != last:
                last, moved = now, time.monotonic()
            if not self.applied.runs():
                raise _not_running(f"the target is at {now}, and rows of {position} are to be compared")
            if self.stopped(_POLL_S):
                raise NotRunning("the verify was ended")
            if time.monotonic() - moved > _STILL_S:
                raise WaitTimeout(
                    f"the applier has made no progress from {now}; verify needs it to reach {position}",
                    hint="rplctl show-status shows the reason; then run rplctl verify again, which resumes",
                )
            if time.monotonic() - began > _REPORT_S:
                self.tells(f"waits for the applier to come from {now} to {position}")
        self.tells("")


def _not_running(why: str) -> NotRunning:
    return NotRunning(f"the channel's threads do not run: {why}", hint="rplctl start, then this again")


def _compared(
    pair: Pair, staged: Sequence[Row], rows: Sequence[Row], keys: Iterable[Key], changed: ChangedKeys
) -> Iterator[Difference]:
    """A key may stand for several rows where only the source has it unique."""
    wanted, found = by_key(staged), by_key(rows)
    for key in dict.fromkeys([*keys, *wanted]):
        ours, theirs = wanted.get(key, []), found.get(key, [])
        if key in changed or Counter(ours) == Counter(theirs):
            continue
        kind: Kind = "missing" if not theirs else "extra" if not ours else "different"
        columns: tuple[str, ...] = ()
        if kind == "different":
            cells = zip(pair.names, ours[0], theirs[0], strict=True)
            columns = tuple(name for name, one, other in cells if one != other)
        names = [pair.names[c] for c in pair.key]
        shown = {name: to_json(value) for name, value in zip(names, key, strict=True)}
        yield Difference(pair.target.database, pair.target.name, kind, shown, columns)


def by_key(rows: Iterable[Row]) -> dict[Key, list[tuple[Any, ...]]]:
    found: dict[Key, list[tuple[Any, ...]]] = {}
    for key, cells in rows:
        found.setdefault(key, []).append(cells)
    return found
