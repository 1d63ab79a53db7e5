"""How many transactions of the source share a commit of the target (WL#3970: "every 10th commit you do a real commit").

Invariant: a group is cut before it begins, by count alone, because its position is written first (design D4). So its
time is met by learning: what the groups before took says how many transactions fit.
"""

from __future__ import annotations

_FIRST = 10  # transactions, before anything is known
_GROWTH = 4  # of a group that was full and quick


class CommitGroupSize:
    def __init__(self, most: int, milliseconds: int) -> None:
        """`commit_group_transactions` and `commit_group_milliseconds`; 0: no bound."""
        self._most = most
        self._seconds = milliseconds / 1000
        self._fitting = _FIRST

    def transactions(self) -> int:
        """Of the next group at most; 0: as many as there are."""
        if not self._seconds:
            return self._most
        return min(self._fitting, self._most) if self._most else self._fitting

    def took(self, transactions: int, seconds: float) -> None:
        """A group of so many, from BEGIN to COMMIT."""
        if not self._seconds or not transactions:
            return
        fitting = max(1, int(transactions * self._seconds / max(seconds, 1e-6)))
        if fitting < self._fitting or transactions >= self._fitting:
            self._fitting = min(fitting, _GROWTH * self._fitting)
