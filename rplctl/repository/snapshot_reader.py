"""The records of many channels read at once, for who holds locks meanwhile (WL#9452): FILE or TABLE, each as it is.

What may take long comes at the beginning: connecting, a table's definition, the first use of a statement, every record
once. `expire` ends that; the next `find` asks anew: one statement a table for all channels of a target, one read a
file. What is byte for byte as it was is not taken apart again.
Invariant: after `expire` a record is as old as the first `find` at most. For one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.repository.base import Info, RepositoryKind
from rplctl.repository.file import FileRepository
from rplctl.repository.record import Record

if TYPE_CHECKING:
    from rplctl.repository.table import TableReader


def open_records(
    record: Record[Info], configs: Mapping[str, Config], reader: Callable[[Config], TableReader]
) -> RecordsAtOnce[Info]:
    """`configs`: channel → its options, which say FILE or TABLE; `reader` gives the one of a channel's target and is
    called at the first TABLE there. Raises what `find` does, TargetError.
    """
    records = RecordsAtOnce(record, configs, reader)
    for name in configs:
        records.find(name)
    records.expire()
    return records


class RecordsAtOnce(Generic[Info]):
    """Records of many channels, read together by `open_records`."""

    def __init__(
        self, record: Record[Info], configs: Mapping[str, Config], reader: Callable[[Config], TableReader]
    ) -> None:
        self._record: Record[Info] = record
        self._known: dict[str, tuple[Any, Info | None]] = {}
        self._files: dict[str, FileRepository[Info]] = {}
        self._readers: dict[str, TableReader] = {}
        self._has_table: dict[TableReader, bool] = {}
        self._rows: dict[TableReader, dict[str, Any]] = {}
        for name, config in configs.items():
            if record.kind(config) is RepositoryKind.FILE:
                channel = Channel(name, config.datadir)
                self._files[name] = FileRepository(record, channel, record.sync_period(config))
                continue
            its = self._readers[name] = reader(config)
            if its not in self._has_table:
                self._has_table[its] = its.check(record, name)

    def expire(self) -> None:
        """Mark everything that was read as out of date."""
        self._rows.clear()
        for reader in self._has_table:
            reader.end()

    def find(self, name: str) -> Info | None:
        """None when there is no record, or no table. Raises what its repository's `read` raises besides."""
        file = self._files.get(name)
        stored = file.load() if file else self._row(name)
        if name not in self._known or self._known[name][0] != stored:
            info = file.parsed(stored) if file else self._readers[name].parsed(self._record, name, stored)
            self._known[name] = stored, info
        return self._known[name][1]

    def _row(self, name: str) -> Any:
        reader = self._readers[name]
        if reader not in self._rows:
            self._rows[reader] = reader.rows(self._record) if self._has_table[reader] else {}
        return self._rows[reader].get(name.casefold())
