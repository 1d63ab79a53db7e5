"""Commit mode `xa` (WL#3970, design D3): the target and a position outside it commit together, in two phases.

    1 XA START … changes … XA PREPARE        undone at the next start: crash_commit_before, crash_commit_after_prepare
    2 position prepared, durable             the decision; from here on carried out: crash_commit_after_log
      with `log_bin`: then binary log        the decision is its record, whatever the position says (WL#5125 8)
    3 XA COMMIT                              crash_commit_between_engines, crash_commit_before_unlog
    4 position committed                     crash_commit_after

Invariant: a prepared transaction of this channel is committed if a participant's `recover` names it, else rolled back,
before anything else is applied or the position is moved by anybody (`open_two_phase`, `settle_prepared`). What begins
with another prefix is never touched. An error after step 2 is no failure: the transaction is finished on another
connection, at the latest by the next start. Without a prepare line go DDL, groups on tables without transactions and
groups without changes: `commit_after`, the position is written behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Connection, Engine

from rplctl.applied_log.binary_log import BinaryLog
from rplctl.applied_log.end import logged_record
from rplctl.applied_log.files import binary_log_files
from rplctl.channel import Channel
from rplctl.commit.ambiguous_commit import until_answered
from rplctl.commit.participant import LinePosition, LogPosition, PagePosition, PositionParticipant, RowPosition
from rplctl.commit.position_store import CommitMode, Ledger, one_that_counts, read_marker, remove_marker, taken_over
from rplctl.commit.xid import instance_name, xid_of, xid_prefix
from rplctl.config import Config
from rplctl.durable import Guard
from rplctl.errors import ConfigError, TargetError
from rplctl.failpoint import crash_point
from rplctl.info import RelayLogInfo
from rplctl.repository import open_repository
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.layout import engine_of
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.target import mapped_errors, two_phase_verbs
from rplctl.target.base import Target, TwoPhaseVerbs, two_phase_target

CRASH_SAFE_ENGINES = frozenset({"aria"})  # without transactions, but each statement is durable and whole

log = logging.getLogger(__name__)


class XaLedger:
    """See ledger.Ledger."""

    mode = CommitMode.XA

    def __init__(
        self,
        repository: InfoRepository[RelayLogInfo],
        participant: PositionParticipant,
        engine: Engine,
        prefix: str,
        verbs: TwoPhaseVerbs,
    ) -> None:
        self.guard: Guard = nullcontext
        self.log: BinaryLog | None = None
        self.participant = participant
        self.prefix = prefix
        self.verbs = verbs
        self.decided = ""
        self._repository = repository
        self._engine = engine
        self._claimed: object = None  # the driver's connection that bears our mark

    def open(self) -> RelayLogInfo:
        """The participant's position, or a marker's: mode `marker` left it, or a backup of that time brought it."""
        info = self.participant.open()
        with mapped_errors(self._engine.dialect.name), self._engine.connect() as connection:
            marker, in_step = read_marker(connection, info.channel_name)
        if marker is not None:
            before, info = info, one_that_counts(info, marker, in_step)
            if info is not before:
                self.participant.write(info, durable=True)
            remove_marker(info.channel_name, self._engine)
        return info

    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """For groups without a prepare: nothing moves before `committed`."""
        if not self._repository.read().is_at(expected):
            raise taken_over(expected)

    def stored(self, connection: Connection) -> RelayLogInfo | None:
        return self._repository.read() if self._repository.exists() else None

    def committed(self, new: RelayLogInfo, *, force: bool = False) -> None:
        self.participant.write(new, durable=True)

    def close(self, last: RelayLogInfo) -> None:
        self.participant.close(last)

    def begin(self, target: Target, xid: str, *, foreign_keys: bool) -> None:
        """Open the branch on a connection that bears this instance's mark.

        What the one before had prepared when it broke was not decided (`pending` comes first) and holds its locks.
        """
        driver = target.connection.connection.driver_connection
        if driver is not self._claimed:
            self.verbs.claim(target.connection, self.prefix)
            for undecided in self.verbs.prepared_xids(target.engine, self.prefix):
                self.verbs.rollback_prepared(target.engine, undecided)
                log.info("prepared transaction %s was not decided and is rolled back", undecided)
            self._claimed = driver
        two_phase_target(target).begin(foreign_keys=foreign_keys, xid=xid)

    def pending(self) -> str:
        """The transaction that may be decided and is not finished: nothing else may begin."""
        return self.decided

    def decide(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """The participant's vote. When it fails and cannot be taken back, the next start reads what it was."""
        self.decided = xid
        try:
            self.participant.prepare(xid, expected, new)
            if self.log is not None:
                self.log.decide(xid, expected, new)
        except BaseException:
            if self.log is not None and self.log.has(xid):
                raise
            if self.participant.recover() == xid:
                self.participant.rollback_by_xid(xid)
            self.decided = ""
            raise


