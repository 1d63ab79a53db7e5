"""Compares suspects, which are rows that may differ, on both sides at known positions of the source's log.

The source's rows are read first, and loaded with the applier's encoder into a temporary table of the target. When the
target has reached the position of these rows, the temporary table and the table itself are read in the same way.

If the relay log changes a row between the position of the source's rows and that of the target, the row cannot be
compared. The comparison is tried again, up to MOST_ROUNDS times. After that, the row counts as `in motion`, never as
different. If the relay log has changed all of the rows, verify does not wait for the applier. If no applier runs, the
target does not change. Then all rows that the relay log changes after the target's position are in motion. Invariant: a
row is reported as different only if no event for the row was on its way to the target.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from rplctl.errors import NotRunning, WaitTimeout
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.images import Images
from rplctl.position import BinlogPosition
from rplctl.relay_log.received import Received
from rplctl.schema.source_catalog import read_table
from rplctl.source.snapshot import SnapshotKind, SourcePosition, locked_rows, snapshot
from rplctl.source.survey import log_end
from rplctl.sql_text import NOTHING, Sql
from rplctl.verify.key_values import Key, to_json
from rplctl.verify.log_keys import ChangedKeys
from rplctl.verify.pair import Pair
from rplctl.verify.report_file import Difference, Kind
from rplctl.verify.source_side import SourceSessions, rows_of_keys, rows_with_hashes
from rplctl.verify.target_side import Row, TargetSide

MOST_ROUNDS: Final = 5
_SOURCE_S: Final = 30.0  # the longest wait until the source shows a received transaction, or the receiver has a new one
_STILL_S: Final = 600.0  # the longest wait without any progress of the applier
_REPORT_S: Final = 2.0
_POLL_S: Final = 0.02


class DefinitionChanged(Exception):
    """The error if a table's definition has changed since its comparison began."""


class Unjudged(Exception):
    """The error if the relay logs between the positions of the source's rows and the target's rows are purged.

    It is then unknown which rows have changed between these positions, so they cannot be compared.
    """


