"""Neutral column values → what SQLite stores exactly. Imported by Spark tasks, so it loads no driver."""

from __future__ import annotations

from rplctl.target.base import Value

LARGEST_INTEGER = (1 << 63) - 1


def storable(values: list[Value]) -> list[Value]:
    """Integers past SQLite's 64-bit range become their decimal text: exact, in a column without numeric affinity."""
    kind = next((type(v) for v in values if v is not None), None)  # a column has one type
    if kind is not int:
        return values
    return [str(v) if v is not None and v > LARGEST_INTEGER else v for v in values]  # type: ignore[operator]
