"""Decode a piece of the log into statements and into the changes of each table, with their events and transactions.

Invariant: (log, position of the event, number of the row in the event) identifies a change. These values are the same
for all divisions of the logs into pieces. A compressed transaction is one event, whose rows are numbered consecutively.
Changes that ROLLBACK TO a savepoint undid are removed, unless the table's engine cannot undo (manual: Rollback Failure
for Nontransactional Tables).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.decode.asked import Asked
from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.event_filter import filtered
from rplctl.decode.gtid_texts import gtid_texts
from rplctl.decode.logged_model import logged_model
from rplctl.decode.piece import Piece
from rplctl.decode.row_stream import EventRun, TableRows, read_run, read_tables, table_maps
from rplctl.decode.transaction_words import ROLLBACK_TO, SAVEPOINT, WORDS
from rplctl.decode.undone import folded
from rplctl.errors import RplError, SourceError
from rplctl.event.events import parse_execute_load, parse_query
from rplctl.event.gtid_arrays import unsigned
from rplctl.event.header import parse_header
from rplctl.event.images import NOT_IN_IMAGE, Images
from rplctl.event.jit import ByteArray
from rplctl.event.mapped import mapped_to
from rplctl.event.query import Query
from rplctl.event.rows import Ints
from rplctl.event.scan import scan_groups
from rplctl.event.types import EventType
from rplctl.mask import masked
from rplctl.schema.parse import parse_ddl
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import DdlAction, DropDatabase, DropTable, TableName, TruncateTable, tables_of

ALL: Final = Asked()
OPS: Final = ("", "insert", "update", "delete")
CANNOT_UNDO: Final = frozenset({"MYISAM", "ARIA", "MEMORY", "CSV", "ARCHIVE", "MRG_MYISAM", "BLACKHOLE"})
_ROW_STATEMENT: Final = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE|LOAD|CALL|WITH)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChanges:
    """The changes of one table in the order of the log.

    `rows` has their row images. The other fields are arrays with one value for each change:

        position       the position of the event in the file
        number         the number of the change in the event, from 0
        time           seconds since 1970
        transaction    the index of the transaction in `Transactions`
    """

    rows: TableRows
    position: Ints
    number: Ints
    time: Ints
    transaction: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStatement:
    """A statement in the log that is not BEGIN, COMMIT, SAVEPOINT or a similar part of a transaction.

    `kind` is ddl, truncate or drop, or statement if the statement changes rows. `table` is '' if the statement names no
    table, or several tables. `position`, `time` and `transaction` have the same meaning as in `TableChanges`.
    """

    kind: str
    database: str
    table: str
    text: str
    position: int
    time: int
    transaction: int


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a piece, with their end positions `end` in the log `end_log`.

    `shift` is the offset of an event in the file minus its position in the source's log. It is not 0 for a relay log.
    """

    gtid: list[str]
    end_log: str
    end: Ints
    shift: Ints | int = 0


@dataclass(frozen=True, slots=True)
class Changes:
    tables: list[TableChanges]
    statements: list[LoggedStatement]
    transactions: Transactions


def changes_of(piece: Piece, asked: Asked = ALL, data: ByteArray | None = None) -> Changes:
    """Return the changes and statements of the piece that `asked` includes.

    `data` has the bytes to read. None means that they are in the piece's file. Raises SourceError if this file cannot
    be opened, and BinlogFormatError if an event is damaged. Raises RplError, with the piece's position, if the events
    do not match the table.
    """
    try:
        data = mapped_to(piece.path, piece.end) if data is None else data
    except OSError as error:
        raise SourceError(
            f"{piece.path}: {error.strerror}",
            errno=er.MASTER_FATAL_ERROR_READING_BINLOG,
            hint="make the logs available under this path on every executor (for a live server: the folder of option "
            "spool), and do not purge them during the read\nTo send the logs along instead, set the option carry=true",
        ) from error
    try:
        return _changes(piece, data, asked)
    except RplError as error:
        error.position = error.position or f"{piece.log_name}:{piece.start}"
        raise


