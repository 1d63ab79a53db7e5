"""Collects the keys of a table that the relay log changes after a position.

The rows with these keys change during a verify, so they must be compared later. Invariant: if the changed keys are
uncertain, all keys count as changed. This happens after

* a statement, and DDL that names the table or cannot be parsed
* a change of a parent table whose foreign key actions may change this table
* row images that cannot be read
* a change of a table whose name differs from this table's only in upper and lower case
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import numpy as np

from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.event_filter import filtered
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.decode.row_stream import TableRows, read_run, read_tables
from rplctl.errors import NotRunning, RelayLogError, RplError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.query import parse_query
from rplctl.event.scan import GroupKind
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.received import Received, alike, changed
from rplctl.schema.parse import parse_ddl
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import DropDatabase, tables_of
from rplctl.verify.key_values import Key
from rplctl.verify.pair import Pair, keys_of_images

_MOST_KEPT: Final = 20_000  # a transaction with more images is not kept
_QUERIES: Final = (EventType.QUERY, EventType.QUERY_COMPRESSED)


class ChangedKeys:
    """The keys of one table that the relay log has changed since the reader `received` began.

    A transaction counts if it is after the position `low` and its GTID is not in `seen`. If `low` is None, the position
    does not matter. `keeps`: keys whose changes a repair applies to rows that it has read. `kept`: the transactions
    that changed such a key, in the order of the log. Each transaction has its end position, its rows, and the key of
    each row image. `is_all`: True if any key may have changed.
    """

    def __init__(
        self,
        received: Received,
        pair: Pair,
        low: BinlogPosition | None,
        seen: MysqlGtidSet,
        keeps: Collection[Key] = (),
    ) -> None:
        self._received, self._pair, self._low, self._seen = received, pair, low, seen
        self._keeps, self.kept = frozenset(keeps), list[tuple[BinlogPosition, TableRows, list[Key]]]()
        model = pair.source
        acting = {alike((key.ref_database, key.ref_table)) for key in model.foreign_keys if key.acts}
        self._own = alike((model.database, model.name))
        self._tables = frozenset({self._own, *acting})
        self.keys: set[Key] = set()
        self.is_all = False

    def take(self, end: BinlogPosition) -> list[tuple[TableRows, list[Key]]]:
        """Return the rows and keys of the transactions in `kept` up to the position `end`, and remove them from `kept`.

        A repair calls this to apply the changes to the source's rows that it has read.
        """
        found = [kept for kept in self.kept if not end.is_before(kept[0])]
        self.kept = self.kept[len(found) :]
        return [(rows, keys) for _, rows, keys in found]

    def look(self) -> None:
        """Read the transactions that have arrived in the relay log since the last call, and add the changed keys."""
        self._look(self._received.new())

    def look_until(self, end: BinlogPosition, patience_s: float, stopped: Callable[[float], bool]) -> None:
        """Read the relay log up to the position `end`, and add the keys that its transactions change.

        If `end` has not arrived yet, wait for it. `stopped` waits for the given seconds, and returns True if verify
        must end. Raises NotRunning then, and SourceError if nothing arrives for `patience_s` seconds.
        """
        self._look(self._received.until(end, patience_s, lambda seconds: stopped(seconds) or self._received.is_lost))
        if stopped(0):
            raise NotRunning("the verify was stopped")

    def _look(self, found: Iterable[RelayGroups]) -> None:
        """Add the keys that these event groups change.

        `is_all` is set if some groups were purged before they were read.
        """
        try:
            for groups in found:
                self._add(groups)
        except RelayLogError as error:
            if not error.transient:
                raise
            self.is_all = True
        self.is_all = self.is_all or self._received.is_lost

    def has_all(self, keys: Sequence[Key]) -> bool:
        """True if all these keys have changed, or if any key may have changed (`is_all`).

        If `is_all` is False, the result for an empty `keys` is False.
        """
        return self.is_all or (bool(keys) and self.keys.issuperset(keys))

    def __contains__(self, key: Key) -> bool:
        return self.is_all or key in self.keys

    def _add(self, groups: RelayGroups) -> None:
        for number in range(len(groups.scan)):
            at = groups.scan.source_position(number)
            if self._low is not None and not self._low.is_before(at):
                continue
            if not self.is_all and changed(groups, number, self._tables, self._seen):
                self.is_all = not (self._is_of_others(groups, number) or self._has_read(groups, number))

    def _is_of_others(self, groups: RelayGroups, number: int) -> bool:
        """True if the event group with this number is DDL that cannot change this table's rows.

        Such DDL names neither this table nor a parent table whose foreign key actions may change this one.
        """
        scan, description = groups.scan, groups.format_description
        if scan.kind[number] != GroupKind.QUERY or description is None:
            return False
        try:
            run = read_run(groups.data, int(scan.start[number]), int(scan.end[number]), description)
            (at,) = np.flatnonzero(np.isin(run.types, _QUERIES)).tolist()
            query = parse_query(run.event(at), description)
            actions = parse_ddl(query.sql, query.database, ddl_context(query, description, 0))
        except (RplError, ValueError):
            return False
        names = {alike(name) for action in actions for name in tables_of(action)}
        return self._tables.isdisjoint(names) and not any(isinstance(action, DropDatabase) for action in actions)

    def _has_read(self, groups: RelayGroups, number: int) -> bool:
        scan, pair = groups.scan, self._pair
        if scan.kind[number] != GroupKind.ROWS or groups.format_description is None or not pair.key:
            return False
        if len(self._tables) > 1 and changed(groups, number, self._tables - {self._own}, self._seen):
            return False
        rules = ReplicationFilter(do_table=(f"{pair.source.database}.{pair.source.name}",))
        catalog = Catalog({(pair.source.database, pair.source.name): pair.source})
        try:
            data = groups.data[int(scan.start[number]) : int(scan.end[number])]
            data = data.copy() if self._keeps else data  # a view would keep the file mapped
            run = filtered(read_run(data, 0, len(data), groups.format_description), rules)
            found = list(read_tables(run, catalog))
            keys = [keys_of_rows(rows, pair) for rows in found]
        except RplError:
            return False
        for some, rows in zip(keys, found, strict=True):
            self.keys.update(some)
            if not self._keeps.isdisjoint(some):
                if len(found) > 1 or len(some) > _MOST_KEPT:
                    return False
                self.kept.append((scan.source_position(number), rows, some))
        return bool(found) or bool(scan.has_payload[number])


def keys_of_rows(rows: TableRows, pair: Pair) -> list[Key]:
    """Return the key of each row image. If an after image lacks a key column, the before image has its value."""
    keys = keys_of_images(rows.images, rows.formats, pair, np.arange(len(rows.images.cell_start)))
    return [
        tuple(old if value is None else value for value, old in zip(key, keys[b], strict=True)) if b >= 0 else key
        for key, b in zip(keys, rows.images.before_of_image.tolist(), strict=True)
    ]
