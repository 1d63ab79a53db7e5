"""The position as a participant of two-phase commit: prepare, commit, rollback, recover (WL#3970).

    LinePosition     FILE: a `prepared:` line behind relay-log.info's record, replaced with the whole file
    PagePosition     FILE, prepared_position=pages: a shadow-page file beside relay-log.info, which follows it
    RowPosition      TABLE in another engine than the data that keeps each statement through a crash (Aria): the row is
                     the last participant, and writing it is prepare and commit in one (WL#5125 variant 5)

    LogPosition      `log_bin` and prepared_position=binlog: the binary log's last record, which the repository follows
                     (WL#5125 variant 1)

It votes last, but for the binary log, whose record is the decision where there is one: `prepare` durable is the
decision, so a prepared transaction in the target is committed if `recover` names it, else rolled back. Invariant: only
`commit` and `commit_by_xid` move the position, to the prepared name *and* offset (the worklog's draft kept the old
name); `rollback` never does. That is the rollback of a stopped or failed transaction; the logged ROLLBACK of a group
that changed tables without transactions is a change like others, whose position follows it (`commit_after`).
fsyncs of a LinePosition: two in `prepare`, for the file and its name. None in `commit`: until the next `prepare` the
last durable file says `prepared`, and the target that the transaction is gone from its list, which means the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine

from rplctl.applied_log.end import logged_record
from rplctl.applied_log.files import BinaryLogFiles
from rplctl.commit.position_store import taken_over
from rplctl.commit.xid import number_of, xid_of
from rplctl.durable import remove_file, replace_file
from rplctl.errors import RplError
from rplctl.info import PreparedPosition, RelayLogInfo
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.lines import format_relay_log_info, parse_relay_log_info
from rplctl.repository.shadow_page import ShadowPageFile
from rplctl.repository.table import compare_and_swap
from rplctl.target import mapped_errors


class PositionParticipant(Protocol):
    """One channel's position. `xid` is a name of xid.py."""

    def open(self) -> RelayLogInfo:
        """The committed record, at start, after `recover` was answered."""
        ...

    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        """Make the step durable. Raises LockBusy when the stored position is not `expected`, RplError, TargetError."""
        ...

    def commit(self) -> None:
        """The prepared position is the position. Cannot fail the transaction any more: it is decided."""
        ...

    def rollback(self) -> None:
        """Forget what was prepared, the position stays; nothing prepared is fine. Before the target's rollback."""
        ...

    def recover(self) -> str | None:
        """The transaction whose decision is stored."""
        ...

    def commit_by_xid(self, xid: str) -> None:
        """As `commit`, by name; another name than that of `recover` changes nothing."""
        ...

    def rollback_by_xid(self, xid: str) -> None:
        """As `rollback`, by name. Raises RplError for another name than that of `recover`."""
        ...

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        """Without a prepare: for groups in which some participant cannot do two-phase commit."""
        ...

    def close(self, last: RelayLogInfo) -> None:
        """The channel stops in an orderly way: the repository alone says everything."""
        ...


class LinePosition:
    """FILE in line format."""

    def __init__(self, repository: InfoRepository[RelayLogInfo]) -> None:
        self._repository = repository

    def open(self) -> RelayLogInfo:
        return self._repository.read()

    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        stored = self._repository.read()
        if not stored.is_at(expected) or stored.prepared is not None:
            raise taken_over(expected)
        self._repository.flush(replace(expected, prepared=prepared_position(xid, new)), force=True)

    def commit(self) -> None:
        self._finish(_committed(self._repository.read()), durable=False)

    def rollback(self) -> None:
        stored = self._repository.read()
        if stored.prepared is not None:
            self._finish(replace(stored, prepared=None), durable=True)

    def recover(self) -> str | None:
        prepared = self._repository.read().prepared if self._repository.exists() else None
        return prepared.xid if prepared else None

    def commit_by_xid(self, xid: str) -> None:
        if self.recover() == xid:
            self._finish(_committed(self._repository.read()), durable=True)

    def rollback_by_xid(self, xid: str) -> None:
        refuse_other_xid(xid, self.recover())
        self.rollback()

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        self._finish(info, durable=durable)

    def close(self, last: RelayLogInfo) -> None:
        stored = self._repository.read()
        if stored.prepared is None:  # else it is decided and may not be forgotten: the next start carries it out
            self._finish(last, durable=True)

    def _finish(self, info: RelayLogInfo, *, durable: bool) -> None:
        self._repository.flush(info, force=durable, events=0)


