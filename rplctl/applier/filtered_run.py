"""A run of events → the same run without what the channel's filters leave out, databases rewritten.

It stands before everything else the applier does with events (tasks of a bulk batch, ordered, one by one), so all three
act on the same. Only names are read of what may be left out: `u8 length, name` behind the 8 bytes of a TABLE_MAP's
post-header; of a QUERY behind 13 bytes (LOAD DATA: 26) and the status variables.
Invariant: a rows event goes with the table map in force, INTVAR, RAND, USER_VAR and LOAD DATA's blocks with their
statement; BEGIN, COMMIT, ROLLBACK, SAVEPOINT and XA stay whatever their database, as on the server.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rplctl.applier.filter import ReplicationFilter
from rplctl.applier.row_stream import EventRun, table_ids
from rplctl.applier.session import ddl_context
from rplctl.binlog.events import parse_query
from rplctl.binlog.format_description import CHECKSUM_OFF
from rplctl.binlog.header import HEADER_LENGTH, EventType, format_error
from rplctl.binlog.query import parse_execute_load
from rplctl.binlog.rows import ROWS_EVENT_TYPES
from rplctl.binlog.scan import scan_events
from rplctl.errors import RplError

Mask = npt.NDArray[np.bool_]

_ALWAYS = re.compile(rb"\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|START\s+TRANSACTION|XA\s)", re.IGNORECASE)
_BEFORE_A_STATEMENT = frozenset(
    {EventType.INTVAR, EventType.RAND, EventType.USER_VAR, EventType.BEGIN_LOAD_QUERY, EventType.APPEND_BLOCK}
)
_ROWS_TYPES = np.array(sorted(ROWS_EVENT_TYPES), np.uint8)
_TABLE_MAP_FIXED = 8
_QUERY_FIXED = 13
_LOAD_FIXED = 13


def filtered(run: EventRun, rules: ReplicationFilter) -> EventRun:
    """Raises BinlogFormatError when a name runs past its event."""
    if rules == ReplicationFilter():
        return run
    keep = np.ones(len(run.types), np.bool_)
    changed: dict[int, bytes] = {}  # event number → the event with its database rewritten
    _filter_rows(run, rules, keep, changed)
    _filter_statements(run, rules, keep, changed)
    if changed:
        return _rebuilt(run, keep, changed)
    if keep.all():
        return run
    return replace(run, starts=run.starts[keep], lengths=run.lengths[keep], types=run.types[keep])


def _filter_rows(run: EventRun, rules: ReplicationFilter, keep: Mask, changed: dict[int, bytes]) -> None:
    maps = np.flatnonzero(run.types == EventType.TABLE_MAP)
    accepted = np.ones(len(maps), np.bool_)
    known: dict[bytes, tuple[bool, str | None]] = {}  # names as they stand in the event → decision, new database
    for i, number in enumerate(maps.tolist()):
        event = run.event(number)
        names = _names(event)
        if names not in known:
            known[names] = _decide(names, rules)
        accepted[i], new = known[names]
        if accepted[i] and new is not None:
            at = HEADER_LENGTH + _TABLE_MAP_FIXED
            changed[number] = event[:at] + _short(new) + event[at + 1 + event[at] :]
    if accepted.all():
        return
    keep[maps[~accepted]] = False
    rows = np.flatnonzero(np.isin(run.types, _ROWS_TYPES))
    map_ids = table_ids(run.data, run.starts[maps])
    row_ids = table_ids(run.data, run.starts[rows])
    for table_id in np.unique(row_ids):
        of_id = np.flatnonzero(map_ids == table_id)
        events = rows[row_ids == table_id]
        in_force = np.searchsorted(maps[of_id], events) - 1
        events, in_force = events[in_force >= 0], in_force[in_force >= 0]  # without a map: the reader raises
        keep[events] = accepted[of_id[in_force]]


def _names(event: bytes) -> bytes:
    """Database and table of a TABLE_MAP: `u8 length, name, NUL` twice."""
    at = HEADER_LENGTH + _TABLE_MAP_FIXED
    end = at
    for _ in range(2):
        if end >= len(event) or (end := end + event[end] + 2) > len(event):
            raise format_error("A TABLE_MAP whose names run past its end", event)
    return event[at:end]


def _decide(names: bytes, rules: ReplicationFilter) -> tuple[bool, str | None]:
    database = names[1 : 1 + names[0]].decode("utf-8", "surrogateescape")
    table = names[names[0] + 3 : -1].decode("utf-8", "surrogateescape")
    new = rules.rewritten(database)
    return rules.accepts_rows(new, table), new if new != database else None


def _filter_statements(run: EventRun, rules: ReplicationFilter, keep: Mask, changed: dict[int, bytes]) -> None:
    waiting: list[int] = []
    codes = np.array([EventType.QUERY, EventType.EXECUTE_LOAD_QUERY, *_BEFORE_A_STATEMENT], np.uint8)
    for number in np.flatnonzero(np.isin(run.types, codes)).tolist():
        if run.types[number] in _BEFORE_A_STATEMENT:
            waiting.append(number)
            continue
        event = run.event(number)
        at = _database_offset(event)
        length = event[HEADER_LENGTH + 8]
        if run.types[number] == EventType.QUERY and _ALWAYS.match(event, at + length + 1):
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


def _database_offset(event: bytes) -> int:
    at = HEADER_LENGTH + _QUERY_FIXED + (_LOAD_FIXED if event[4] == EventType.EXECUTE_LOAD_QUERY else 0)
    at += int.from_bytes(event[HEADER_LENGTH + 11 : HEADER_LENGTH + 13], "little")
    if at > len(event) or at + event[HEADER_LENGTH + 8] >= len(event):
        raise format_error("A QUERY whose database runs past its end", event)
    return at


def _accepts_text(run: EventRun, number: int, event: bytes, database: str, rules: ReplicationFilter) -> bool:
    """By the tables the statement updates. What cannot be read is accepted: who carries it out says why it stops."""
    if not rules.reads_statements:
        return True
    try:
        is_load = run.types[number] == EventType.EXECUTE_LOAD_QUERY
        query = parse_execute_load(event, run.description).query if is_load else parse_query(event, run.description)
        return rules.accepts_statement(query.sql, database, ddl_context(query, run.description))
    except RplError:
        return True


def _short(name: str) -> bytes:
    raw = name.encode()
    return bytes([len(raw)]) + raw


def _rebuilt(run: EventRun, keep: Mask, changed: dict[int, bytes]) -> EventRun:
    """The kept events in a buffer of their own, without checksums."""
    pieces = []
    for number in np.flatnonzero(keep).tolist():
        event = changed.get(number) or run.event(number)
        plain = bytearray(event[: len(event) - run.description.checksum_length])
        plain[9:13] = len(plain).to_bytes(4, "little")
        pieces.append(bytes(plain))
    data = np.frombuffer(b"".join(pieces), np.uint8)
    index = scan_events(data)
    description = replace(run.description, checksum_algorithm=CHECKSUM_OFF)
    return EventRun(data, index.offsets[:-1], np.diff(index.offsets), index.type_codes, description)
