"""The members of a weak collection, listed by one thread while other threads add members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def members_of(collection: Iterable[T]) -> list[T]:
    """Return the members of a WeakSet, or the keys of a WeakKeyDictionary.

    Python raises RuntimeError if the number of members changes during the listing; then the listing is repeated.
    """
    while True:
        try:
            return list(collection)
        except RuntimeError:
            continue
