"""Decides the size of a batch, of the jobs that decode it, and of a group of transactions with one COMMIT.

Batches are small at first, so that the first rows appear in the target at once. They grow while the applier is behind.
If later changes overwrite earlier ones, a batch is decoded as one job, so that each row is written once. Otherwise
(bulk inserts), the batch is decoded in small jobs, so that the target applies one job while the next is decoded.
Invariant: a batch has at most `max_batch_bytes` bytes. It is also expected to have at most so many row changes that the
decoded changes fit into memory.
"""

from __future__ import annotations

from rplctl.config import Config

FIRST_BYTES_AS_TEXT, CHANGES_AS_TEXT = 64 << 20, 1_000_000  # first batch and most changes, for encoded rows
FIRST_BYTES_AS_VALUES, CHANGES_AS_VALUES = 16 << 20, 200_000  # the same for rows of Python objects
GROWTH = 16  # factor by which a batch may grow after a full one
JOB_BYTES = 16 << 20  # larger jobs are not faster
LATER_JOB_BYTES_AS_TEXT = 48 << 20  # encoded rows wait in files, and each job costs Spark 50 ms of a core
FIRST_TRANSACTIONS = 10  # in the first group, before any time is measured
GROUP_GROWTH = 4  # factor by which a commit group may grow after a full and quick one


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
        """Adapt the size of the next batches to a decoded batch of `size` bytes, which had `changes` row changes.

        Only a full batch shows that more log is waiting. After a smaller batch, the size stays the same.
        """
        if 2 * size < self.batch_bytes:
            return
        fitting = self._most_bytes if not changes else size * self._most_changes // changes
        larger = min(GROWTH * self.batch_bytes, fitting, self._most_bytes)
        self.batch_bytes = max(larger, self._first_bytes)

    def job_decoded(self, changes: int, net: int) -> None:
        """Note that `changes` row changes of the source in one job became `net` row changes for the target.

        If the net changes are clearly fewer, the next jobs are as large as a batch.
        """
        self._compacts = 10 * net < 9 * changes

    def job_bytes(self, left: int, *, is_first: bool) -> int:
        """Return how many bytes the next job decodes.

        `left`: the number of bytes of the batch that are not decoded yet. The job decodes all these bytes if they are
        at most one and a half times its normal size. `is_first`: True for the first job of a batch, whose normal size
        may be smaller.
        """
        small = JOB_BYTES if is_first else self._later_job_bytes
        most = self.batch_bytes if self._compacts else min(self.batch_bytes, small)
        return left if 2 * left <= 3 * most else most


class CommitGroupSize:
    """Decides how many transactions of the source share one COMMIT of the target.

    WL#3970 has this idea: "every 10th commit you do a real commit". Invariant: the number is fixed before the group
    begins, because the position after the group is written first (design D4). The time limit is therefore met by
    learning from the times of earlier groups.
    """

    def __init__(self, most: int, milliseconds: int) -> None:
        """Set the limits of a group: `most` transactions, and `milliseconds` from BEGIN to COMMIT. 0 means no limit."""
        self._most = most
        self._seconds = milliseconds / 1000
        self._fitting = FIRST_TRANSACTIONS

    @classmethod
    def from_config(cls, config: Config) -> CommitGroupSize:
        """Return an object with the limits that the options set.

        With commit_mode=xa, each COMMIT syncs the stored position to the disk, because this position decides after a
        crash which transactions are committed. The option sync_relay_log_info (WL#3970's SYNC_RLI_PERIOD) is the
        largest number of transactions between two syncs. So with commit_mode=xa, the option also limits the group. No
        value of the option can lose a transaction.
        """
        bounds = [config.commit_group_transactions]
        if config.commit_mode == "xa":
            bounds.append(config.sync_relay_log_info)
        return cls(min(filter(None, bounds), default=0), config.commit_group_milliseconds)

    def transactions(self) -> int:
        """Return the largest number of transactions that the next group may have, or 0 if there is no limit."""
        if not self._seconds:
            return self._most
        return min(self._fitting, self._most) if self._most else self._fitting

    def took(self, transactions: int, seconds: float) -> None:
        """Note how many seconds a group of `transactions` transactions took from BEGIN to COMMIT."""
        if not self._seconds or not transactions:
            return
        fitting = max(1, int(transactions * self._seconds / max(seconds, 1e-6)))
        if fitting < self._fitting or transactions >= self._fitting:
            self._fitting = min(fitting, GROUP_GROWTH * self._fitting)