def _changes(piece: Piece, data: ByteArray, asked: Asked) -> Changes:
    run = read_run(data, piece.start, piece.end, piece.description, piece.table_maps)
    if piece.is_relay:
        run = filtered(run, piece.rules)
    starts, transactions = _transactions(piece, data)
    counts_through = run.origins is not None and len(np.unique(run.origins)) < len(run.origins)
    wanted = ALL if counts_through else asked
    found = [table_changes(rows, run, starts) for rows in read_tables(run, _catalog(piece, run, wanted), wanted=wanted)]
    if counts_through:
        found = [part for part in _number_across_tables(found) if _name(part.rows) in asked]
    if piece.is_mixed or run.has_more_than_rows:
        undone = _undone(run)
        found = [_without(part, undone) for part in found] if undone else found
        return Changes(found, list(_statements(run, starts, asked)), transactions)
    return Changes(found, [], transactions)


def _name(rows: TableRows) -> TableName:
    return rows.model.database, rows.model.name


def _catalog(piece: Piece, run: EventRun, asked: Asked) -> Catalog:
    """Return a catalog with the models of the piece.

    The rows of a relay log are decoded only with these models. For another file, rplctl makes missing models from the
    table maps alone, but only for the tables that `asked` includes.
    """
    known = {(model.database, model.name): model for model in piece.models}
    if piece.is_relay:
        return Catalog(known)
    for table_map in table_maps(run):
        name = table_map.database, table_map.table
        if name not in known and name in asked:
            known[name] = logged_model(table_map)
    return Catalog(known)


def _transactions(piece: Piece, data: ByteArray) -> tuple[Ints, Transactions]:
    """Return the offset in the file at which each transaction begins, and the transactions of the piece."""
    if (whole := piece.transaction) is not None:
        return np.array([0]), Transactions([whole.gtid], whole.end.log_name, np.array([whole.end.log_pos]), whole.shift)
    scan = scan_groups(data[: piece.end], piece.start, piece.source, piece.end - piece.start, piece.description)
    gtids = gtid_texts(data, scan, np.arange(len(scan)))
    if piece.is_relay:
        return scan.start, Transactions(gtids, piece.log_name, scan.source_end, scan.end - scan.source_end)
    return scan.start, Transactions(gtids, piece.log_name, scan.end)


def _origins(run: EventRun, event_starts: Ints) -> Ints:
    if run.origins is None:
        return event_starts
    found: Ints = run.origins[np.searchsorted(run.starts, event_starts)]
    return found


def table_changes(rows: TableRows, run: EventRun, starts: Ints) -> TableChanges:
    rows = replace(rows, images=_without_lone_diffs(rows.images))
    event = rows.images.event_of_change
    number = np.arange(len(event)) - np.searchsorted(event, event)  # all changes of an event are adjacent
    own = rows.events.event_start
    time = unsigned(run.data, own, 4)[event]
    position = _origins(run, own)[event]
    return TableChanges(
        rows=rows,
        position=position,
        number=number,
        time=time,
        transaction=np.searchsorted(starts, position, "right") - 1,
    )


def _without_lone_diffs(images: Images) -> Images:
    """Treat a JSON diff as a missing column if the log does not have the document to which the diff applies.

    A source logs such diffs if it has PARTIAL_JSON and binlog_row_image=MINIMAL.
    """
    if not images.is_diff.any():
        return images
    image, column = np.nonzero(images.is_diff)
    base = images.before_of_image[image]
    is_lone = (base < 0) | (images.cell_start[base, column] < 0)
    starts, is_diff = images.cell_start.copy(), images.is_diff.copy()
    starts[image[is_lone], column[is_lone]] = NOT_IN_IMAGE
    is_diff[image[is_lone], column[is_lone]] = False
    return replace(images, cell_start=starts, is_diff=is_diff)


