"""Lets tasks of the pool decode rows events in advance, for events that the driver applies in order.

The tasks decode one *stretch* of events at a time. Invariant: a stretch ends before the first statement that may change
a table. Decoded rows are used only with the catalog with which they were decoded.

The driver decodes the events that the tasks skip, when it reaches them. These are events with errors, and JSON diffs of
documents that only the target has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from rplctl.applier.feed.event_range import spool_file
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.decode.ordered_rows import OrderedPiece
from rplctl.decode.row_stream import EventRun, model_of, table_ids
from rplctl.decode.transaction_words import SAVEPOINT, TRANSACTION_WORDS
from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.events import parse_query
from rplctl.event.table_map import parse_table_map
from rplctl.event.types import PLAIN_ROWS, STATEMENT_EVENTS, EventType
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog
from rplctl.target.base import ChangeKind, RowChange, TableChunk

PIECE_BYTES: Final = 256 << 10  # bytes of events for one task; a single event may be larger
LARGEST_INLINE: Final = 4 << 20  # most bytes of events that are sent with the request; more are sent in a file


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOfEvent:
    """The decoded changes of one rows event. `kind`, `flags`: the values of the event in RowsEvents."""

    model: TableModel
    kind: int
    flags: int
    changes: Iterable[RowChange]


@dataclass(frozen=True, slots=True)
class DecodedBy:
    """The tasks of a pool that decode rows events.

    `count`: how many pieces they decode at the same time. `spool_folder`: the channel's folder for large pieces.
    """

    decode: Callable[[Sequence[OrderedPiece], Catalog], list[TableChunk]]
    count: int
    spool_folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """A rows event. `number`: its index in the run. `table_map`: the index of its table map event."""

    number: int
    table_map: int
    model: TableModel


class RowsAhead:
    """Provides the rows that tasks decode in advance.

    `is_replayed`: returns True for a table whose rows events the server on the target replays, so that nothing is
    decoded.
    """

    def __init__(self, tasks: DecodedBy, target_kind: str, is_replayed: Callable[[TableModel, EventRun], bool]) -> None:
        self._tasks, self._kind, self._is_replayed = tasks, target_kind, is_replayed
        self._run: EventRun | None = None
        self._catalog = Catalog()
        self._stretch = range(0)  # the numbers of the events in the current stretch
        self._ready: dict[int, RowsOfEvent] = {}

    def take(self, run: EventRun, number: int, maps: Mapping[int, int], catalog: Catalog) -> RowsOfEvent | None:
        """Return the decoded rows event with this number, or None if the driver must decode the event.

        If the number is not in the current stretch, the next stretch is decoded first. The event is returned only once.
        `maps`: for each table id, the number of its table map.
        """
        if run is not self._run or catalog is not self._catalog or number not in self._stretch:
            self._run, self._catalog, self._ready = run, catalog, {}
            events = self._look(run, number, maps, catalog)
            with suppress(BinlogFormatError):  # raised again when the driver reaches the damaged event
                self._have_decoded(run, events, catalog)
        return self._ready.pop(number, None)

    def _look(self, run: EventRun, first: int, maps: Mapping[int, int], catalog: Catalog) -> list[_Event]:
        """Return the rows events of the next stretch, which begins with the event `first`.

        The stretch ends before a statement that may change a table, or when it has enough events for all tasks.
        """
        maps, found, size = dict(maps), list[_Event](), 0
        models: dict[int, TableModel | None] = {}  # number of the table map → model
        number = first
        while number < len(run.types) and size < self._tasks.count * PIECE_BYTES:
            code = run.types[number]
            if code == EventType.TABLE_MAP:
                maps[table_id(run, number)] = number
            elif code in PLAIN_ROWS:
                table_map = maps.get(table_id(run, number))
                if table_map is not None and table_map not in models:
                    models[table_map] = self._model(run, table_map, catalog)
                if table_map is not None and (model := models[table_map]) is not None:
                    found.append(_Event(number=number, table_map=table_map, model=model))
                    size += int(run.lengths[number])
            elif _may_change_tables(run, number):
                break
            number += 1
        self._stretch = range(first, number)
        return found

    def _model(self, run: EventRun, table_map: int, catalog: Catalog) -> TableModel | None:
        """Return the model with which tasks decode the rows of a table, or None if no task may decode them.

        Then the driver must refuse or skip the rows, or the server on the target decodes them.
        """
        try:
            description = run.description
            parsed = parse_table_map(run.event(table_map), description)
            model = model_of(parsed, catalog, self._kind, is_mariadb=description.is_mariadb)
        except RplError:
            return None
        return None if not model.holds_rows or self._is_replayed(model, run) else model

    def _have_decoded(self, run: EventRun, events: list[_Event], catalog: Catalog) -> None:
        if not events:
            return
        heads = run.chosen(np.array([event.number for event in events])).rows_events()
        kinds, flags = heads.kind.tolist(), heads.flags.tolist()
        ends = np.cumsum([int(run.lengths[event.number]) for event in events])
        firsts = np.unique(np.searchsorted(ends, np.arange(0, ends[-1], PIECE_BYTES), "right")).tolist()
        with ExitStack() as files:
            asked = [self._piece(run, events[a:b], kinds[a:b], files) for a, b in pairwise([*firsts, len(events)])]
            chunks = self._tasks.decode(asked, catalog)
        for event, kind, flag, chunk in zip(events, kinds, flags, chunks, strict=True):
            if chunk.table:
                self._ready[event.number] = RowsOfEvent(model=event.model, kind=kind, flags=flag, changes=chunk.ordered)

    def _piece(self, run: EventRun, events: list[_Event], kinds: list[int], files: ExitStack) -> OrderedPiece:
        """Return the input of one task. `files`: when closed, it removes the file of a large piece."""
        numbers, last = list[int](), dict[int, int]()  # table id → number of the table map
        for event in events:
            of_table = table_id(run, event.number)
            if last.get(of_table) != event.table_map:
                last[of_table] = event.table_map
                numbers.append(event.table_map)
            numbers.append(event.number)
        path, data = "", b""
        if sum(int(run.lengths[number]) for number in numbers) <= LARGEST_INLINE:
            data = b"".join(map(run.event, numbers))
        else:
            path = str(files.enter_context(spool_file(self._tasks.spool_folder)))
            with open(path, "wb") as file:
                for number in numbers:
                    start = int(run.starts[number])
                    file.write(run.data[start : start + int(run.lengths[number])].data)
        places = run.starts if run.origins is None else run.origins
        return OrderedPiece(
            events=data,
            path=path,
            start=int(places[events[0].number]),
            end=int(places[events[-1].number] + run.lengths[events[-1].number]),
            description=run.description,
            target_kind=self._kind,
            kinds=tuple(map(ChangeKind, kinds)),
            tables=tuple((event.model.database, event.model.name) for event in events),
            spool_folder=str(self._tasks.spool_folder),
        )


def _may_change_tables(run: EventRun, number: int) -> bool:
    """True if the event is a statement other than BEGIN, COMMIT and similar keywords."""
    if run.types[number] != EventType.QUERY:
        return run.types[number] in STATEMENT_EVENTS
    text = parse_query(run.event(number), run.description).sql_bytes.decode("latin-1").strip()
    return not (TRANSACTION_WORDS.match(text) or SAVEPOINT.match(text))


def table_id(run: EventRun, number: int) -> int:
    """Return the table id in a table map or a rows event. `number`: the number of the event in the run."""
    return int(table_ids(run.data, run.starts[number : number + 1])[0])


def tasks_of(pipeline: Pipeline, spool_folder: Path) -> DecodedBy | None:
    """Return the tasks that decode rows in advance, or None if there is no pool whose tasks decode all rows."""
    return DecodedBy(pipeline.in_order, pipeline.parallelism, spool_folder) if pipeline.takes_all else None
