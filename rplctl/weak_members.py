"""Members of a weak collection, listed by one thread while others add to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def members_of(collection: Iterable[T]) -> list[T]:
    """Return the members of a WeakSet or the keys of a WeakKeyDictionary.

    Python counts the members while it lists them, and raises RuntimeError where their number changed.
    """
    while True:
        try:
            return list(collection)
        except RuntimeError:
            continue
