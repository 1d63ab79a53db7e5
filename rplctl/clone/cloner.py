"""The reading end of a copy: family by family of the plan, one snapshot each, its rows into chunk files.

It works beside the receiver, in that process and on a session of its own: it stops and starts with it, and what stops
the copy never stops the receiver. Invariant: all chunk files of a snapshot show the source at one place of its log, L =
H (`source.snapshot`'s exact step); a table whose definition changes before all of it is read makes the family begin
again. No lock is taken; between two chunks not even a DDL statement waits for us.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.clone.bounds import Chunk, chunk_key, chunks, condition
from rplctl.clone.chunk_file import ChunkHead, Place, digest_of, write_chunk
from rplctl.clone.folder import CloneFolder, CopiedTable, Plan, Snapshot
from rplctl.clone.report import CloneReport
from rplctl.clone.throttle import Throttle
from rplctl.config import Config
from rplctl.errors import RplError, SourceError, file_error
from rplctl.failpoint import crash_point
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.repository import open_master_info
from rplctl.result_set.columns import SESSION, quote, selected_columns
from rplctl.schema.source_catalog import read_table
from rplctl.schema.statement import TableName
from rplctl.secret import reveal
from rplctl.source.select import SelectedRows
from rplctl.source.snapshot import LogPlace, Step, gtids_at, snapshot, step_of
from rplctl.source.survey import Query, log_end, session, survey
from rplctl.target import dialect_of, open_engine, target_kind

if TYPE_CHECKING:
    from sqlalchemy import Engine

CHUNK_BYTES: Final = 16 << 20  # of a chunk, by what the source says of a table's rows
MOST_WAITING: Final = 2 << 30  # bytes of chunk files that are not loaded yet
MOST_AHEAD: Final = 20  # snapshots that are not loaded yet
LEFT_FREE: Final = 1 << 30  # bytes of the disk at most, or a tenth
_POLL_S: Final = 0.5
_SETTLE_S: Final = 0.1
_FULL: Final = "Waiting: the applier has not loaded what is read"
_PAUSE_S: Final = 5.0  # after an error of the source
_AGAIN: Final = "see receiver.log; rplctl stop and rplctl start go on with it"
_GONE: Final = frozenset({er.NO_SUCH_TABLE, er.BAD_DB_ERROR})

log = logging.getLogger("rplctl.cloner")


class _BeginAgain(Exception):
    """What was read of a family is no longer one snapshot of it."""


class _Stopped(Exception): ...


class Cloner:
    def __init__(self, config: Config, channel: Channel, stop: threading.Event) -> None:
        self.stop = stop
        self._config, self._channel = config, channel
        self._folder = CloneFolder(channel)
        self._report = CloneReport(channel)
        self._throttle = Throttle(channel, stop, lambda text: self._report.state(text) if text else None)

    def run(self) -> None:
        for begun in self._folder.snapshots():
            if begun.chunk_counts() is None:  # its session ended with the process that read it
                begun.remove()
        while not self.stop.wait(_POLL_S):
            try:
                self._read_what_is_missing()
            except _Stopped:
                return
            except _BeginAgain as reason:
                log.info("%s: read again", reason)
            except (RplError, OSError) as error:  # a full disk, too: the receiver goes on
                shown = file_error(error) if isinstance(error, OSError) else error
                log.warning("the copy waits %g s: %s%s", _PAUSE_S, shown.message, f" ({shown.hint})" * bool(shown.hint))
                self._report.failed(shown)
                self.stop.wait(_PAUSE_S)
            except Exception as error:  # the thread boundary: no error ends the copy unseen
                self._report.failed(RplError(f"the copy ended unexpectedly: {type(error).__name__}", hint=_AGAIN))
                log.error("the copy ends with an unexpected error; rplctl stop and rplctl start go on with it")
                raise

    def _read_what_is_missing(self) -> None:
        plan = self._folder.read_plan()
        if not plan:
            return self._report.state("")
        there = {found.family for found in self._folder.snapshots()}
        for family in plan:
            if family not in there:
                while len(self._folder.snapshots()) >= MOST_AHEAD and not self.stop.wait(_POLL_S):
                    self._report.state(_FULL)
                self._wait_for_room()
                self._read(family, plan)

    def _read(self, family: int, plan: Plan) -> None:
        info = self._master_info()
        password = reveal(info.user_password, self._config.datadir)
        address = f"{info.user_name}@{info.host}:{info.port}"
        begun: Snapshot | None = None
        with (
            session(info, password, self._config) as (mysql, query),
            survey(info, password, self._config) as about,  # SESSION gives names in their columns' character sets
        ):
            query(SESSION)
            self._report.step((step := step_of(query)).value)
            if step is not Step.EXACT:
                raise SourceError(
                    f"{address} does not tell the position of a snapshot, and a copy without is not made yet",
                    hint="MariaDB and Percona Server do: INITIAL COPY in rplctl(1) shows the way with a dump",
                )
            try:
                self._folder.hold()
                self.stop.wait(_SETTLE_S)  # what the applier has in hand is from before the snapshot
                end = log_end(query)
                with snapshot(query, Step.EXACT, LogPlace(None), 0) as held:
                    found = []
                    for name in plan[family]:
                        found.append(self._table(query, about, name))
                        self._folder.hold()
                    tables = [table for table in found if table is not None]
                    low = _place(query, held.low, end)
                    begun = self._folder.claim(family, time.time_ns() // 1000, low, tables)
                    crash_point("crash_clone_after_claim")
                    self._folder.let_go()
                    log.info("family %d at %s: %s", family, low.position, ", ".join(".".join(t.name) for t in tables))
                    takes_numbers = dialect_of(target_kind(self._config.target_url)).executes_statements
                    select = partial(SelectedRows, mysql, address=address)
                    rows = _Reader(
                        query,
                        about,
                        select,
                        begun,
                        self._wait_for_room,
                        self._throttle,
                        self._report,
                        takes_numbers=takes_numbers,
                    )
                    begun.complete([rows.read(number) for number in range(len(tables))])
            except BaseException as error:
                self._folder.let_go()
                if begun is not None:
                    begun.remove()
                if isinstance(error, SourceError) and error.errno == er.TABLE_DEF_CHANGED:
                    raise _BeginAgain(error.message) from error
                if begun is not None and isinstance(error, FileNotFoundError):
                    raise _BeginAgain(f"the applier was beyond {begun.low.position}") from error
                raise

    def _master_info(self) -> MasterInfo:
        """By a connection of our own, where it is in a table."""
        with ExitStack() as opened:

            def engine() -> Engine:
                made = open_engine(self._config.target_url)
                opened.callback(made.dispose)
                return made

            return open_master_info(self._config, self._channel, engine).read()

    def _table(self, query: Query, about: Query, name: TableName) -> CopiedTable | None:
        """None: it is gone. It cannot be altered between the two questions."""
        try:
            with _released(query):
                query(f"SELECT 1 FROM {quote(name[0])}.{quote(name[1])} LIMIT 1")
                return CopiedTable(*read_table(about, *name))
        except SourceError as error:
            if error.errno not in _GONE:
                raise
            return None

    def _wait_for_room(self) -> None:
        while not self.stop.is_set() and (reason := self._lacks_room()):
            self._report.state(reason)
            self.stop.wait(_POLL_S)
        if self.stop.is_set():
            raise _Stopped

    def _lacks_room(self) -> str:
        """Why a chunk has to wait. Some of the disk is left to the relay logs: the receiver comes first."""
        if self._folder.size() > MOST_WAITING:
            return _FULL
        usage = shutil.disk_usage(self._channel.run_folder)
        if usage.free < min(LEFT_FREE, usage.total // 10) + CHUNK_BYTES:
            return f"Waiting: {usage.free >> 20} MiB are free in {self._channel.datadir}"
        return ""


class _Reader:
    """Of one snapshot."""

    def __init__(  # noqa: PLR0913 - what belongs to one session
        self,
        query: Query,
        about: Query,
        select: Callable[[str], SelectedRows],
        begun: Snapshot,
        wait_for_room: Callable[[], None],
        throttle: Throttle,
        report: CloneReport,
        *,
        takes_numbers: bool,
    ) -> None:
        self._query, self._about, self._select = query, about, select
        self._begun, self._wait_for_room, self._takes_numbers = begun, wait_for_room, takes_numbers
        self._throttle, self._report = throttle, report

    def read(self, number: int) -> int:
        """How many chunks the table has."""
        model = self._begun.tables[number].model
        count = 0
        for count, chunk in enumerate(chunks(self._query, model, self._rows_of_a_chunk(model.database, model.name)), 1):
            self._throttle.wait(self._about)
            self._wait_for_room()
            if not self._begun.is_claimed:
                raise _BeginAgain(f"the applier was beyond {self._begun.low.position}")
            self._read_chunk(number, count - 1, chunk)
        return count

    def _read_chunk(self, number: int, chunk_number: int, chunk: Chunk) -> None:
        table = self._begun.tables[number]
        columns = selected_columns(table.model.columns, takes_numbers=self._takes_numbers)
        what = ", ".join(column.expression for column in columns)
        where = condition(chunk_key(table.model), chunk)
        name = ".".join(map(quote, table.name))
        self._report.state(f"Reading {'.'.join(table.name)}")
        with _released(self._query):
            rows = self._select(f"SELECT {what} FROM {name}{where}")
            if read_table(self._about, *table.name)[0] != table.model:
                raise _BeginAgain(f"{'.'.join(table.name)} was altered")
            head = ChunkHead(
                *table.name, self._begun.epoch, chunk_number, chunk.after, chunk.upto, digest_of(table.create),
                tuple(rows.wire_types), self._begun.low,
            )  # fmt: skip
            with write_chunk(self._begun.chunk_path(number, chunk_number), head) as file:
                for piece in rows.pieces():
                    file.add(piece)
                file.high, file.rows = self._begun.low, rows.rows
            self._throttle.took(file.packet_bytes)
            self._report.moved()
            crash_point("crash_clone_after_chunk")

    def _rows_of_a_chunk(self, database: str, table: str) -> int:
        names = ", ".join(f"x'{name.encode().hex()}'" for name in (database, table))
        found = self._about(
            f"SELECT avg_row_length FROM information_schema.tables WHERE (table_schema, table_name) = ({names})"
        )
        return max(1000, CHUNK_BYTES // max(1, int(found[0][0] or 1))) if found else 1000


def _place(query: Query, low: LogPlace, end: BinlogPosition) -> Place:
    """Of a snapshot, opened when the log was at `end`: that is its place, too, where no transaction lies between. A
    snapshot has the place behind its last one, and a log goes on without (a new file, a checkpoint).
    """
    assert low.position is not None
    is_same = low.position.is_before(end) and low.gtids == gtids_at(query, end)
    return Place(str(end if is_same else low.position), low.gtids)


@contextmanager
def _released(query: Query) -> Iterator[None]:
    """What the statements of the block hold of a table's definition is let go behind it, and DDL goes on."""
    query("SAVEPOINT rplctl")
    yield
    query("ROLLBACK TO SAVEPOINT rplctl")
