"""The difference between the source's clock and rplctl's clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """The source's clock minus rplctl's clock, and its largest error: half the round trip of the query. In seconds."""

    difference: float
    error: float


def clock_of(asked: float, said: float, answered: float) -> Clock:
    """Return the source's clock from one query: rplctl's time before it (`asked`) and after it (`answered`), and the
    time `said` that the source reported (Unix seconds).
    """
    return Clock(said - (asked + answered) / 2, max(0.0, answered - asked) / 2)
