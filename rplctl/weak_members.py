"""Lists the members of a weak collection safely while other threads add members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def members_of(collection: Iterable[T]) -> list[T]:
    """Return the members of a WeakSet, or the keys of a WeakKeyDictionary.

    Python raises RuntimeError if the number of members changes during the listing. The function then lists them again.
    """
    while True:
        try:
            return list(collection)
        except RuntimeError:
            continue
