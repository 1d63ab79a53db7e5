"""Read the records of many channels at once, so fast that the caller can hold locks meanwhile (WL#9452).

`open_records` does the slow steps, before the caller takes its locks: it connects to the targets, checks the definition
of each repository table, and reads every record once. After `expire`, the next `find` reads the records again. One
statement reads the records of all channels in a repository table. A record in a file is read from the file. A record is
parsed again only if its bytes have changed.

Invariant: after `expire`, `find` returns no record that was read before it. Only one thread may use these objects.
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
    """Open the records of the channels, and read each record once.

    `configs`: the name of a channel → its options, which name FILE or TABLE. `reader`: returns the reader for the
    target that the options of a channel name. It is called only for channels that use a TABLE. Raises TargetError if a
    target does not answer, and the errors of `find`.
    """
    records = RecordsAtOnce(record, configs, reader)
    for name in configs:
        records.find(name)
    records.expire()
    return records


class RecordsAtOnce(Generic[Info]):
    """The records of one kind, MasterInfo or RelayLogInfo, of many channels, with few accesses to files and targets."""

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
        """Mark everything that was read as out of date, so that the next `find` reads again."""
        self._rows.clear()
        for reader in self._has_table:
            reader.end()

    def find(self, name: str) -> Info | None:
        """Return the record of the channel, or None if there is no record or no table.

        Raises RplError 1201 (MasterInfo) or 1872 (RelayLogInfo) if the record is damaged, and the other errors of
        reading a repository.
        """
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
