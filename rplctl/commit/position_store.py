"""Chooses where the applier's position is stored, and how it is committed together with the data (design D3).

    mode          repository              the position moves
    transaction   TABLE in the target     inside the data's transaction (WL#5125 case 4: no extra fsync)
    xa            FILE, commit_mode=xa    in two phases, together with the data's transaction (two_phase.py)
    marker        FILE; TABLE without     in a marker row inside the data's transaction; the repository is written after
                  transactions (MyISAM)   COMMIT (REQ-5: "positions are updated after processing the commit")
    per-table     any, target a lake      after all tables, each with a commit of its own (per_table.py)

Invariant: `advance` is a compare-and-swap, and the first statement of a transaction. (commit_after of transaction.py
calls it last, but first reads the position.) If `advance` does not change exactly one row, another process has moved or
taken over the channel, and the transaction is rolled back (design D4).

Each start checks again whether the repository's table is transactional, because a super user may ALTER TABLE … ENGINE
(REQ-1). The module marker.py explains the recovery of mode marker after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from sqlalchemy import Connection, Engine, update

from rplctl.applied_log.binary_log import BinaryLog
from rplctl.applied_log.files import binary_log_files
from rplctl.channel import Channel
from rplctl.commit.belonging import identity_of, refuse_unfit
from rplctl.commit.branches import Branches
from rplctl.commit.marker import MarkerPositionStore, read_marker, remove_marker
from rplctl.commit.noted import StatementNotes
from rplctl.commit.per_table import PerTablePositionStore
from rplctl.commit.resolve import open_two_phase, several_workers, two_phases_for, verbs_for
from rplctl.commit.step import CommitMode, PositionStore, taken_over
from rplctl.commit.written_source import note_written
from rplctl.commit.xid import branch_prefix
from rplctl.config import Config
from rplctl.errors import ConfigError, LockBusy
from rplctl.info import RelayLogInfo
from rplctl.instance_id import made_instance_id
from rplctl.locks import gtid_map
from rplctl.own_tables.owner import claim_alone
from rplctl.own_tables.tables import commit_marker
from rplctl.repository import open_relay_log_info
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.repository.table import compare_and_swap, stored_relay_log_info
from rplctl.repository.tables import KEY, info_tables
from rplctl.source.replica_id import replica_server_id
from rplctl.target import dialect_of, mapped_errors, target_kind
from rplctl.target.base import StatementTarget, Target, TwoPhaseTarget

log = logging.getLogger(__name__)


def open_position_store(config: Config, channel: Channel, engine: Engine) -> PositionStore:
    """Choose the commit mode, and return its position store.

    The mode depends on the options, on the kind of the repository, and on the storage engine of a repository in a
    table. Transactions that a crash left prepared are committed or rolled back first. Raises UnfitTarget if the target
    does not belong to the stored position, and ConfigError if the options exclude each other.
    """
    refuse_unfit(config, channel, lambda: engine)
    repository = open_relay_log_info(config, channel, lambda: engine)
    kind = (
        TablePositionStore
        if repository.kind is RepositoryKind.TABLE and repository.is_transactional()
        else MarkerPositionStore
    )
    two_phase = open_two_phase(config, channel, engine, repository)
    store: PositionStore = two_phase or kind(repository, channel.name, engine)
    ours, _ = identity_of(config, channel, lambda: engine)
    store.owner = replace(ours, Instance_id=made_instance_id(config.datadir))
    dialect = dialect_of(target_kind(config.target_place))
    if dialect.commits_per_table:
        if config.log_bin:
            raise ConfigError(
                "log_bin cannot be used with a lake, which has no transactions",
                hint="to write no binary log, because the lake's tables of changes are a log already, run: rplctl "
                "init --log-bin ''",
            )
        store = PerTablePositionStore(store, channel.name, engine, dialect.lake_tables(engine))
    store.guard = gtid_map(config.datadir).shared
    if (files := binary_log_files(config, channel)) is not None:
        store.log = BinaryLog(files, config, replica_server_id(config, channel))
    return store


def open_branches(config: Config, channel: Channel, target: Target, store: PositionStore) -> Branches | None:
    """Return the worker connections that commit one batch together. Return None if the options choose one connection.

    Raises ConfigError if commit_mode=xa or the target excludes several connections. Raises TargetError if the target
    reports an error.
    """
    count = config.replica_parallel_workers
    if count < 2:
        return None
    option = several_workers(config)
    if config.replica_preserve_commit_order:
        log.info("%s: one connection commits, because replica_preserve_commit_order is on", option)
        return None
    if store.mode is CommitMode.XA:
        raise ConfigError(
            f"{option} cannot be used with commit_mode=xa, in which one connection commits",
            channel=channel.name,
            hint="to apply with one connection (init changes only this setting), run: rplctl init "
            "--replica-parallel-workers 1\n"
            "To store the position without XA, run: rplctl init --commit-mode auto",
        )
    verbs, weaknesses = verbs_for(config, target.engine.dialect.name), two_phases_for(config, target.engine)
    first = cast(TwoPhaseTarget, target)
    _ = first.connection  # a connection sets `loads_prepared`
    if not first.loads_prepared:
        raise ConfigError(
            f"{option}: the target's prepared transactions do not support temporary tables",
            channel=channel.name,
            hint="use MySQL 8.0.29 or later as the target, and run there: GRANT SESSION_VARIABLES_ADMIN ON *.* TO "
            "'USER'@'HOST'\n"
            "To apply with one connection (init changes only this setting), run: rplctl init "
            "--replica-parallel-workers 1",
        )
    for weakness in weaknesses:
        log.warning("%s: %s", option, weakness)

    def another() -> TwoPhaseTarget:
        return cast(TwoPhaseTarget, dialect_of(target.engine.dialect.name).open_target(target.engine))

    return Branches(first, another, channel.name, branch_prefix(channel), verbs, count)


def open_notes(store: PositionStore, target: StatementTarget, channel: Channel, info: RelayLogInfo) -> StatementNotes:
    """Return the channel's StatementNotes, which ensure that statements with an implicit commit run once (D28).

    `info`: the channel's current position. Raises TargetError if the target reports an error.
    """
    return StatementNotes(target, channel.name, info, position_follows=store.mode is CommitMode.XA)


def commit_blocker(config: Config, channel: Channel, engine: Engine) -> Callable[[Connection], None] | None:
    """Return a function that blocks the applier's commits. Return None if the position is not in the target (mode xa).

    `repair` needs the function, because it changes rows of the target while the applier runs. The function locks the
    position's row in the target, which each commit of the applier must change. The argument of the function is a
    connection. The lock ends with the open transaction of this connection. The function raises LockBusy if the row was
    removed meanwhile. Raises TargetError if the target reports an error.
    """
    repository = open_relay_log_info(config, channel, lambda: engine)
    table = info_tables(engine.dialect.name)[RELAY_LOG_INFO.table]
    if repository.kind is not RepositoryKind.TABLE or not repository.is_transactional():
        table = commit_marker(engine.dialect.name)
        with mapped_errors(engine.dialect.name), engine.connect() as connection:
            if read_marker(connection, channel.name)[0] is None:
                return None
    hold = update(table).where(table.c[KEY] == channel.name).values({KEY: channel.name})

    def holds(connection: Connection) -> None:
        with mapped_errors(engine.dialect.name):
            if connection.execute(hold).rowcount != 1:
                raise LockBusy(
                    "the position was just removed",
                    channel=channel.name,
                    hint="to see the state of the channel, run: rplctl show-status",
                )

    return holds


class TablePositionStore(PositionStore):
    mode = CommitMode.TRANSACTION

    def __init__(self, repository: InfoRepository[RelayLogInfo], channel: str, engine: Engine) -> None:
        super().__init__()
        self._repository = repository
        self._channel = channel
        self._engine = engine

    def open(self) -> RelayLogInfo:
        """Return the position from which the applier starts. Normally, this is the position in the repository's table.

        If an applier in mode marker crashed before the switch to this table, its marker may have a later position. This
        later position is then written to the table and returned. In each case, the marker is removed.
        """
        info = self._repository.read()
        with mapped_errors(self._engine.dialect.name), self._engine.connect() as connection:
            marker, in_step = read_marker(connection, self._channel)
        if marker is None:
            self._claim()
            return info
        if not in_step and info.exec_position.is_before(marker.exec_position):
            info = info.moved_to(marker)
            self._repository.flush(info, force=True)
        self._claim()
        remove_marker(self._channel, self._engine)
        return info

    def _claim(self) -> None:
        with mapped_errors(self._engine.dialect.name):
            claim_alone(self._engine, self._channel, self.owner, self.mode)

    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        with mapped_errors(connection.dialect.name):
            moved = compare_and_swap(connection, expected, new)
        if not moved:
            raise taken_over(expected)

    def stored(self, connection: Connection) -> RelayLogInfo | None:
        with mapped_errors(connection.dialect.name):
            return stored_relay_log_info(connection, self._channel)

    def committed(self, new: RelayLogInfo, *, force: bool = False) -> None:
        """Do nothing, because the position is committed with the data (REQ-5; sync_relay_log_info has no effect)."""

    def close(self, last: RelayLogInfo) -> None:
        """Do nothing, because the last transaction has already stored the position in the target."""


def resolve(config: Config, channel: Channel, engine: Engine) -> None:
    """Store the valid position in the file and in the target's marker, while no applier runs.

    A command such as CHANGE MASTER calls this before it edits the position in the file. Because the file and the marker
    had the same position before the edit, the next start uses the edited position.
    """
    store = open_position_store(config, channel, engine)
    store.close(opened(store, channel))


def opened(store: PositionStore, channel: Channel) -> RelayLogInfo:
    """Open the store, and return the position from which the applier starts.

    Opening writes the channel's source to the row in rplctl_channel_owner. This source is then also recorded on this
    host, so that a later start can recognize a target from a backup (D29).
    """
    info = store.open()
    if store.owner is not None:
        note_written(channel, store.owner)
    return info


def name_source(store: PositionStore, config: Config, channel: Channel, engine: Engine) -> None:
    """Add the source's identity to the channel's row in rplctl_channel_owner, if the row has no identity yet.

    At the first start, the applier writes the row before the receiver has connected, so the source is still unknown.
    Raises TargetError if the target reports an error.
    """
    owner = store.owner
    if owner is None or owner.Source_uuid or owner.Source_server_id:
        return
    ours, _ = identity_of(config, channel, lambda: engine)
    store.owner = replace(ours, Instance_id=owner.Instance_id)
    with mapped_errors(engine.dialect.name):
        claim_alone(engine, channel.name, store.owner, store.mode)
    note_written(channel, store.owner)


def shown_mode(config: Config, store: PositionStore) -> str:
    """Return the commit mode as show-status prints it, with the reason if it is not the requested mode."""
    if config.commit_mode != "xa" or store.mode is CommitMode.XA:
        return store.mode.value
    if store.mode is CommitMode.TRANSACTION:
        return f"{store.mode.value} (not xa: the position is in the target's own transaction)"
    return f"{store.mode.value} (not xa: the position's table is not crash-safe)"