class AppliedTransactions(Protocol):
    """The part of the source's log that the channel has applied to the target."""

    def has(self, position: BinlogPosition) -> bool:
        """True if all transactions before this position of the source's log are applied."""

    def executed(self) -> BinlogPosition:
        """Return the position of the source's log that the target has reached.

        A read of the target before this call has shown no transaction after the position.
        """

    def runs(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result of a comparison of suspects, which are rows that may differ.

    `again`: the keys of rows that the source changed during each attempt.
    """

    differences: list[Difference]
    again: list[Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolver:
    """The comparison of suspects, which are rows that may differ, on the source and on the target."""

    source: SourceSessions
    side: TargetSide
    received: Received
    applied: AppliedTransactions
    stopped: Callable[[float], bool]  # waits the given seconds; True if verify must end
    tells: Callable[[str], None] = lambda _: None  # shows the reason for a wait; '' removes the reason after the wait
    is_unchanging: bool = False  # True if the target does not change, because no applier runs
    receives: bool = True  # True if a receiver runs; only used if the target holds still

    @property
    def rounds(self) -> int:
        """The number of attempts to compare rows that change meanwhile.

        It is 1 if the target does not change, because another attempt has the same result then.
        """
        return 1 if self.is_unchanging else MOST_ROUNDS

    def resolve(self, pair: Pair, keys: list[Key]) -> Resolution:
        """Compare the rows with these keys on both sides.

        Raises DefinitionChanged if the table's definition has changed, and Unjudged if relay logs are purged too early.
        Raises SourceError if the source and TargetError if the target reports an error, WaitTimeout if the target does
        not catch up, and NotRunning on STOP.
        """
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
        """Compare the rows with these hashes in a table without a key, on both sides.

        Return the number of missing rows, the number of extra rows, and True if the table was changed during each
        attempt. Raises the errors of `resolve`.
        """
        for _ in range(self.rounds):
            with self.staged(pair, partial(rows_with_hashes, self.source, pair, hashes)) as changed:
                if not changed.is_all:
                    staged, rows = self.side.count(pair, hashes)
                    self.look(changed)
            if not changed.is_all:
                return (staged - rows).total(), (rows - staged).total(), False
        return 0, 0, True

    def look(self, changed: ChangedKeys) -> BinlogPosition:
        """Add the keys that the relay log changes up to the target's position to `changed`, and return this position.

        Raises Unjudged if the relay logs before this position are purged.
        """
        place, at = self.applied.executed(), self.source.at
        if self.is_unchanging:  # `staged` has examined everything after the target's position
            return place
        if at is None or place != at:
            if at is not None and not self.received.begin_after(at):
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
        """Load the source's rows into the target's temporary table, and yield the keys that the log changes meanwhile.

        If an applier runs, first wait until the target has passed the position of these rows, or until all `keys` have
        changed. `rows`: a function that reads the rows on the source. Its argument is the end of the SELECT, which may
        take locks. `keeps`: keys whose transactions are kept for a repair (see ChangedKeys).
        """
        if at := self.source.at:
            self.side.stage(pair, rows(NOTHING))
            yield ChangedKeys(self.received, pair, at, MysqlGtidSet.parse(""))
            return
        still = self.applied.executed() if self.is_unchanging else None
        if still is None:
            self._begin()
        elif not self.received.begin_after(still):
            raise Unjudged
        source = self.source
        is_exact = source.step is SnapshotKind.EXACT
        least = SourcePosition(
            self.received.place if is_exact else None
        )  # a source sends a transaction before it makes the transaction visible
        has_snapshot = source.step is not SnapshotKind.SHARE_LOCK
        opened = (
            snapshot(source.query, source.step, least, _SOURCE_S)
            if has_snapshot
            else locked_rows(source.query, source.step, _SOURCE_S)
        )
        with opened as held:
            if read_table(source.about, pair.source.database, pair.source.name)[0] != pair.source:
                raise DefinitionChanged
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
                raise _not_running("the receiver receives nothing from the source")

    def _refuse_unreceived(self, high: BinlogPosition) -> None:
        place = self.received.place
        if place is None or place.is_before(high):
            raise NotRunning(
                f"no receiver runs: the relay log ends at {self.received.position}, and the source's log at {high}",
                hint="to start the receiver before you run this command again, run: rplctl start --receiver",
            )

    def catch_up(self) -> None:
        """Wait until the target has everything that the source's log has at the time of the call.

        If the target does not change, because no applier runs, do nothing. Raises SourceError if the source reports an
        error, WaitTimeout if the target makes no progress, and NotRunning if the applier has stopped.
        """
        if not self.is_unchanging:
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
                raise _not_running(f"the target is at {now}, but the rows to compare are from {position}")
            if self.stopped(_POLL_S):
                raise NotRunning("the verify was stopped")
            if time.monotonic() - moved > _STILL_S:
                raise WaitTimeout(
                    f"the applier has made no progress from {now}; verify needs it to reach {position}",
                    hint="to find the reason, run: rplctl show-status; after its repair, run: rplctl verify",
                )
            if time.monotonic() - began > _REPORT_S:
                self.tells(f"waiting for the applier to go from {now} to {position}")
        self.tells("")


def _not_running(why: str) -> NotRunning:
    return NotRunning(
        f"the channel's threads do not run: {why}",
        hint="to start them before you run this command again, run: rplctl start",
    )


def _compared(
    pair: Pair, staged: Sequence[Row], rows: Sequence[Row], keys: Iterable[Key], changed: ChangedKeys
) -> Iterator[Difference]:
    """Yield the differences between the source's rows (`staged`) and the target's rows, except for changed keys.

    Several rows may have the same key, if the key is unique only on the source.
    """
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
        yield Difference(database=pair.target.database, table=pair.target.name, kind=kind, key=shown, columns=columns)


def by_key(rows: Iterable[Row]) -> dict[Key, list[tuple[Any, ...]]]:
    found: dict[Key, list[tuple[Any, ...]]] = {}
    for key, cells in rows:
        found.setdefault(key, []).append(cells)
    return found
