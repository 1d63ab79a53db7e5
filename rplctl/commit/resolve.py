"""Resolves the transactions that a crash left prepared, before anything else is applied or the position moves.

Invariant: a transaction is committed if a participant of two-phase commit or the binary log has decided it. Every other
prepared transaction of this channel is rolled back. The work may be interrupted and repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from sqlalchemy import Engine

from rplctl.applied_log.end import logged_record
from rplctl.applied_log.files import binary_log_files
from rplctl.channel import Channel
from rplctl.commit.branches import resolve_branches
from rplctl.commit.participants.base import PositionParticipant
from rplctl.commit.participants.choice import (
    chosen_participant,
    forget_others,
    logged_path,
    pages_path,
    possible_participants,
)
from rplctl.commit.two_phase import XaPositionStore
from rplctl.commit.xid import branch_prefix, instance_name, xid_prefix
from rplctl.config import Config
from rplctl.errors import ConfigError, NotRunning
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.repository import open_repository
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.target import two_phase_verbs
from rplctl.target.base import TwoPhaseVerbs

log = logging.getLogger(__name__)


def open_two_phase(
    config: Config, channel: Channel, engine: Engine, repository: InfoRepository[RelayLogInfo]
) -> XaPositionStore | None:
    """Resolve the channel's prepared transactions, and return the position store of mode xa.

    Return None in another mode. The transactions are also resolved if the channel has left mode xa. Raises ConfigError
    if an option requests two-phase commit and the target does not support it. Raises TargetError if the target reports
    an error.
    """
    verbs, wanted = two_phase_verbs(engine.dialect.name), config.commit_mode == "xa"
    weaknesses = two_phases_for(config, engine) if wanted else []
    if verbs is None:
        return None
    if not wanted and not instance_name(channel.datadir):
        return None
    resolve_branches(engine, channel.name, branch_prefix(channel), verbs)
    prefix = xid_prefix(channel)
    resolve_prepared(
        possible_participants(config, channel, engine, prefix), engine, prefix, verbs, _logged(config, channel)
    )
    participant = chosen_participant(config, channel, engine, repository, prefix) if wanted else None
    forget_others(config, channel, lambda: engine, participant)
    if participant is None:
        return None
    for weakness in weaknesses:
        log.warning("commit_mode=xa: %s", weakness)
    return XaPositionStore(repository, participant, engine, prefix, verbs)


def resolve_prepared(
    participants: Sequence[PositionParticipant],
    engine: Engine,
    prefix: str,
    verbs: TwoPhaseVerbs,
    logged: str | None = None,
) -> None:
    """Commit the prepared transactions that a participant has decided, and roll back all others.

    `logged`: the name of the last transaction in the binary log; None if no binary log is written. If there is a log,
    its record decides, not the participant (WL#5125 8). So a prepared position whose transaction is not in the log is
    rolled back first. Then the target's transactions are committed or rolled back. At last, the decided positions are
    committed. The work may be interrupted and repeated, because a decision is removed after its transaction is
    committed.
    """
    decisions = {participant: participant.recover() for participant in participants}
    prepared = verbs.prepared_xids(engine, prefix)
    for participant, decision in decisions.items():
        if logged is not None and decision is not None and decision != logged and decision in prepared:
            participant.rollback_by_xid(decision)
            decisions[participant] = None
    for xid in prepared:
        if xid == logged or xid in decisions.values():
            verbs.end_prepared(engine, "COMMIT", xid)
            log.info("prepared transaction %s was decided and is committed", xid)
        else:
            verbs.end_prepared(engine, "ROLLBACK", xid)
            log.info("prepared transaction %s was not decided and is rolled back", xid)
    crash_point("crash_recovery_between_engines")
    for participant, decision in decisions.items():
        if decision is not None:
            participant.commit_by_xid(decision)


def finish_prepared(config: Config, channel: Channel, engine: Callable[[], Engine]) -> None:
    """Resolve the prepared transactions and positions of a stopped channel, before RelayLogInfo moves or is removed.

    Otherwise, the decision about a prepared transaction would be lost together with the old repository.
    """
    verbs = two_phase_verbs(engine().dialect.name) if instance_name(channel.datadir) else None
    if verbs is None:
        return
    resolve_branches(engine(), channel.name, branch_prefix(channel), verbs)
    file = open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, config, channel, engine)
    has_line = file.exists() and file.read().prepared is not None
    if not has_line and not pages_path(channel).exists() and not logged_path(channel).exists():
        return
    prefix = xid_prefix(channel)
    found = possible_participants(config, channel, engine(), prefix)
    resolve_prepared(found, engine(), prefix, verbs, _logged(config, channel))
    forget_others(config, channel, engine)


def refuse_half_committed(channel: Channel, engine: Callable[[], Engine]) -> None:
    """Raise NotRunning if a crash left transactions of a batch prepared, so that rows cannot be compared or repaired.

    Some tables may then be ahead of the stored position. Because other processes may work on the channel, the caller
    must not resolve these transactions itself.
    """
    if not instance_name(channel.datadir) or (verbs := two_phase_verbs(engine().dialect.name)) is None:
        return
    if left := verbs.prepared_xids(engine(), branch_prefix(channel)):
        raise NotRunning(
            f"an applier ended while several connections committed a batch: {len(left)} transactions are prepared",
            channel=channel.name,
            hint="to end them, run: rplctl start",
        )


def terminate_predecessor(channel: Channel, engine: Engine) -> None:
    """Terminate the connections of this channel's earlier applier that are still open in the target.

    Such a connection would hold the channel's lock in the target (D4), and locks on rows. The caller holds the
    channel's lock on this host, and has not yet taken the lock in the target.
    """
    verbs = two_phase_verbs(engine.dialect.name)
    if verbs is not None and instance_name(channel.datadir):
        verbs.terminate_sessions(engine, xid_prefix(channel))


def two_phases_for(config: Config, engine: Engine) -> list[str]:
    """Return messages about settings of the target that weaken two-phase commit.

    Called only if an option requests two-phase commit. Raises ConfigError if the target does not support two-phase
    commit, and TargetError if the target reports an error.
    """
    verbs = verbs_for(config, engine.dialect.name)
    if config.commit_mode == "xa":
        return verbs.check(engine, "commit_mode=xa")
    return verbs.check(engine, several_workers(config), config.replica_parallel_workers)


def verbs_for(config: Config, kind: str) -> TwoPhaseVerbs:
    """Return the commands of two-phase commit for a target of this kind, because an option requests two-phase commit.

    Raises ConfigError, with a hint about this option, if the kind does not support prepared transactions.
    """
    if (verbs := two_phase_verbs(kind)) is not None:
        return verbs
    if config.commit_mode == "xa":
        option, hint = (
            "commit_mode=xa",
            "to use a marker row in the target instead, which makes a FILE crash-safe, too (init changes only this "
            "setting), run: rplctl init --commit-mode auto",
        )
    else:
        option, hint = (
            several_workers(config),
            (
                "to apply with one connection (init changes only this setting), run: "
                "rplctl init --replica-parallel-workers 1"
            ),
        )
    raise ConfigError(f"{option}: a target of kind {kind} cannot prepare a transaction", hint=hint)


def wants_two_phases(config: Config) -> bool:
    """True if an option requests two-phase commit: commit_mode=xa, or several parallel workers.

    Workers that preserve the commit order do not request it, because one connection commits then.
    """
    return config.commit_mode == "xa" or (
        config.replica_parallel_workers > 1 and not config.replica_preserve_commit_order
    )


def several_workers(config: Config) -> str:
    return f"replica_parallel_workers={config.replica_parallel_workers}"


def _logged(config: Config, channel: Channel) -> str | None:
    """Return the name of the last transaction in the binary log. Return None if no binary log is written.

    The record in the log decides that this transaction is committed. Raises ConfigError if the position was in a binary
    log that `log_bin` no longer names.
    """
    files = binary_log_files(config, channel)
    if files is None and logged_path(channel).exists():
        raise ConfigError(
            f"channel '{channel.name}' crashed while its position was in a binary log that log_bin no longer names",
            hint="to set log_bin to its earlier value, with which rplctl finds the position, run: rplctl init "
            "--log-bin NAME; rplctl start",
        )
    record = logged_record(files)
    return record.xid if record else None
