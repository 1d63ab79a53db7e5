"""A channel in one process, all of it real but Spark: archive, receiver, relay logs, repositories, ledger, target.

The archive is two binary logs of FakeSource transactions; the target's `probe` has a row for each transaction that was
applied, as often as it was applied, so whatever is done to the channel `numbers()` says what was lost or came twice.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import engine_of, one_engine, open_repositories
from rplctl.command.process.preparation import prepare
from rplctl.command.process.start_request import StartRequest
from rplctl.commit.position_store import open_position_store, opened
from rplctl.commit.step import CommitStep
from rplctl.commit.transaction import commit_group
from rplctl.config import Config, load_config
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.header import BINLOG_MAGIC
from rplctl.event.scan import GroupKind
from rplctl.event.types import EventType
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.option_file import store_options
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.receiver.receiver import Receiver
from rplctl.repository import create_tables, open_master_info
from rplctl.source.base import DumpStart, EventBatch, SourceIdentity
from rplctl.source.binlog_folder import FolderStream
from rplctl.target import open_target
from tests.relay_log.stream import SOURCE_UUID, FakeSource

PER_LOG = 4
TRANSACTIONS = 2 * PER_LOG


@dataclass
class Archive:
    """The source's logs, PREVIOUS_GTIDS included."""

    folder: Path
    source: FakeSource = field(default_factory=FakeSource)

    def fill(self) -> None:
        self._begin("binlog.000001", 0)
        for _ in range(PER_LOG):
            self._append(self.source.transaction())
        self._append(self.source.event(EventType.ROTATE, struct.pack("<Q", 4) + b"binlog.000002"))
        self._begin("binlog.000002", PER_LOG)
        for _ in range(PER_LOG):
            self._append(self.source.transaction())

    def _begin(self, name: str, executed: int) -> None:
        length = len(self.source.description(0))
        self.source.position = BinlogPosition(name, 4 + length)
        self._append(BINLOG_MAGIC + self.source.description(end_log_pos=4 + length))
        sets = SOURCE_UUID.bytes + struct.pack("<QQQ", 1, 1, executed + 1) if executed else b""
        self._append(self.source.event(EventType.PREVIOUS_GTIDS, struct.pack("<Q", bool(executed)) + sets))

    def _append(self, data: bytes) -> None:
        with (self.folder / self.source.position.log_name).open("ab") as file:
            file.write(data)

    def end_of(self, number: int) -> BinlogPosition:
        """Where that many transactions end."""
        return self.source.ends[number - 1] if number else BinlogPosition("binlog.000001", 4)

    def count_to(self, position: BinlogPosition) -> int:
        return sum(not position.is_before(end) for end in self.source.ends)


class Limited:
    """`SourceStream` that ends the receiver after so many transactions, or when there is no more."""

    def __init__(self, stream: FolderStream, receiver: Receiver, wanted: int) -> None:
        self._stream, self._receiver, self._left = stream, receiver, wanted
        self._batch: EventBatch | None = None
        self._next = 0

    def identity(self) -> SourceIdentity:
        return self._stream.identity()

    def close(self) -> None:
        self._stream.close()

    def read_batch(self, timeout_s: float) -> EventBatch | None:
        del timeout_s
        if self._batch is None or self._next == len(self._batch):
            self._batch, self._next = self._stream.read_batch(0), 0
        if self._batch is None or self._left <= 0:
            self._receiver.stop()
            return None
        first, batch = self._next, self._batch
        while self._next < len(batch) and self._left:
            self._left -= int(batch.data[batch.offsets[self._next] + 4]) == EventType.XID
            self._next += 1
        start, end = int(batch.offsets[first]), int(batch.offsets[self._next])
        return EventBatch(batch.data[start:end], batch.offsets[first : self._next + 1] - start)


