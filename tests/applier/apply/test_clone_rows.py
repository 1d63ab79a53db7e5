"""Rows of a copy are given to a target as those of row events are, without looking for what only events have; a large
one is held by no memory.
"""

from __future__ import annotations

import errno
import hashlib
import struct
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rplctl.applier.apply.clone_rows import decoded, load_rows
from rplctl.applier.spark.split_task import pieces_of
from rplctl.clone.chunk_file import ChunkHead, SnapshotPosition, read_chunk, write_chunk
from rplctl.decode.copied_rows import decode_here, unlogged_events
from rplctl.decode.net_changes import inserted_chunk, table_chunk
from rplctl.decode.row_stream import TableRows
from rplctl.errors import RelayLogError
from rplctl.result_set.rows import read_images
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target import open_target
from rplctl.target.base import TableChunk
from tests.kit.servers import MariadbServer
from tests.result_set.packets import LONG, TEXT, counted, length_prefixed, row, texts

MB = 1 << 20
COLUMNS = (Column(name="id", type="int"), Column(name="t", type="longtext", charset="utf8mb4"))
KEYED = TableModel(
    database="b", name="t", columns=COLUMNS, keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),)
)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 500])
@pytest.mark.parametrize("model", [KEYED, replace(KEYED, keys=())], ids=["key", "no key"])
@pytest.mark.parametrize(("kind", "bulk_rows"), [("mysql", 200), ("mysql", 0), ("postgresql", 200), ("sqlite", 0)])
def test_inserted_rows_are_those_of_net_changes(kind: str, bulk_rows: int, model: TableModel, count: int) -> None:
    columns, wire, packets = texts(count)
    (images,) = read_images(packets, columns, wire)
    rows = TableRows(model, tuple(column.format for column in columns), images, unlogged_events(images), kind)
    found = inserted_chunk(rows, bulk_rows, length_prefixed=kind == "mysql")
    assert given(found) == given(table_chunk(rows, bulk_rows, length_prefixed=kind == "mysql"))
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


BYTES = (Column(name="id", type="int"), Column(name="t", type="longblob"))
LARGE, NAME = 64 * MB, "large_rows"


def large_chunk(folder: Path) -> tuple[Path, bytes]:
    """A small row, a large one of many packets, a small one."""
    body = np.random.default_rng(1).integers(0, 256, LARGE, np.uint8).tobytes()
    rows = [row(struct.pack("<i", n), counted(text)) for n, text in enumerate((b"a", body, b"z"), 1)]
    path = folder / "0.rows"
    with write_chunk(
        path,
        ChunkHead(
            database="b",
            table="t",
            epoch=1,
            chunk=0,
            after=None,
            upto=None,
            digest="",
            wire_types=(LONG, TEXT),
            low=SnapshotPosition(),
        ),
    ) as file:
        file.add(np.frombuffer(length_prefixed(rows), np.uint8))
        file.high, file.rows = SnapshotPosition(), 3
    return path, body


def digests(rows: Iterable[tuple[int, bytes]]) -> list[tuple[int, str]]:
    return [(number, hashlib.md5(text).hexdigest()) for number, text in rows]


@pytest.mark.long("A row of 64 MB is rare; test_inserted_rows_are_those_of_net_changes holds ordinary rows.")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("mariadb", marks=pytest.mark.mariadb)])
def test_a_row_of_64_mb_is_loaded_and_no_memory_holds_it(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path, body = large_chunk(tmp_path)
    expected = digests([(1, b"a"), (2, body), (3, b"z")])
    del body
    made, url = f"{NAME}__t", f"sqlite:///{tmp_path / 't.db'}"
    read = f"SELECT id, t FROM {made} ORDER BY id"
    if kind == "mariadb":
        server: MariadbServer = request.getfixturevalue("mariadb")
        server.sql(f"DROP DATABASE IF EXISTS {NAME}; CREATE DATABASE {NAME}; CREATE DATABASE IF NOT EXISTS rplctl")
        made, url = f"{NAME}.t", server.url()
    target = open_target(url)
    target.connection.exec_driver_sql(f"CREATE TABLE {made} (id INTEGER PRIMARY KEY, t LONGBLOB)")
    target.connection.commit()
    model = replace(KEYED, database=NAME, columns=BYTES, engine="InnoDB")

    def load() -> None:
        target.begin(foreign_keys=False)
        load_rows(decoded(read_chunk(path), BYTES, model, target, tmp_path, decode_here), model, target)

    load()  # kernels are compiled
    target.rollback()
    tracemalloc.start()
    load()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    target.commit()
    if kind == "mariadb":
        found = list(server.sql(f"SELECT id, MD5(t) FROM {made} ORDER BY id"))
        server.sql(f"DROP DATABASE {NAME}")
    else:
        found = digests(target.connection.exec_driver_sql(read))
    target.close()
    assert [tuple(each) for each in found] == expected
    assert most < 40 * MB, f"{most / MB:.0f} MB"


def test_a_full_disk_is_told_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = large_chunk(tmp_path)

    def full(descriptor: int, at: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    target = open_target(f"sqlite:///{tmp_path / 't.db'}")
    target.connection.exec_driver_sql(f"CREATE TABLE {NAME}__t (id INTEGER PRIMARY KEY, t BLOB)")
    with pytest.raises(RelayLogError) as caught:
        model = replace(KEYED, database=NAME, columns=BYTES)
        load_rows(decoded(read_chunk(path), BYTES, model, target, tmp_path, decode_here), model, target)
    target.close()
    assert (caught.value.errno, caught.value.transient) == (1595, True)
    assert {found.name for found in tmp_path.iterdir()} <= {"0.rows", "t.db", "t.db-wal", "t.db-shm"}