def _number_across_tables(parts: list[TableChanges]) -> list[TableChanges]:
    """Number the rows of each compressed event consecutively, across all tables and in the order of the event."""
    if not parts:
        return parts
    event = np.concatenate([part.rows.events.event_start[part.rows.images.event_of_change] for part in parts])
    number = np.concatenate([part.number for part in parts])
    position = np.concatenate([part.position for part in parts])
    order = np.lexsort((number, event))
    position = position[order]  # ascending, like the events
    through = np.empty(len(order), np.int64)
    through[order] = np.arange(len(order)) - np.searchsorted(position, position)
    cuts = np.cumsum([len(part.number) for part in parts])[:-1]
    return [replace(part, number=own) for part, own in zip(parts, np.split(through, cuts), strict=True)]


def _undone(run: EventRun) -> list[tuple[int, int]]:
    """Return the ranges of events that a ROLLBACK TO has undone, as offsets (first, last)."""
    savepoints: dict[str, int] = {}
    found = []
    for number in np.flatnonzero(run.types == EventType.QUERY).tolist():
        query = parse_query(run.event(number), run.description)
        text = query.sql_bytes.decode("utf-8", "replace").strip()
        at = int(run.starts[number])
        if match := ROLLBACK_TO.match(text):
            found.append((savepoints.get(folded(match[1]), 0), at))
        elif match := SAVEPOINT.match(text):
            savepoints[folded(match[1])] = at
    return found


def _without(part: TableChanges, undone: list[tuple[int, int]]) -> TableChanges:
    if part.rows.model.engine.upper() in CANNOT_UNDO:
        return part
    event = part.rows.events.event_start[part.rows.images.event_of_change]
    stays = np.ones(len(event), np.bool_)
    for first, last in undone:
        stays &= (event < first) | (event > last)
    return part if stays.all() else chosen(part, np.flatnonzero(stays))


def chosen(part: TableChanges, numbers: Ints) -> TableChanges:
    """Return only the changes of `part` that have the indexes `numbers`."""
    images = part.rows.images
    images = replace(
        images,
        ops=images.ops[numbers],
        before=images.before[numbers],
        after=images.after[numbers],
        event_of_change=images.event_of_change[numbers],
    )
    return TableChanges(
        rows=replace(part.rows, images=images),
        position=part.position[numbers],
        number=part.number[numbers],
        time=part.time[numbers],
        transaction=part.transaction[numbers],
    )


def _statements(run: EventRun, starts: Ints, asked: Asked) -> Iterator[LoggedStatement]:
    for number in np.flatnonzero(np.isin(run.types, (EventType.QUERY, EventType.EXECUTE_LOAD_QUERY))).tolist():
        event = run.event(number)
        if run.types[number] == EventType.QUERY:
            query = parse_query(event, run.description)
        else:
            query = parse_execute_load(event, run.description).query
        if WORDS.match(query.sql_bytes.decode("latin-1").strip()):
            continue
        kind, actions = _kind(query, run)
        if not asked.concerns_ddl(actions, query.database):
            continue
        position = int(_origins(run, run.starts[number : number + 1])[0])
        transaction = int(np.searchsorted(starts, position, "right")) - 1
        names = [name for action in actions for name in tables_of(action)]
        names += [(action.name, "") for action in actions if isinstance(action, DropDatabase)]
        database, table = names[0] if len(names) == 1 else (query.database, "")
        yield LoggedStatement(
            kind=kind,
            database=database,
            table=table,
            text=masked(query.sql),
            position=position,
            time=parse_header(event).timestamp,
            transaction=transaction,
        )


def _kind(query: Query, run: EventRun) -> tuple[str, Sequence[DdlAction]]:
    """Return the kind of a statement (`LoggedStatement`), and its actions if it is DDL that can be parsed."""
    if _ROW_STATEMENT.match(query.sql_bytes.decode("latin-1")):
        return "statement", []
    try:
        actions = parse_ddl(query.sql, query.database, ddl_context(query, run.description, lower_case_table_names=0))
    except RplError:
        return "ddl", []
    if any(isinstance(action, DropTable | DropDatabase) for action in actions):
        return "drop", actions
    return "truncate" if any(isinstance(action, TruncateTable) for action in actions) else "ddl", actions