def commit_in_two_phases(
    target: Target,
    ledger: XaLedger,
    step: tuple[RelayLogInfo, RelayLogInfo],
    apply: Callable[[], None],
    *,
    foreign_keys: bool = True,
) -> None:
    """As transaction.commit_group. Tried again after an error past the decision, it finishes and does not apply."""
    expected, new = step
    xid = xid_of(ledger.prefix, new)
    if pending := ledger.pending():
        if pending != xid:
            raise TargetError(f"{pending} is decided and not finished", hint="rplctl start finishes it first")
        with ledger.guard():
            _finish_elsewhere(ledger, target.engine, xid)
        return
    ledger.begin(target, xid, foreign_keys=foreign_keys)
    try:
        crash_point("crash_before_update_pos")
        apply()
        crash_point("crash_after_apply")
        crash_point("crash_commit_before")
        ledger.verbs.prepare(target.connection)
        crash_point("crash_commit_after_prepare")
    except BaseException:
        _undo(target)
        raise
    with ExitStack() as held:
        if ledger.log is not None:
            held.enter_context(ledger.guard())  # nobody may see the log ahead of the target
        _decide(target, ledger, xid, step)
        if ledger.log is None:
            held.enter_context(ledger.guard())
        _carry_out(target, ledger, xid)
    crash_point("crash_commit_after")


def _decide(target: Target, ledger: XaLedger, xid: str, step: tuple[RelayLogInfo, RelayLogInfo]) -> None:
    try:
        ledger.decide(xid, *step)
    except BaseException:
        if ledger.pending():
            target.reconnect()  # leaves it prepared
        else:
            _undo(target)
        raise
    crash_point("crash_commit_after_log")


def _carry_out(target: Target, ledger: XaLedger, xid: str) -> None:
    """What is decided, on the connection that prepared it."""
    try:
        target.commit()
    except TargetError:
        target.reconnect()
        until_answered(lambda: _finish_elsewhere(ledger, target.engine, xid))
        return
    crash_point("crash_commit_between_engines")
    crash_point("crash_commit_before_unlog")
    ledger.participant.commit()
    ledger.decided = ""


def _finish_elsewhere(ledger: XaLedger, engine: Engine, xid: str) -> None:
    """The decided transaction, when its own connection did not say that it is committed."""
    ledger.verbs.commit_prepared(engine, xid)
    ledger.participant.commit_by_xid(xid)
    ledger.decided = ""


def _undo(target: Target) -> None:
    """Roll back; a branch that a deadlock has ended already lets nothing but a new connection help."""
    try:
        target.rollback()
    except TargetError:
        target.reconnect()


def open_two_phase(
    config: Config, channel: Channel, engine: Engine, repository: InfoRepository[RelayLogInfo]
) -> XaLedger | None:
    """The ledger of mode `xa`, None in another mode; in both, what a crash left between two phases is resolved.

    Raises ConfigError when two-phase commit is wanted and the target cannot do it, TargetError.
    """
    verbs, wanted = two_phase_verbs(engine.dialect.name), config.commit_mode == "xa"
    if verbs is None:
        if wanted:
            raise no_two_phase(engine.dialect.name)
        return None
    if not wanted and not instance_name(channel.datadir):
        return None
    weaknesses = verbs.check(engine) if wanted else []
    prefix = xid_prefix(channel)
    resolve_prepared(_participants(config, channel, engine, prefix), engine, prefix, verbs, _logged(config, channel))
    participant = _participant(config, channel, engine, repository, prefix) if wanted else None
    if not isinstance(participant, PagePosition):
        _forget_pages(config, channel)
    if not isinstance(participant, LogPosition):
        _forget_logged(config, channel, engine)
    if participant is None:
        return None
    for weakness in weaknesses:
        log.warning("commit_mode=xa: %s", weakness)
    return XaLedger(repository, participant, engine, prefix, verbs)


def resolve_prepared(
    participants: Sequence[PositionParticipant],
    engine: Engine,
    prefix: str,
    verbs: TwoPhaseVerbs,
    logged: str | None = None,
) -> None:
    """Commit what a participant decided, roll back what none did; first in the target, then the position.

    `logged`: the last transaction in the binary log, which decides where there is one (WL#5125 8): a position that
    was prepared before the log was written goes back, while the target still says that it was not committed. May be
    cut off anywhere and repeated: the decision is forgotten last.
    """
    decisions = {participant: participant.recover() for participant in participants}
    prepared = verbs.prepared_xids(engine, prefix)
    for participant, decision in decisions.items():
        if logged is not None and decision is not None and decision != logged and decision in prepared:
            participant.rollback_by_xid(decision)
            decisions[participant] = None
    for xid in prepared:
        if xid == logged or xid in decisions.values():
            verbs.commit_prepared(engine, xid)
            log.info("prepared transaction %s was decided and is committed", xid)
        else:
            verbs.rollback_prepared(engine, xid)
            log.info("prepared transaction %s was not decided and is rolled back", xid)
    crash_point("crash_recovery_between_engines")
    for participant, decision in decisions.items():
        if decision is not None:
            participant.commit_by_xid(decision)


