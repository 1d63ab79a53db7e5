"""`skip`: let the applier skip a number of transactions (sql_slave_skip_counter), or transactions with given GTIDs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from rplctl import mysql_errors as er, skip_list
from rplctl.command.channel.both_places import refuse_both_places
from rplctl.command.channel.context import APPLIER, Note, Repositories, administer, refuse_while_running
from rplctl.config import Config
from rplctl.decode.row_stream import EventRun, read_run
from rplctl.errors import UsageError
from rplctl.event.column import column_formats
from rplctl.event.events import parse_event
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet, is_executed
from rplctl.event.gtid_arrays import gtids_at
from rplctl.event.images import walk_images
from rplctl.event.query import Query
from rplctl.event.scan import GroupKind
from rplctl.event.table_map import parse_table_map
from rplctl.event.types import PLAIN_ROWS, EventType
from rplctl.history import note_event
from rplctl.mask import masked
from rplctl.relay_log.reader import RelayGroups, RelayLogReader

_SHOWN: Final = 200  # the most characters of a statement in the result
_STEP_BYTES: Final = 16 << 20
_MOST_BYTES: Final = 256 << 20  # in larger transactions, the rows are not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTransaction:
    """A transaction in the relay logs that would be skipped, as a dry run shows it.

    `Position` is the position of its start in the source's log. `Rows` is None if the transaction is too large to count
    its rows. `Statement` is its first statement other than BEGIN and COMMIT, or ''.
    """

    Gtid: str
    Position: str
    Tables: tuple[str, ...]
    Rows: int | None
    Statement: str


@dataclass(frozen=True, slots=True)
class SkipResult:
    channel: str
    count: int = field(metadata={"column": "Skip_Counter"})  # number of transactions that the next start skips
    gtids: tuple[str, ...] = field(metadata={"column": "Skip_Gtids"})  # skipped when the applier reaches them
    notes: tuple[Note, ...]
    dry_run: bool
    transactions: tuple[SkippedTransaction, ...] = ()  # in a dry run, those that are already received


def skip(config: Config, channel_name: str, count: int | None, gtids: str = "", *, dry_run: bool = False) -> SkipResult:
    """Let the next start skip `count` transactions (sql_slave_skip_counter), or let the applier skip the GTIDs in
    `gtids`.

    The applier commits a skipped transaction as an empty one. A GTID is skipped when the applier reaches it. A `count`
    of 0 cancels all pending skips. Raises UsageError 3085 if the applier runs, and 1772 or 1941 if a GTID is not valid.
    """
    if count is not None and count < 0:
        raise UsageError(f"skip {count}: the number of transactions must not be negative")
    wanted = _parts(gtids)
    with administer(config, channel_name, dry_run=dry_run) as repositories:
        folder = repositories.channel.run_folder
        repositories.master()
        refuse_while_running(repositories.channel, APPLIER)
        refuse_both_places(repositories)
        done, kept = _executed(repositories.relay().gtid_executed, wanted), skip_list.read_gtids(folder)
        kept = () if count == 0 else (*kept, *(g for g in wanted if g not in done and g not in kept))
        left = skip_list.read_count(folder) if count is None else count
        found = tuple(_left_out(repositories, left, kept)) if dry_run else ()
        if not dry_run:
            if count is not None:
                skip_list.write_count(folder, count)
            skip_list.write_gtids(folder, kept)
            what = f"skip {count}" if count is not None else f"skip --gtid {gtids}"
            note_event(config.datadir, channel_name, "skip", what)
    notes = tuple(Note(f"GTID {gtid} is already executed, so there is nothing to skip") for gtid in done)
    return SkipResult(channel_name, left, kept, notes, dry_run, found)


def _left_out(repositories: Repositories, count: int, gtids: tuple[str, ...]) -> Iterator[SkippedTransaction]:
    """Yield the received transactions that would be skipped: the next `count` in the relay logs, and those with the
    GTIDs.

    Raises RelayLogError if the relay log is damaged.
    """
    master = repositories.master()
    reader = RelayLogReader(repositories.channel, by_gtid=master.uses_gtid, source_place=master.place)
    if not (count or gtids) or not reader.open(repositories.relay()):
        return
    wanted = set(gtids)
    while (count or wanted) and (groups := reader.groups(_STEP_BYTES)) is not None:
        for number in np.flatnonzero(groups.scan.kind != GroupKind.CONTROL).tolist():
            gtid = _gtid_of(groups, number)
            listed = next((one for one in wanted if gtid and is_executed(gtid, one)), "")
            if not count and not listed:
                continue
            count -= bool(count)
            wanted -= {listed} if gtid == listed else set()  # a MySQL set may contain further GTIDs
            yield _transaction(groups, number, gtid)
            if not (count or wanted):
                return


def _gtid_of(groups: RelayGroups, number: int) -> str:
    offset = groups.scan.gtid_offset[number : number + 1]
    if offset[0] < 0:
        return ""
    return next((str(gtids) for gtids in gtids_at(groups.data, offset, groups.scan.description_at) if str(gtids)), "")


def _transaction(groups: RelayGroups, number: int, gtid: str) -> SkippedTransaction:
    scan, description = groups.scan, groups.format_description
    begin = scan.source_position(number - 1) if number else groups.start_source
    start, end = int(scan.start[number]), int(scan.end[number])
    tables: Counter[str] = Counter()
    statement, is_counted = "", description is not None and end - start <= _MOST_BYTES
    if description is not None and is_counted:
        run = read_run(groups.data, start, end, description)
        tables, statement = _rows_of(run), _statement_of(run)
    return SkippedTransaction(
        Gtid=gtid,
        Position=str(begin),
        Tables=tuple(tables),
        Rows=tables.total() if is_counted else None,
        Statement=statement,
    )


def _rows_of(run: EventRun) -> Counter[str]:
    """Return the number of changed rows in each table. `run` has the events of one transaction."""
    maps = {}
    counts: Counter[str] = Counter()
    for number in np.flatnonzero(np.isin(run.types, [EventType.TABLE_MAP, *PLAIN_ROWS])).tolist():
        if run.types[number] == EventType.TABLE_MAP:
            table_map = parse_table_map(run.event(number), run.description)
            maps[table_map.table_id] = table_map
            continue
        rows = run.part(number, number + 1).rows_events()
        table_map = maps[int(rows.table_id[0])]
        counts[f"{table_map.database}.{table_map.table}"] += len(walk_images(rows, column_formats(table_map)).ops)
    return counts


def _statement_of(run: EventRun) -> str:
    for number in np.flatnonzero(run.types == EventType.QUERY).tolist():
        query = parse_event(run.event(number), run.description)
        text = query.sql_bytes.decode("utf-8", "backslashreplace") if isinstance(query, Query) else ""
        if text not in ("", "BEGIN", "COMMIT"):
            return " ".join(masked(text).split())[:_SHOWN]
    return ""


def _parts(gtids: str) -> tuple[str, ...]:
    """Return the GTIDs as a list, in the form that the servers print.

    Each element is one GTID of MariaDB, or the part of MySQL's GTID set that belongs to one source UUID.
    """
    parts = tuple(part.strip() for part in gtids.split(",") if part.strip())
    if not any(":" in part for part in parts):
        return tuple(str(MariadbGtidState.parse(part)) for part in parts)
    return tuple(str(MysqlGtidSet.parse(gtids)).split(","))


def _executed(executed: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the wanted GTIDs whose transactions are already executed. `executed` is a GTID set, or ''.

    Raises UsageError if the wanted GTIDs are of the other vendor.
    """
    if executed and any((":" in gtid) != (":" in executed) for gtid in wanted):
        kind = "UUID:NUMBER" if ":" in executed else "DOMAIN-SERVER-NUMBER"
        raise UsageError(
            f"the GTIDs of this channel have the form {kind}",
            errno=er.MALFORMED_GTID_SET_SPECIFICATION if ":" in executed else er.INCORRECT_GTID_STATE,
            hint="to see the GTIDs of the channel, run: rplctl show-status --field Executed_Gtid_Set",
        )
    return tuple(gtid for gtid in wanted if is_executed(gtid, executed))