class Life:
    """One instance folder with its archive; `fork` continues a copy of it."""

    def __init__(self, folder: Path, archive: Archive) -> None:
        self.folder, self.archive = folder, archive
        self.channel = Channel("", folder)

    @classmethod
    def begin(cls, folder: Path, archive: Archive, changes: MasterChanges, **options: Any) -> Life:
        folder.mkdir()
        life = cls(folder, archive)
        store_options(folder, "", {"server_id": 2, "target": f"sqlite:///{folder / 'target.db'}", **options})
        target = open_target(life.config.target_url)
        create_own_tables(target.engine)
        create_tables(target.engine, "")
        with target.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE probe (seq INTEGER)")
        target.close()
        life.change(replace(changes, master_binlog_dir=str(archive.folder)))
        return life

    def fork(self, folder: Path) -> Life:
        shutil.copytree(self.folder, folder)
        options = (folder / "rplctl.toml").read_text().replace(str(self.folder), str(folder))
        (folder / "rplctl.toml").write_text(options)
        return Life(folder, self.archive)

    @property
    def config(self) -> Config:
        return load_config(self.folder)

    def change(self, changes: MasterChanges) -> None:
        with one_engine():
            change_master(self.config, "", changes)

    def records(self) -> tuple[MasterInfo, RelayLogInfo]:
        with self.opened() as repositories:
            return repositories.master_info.read(), repositories.relay_log_info.read()

    @contextmanager
    def opened(self) -> Iterator[Any]:
        with one_engine():
            yield open_repositories(self.config, "")

    def receive(self, transactions: int = 1 << 30) -> DumpStart:
        """One run of the receiver; where it began."""
        receiver = Receiver(self.config, self.channel)
        begun: list[DumpStart] = []

        def opened(_info: MasterInfo, _password: str, start: DumpStart, *_: object) -> Limited:
            begun.append(start)
            return Limited(FolderStream(self.archive.folder, self.archive.folder, start), receiver, transactions)

        with (
            patch("rplctl.receiver.receiver.open_source", opened),
            patch("rplctl.receiver.receiver.is_compiled", lambda: True),
            patch("rplctl.receiver.receiver.signals_to", lambda *_: nullcontext()),
        ):
            receiver.run()
        return begun[0]

    def apply(self, transactions: int = 1 << 30) -> None:
        """One run of the applier: that many transactions, or all there are."""
        config = self.config
        target = open_target(config.target_url)
        try:
            create_own_tables(target.engine)
            store = open_position_store(config, self.channel, target.engine)
            info = opened(store, self.channel)
            by_gtid = self._reads_by_gtid(target.engine)
            feed = RelayFeed(self.channel, 0, by_gtid=by_gtid)
            while transactions and (groups := feed.next(info, 1 << 20)) is not None:
                for number in range(len(groups.scan)):
                    if not transactions:
                        break
                    is_one = groups.scan.kind[number] != GroupKind.CONTROL
                    transactions -= is_one
                    new = info.at(
                        RelayLogPosition(groups.log_name, int(groups.scan.end[number])),
                        groups.scan.source_position(number),
                    )
                    seq = self._number_of(groups.data, groups.scan, number) if is_one else 0
                    if seq:
                        new = replace(new, gtid_executed=self._with(info.gtid_executed, seq))

                    def insert(seq: int = seq) -> None:
                        if seq:
                            target.connection.exec_driver_sql(f"INSERT INTO probe VALUES ({seq})")

                    commit_group(target, store, CommitStep(info, new), insert)
                    store.committed(new)
                    info = new
            store.close(info)
        finally:
            target.close()

    def _reads_by_gtid(self, engine: Any) -> bool:
        return open_master_info(self.config, self.channel, lambda: engine).read().uses_gtid

    @staticmethod
    def _number_of(data: Any, scan: Any, number: int) -> int:
        """The transaction's own number, which its GTID holds."""
        at = int(scan.gtid_offset[number]) + 19 + 17
        return int.from_bytes(data[at : at + 8].tobytes(), "little")

    @staticmethod
    def _with(executed: str, seq: int) -> str:
        return str(MysqlGtidSet.parse(executed).union(MysqlGtidSet.parse(f"{SOURCE_UUID}:{seq}")))

    def go_on(self) -> None:
        """What start does: finish what was cut off, receive and apply all there is."""
        with one_engine():
            prepare(self.config, self.channel, StartRequest())
        self.receive()
        self.apply()

    def numbers(self) -> list[int]:
        """Of the transactions in the target, in the order of their application."""
        engine = engine_of(self.config)()
        with engine.connect() as connection:
            found = [row[0] for row in connection.exec_driver_sql("SELECT seq FROM probe ORDER BY rowid")]
        engine.dispose()
        return found