def settle_prepared(config: Config, channel: Channel, engine: Callable[[], Engine]) -> None:
    """Before RelayLogInfo moves to another repository or goes: no prepared position may be left in the old one."""
    if not instance_name(channel.datadir):
        return
    file = open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, config, channel, engine)
    has_line = file.exists() and file.read().prepared is not None
    if not has_line and not pages_path(channel).exists() and not logged_path(channel).exists():
        return
    if (verbs := two_phase_verbs(engine().dialect.name)) is not None:
        prefix = xid_prefix(channel)
        found = _participants(config, channel, engine(), prefix)
        resolve_prepared(found, engine(), prefix, verbs, _logged(config, channel))
    _forget_pages(config, channel)
    _forget_logged(config, channel, engine())


def evict_predecessor(channel: Channel, engine: Engine) -> None:
    """Before the fence, under the channel's lock: an old connection of ours that hangs holds it, and prepared rows."""
    verbs = two_phase_verbs(engine.dialect.name)
    if verbs is not None and instance_name(channel.datadir):
        verbs.evict(engine, xid_prefix(channel))


def shown_mode(config: Config, ledger: Ledger) -> str:
    """For show-status: the mode, and why it is not the one that was asked for."""
    if config.commit_mode != "xa" or ledger.mode is CommitMode.XA:
        return ledger.mode.value
    if ledger.mode is CommitMode.TRANSACTION:
        return f"{ledger.mode.value} (not xa: the position is in the target's own transaction)"
    return f"{ledger.mode.value} (not xa: the position's table keeps nothing through a crash)"


def no_two_phase(kind: str) -> ConfigError:
    return ConfigError(
        f"commit_mode=xa: a target of kind {kind} cannot prepare a transaction",
        hint="commit_mode=auto keeps a FILE crash-safe with a marker row in the target",
    )


def pages_path(channel: Channel) -> Path:
    return channel.relay_log_info_path.with_suffix(".pages")


def logged_path(channel: Channel) -> Path:
    return channel.relay_log_info_path.with_suffix(".logged")


def _logged(config: Config, channel: Channel) -> str | None:
    """The transaction that the binary log ends with; None when it decides nothing. Raises ConfigError."""
    files = binary_log_files(config, channel)
    if files is None and logged_path(channel).exists():
        raise ConfigError(
            f"channel '{channel.name}' ended in a crash while its position was in the binary log, which log_bin no "
            "longer names",
            hint="start once with log_bin as it was",
        )
    record = logged_record(files)
    return record.xid if record else None


def _participant(
    config: Config, channel: Channel, engine: Engine, repository: InfoRepository[RelayLogInfo], prefix: str
) -> PositionParticipant | None:
    """None: the position needs no second phase, or cannot be decided on."""
    files = binary_log_files(config, channel)
    in_log = LogPosition(repository, files, logged_path(channel)) if files is not None else None
    if repository.kind is RepositoryKind.FILE:
        if config.prepared_position == "pages":
            return PagePosition(repository, pages_path(channel))
        if config.prepared_position == "binlog":
            return in_log or _no_log()
        return LinePosition(repository)
    if repository.is_transactional():
        return None
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        is_safe = engine_of(connection, RELAY_LOG_INFO.table).lower() in CRASH_SAFE_ENGINES
    if not is_safe:
        return None
    return in_log or RowPosition(repository, engine, prefix)  # a row cannot wait for the log's decision


def _no_log() -> PositionParticipant:
    raise ConfigError(
        "prepared_position=binlog: there is no binary log, log_bin is empty", hint="set log_bin, or prepared_position"
    )


def _participants(config: Config, channel: Channel, engine: Engine, prefix: str) -> list[PositionParticipant]:
    """All that may hold a decision, whatever the options say now."""
    file = open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, config, channel, lambda: engine)
    found: list[PositionParticipant] = [LinePosition(file)]
    if pages_path(channel).exists():
        found.append(PagePosition(file, pages_path(channel)))
    files = binary_log_files(config, channel)
    if files is not None and logged_path(channel).exists():
        stored = open_repository(RELAY_LOG_INFO, RELAY_LOG_INFO.kind(config), config, channel, lambda: engine)
        found.append(LogPosition(stored, files, logged_path(channel)))
    elif RELAY_LOG_INFO.kind(config) is RepositoryKind.TABLE:
        table = open_repository(RELAY_LOG_INFO, RepositoryKind.TABLE, config, channel, lambda: engine)
        found.append(RowPosition(table, engine, prefix))
    return found


def _forget_pages(config: Config, channel: Channel) -> None:
    """Bring relay-log.info to what the shadow-page file says and remove that."""
    path = pages_path(channel)
    if path.exists():
        file = open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, replace(config), channel, _no_engine)
        pages = PagePosition(file, path)
        pages.close(pages.open())


def _forget_logged(config: Config, channel: Channel, engine: Engine) -> None:
    """Bring the repository to what the binary log says and do without it from here on."""
    path, files = logged_path(channel), binary_log_files(config, channel)
    if path.exists() and files is not None:
        stored = open_repository(RELAY_LOG_INFO, RELAY_LOG_INFO.kind(config), config, channel, lambda: engine)
        position = LogPosition(stored, files, path)
        position.close(position.open())


def _no_engine() -> Engine:
    raise AssertionError("a FILE asks no engine")
