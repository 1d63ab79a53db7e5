"""Stores the prepared position in the file relay-log.info, as a line `prepared:` after the record.

Each change replaces the whole file. `prepare` needs two fsyncs, one for the file and one for its name in the folder.
`commit` does no fsync, so the last durable file may still have the line `prepared:` after a commit. If the target no
longer has the prepared transaction at the next start, the transaction was committed.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.commit.participants.base import PositionParticipant, prepared_position
from rplctl.commit.step import taken_over
from rplctl.info import RelayLogInfo


class LinePosition(PositionParticipant):
    """The participant that stores the position in relay-log.info, a file in line format."""

    def prepare(self, xid: str, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        stored = self._repository.read()
        if not stored.is_at(expected) or stored.prepared is not None:
            raise taken_over(expected)
        self._repository.flush(replace(expected, prepared=prepared_position(xid, new)), force=True)

    def commit(self) -> None:
        self.write(_committed(self._repository.read()), durable=False)

    def rollback(self) -> None:
        stored = self._repository.read()
        if stored.prepared is not None:
            self.write(replace(stored, prepared=None), durable=True)

    def recover(self) -> str | None:
        prepared = self._repository.read().prepared if self._repository.exists() else None
        return prepared.xid if prepared else None

    def commit_by_xid(self, xid: str) -> None:
        if self.recover() == xid:
            self.write(_committed(self._repository.read()), durable=True)

    def close(self, last: RelayLogInfo) -> None:
        stored = self._repository.read()
        if stored.prepared is None:  # a decided transaction must be kept for the next start
            self.write(last, durable=True)


def _committed(info: RelayLogInfo) -> RelayLogInfo:
    prepared = info.prepared
    if prepared is None:
        return info
    moved = info.at(prepared.relay, prepared.source)
    return replace(moved, gtid_executed=prepared.gtid_executed, prepared=None)