class PagePosition:
    """FILE, its positions prepared in a shadow-page file; relay-log.info follows, as if behind a marker.

    The file is there while an applier runs and after a crash only: it is then ahead of relay-log.info, or equal.
    """

    def __init__(self, repository: InfoRepository[RelayLogInfo], path: Path) -> None:
        self._repository = repository
        self._pages = ShadowPageFile(path)
        self._is_open = False

    def open(self) -> RelayLogInfo:
        info = self._repository.read()
        if self._load():
            committed = parse_relay_log_info(self._pages.record)
            if info.exec_position.is_before(committed.exec_position):
                info = replace(committed, channel_name=info.channel_name)
                self._repository.flush(info, force=True)
            self._pages.remove()
        self._pages.create(format_relay_log_info(info))
        self._is_open = True
        return info

    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        if not parse_relay_log_info(self._pages.record).is_at(expected):
            raise taken_over(expected)
        if not self._repository.read().is_at(expected):
            raise taken_over(expected)
        record = format_relay_log_info(replace(new, prepared=prepared_position(xid, new)))
        if not self._pages.fits(record):
            self._pages.create(format_relay_log_info(expected), room=2 * len(record))
        self._pages.update(record)
        self._pages.prepare(number_of(xid))

    def commit(self) -> None:
        self._pages.commit()
        self._repository.flush(self._committed(), force=False, events=0)

    def rollback(self) -> None:
        if self._load():
            self._pages.rollback()

    def recover(self) -> str | None:
        prepared = self._pages.prepared if self._load() else None
        if prepared is None:
            return None
        stored = parse_relay_log_info(prepared.record).prepared
        assert stored is not None
        return stored.xid

    def commit_by_xid(self, xid: str) -> None:
        if self.recover() == xid:
            self._pages.commit()
            self._repository.flush(self._committed(), force=True)

    def rollback_by_xid(self, xid: str) -> None:
        refuse_other_xid(xid, self.recover())
        self.rollback()

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        self._repository.flush(info, force=durable, events=0)
        self._pages.create(format_relay_log_info(info))

    def close(self, last: RelayLogInfo) -> None:
        if self.recover() is None:
            self._repository.flush(last, force=True)
            self._pages.remove()

    def _committed(self) -> RelayLogInfo:
        return replace(parse_relay_log_info(self._pages.record), prepared=None)

    def _load(self) -> bool:
        if not self._is_open:
            try:
                self._pages.open()
            except FileNotFoundError:
                return False
            self._is_open = True
        return True


class RowPosition:
    """TABLE in another engine: one UPDATE on a connection of its own, after the target has prepared."""

    def __init__(self, repository: InfoRepository[RelayLogInfo], engine: Engine, prefix: str) -> None:
        self._repository = repository
        self._engine = engine
        self._prefix = prefix

    def open(self) -> RelayLogInfo:
        return self._repository.read()

    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            moved = compare_and_swap(connection, expected, new)
        if not moved:
            raise taken_over(expected)

    def commit(self) -> None:
        """Nothing: the row says it."""

    def rollback(self) -> None:
        """Nothing: a row that was written is the decision."""

    def recover(self) -> str | None:
        """The name of the transaction that led to the row's position, committed long ago or not."""
        return xid_of(self._prefix, self._repository.read()) if self._repository.exists() else None

    def commit_by_xid(self, xid: str) -> None:
        """Nothing: the row says it."""

    def rollback_by_xid(self, xid: str) -> None:
        if self.recover() == xid:
            raise RplError(f"{self._repository.where} holds the position of {xid}: it is committed, not rolled back")

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        self._repository.flush(info, force=True)

    def close(self, last: RelayLogInfo) -> None:
        """Nothing: the row says it."""


class LogPosition:
    """The record is durable with the decision, so the repository need not be: it is behind, or equal.

    An empty file `flag` is there while an applier runs and after a crash only; without it the repository alone counts.
    """

    def __init__(self, repository: InfoRepository[RelayLogInfo], files: BinaryLogFiles, flag: Path) -> None:
        self._repository = repository
        self._files = files
        self._flag = flag
        self._new: RelayLogInfo | None = None  # of the transaction in work

    def open(self) -> RelayLogInfo:
        info = self._repository.read()
        record = logged_record(self._files) if self._flag.exists() else None
        if record is not None and info.exec_position.is_before(record.after.exec_position):
            info = record.moved(info)
        self._repository.flush(info, force=True)  # what it says may have been in no disk's hands yet
        replace_file(self._flag, b"")
        return info

    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        if not self._repository.read().is_at(expected):
            raise taken_over(expected)
        self._new = new

    def commit(self) -> None:
        assert self._new is not None
        self.write(self._new, durable=False)

    def rollback(self) -> None:
        """Nothing: nothing was written."""

    def recover(self) -> str | None:
        """The log's last transaction, committed long ago or not."""
        record = logged_record(self._files) if self._flag.exists() else None
        return (record.xid or None) if record else None

    def commit_by_xid(self, xid: str) -> None:
        record = logged_record(self._files) if self._flag.exists() else None
        info = self._repository.read()
        if record is not None and record.xid == xid and info.is_at(record.before):
            self.write(record.moved(info), durable=True)

    def rollback_by_xid(self, xid: str) -> None:
        if self.recover() == xid:
            raise RplError(f"the binary log holds {xid}: it is committed, not rolled back")

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        is_table = self._repository.kind is RepositoryKind.TABLE  # has no cache of the system to be written into
        self._repository.flush(info, force=durable or is_table, events=0)

    def close(self, last: RelayLogInfo) -> None:
        if self._repository.read().is_at(last):  # else a transaction is decided, and the next start carries it out
            self._repository.flush(last, force=True)
            remove_file(self._flag)


def prepared_position(xid: str, new: RelayLogInfo) -> PreparedPosition:
    return PreparedPosition(xid, new.relay_log_position, new.exec_position, new.gtid_executed)


def _committed(info: RelayLogInfo) -> RelayLogInfo:
    prepared = info.prepared
    if prepared is None:
        return info
    moved = info.at(prepared.relay, prepared.source)
    return replace(moved, gtid_executed=prepared.gtid_executed, prepared=None)


def refuse_other_xid(xid: str, stored: str | None) -> None:
    if xid != stored:
        raise RplError(f"{xid} is not the prepared position ({stored or 'there is none'})")
