"""Net changes of a piece of log: the last image per key, what the first operation expects, nothing invented."""

from __future__ import annotations

from rplctl.applier.feed.plan import BatchKind, plan_batches
from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.net_changes import net_chunks
from rplctl.decode.row_stream import read_run
from rplctl.event.events import parse_query
from rplctl.event.scan import split_rows
from rplctl.event.types import EventType
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.schema.row_key import key_of
from rplctl.target.base import Row, TableChunk
from tests.applier.demo_log import demo_groups

GROUPS = demo_groups()
BATCHES = list(plan_batches(GROUPS, len(GROUPS.scan)))


def catalog_before_first_rows() -> Catalog:
    catalog = Catalog()
    for batch in BATCHES:
        if batch.kind is BatchKind.BULK:
            break
        if batch.kind is BatchKind.SINGLE:
            run = read_run(GROUPS.data, batch.start, batch.end, batch.description)
            number = run.types.tolist().index(EventType.QUERY)
            query = parse_query(run.event(number), run.description)
            catalog = catalog.after(
                plan_ddl(query.sql, query.database, ddl_context(query, run.description, 0), catalog)
            )
    return catalog


CATALOG = catalog_before_first_rows()
BULK = next(batch for batch in BATCHES if batch.kind is BatchKind.BULK)


def full_row(chunk: TableChunk, columns: tuple[int, ...], row: Row) -> tuple[Row, Row]:
    """(key, row in column order) of a final row; an update's row ends with its key."""
    key = key_of(CATALOG.tables[chunk.database, chunk.table])
    values = (
        dict(zip((*columns, *key), row, strict=True))
        if len(row) > len(columns)
        else dict(zip(columns, row, strict=True))
    )
    return tuple(values[c] for c in key), tuple(values[c] for c in sorted(values))


def state_after(pieces: list[list[TableChunk]]) -> dict[str, dict[Row, Row]]:
    """Apply chunks to dictionaries by key, strictly: what the target must hold afterwards."""
    tables: dict[str, dict[Row, Row]] = {}
    for chunk in (chunk for chunks in pieces for chunk in chunks):
        rows = tables.setdefault(chunk.table, {})
        for deleted in chunk.deletes:
            del rows[deleted]
        for update in chunk.updates:
            for row in update.rows:
                key, values = full_row(chunk, update.columns, row)
                assert key in rows
                rows[key] = values
        for insert in chunk.inserts:
            for row in insert.rows:
                key, values = full_row(chunk, insert.columns, row)
                assert key not in rows
                rows[key] = values
    return tables


def chunks_of(split_bytes: int) -> list[list[TableChunk]]:
    pieces = split_rows(GROUPS.data, BULK.start, BULK.end, split_bytes, BULK.description)
    return [
        net_chunks(read_run(GROUPS.data, p.start, p.end, BULK.description, p.table_map_offsets), CATALOG)
        for p in pieces
    ]


def test_however_the_log_is_split_the_outcome_is_the_same() -> None:
    whole = chunks_of(1 << 30)
    assert len(whole) == 1
    for split_bytes in (500, 5_000, 50_000):
        pieces = chunks_of(split_bytes)
        assert len(pieces) > 1
        assert state_after(pieces) == state_after(whole)
        assert sum(c.change_count for p in pieces for c in p) == sum(c.change_count for c in whole[0])


def test_a_key_is_touched_once_however_often_the_source_changed_it() -> None:
    for chunk in chunks_of(1 << 30)[0]:
        keys = [*chunk.deletes, *chunk.absent]
        keys += [full_row(chunk, rows.columns, row)[0] for rows in chunk.updates + chunk.inserts for row in rows.rows]
        assert len(keys) == len(set(keys))
        assert len(keys) <= chunk.change_count
