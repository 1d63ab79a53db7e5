"""Remove the events that the channel's filters exclude from a run of events, and rewrite database names.

All strategies of the applier filter first, so all of them act on the same events. The filter reads only names. In a
TABLE_MAP, the names (`u8 length, name`) are after the 8 bytes of the post-header. In a QUERY, the name of the database
is after 13 bytes (LOAD DATA: 26) and the status variables.

Invariant: a rows event is kept or removed together with its table map. INTVAR, RAND, USER_VAR and the blocks of LOAD
DATA are kept or removed together with their statement. BEGIN, COMMIT, ROLLBACK, SAVEPOINT and XA are always kept, as on
MySQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.filter_rules import OWN_DATABASE, ReplicationFilter, is_own, mentions_own
from rplctl.decode.row_stream import IS_ROWS, EventRun, run_of, table_ids
from rplctl.errors import RplError
from rplctl.event.checksum_trailer import without_checksum
from rplctl.event.header import HEADER_LENGTH, format_error
from rplctl.event.maps_in_force import maps_in_force
from rplctl.event.query import parse_execute_load, parse_query
from rplctl.event.rows import Ints
from rplctl.event.types import EventType

Mask = npt.NDArray[np.bool_]

_ALWAYS = re.compile(
    rb"\s*(?:(?:BEGIN|COMMIT|ROLLBACK|START\s+TRANSACTION)(?:\s+WORK)?\s*;?\s*\Z"
    rb"|ROLLBACK\s+(?:WORK\s+)?TO\s|SAVEPOINT\s|XA\s)",
    re.IGNORECASE,
)
_BEFORE_A_STATEMENT = frozenset(
    {EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK}
)
_OWN = np.frombuffer(OWN_DATABASE.encode(), np.uint8)
_LOWER = np.uint8(0x20)
_BEGIN = np.frombuffer(b"BEGIN", np.uint8)
_TABLE_MAP_FIXED = 8
_QUERY_FIXED = 13
_LOAD_FIXED = 13


def filtered(run: EventRun, rules: ReplicationFilter) -> EventRun:
    """Return the events of the run that the rules accept, with rewritten database names.

    Raises BinlogFormatError for a damaged name.
    """
    if rules == ReplicationFilter() and not _holds_own(run):
        return run
    keep = np.ones(len(run.types), np.bool_)
    changed: dict[int, bytes] = {}  # event number → the event with its database rewritten
    _filter_rows(run, rules, keep, changed)
    _filter_statements(run, rules, keep, changed)
    if changed:
        return _rebuilt(run, keep, changed)
    if keep.all():
        return run
    return run.chosen(keep)


def _holds_own(run: EventRun) -> bool:
    """True if a table map or statement may name rplctl's own database. The function checks every event of the run."""
    begins = run.starts[run.types == EventType.TABLE_MAP] + HEADER_LENGTH + _TABLE_MAP_FIXED
    begins = begins[run.data[np.minimum(begins, len(run.data) - 1)] == len(_OWN)]
    begins = begins[begins + len(_OWN) < len(run.data)]
    names = run.data[begins[:, np.newaxis] + 1 + np.arange(len(_OWN))]
    if ((names | _LOWER) == _OWN).all(axis=1).any():
        return True
    texts = np.flatnonzero((run.types == EventType.QUERY) | (run.types == EventType.EXECUTE_LOAD_QUERY))
    return any(mentions_own(run.event(number)) for number in texts[~_is_begin(run, texts)].tolist())


def _filter_rows(run: EventRun, rules: ReplicationFilter, keep: Mask, changed: dict[int, bytes]) -> None:
    maps = np.flatnonzero(run.types == EventType.TABLE_MAP)
    accepted = np.ones(len(maps), np.bool_)
    for names, alike in _by_name(run, maps):
        accepts, new = _decide(names, rules)
        accepted[alike] = accepts
        if accepts and new is not None:
            for number in maps[alike].tolist():
                event, at, raw = run.event(number), HEADER_LENGTH + _TABLE_MAP_FIXED, new.encode()
                changed[number] = event[:at] + bytes([len(raw)]) + raw + event[at + 1 + event[at] :]
    if accepted.all():
        return
    keep[maps[~accepted]] = False
    rows = np.flatnonzero(IS_ROWS[run.types])
    map_ids = table_ids(run.data, run.starts[maps])
    row_ids = table_ids(run.data, run.starts[rows])
    in_force = maps_in_force(maps, np.arange(len(maps)), map_ids, rows, row_ids)
    has_map = in_force >= 0  # a rows event without a map is an error of its reader
    keep[rows[has_map]] = accepted[in_force[has_map]]


def _by_name(run: EventRun, maps: Ints) -> Iterator[tuple[bytes, Ints]]:
    """Yield each distinct (database, table) in the table maps, with the indexes into `maps` of its table maps.

    The names are bytes. Most names have only one table id, so the table maps are first grouped by table id.
    """
    ids = table_ids(run.data, run.starts[maps])
    order = np.argsort(ids, kind="stable")
    for of_id in np.split(order, np.flatnonzero(np.diff(ids[order])) + 1):
        while len(of_id):
            names = _names(run.event(int(maps[of_id[0]])))
            begins = run.starts[maps[of_id]] + HEADER_LENGTH + _TABLE_MAP_FIXED
            fits = begins + len(names) <= len(run.data)
            same = fits.copy()
            places = begins[fits, np.newaxis] + np.arange(len(names))
            same[fits] = (run.data[places] == np.frombuffer(names, np.uint8)).all(axis=1)
            yield names, of_id[same]
            of_id = of_id[~same]


