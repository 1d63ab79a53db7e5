"""Walk through the logs in the driver, and divide their transactions into pieces for tasks.

Each piece has the table models in force, which DDL changes during the walk. The pieces of an XA transaction are kept
until its XA COMMIT, and transactions that were rolled back are skipped. Invariant: each position of a walk is the end
of a transaction, and two walks between the same positions give the same pieces.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from rplctl import mysql_errors as er
from rplctl.data_source.options import QueryOptions
from rplctl.decode.asked import Asked
from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.gtid_texts import gtid_texts
from rplctl.decode.logged_model import logged_model
from rplctl.decode.piece import Piece, Transaction
from rplctl.decode.row_stream import named_tables, read_run, table_maps, unverified_run
from rplctl.decode.transaction_words import WORDS, XA
from rplctl.errors import BinlogFormatError, RplError, SourceError, UsageError
from rplctl.event.events import Query, XaPrepare, parse_event, parse_query
from rplctl.event.format_description import FormatDescription, parse_format_description
from rplctl.event.gtid_arrays import is_within, numbers_by_source, unsigned
from rplctl.event.header import BINLOG_MAGIC, HEADER_LENGTH
from rplctl.event.jit import ByteArray
from rplctl.event.scan import GroupKind, GroupScan, scan_groups
from rplctl.event.split import split_rows
from rplctl.event.types import EventType
from rplctl.plain_file import read_plain
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, is_log_name, log_number
from rplctl.schema.dump import load_catalog
from rplctl.schema.model import TableModel
from rplctl.schema.parse import parse_ddl
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.source.log_folder import log_names, read_head

SCAN_BYTES: Final = 64 << 20
_LEAST_BYTES: Final = FIRST_EVENT_POSITION + HEADER_LENGTH  # the smallest size of a log with an event
_UNKNOWN_OBJECT: Final = frozenset(
    {er.NO_SUCH_TABLE, er.BAD_TABLE_ERROR, er.TABLE_EXISTS_ERROR, er.BAD_FIELD_ERROR, er.NOT_SUPPORTED_YET}
)

_PLAIN: Final = np.array([GroupKind.CONTROL, GroupKind.ROWS])


class LogWalk:
    """A walk through the logs. `place` is its current position, which is the end of a transaction.

    `versions` has all models of the requested tables, in the order of the walk.
    """

    def __init__(self, options: QueryOptions, asked: Asked | None = None) -> None:
        """Begin a walk, and walk to the start position that the options specify.

        Raises SourceError if a log is missing, UsageError if an option is not valid, and RplError for an invalid schema
        file.
        """
        self._options, self.asked = options, asked or Asked.table(options.table)
        names = self._names()
        self.place = BinlogPosition(names[0], FIRST_EVENT_POSITION)
        self._in_force: FormatDescription | None = None  # None at the start of a log
        self._source: BinlogPosition | None = None  # the source position, if the log is a relay log
        self.catalog = Catalog()
        self._prepared: dict[str, tuple[Piece, ...]] = {}
        self.versions: dict[TableModel, None] = {}
        if options.schema_file is not None:
            try:
                self.catalog = load_catalog(read_plain(options.schema_file).decode("utf-8", "replace"))
            except OSError as error:
                raise UsageError(f"option schema_file: {options.schema_file}: {error.strerror}") from error
            self.place = options.start or self.place
        self._note_versions()
        if options.start is not None:
            self.to(options.start)
            if self.place != options.start:
                raise UsageError(
                    f"option start: no transaction begins at {options.start}; the last position before is {self.place}"
                )
            self.versions.clear()
            self._note_versions()

    def copy(self) -> LogWalk:
        other = copy(self)
        other._prepared, other.versions = dict(self._prepared), dict(self.versions)
        return other

    def to(self, stop: BinlogPosition | None = None, limit: int | None = None) -> list[Piece]:
        """Walk on, and return the pieces of the transactions up to `stop`, or up to the end that the options specify.

        With `limit`, the walk ends after about this number of bytes, but after at least one transaction. Raises
        SourceError if a log is missing or cannot be opened, and BinlogFormatError if a log is damaged. Raises RplError
        if a statement is not permitted or not understood.
        """
        pieces: list[Piece] = []
        stop = self._options.end if stop is None else stop
        seen = 0
        while limit is None or seen < limit:
            name, at = self.place.log_name, self.place.log_pos
            path = self._path(name)
            try:
                if path.stat().st_size < _LEAST_BYTES and BINLOG_MAGIC.startswith(path.read_bytes()[:4]):
                    break  # the log was just created
                data = np.memmap(path, np.uint8, "r")
            except OSError as error:
                raise SourceError(
                    f"{path}: {error.strerror}",
                    errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
                    hint=f"to list the logs, run: ls {path.parent}",
                ) from error
            least = SCAN_BYTES if limit is None else min(SCAN_BYTES, limit - seen)
            try:
                description = self._in_force or parse_format_description(read_head(path))
                scan = scan_groups(data, at, self._source or self.place, least, description)
                count = len(scan)
                if stop is not None and log_number(stop.log_name) <= log_number(name):
                    limit_pos = stop.log_pos if stop.log_name == name else 0
                    count = int(np.searchsorted(scan.end, limit_pos, side="right"))
                for piece in self._pieces(data, str(path), scan, count):
                    pieces.append(piece)
            except RplError as error:
                error.position = f"{name}:{error.position}" if error.position.isdecimal() else error.position or name
                raise
            if count:
                end = int(scan.end[count - 1])
                seen += end - at
                self.place, self._in_force = BinlogPosition(name, end), scan.description_at(end)
                self._source = scan.source_position(count - 1)
                if count == len(scan):
                    continue
            if count < len(scan) or (following := self._next(name)) is None or (stop and self.place == stop):
                break
            self.place, self._in_force = BinlogPosition(following, FIRST_EVENT_POSITION), None
            self._source = None
        return pieces

    def _names(self) -> list[str]:
        path = self._options.path
        if not path.exists():
            raise UsageError(f"option path: {path} does not exist", hint="create it on the driver and on each executor")
        if path.suffix == ".index":
            names = [Path(line).name for line in read_plain(path).decode("utf-8", "replace").splitlines() if line]
        elif path.is_file():
            if not is_log_name(path.name):
                raise UsageError(f"{path} is not a binary log: the name must be NAME.NNNNNN")
            names = [path.name]
        else:
            names = log_names(path)
        if not names:
            raise SourceError(
                f"the folder {path} has no binary log",
                errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
                hint="set the option path of the query to a folder with files like binlog.000001",
            )
        return names

    def _path(self, name: str) -> Path:
        path = self._options.path
        return (path if path.is_dir() else path.parent) / name

    def _next(self, name: str) -> str | None:
        later = [other for other in self._names() if log_number(other) > log_number(name)]
        if later and log_number(later[0]) != log_number(name) + 1:
            raise SourceError(
                f"{name} is followed by {later[0]}: a log is missing",
                errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
                hint=f"to read the missing log, copy it into {self._path(name).parent}, and start the query again\n"
                f"To begin after the missing log, set two options of the query: 'start' to {later[0]}:4, and "
                "'schema_file' to the output of `mysqldump --no-data` from the time when this log begins",
            )
        return later[0] if later and self._path(later[0]).stat().st_size >= _LEAST_BYTES else None

    def _pieces(self, data: ByteArray, path: str, scan: GroupScan, count: int) -> Iterator[Piece]:
        kinds = scan.kind[:count]
        is_plain, is_wanted = np.isin(kinds, _PLAIN), self._wanted(data, scan)[:count]
        if count and not self.asked.any_time:
            is_wanted &= ~is_plain | scan.has_payload[:count] | self._has_time(data, scan)[:count]
        # group transactions that are read in the same way; any other transaction is a group of its own
        codes = np.where(is_plain, is_wanted.astype(np.int64), np.arange(count) + 2)
        changes = (np.flatnonzero(np.diff(codes)) + 1).tolist()
        for first, last in itertools.pairwise([0, *changes, count] if count else []):
            if not is_plain[first]:
                yield from self._special(data, path, scan, first, is_wanted=bool(is_wanted[first]))
            elif is_wanted[first]:
                yield from self._rows(data, path, scan, first, last)

    def _rows(self, data: ByteArray, path: str, scan: GroupScan, first: int, last: int) -> Iterator[Piece]:
        """Divide the transactions that contain row events into pieces of about the partition size, and yield them.

        Only a transaction of more than twice this size is divided.
        """
        size = self._options.partition_bytes
        while first < last:
            start = int(scan.start[first])
            behind = max(first + 1, int(np.searchsorted(scan.end[:last], start + size, side="right")))
            end = int(scan.end[behind - 1])
            has_payload = bool(scan.has_payload[first:behind].any())
            if not scan.row_events[first:behind].any() and not has_payload:
                first = behind
                continue
            description = self._description(scan, start)
            models = self._models(data, start, end, description, has_payload=has_payload)
            if models is not None:
                piece = Piece(
                    path=path,
                    log_name=self.place.log_name,
                    start=start,
                    end=end,
                    description=description,
                    source=_before(scan, first),
                    models=models,
                )
                if behind == first + 1 and end - start > 2 * size:
                    transaction = self._transaction(data, scan, first)
                    for part in split_rows(data, start, end, size, description):
                        maps = part.table_map_offsets
                        yield replace(piece, start=part.start, end=part.end, table_maps=maps, transaction=transaction)
                else:
                    yield piece
            first = behind

    def _special(self, data: ByteArray, path: str, scan: GroupScan, number: int, *, is_wanted: bool) -> Iterator[Piece]:
        kind = GroupKind(int(scan.kind[number]))
        start, end = int(scan.start[number]), int(scan.end[number])
        description = self._description(scan, start)
        at = f"{self.place.log_name}:{start}"
        if kind in (GroupKind.INCIDENT, GroupKind.UNKNOWN) and is_wanted:
            what = (
                "the source reports that its log lacks events" if kind is GroupKind.INCIDENT else "unknown event type"
            )
            raise BinlogFormatError(
                what,
                errno=er.SLAVE_INCIDENT,
                position=at,
                hint="to read past it, set the option start of the query "
                "to a position after it; the result lacks the lost events",
            )
        if kind in (GroupKind.INCIDENT, GroupKind.UNKNOWN, GroupKind.ROLLED_BACK):
            return
        run = read_run(data, start, end, description)
        queries = [
            parse_query(run.event(n), run.description) for n in np.flatnonzero(run.types == EventType.QUERY).tolist()
        ]
        has_statement, is_about = False, False
        for query in queries:
            match = XA.match(query.sql_bytes.decode("latin-1").strip())
            if match and match[1].upper() in ("COMMIT", "ROLLBACK"):
                yield from self._end_xa(match, self._transaction(data, scan, number), is_wanted)
            elif not WORDS.match(query.sql_bytes.decode("latin-1").strip()):
                is_ddl = self._carry_out(query, description, at)
                is_about |= self._concerns(query, description) if is_ddl else False
                has_statement |= not is_ddl
        has_statement |= bool((run.types == EventType.EXECUTE_LOAD_QUERY).any())
        models = self._models(data, start, end, description)
        before = _before(scan, number)
        piece = Piece(
            path=path,
            log_name=self.place.log_name,
            start=start,
            end=end,
            description=description,
            source=before,
            models=models or (),
            is_mixed=True,
        )
        if (prepare := np.flatnonzero(run.types == EventType.XA_PREPARE)).size:
            event = parse_event(run.event(int(prepare[0])), run.description)
            assert isinstance(event, XaPrepare)
            if not event.one_phase:
                self._prepared[str(event.xid)] = (piece,) if models else ()
                return
        if not is_wanted:
            return
        if has_statement and self._options.table is not None and self._options.statements == "error":
            raise RplError(
                f"the source logged a statement instead of row events, and this statement may have changed the table "
                f"{'.'.join(self._options.table)}",
                errno=er.BINLOG_ROW_INJECTION_AND_STMT_MODE,
                position=at,
                hint="to read without this statement, whose changes the result then lacks, set the option start of the "
                "query to a position after it\n"
                "To read without all such statements, set the option statements=skip of the query\n"
                "To log row events in sessions that connect later, run on the source: SET GLOBAL binlog_format=ROW",
            )
        if models or is_about or (has_statement and ("" in self.asked.names or not self.asked.names)):
            yield piece

    def _end_xa(self, match: re.Match[str], transaction: Transaction, is_wanted: bool) -> Iterator[Piece]:
        pieces = self._prepared.pop(match[2], None)
        if match[1].upper() != "COMMIT" or not is_wanted:
            return
        if pieces is None:
            raise RplError(
                f"XA COMMIT {match[2]}: its XA PREPARE is in an older log, which is not read",
                errno=er.XAER_NOTA,
                position=str(transaction.end),
                hint="set the option path of the query to a folder that also has the older log",
            )
        for piece in pieces:
            yield replace(piece, transaction=transaction)

    def _carry_out(self, query: Query, description: FormatDescription, at: str) -> bool:
        """Apply a DDL statement to the models. Return False for a statement that changes rows."""
        context = ddl_context(query, description, lower_case_table_names=0)
        try:
            plan = plan_ddl(query.sql, query.database, context, self.catalog, may_drop_unknown=True)
        except RplError as error:
            if error.errno == er.BINLOG_UNSAFE_STATEMENT:
                return False
            if error.errno not in _UNKNOWN_OBJECT:
                error.position, error.hint = (
                    at,
                    "set the option start of the query to a position after the statement, and schema_file to the "
                    "definitions there",
                )
                raise
            return True
        self.catalog = self.catalog.after(plan)
        self._note_versions()
        return True

    def _concerns(self, query: Query, description: FormatDescription) -> bool:
        """True if the DDL statement affects a table that the query requests."""
        if self.asked.all_tables:  # this includes statements that the parser does not know
            return True
        actions = parse_ddl(query.sql, query.database, ddl_context(query, description, 0))
        return self.asked.concerns_ddl(actions, query.database)

    def _models(
        self, data: ByteArray, start: int, end: int, description: FormatDescription, *, has_payload: bool = False
    ) -> tuple[TableModel, ...] | None:
        """Return the models of the tables in data[start:end], or None if none of these tables is requested.

        Only the task decompresses a compressed transaction. So the models of all requested tables are returned for it.
        """
        names = {*self.catalog.tables} if has_payload else {*named_tables(data, start, end, description)}
        if not self.asked.all_tables:
            names = {name for name in names if name in self.asked}
            if not has_payload and not names:
                return None
            if names - self.catalog.tables.keys():
                for table_map in table_maps(unverified_run(data, start, end, description)):
                    if (table_map.database, table_map.table) in names:
                        self.versions[logged_model(table_map)] = None
        elif not names and not has_payload:
            return None
        return tuple(self.catalog.tables[name] for name in sorted(names & self.catalog.tables.keys()))

    def _note_versions(self) -> None:
        for name in filter(self.asked.__contains__, self.catalog.tables) if not self.asked.all_tables else ():
            model = self.catalog.tables[name]
            self.versions.pop(model, None)
            self.versions[model] = None

    def _wanted(self, data: ByteArray, scan: GroupScan) -> npt.NDArray[np.bool_]:
        """Return a mask of the transactions that are within the requested times and GTIDs."""
        options = self._options
        found = np.ones(len(scan), np.bool_)
        if options.start_time is not None:
            found &= scan.timestamp >= options.start_time
        if options.end_time is not None:
            found &= scan.timestamp < options.end_time
        for gtids, drops in ((options.start_gtid, True), (options.end_gtid, False)):
            if gtids is None:
                continue
            has = np.zeros(len(scan), np.bool_)
            with_gtid = np.flatnonzero(scan.gtid_offset >= 0)
            numbers = numbers_by_source(data, scan.gtid_offset[with_gtid], scan.description_at)
            for source, (which, values) in numbers.items():
                if isinstance(source, int):
                    last = gtids.mariadb.domains.get(source, (0, 0))[1]
                    has[with_gtid[which]] = values <= last
                else:
                    has[with_gtid[which]] = is_within(values, gtids.mysql.intervals.get(source, ()))
            found &= ~has if drops else has
        return found

    def _has_time(self, data: ByteArray, scan: GroupScan) -> npt.NDArray[np.bool_]:
        """Return a mask of the transactions that have an event within the requested times."""
        first = int(scan.start[0])
        run = unverified_run(data, first, int(scan.end[-1]), self._description(scan, first))
        time = unsigned(data, run.starts, 4)
        within = (time >= self.asked.since) & (time <= self.asked.until)
        through = np.concatenate([[0], np.cumsum(within)])
        found: npt.NDArray[np.bool_] = (
            through[np.searchsorted(run.starts, scan.end)] > through[np.searchsorted(run.starts, scan.start)]
        )
        return found

    @staticmethod
    def _description(scan: GroupScan, offset: int) -> FormatDescription:
        description = scan.description_at(offset)
        assert description is not None
        return description

    def _transaction(self, data: ByteArray, scan: GroupScan, number: int) -> Transaction:
        (gtid,) = gtid_texts(data, scan, np.array([number]))
        return Transaction(gtid, BinlogPosition(self.place.log_name, int(scan.end[number])))


def _before(scan: GroupScan, number: int) -> BinlogPosition:
    """Return the source position at the start of the transaction with the index `number`."""
    return scan.source_position(number - 1) if number else scan.first_source
