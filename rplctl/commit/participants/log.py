"""Reads the position from the last record of the binary log of applied transactions (WL#5125 variant 1).

This participant needs `log_bin` and prepared_position=binlog. As soon as the record of a transaction is durable, the
transaction is decided. The repository is written after this, without an fsync. Invariant: the repository has the
position of the record or an earlier one. An empty file, `flag`, shows that the record has the valid position. The file
exists while an applier runs, and after a crash. Without the file, the repository has the valid position.
"""

from __future__ import annotations

from pathlib import Path

from rplctl.applied_log.end import logged_record
from rplctl.applied_log.files import BinaryLogFiles
from rplctl.applied_log.record import PositionRecord
from rplctl.commit.participants.base import PositionParticipant
from rplctl.commit.step import taken_over
from rplctl.durable import remove_file, replace_file
from rplctl.errors import RplError
from rplctl.info import RelayLogInfo
from rplctl.repository.base import InfoRepository


class BinlogParticipant(PositionParticipant):
    def __init__(self, repository: InfoRepository[RelayLogInfo], files: BinaryLogFiles, flag: Path) -> None:
        super().__init__(repository)
        self._files = files
        self._flag = flag
        self._new: RelayLogInfo | None = None  # the position after the current transaction

    def open(self) -> RelayLogInfo:
        info = self._repository.read()
        record = self._record()
        if record is not None and info.exec_position.is_before(record.after.exec_position):
            info = info.moved_to(record.after)
        self._repository.flush(info, force=True)  # the file may have been written without an fsync
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
        """Do nothing, because `prepare` has written nothing."""

    def recover(self) -> str | None:
        """Return the name of the last transaction in the binary log. Return None if the file `flag` is missing.

        The target may have committed the transaction already. The result is also None if the last record in the log
        has no name, because its transaction was not prepared.
        """
        record = self._record()
        return (record.xid or None) if record else None

    def commit_by_xid(self, xid: str) -> None:
        record = self._record()
        info = self._repository.read()
        if record is not None and record.xid == xid and info.is_at(record.before):
            self.write(info.moved_to(record.after), durable=True)

    def rollback_by_xid(self, xid: str) -> None:
        if self.recover() == xid:
            raise RplError(f"the binary log contains {xid}, which must be committed, not rolled back")

    def close(self, last: RelayLogInfo) -> None:
        if self._repository.read().is_at(last):  # otherwise, the next start finishes a decided transaction
            self._repository.flush(last, force=True)
            remove_file(self._flag)

    def _record(self) -> PositionRecord | None:
        return logged_record(self._files) if self._flag.exists() else None
