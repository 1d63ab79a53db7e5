"""Measures the difference between the source's clock and rplctl's clock."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """The source's clock minus rplctl's clock, in seconds, and the largest possible error of this difference.

    The largest error is half of the time that the query has taken.
    """

    difference: float
    error: float


def clock_of(asked: float, said: float, answered: float) -> Clock:
    """Return the difference of the clocks from one query of the source's time. All times are in Unix seconds.

    `asked`, `answered`: the times before and after the query by rplctl's clock. `said`: the time that the source
    reported.
    """
    return Clock(said - (asked + answered) / 2, max(0.0, answered - asked) / 2)