def _names(event: bytes) -> bytes:
    """Return the part of a TABLE_MAP with the names of database and table: `u8 length, name, NUL` twice.

    Raises BinlogFormatError if the names exceed the event.
    """
    at = HEADER_LENGTH + _TABLE_MAP_FIXED
    end = at
    for _ in range(2):
        if end >= len(event) or (end := end + event[end] + 2) > len(event):
            raise format_error("the names of a TABLE_MAP exceed the event", event)
    return event[at:end]


def _decide(names: bytes, rules: ReplicationFilter) -> tuple[bool, str | None]:
    database = names[1 : 1 + names[0]].decode("utf-8", "surrogateescape")
    table = names[names[0] + 3 : -1].decode("utf-8", "surrogateescape")
    new = rules.rewritten(database)
    return rules.accepts_rows(new, table), new if new != database else None


def _filter_statements(run: EventRun, rules: ReplicationFilter, keep: Mask, changed: dict[int, bytes]) -> None:
    waiting: list[int] = []
    codes = np.array([EventType.QUERY, EventType.EXECUTE_LOAD_QUERY, *_BEFORE_A_STATEMENT], np.uint8)
    numbers = np.flatnonzero(np.isin(run.types, codes))
    for number in numbers[~_is_begin(run, numbers)].tolist():
        if run.types[number] in _BEFORE_A_STATEMENT:
            waiting.append(number)
            continue
        event = run.event(number)
        at = _database_offset(event)
        length = event[HEADER_LENGTH + 8]
        if run.types[number] == EventType.QUERY and _ALWAYS.match(
            event, at + length + 1, len(event) - run.description.checksum_length
        ):
            waiting.clear()
            continue
        database = event[at : at + length].decode("utf-8", "surrogateescape")
        new = rules.rewritten(database)
        if not rules.accepts_database(new) or not _accepts_text(run, number, event, new, rules):
            keep[[number, *waiting]] = False
        elif new != database:
            named = bytearray(event[:at] + new.encode() + event[at + length :])
            named[HEADER_LENGTH + 8] = len(new.encode())
            changed[number] = bytes(named)
        waiting.clear()


def _is_begin(run: EventRun, numbers: Ints) -> Mask:
    """Return a mask of the events with exactly the text `BEGIN`, which need not be parsed for the filters.

    A MySQL source writes such an event for each transaction.
    """
    starts, ends = run.starts[numbers], run.starts[numbers] + run.lengths[numbers] - run.description.checksum_length
    fixed = HEADER_LENGTH + _QUERY_FIXED
    found: Mask = (run.types[numbers] == EventType.QUERY) & (ends - starts >= fixed)
    low, high = (run.data[starts[found] + fixed - 2 + byte].astype(np.int64) for byte in range(2))
    text = starts[found] + fixed + (low | high << 8) + run.data[starts[found] + HEADER_LENGTH + 8] + 1
    exact = text + len(_BEGIN) == ends[found]
    exact[exact] = (run.data[text[exact, np.newaxis] + np.arange(len(_BEGIN))] == _BEGIN).all(axis=1)
    found[found] = exact
    return found


def _database_offset(event: bytes) -> int:
    at = HEADER_LENGTH + _QUERY_FIXED + (_LOAD_FIXED if event[4] == EventType.EXECUTE_LOAD_QUERY else 0)
    at += int.from_bytes(event[HEADER_LENGTH + 11 : HEADER_LENGTH + 13], "little")
    if at > len(event) or at + event[HEADER_LENGTH + 8] >= len(event):
        raise format_error("the database name of a QUERY exceeds the event", event)
    return at


def _accepts_text(run: EventRun, number: int, event: bytes, database: str, rules: ReplicationFilter) -> bool:
    """True if the rules accept the tables that the statement updates.

    Only the text of the statement shows these tables. Raises RplError 1064, with the position, if the rules need the
    tables and the text does not show them.
    """
    if not rules.reads_statements and not is_own(database) and not mentions_own(event):
        return True
    is_load = run.types[number] == EventType.EXECUTE_LOAD_QUERY
    query = parse_execute_load(event, run.description).query if is_load else parse_query(event, run.description)
    context, text = ddl_context(query, run.description, rules.lower_case), query.sql_bytes.decode("latin-1")
    try:
        return rules.accepts_statement(text, database, context, query.charset)
    except RplError as error:
        error.position = error.position or run.end_position(number)
        raise


def _rebuilt(run: EventRun, keep: Mask, changed: dict[int, bytes]) -> EventRun:
    """Return a run of the events that `keep` marks, in a new buffer. The events in `changed` are replaced.

    The copied events have no checksums. `origins` of the new run has the offsets of the events in the log.
    """
    checksum_length = run.description.checksum_length
    kept = (changed.get(number) or run.event(number) for number in np.flatnonzero(keep).tolist())
    origins = (run.starts if run.origins is None else run.origins)[keep]
    made = run_of((without_checksum(event, checksum_length) for event in kept), run.description)
    return replace(made, origins=origins, has_more_than_rows=run.has_more_than_rows)
