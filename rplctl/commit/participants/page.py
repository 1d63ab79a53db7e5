"""Stores the prepared and the committed position in a shadow-page file (`prepared_position=pages`).

relay-log.info is written after each commit, but without an fsync. Invariant: the shadow-page file exists while an
applier runs, and after a crash. relay-log.info then has the same committed position or an earlier one.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rplctl.commit.participants.base import PositionParticipant, prepared_position
from rplctl.commit.step import taken_over
from rplctl.commit.xid import number_of
from rplctl.info import RelayLogInfo
from rplctl.repository.base import InfoRepository
from rplctl.repository.lines import format_relay_log_info, parse_relay_log_info
from rplctl.repository.shadow_page import ShadowPageFile


class PagePosition(PositionParticipant):
    """The participant that stores the position in a shadow-page file, next to relay-log.info."""

    def __init__(self, repository: InfoRepository[RelayLogInfo], path: Path) -> None:
        super().__init__(repository)
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
        stored = parse_relay_log_info(self._pages.record), self._repository.read()
        if not all(info.is_at(expected) for info in stored):
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

    def write(self, info: RelayLogInfo, *, durable: bool) -> None:
        super().write(info, durable=durable)
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
