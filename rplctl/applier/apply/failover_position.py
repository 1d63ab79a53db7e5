"""Handles a failover by GTID, after which the positions of transactions can be lower than the executed position.

A position can be stored in several places: repository and marker, shadow-page file, binary log. After a crash, rplctl
compares these positions to find the latest one. Table models are stored by position, too. Invariant: before rplctl
applies a transaction with a lower position, it commits a step without data. This step durably sets the position before
the transaction in all these places. So after a crash, no transaction is between the positions in any two places.
"""

from __future__ import annotations

import numpy as np

from rplctl.applied_log.binary_log import LoggedEvents, no_events
from rplctl.applier.feed.plan import Batch
from rplctl.commit.step import CommitMode, CommitStep, PositionStore
from rplctl.commit.transaction import commit_after, commit_group
from rplctl.event.scan import GroupKind
from rplctl.info import RelayLogInfo
from rplctl.own_tables.models import rebase_models
from rplctl.position import RelayLogPosition
from rplctl.schema.plan import Catalog
from rplctl.target.base import Target


def enter_new_source(
    info: RelayLogInfo, batch: Batch, target: Target, store: PositionStore, catalog: Catalog | None
) -> RelayLogInfo:
    """Return the position from which the batch is applied.

    The result is `info`, except at the first batch after a failover. If this batch has a lower position than `info`, a
    step without data moves the stored position back to the start of the batch. `catalog`: None if the target stores no
    table models. Raises LockBusy if the stored position is not `info`, TargetError if the target reports an error, and
    RelayLogError if the binary log cannot be written.
    """
    if not batch.transaction_count or not batch.source_position.is_before(info.exec_position):
        return info
    begins = _first_transaction(info, batch)
    if begins.exec_position == info.exec_position:
        return info

    def rebase() -> None:
        if catalog is not None:
            rebase_models(target.connection, info.channel_name, catalog)

    if store.log is not None:
        store.log.stage(LoggedEvents(None, batch.first_timestamp, False, no_events), info)
    commit = commit_after if store.mode is CommitMode.XA else commit_group
    commit(target, store, CommitStep(info, begins), rebase)
    store.committed(begins, force=True)
    return begins


def _first_transaction(info: RelayLogInfo, batch: Batch) -> RelayLogInfo:
    """Return `info` with the position before the first transaction of the batch."""
    scan = batch.scan
    number = batch.first + int(np.argmax(scan.kind[batch.first : batch.last] != GroupKind.CONTROL))
    source = scan.source_position(number - 1) if number else batch.groups.start_source
    return info.at(RelayLogPosition(batch.groups.log_name, int(scan.start[number])), source)
