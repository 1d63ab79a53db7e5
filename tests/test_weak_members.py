from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakSet

import pytest

from rplctl.weak_members import members_of


class Member:
    """One that may be referred to weakly."""


class Busy(WeakSet[Member]):
    """Another thread adds a member while this one is listed for the first time."""

    late: Member | None = None

    def __iter__(self) -> Iterator[Member]:
        for member in super().__iter__():
            if self.late is None:
                self.late = Member()
                self.add(self.late)
            yield member


def test_members_are_listed_while_another_thread_adds_one() -> None:
    members = [Member(), Member()]
    with pytest.raises(RuntimeError):
        list(Busy(members))
    busy = Busy(members)
    assert {*members_of(busy)} == {*members, busy.late}
