"""A source's clock against ours."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """The source's clock minus ours, and how wrong that can be: half of the question's round trip. Seconds."""

    difference: float
    error: float


def clock_of(asked: float, said: float, answered: float) -> Clock:
    """The source said its time somewhere between our question and its answer."""
    return Clock(said - (asked + answered) / 2, max(0.0, answered - asked) / 2)
