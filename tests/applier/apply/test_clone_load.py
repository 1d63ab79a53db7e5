"""Rows of a copy are given to a target as those of row events are, without looking for what only events have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.applier.apply.clone_load import _events
from rplctl.applier.decode.net_changes import inserted_chunk, table_chunk
from rplctl.applier.decode.row_stream import TableRows
from rplctl.applier.spark.pipeline import pieces_of
from rplctl.result_set.rows import read_images
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target.base import TableChunk
from tests.result_set.packets import texts

COLUMNS = (Column("id", "int"), Column("t", "longtext", charset="utf8mb4"))
KEYED = TableModel("b", "t", COLUMNS, keys=(Key("PRIMARY", "primary", (KeyPart("id"),)),))


@pytest.mark.parametrize("count", [3, 500])
@pytest.mark.parametrize("model", [KEYED, replace(KEYED, keys=())], ids=["key", "no key"])
@pytest.mark.parametrize(("kind", "bulk_rows"), [("mysql", 200), ("mysql", 0), ("postgresql", 200), ("sqlite", 0)])
def test_inserted_rows_are_those_of_net_changes(kind: str, bulk_rows: int, model: TableModel, count: int) -> None:
    columns, wire, packets = texts(count)
    (images,) = read_images(packets, columns, wire)
    rows = TableRows(model, tuple(column.format for column in columns), images, _events(images), kind)
    found = inserted_chunk(rows, bulk_rows, framed=kind == "mysql")
    assert given(found) == given(table_chunk(rows, bulk_rows, framed=kind == "mysql"))
    assert found.net_count == found.change_count == count and found.foreign_keys_off


def given(chunk: TableChunk) -> tuple[object, ...]:
    """What a target looks at; a table without a key may have its rows told one by one."""
    rows = [row for found in chunk.inserts for row in found.rows]
    rows += [change.after.rows[0] for change in chunk.ordered if change.after is not None]
    assert not (chunk.absent or chunk.deletes or chunk.updates)
    text = b""
    if chunk.bulk is not None:
        assert [part.count for part in chunk.bulk.parts[:3]] == [0, 0, 0]
        text = b"".join(pieces_of([chunk.bulk.inserts.text]))
    return rows, text, chunk.foreign_keys_off, chunk.width, chunk.has_views, chunk.bulk is not None
