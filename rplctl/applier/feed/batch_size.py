"""How much relay log one batch takes, how much of it is decoded at a time, and how many transactions a commit takes.

Little at first, so that rows appear at once; more while the applier is behind. Where later changes make earlier ones
good, a batch is decoded as one job, so that each row is written once; where they do not (bulk inserts), in small jobs,
so that the target is busy with one while the next is decoded.
Invariant: a batch is expected to hold no more row changes than fit into memory decoded, whatever their size, and no
more bytes than `max_batch_bytes`.
"""

from __future__ import annotations

from rplctl.config import Config

FIRST_BYTES_AS_TEXT, CHANGES_AS_TEXT = 64 << 20, 1_000_000  # of a target that takes them encoded
FIRST_BYTES_AS_VALUES, CHANGES_AS_VALUES = 16 << 20, 200_000  # as Python's objects
GROWTH = 16  # of a batch that was full
JOB_BYTES = 16 << 20  # where nothing is gained by more
LATER_JOB_BYTES_AS_TEXT = 48 << 20  # text lies in files until it is sent, and each job costs Spark 50 ms of a core
FIRST_TRANSACTIONS = 10  # of a commit, before anything is known
GROUP_GROWTH = 4  # of a group of transactions that was full and quick


class BatchSize:
    def __init__(self, first_bytes: int, most_bytes: int, most_changes: int, later_job_bytes: int = JOB_BYTES) -> None:
        self._first_bytes = min(first_bytes, most_bytes)
        self._most_bytes = most_bytes
        self._most_changes = most_changes
        self._later_job_bytes = later_job_bytes
        self._compacts = False
        self.batch_bytes = self._first_bytes

    @classmethod
    def as_text(cls, most_bytes: int) -> BatchSize:
        return cls(FIRST_BYTES_AS_TEXT, most_bytes, CHANGES_AS_TEXT, LATER_JOB_BYTES_AS_TEXT)

    @classmethod
    def as_values(cls, most_bytes: int) -> BatchSize:
        return cls(FIRST_BYTES_AS_VALUES, most_bytes, CHANGES_AS_VALUES)

    def decoded(self, size: int, changes: int) -> None:
        """A batch of `size` bytes held that many row changes. Only a full one says that there is more to come."""
        if 2 * size < self.batch_bytes:
            return
        fitting = self._most_bytes if not changes else size * self._most_changes // changes
        larger = min(GROWTH * self.batch_bytes, fitting, self._most_bytes)
        self.batch_bytes = max(larger, self._first_bytes)

    def job_decoded(self, changes: int, net: int) -> None:
        """`changes` of the source became `net` rows for the target."""
        self._compacts = 10 * net < 9 * changes

    def job_bytes(self, left: int, *, is_first: bool) -> int:
        """Return how many of the remaining bytes of a range are decoded now: all, unless they are far too many."""
        small = JOB_BYTES if is_first else self._later_job_bytes
        most = self.batch_bytes if self._compacts else min(self.batch_bytes, small)
        return left if 2 * left <= 3 * most else most


class CommitGroupSize:
    """How many transactions of the source share a commit of the target (WL#3970: "every 10th commit you do a real
    commit"). Invariant: a group is cut before it begins, by count alone, because its position is written first (design
    D4). So its time is met by learning: what the groups before took says how many transactions fit.
    """

    def __init__(self, most: int, milliseconds: int) -> None:
        """`commit_group_transactions` and `commit_group_milliseconds`; 0: no bound."""
        self._most = most
        self._seconds = milliseconds / 1000
        self._fitting = FIRST_TRANSACTIONS

    @classmethod
    def from_config(cls, config: Config) -> CommitGroupSize:
        """Read the bounds from the options.

        In commit_mode=xa each commit syncs the position, which is the decision. Therefore sync_relay_log_info
        (WL#3970's SYNC_RLI_PERIOD) bounds the group: the position is synced once for so many transactions, and none is
        at risk.
        """
        bounds = [config.commit_group_transactions]
        if config.commit_mode == "xa":
            bounds.append(config.sync_relay_log_info)
        return cls(min(filter(None, bounds), default=0), config.commit_group_milliseconds)

    def transactions(self) -> int:
        """Return the most transactions that the next group may have; 0 = as many as there are."""
        if not self._seconds:
            return self._most
        return min(self._fitting, self._most) if self._most else self._fitting

    def took(self, transactions: int, seconds: float) -> None:
        """A group of so many, from BEGIN to COMMIT."""
        if not self._seconds or not transactions:
            return
        fitting = max(1, int(transactions * self._seconds / max(seconds, 1e-6)))
        if fitting < self._fitting or transactions >= self._fitting:
            self._fitting = min(fitting, GROUP_GROWTH * self._fitting)
