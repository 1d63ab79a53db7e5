"""Reads a table's rows on the source: all rows for hashes, or the rows with given keys at a known position of the log.

Invariant: nothing is written, and nothing is locked. The only exception is a source without GTIDs: the SELECT of
suspects (rows that may differ) takes share locks while it runs. No snapshot stays open between two pieces of a table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from rplctl.config import Config
from rplctl.event.images import Images
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.result_set.columns import SESSION, SelectedColumn
from rplctl.schema.bounds import Bound, Chunk, chunk_key, chunks, condition, row_bytes
from rplctl.schema.model import TableModel
from rplctl.schema.source_catalog import quote
from rplctl.secret import reveal
from rplctl.source.select import SelectedRows
from rplctl.source.snapshot import SnapshotKind, step_of
from rplctl.source.survey import Ask, session, survey
from rplctl.sql_text import NOTHING, Sql, joined, written
from rplctl.verify.key_values import Key, where_keys
from rplctl.verify.pair import Pair, RowHashes, batch_of_source, chosen_rows, keys_of_images, stream_images

PIECE_BYTES: Final = 256 << 20
_KEYS_AT_ONCE: Final = 500
_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSessions:
    """Two sessions on the source: `query` reads rows, and `about` is for other queries at the same time.

    `select` reads the rows of a SELECT in the session of `query`. `step`: the method by which a snapshot with a known
    position is opened. `server_id`, `uuid`: those of the source; a MariaDB server has the uuid ''. `at`: for a stopped
    source, the log position of all its rows; else None.
    """

    query: Ask
    about: Ask
    select: Callable[[Sql], SelectedRows]
    step: SnapshotKind
    server_id: int
    uuid: str
    at: BinlogPosition | None = None


@contextmanager
def open_source(config: Config, master: MasterInfo, at: BinlogPosition | None = None) -> Iterator[SourceSessions]:
    """Open two sessions on the source, for use in the `with` block.

    `at`: for a stopped source, the log position of its rows. Raises SourceError if the source does not answer or
    rejects rplctl.
    """
    password = reveal(master.user_password, config.datadir)
    with session(master, password, config) as (mysql, query), survey(master, password, config) as about:
        query(SESSION)
        about(written("SET SESSION sql_mode='', SESSION time_zone='+00:00'"))
        select = partial(SelectedRows, mysql, address=f"{master.user_name}@{master.host}:{master.port}")
        uuids = about(written("SHOW GLOBAL VARIABLES LIKE 'server_uuid'"))
        server_id = int(about(written("SELECT @@GLOBAL.server_id"))[0][0])
        yield SourceSessions(
            query=query,
            about=about,
            select=select,
            step=step_of(query),
            server_id=server_id,
            uuid=str(uuids[0][1]) if uuids else "",
            at=at,
        )


def scan_source(
    source: SourceSessions, pair: Pair, max_load: int, wheres: Iterable[Sql] | None = None
) -> Iterator[RowHashes]:
    """Yield hashes of the source's rows: of all rows, or of those that the conditions `wheres` select.

    If all rows are read, the source may have at most `max_load` running threads (0: no limit) before each piece.
    Raises SourceError if the source reports an error, and RplError for a value that cannot be read.
    """
    columns, modes = pair.hashed(of_target=False)
    for where in (piece.where for piece in pieces(source, pair.source, max_load)) if wheres is None else wheres:
        for images in _select(source, pair.source, columns, where):
            yield batch_of_source(images, pair, columns, modes)


@dataclass(frozen=True, slots=True)
class TablePiece:
    """A piece of a table, about 256 MiB of rows between two keys. `where`: the text ` WHERE …` that selects them."""

    where: Sql
    chunk: Chunk


def pieces(
    source: SourceSessions, model: TableModel, max_load: int, after: Bound | None = None
) -> Iterator[TablePiece]:
    """Yield the pieces of a table that follow the key `after`. If `after` is None, yield all pieces.

    Before each piece, wait until the source has at most `max_load` running threads (0: no limit). Only the session
    `about` is used. Raises SourceError if the source reports an error.
    """
    one, size = row_bytes(source.about, model)
    key = chunk_key(model)
    is_one = not key or (size <= PIECE_BYTES and after is None)  # finding a bound would read the whole key
    rows = max(1000, PIECE_BYTES // one)
    for chunk in [Chunk(None, None)] if is_one else chunks(source.about, model, rows, after):
        wait_for_load(source.about, max_load)
        yield TablePiece(condition(key, chunk), chunk)


def _select(
    source: SourceSessions, model: TableModel, columns: Sequence[SelectedColumn], where: Sql, locking: Sql = NOTHING
) -> Iterator[Images]:
    what = joined(", ", [column.expression for column in columns])
    name = quote(model.database, model.name)
    yield from stream_images(source.select(written("SELECT {} FROM {}{}{}", what, name, where, locking)), columns)


def rows_of_keys(source: SourceSessions, pair: Pair, keys: Sequence[Key], locking: Sql) -> Iterator[Images]:
    """Yield the source's rows that have exactly these keys, as row images for the applier's encoders.

    `locking`: the end of the SELECT, ` LOCK IN SHARE MODE`; '' if a snapshot is open.
    """
    columns, wanted = pair.selected(), set(keys)
    formats = [column.format for column in columns]
    for at in range(0, len(keys), _KEYS_AT_ONCE):
        where = where_keys(pair.key_columns, keys[at : at + _KEYS_AT_ONCE])
        part = wanted.intersection(keys[at : at + _KEYS_AT_ONCE])
        for images in _select(source, pair.source, columns, where, locking):
            everything = np.arange(len(images.cell_start))
            found = keys_of_images(images, formats, pair, everything)
            numbers = np.array([number for number, key in enumerate(found) if key in part], np.int64)
            if len(numbers):
                yield chosen_rows(images, numbers)


def rows_with_hashes(source: SourceSessions, pair: Pair, wanted: set[int], locking: Sql) -> Iterator[Images]:
    """Yield the source's rows with these hashes in a table without a key, as row images for the applier's encoders.

    More rows may be yielded, if a column is selected in different forms for hashing and for the encoders.
    """
    plain = pair.selected()
    columns, modes = pair.hashed(of_target=False)
    is_alike = [how.expression for how in columns] == [how.expression for how in plain]  # if not, all rows are yielded
    for images in _select(source, pair.source, plain, NOTHING, locking):
        if not is_alike:
            yield images
            continue
        hashes = batch_of_source(images, pair, columns, modes).rows
        numbers = np.flatnonzero([value in wanted for value in hashes.tolist()])
        if len(numbers):
            yield chosen_rows(images, numbers)


def wait_for_load(query: Ask, max_load: int) -> None:
    """Wait until the source has at most `max_load` running threads. The value 0 means no limit."""
    while max_load and int(query(written("SHOW GLOBAL STATUS LIKE 'Threads_running'"))[0][1]) > max_load:
        time.sleep(_AGAIN_S)
