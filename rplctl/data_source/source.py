"""Implement the functions that Spark calls for `spark.read.format("binlog").option("path", …)`, and `readStream`.

With the option `table`, `before` and `after` are structs of the table's columns. Without this option, `before` and
`after` are JSON, and the rows are from all tables. These are the columns of the DataFrame:

    op                insert, update, delete, ddl, truncate, drop, or statement (it changed rows without row events)
    log, pos          the start of the event
    row_number        the index of the row within the event
    gtid              the transaction's GTID; '' without GTIDs
    end_log, end_pos  the end position of the transaction
    ts                the start time of the statement on the source
    database, table   the names of the table
    before            the row before the change, or null if there is no such row
    after             the row after the change, or null if there is no such row
    is_partial        true if an image lacks columns (binlog_row_image)
    statement         the text of DDL

An offset of a stream is {"log", "pos"}, the end of a transaction. Every change is returned once, even after a kill.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import datasource as api, types as sql
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from rplctl.applier.spark.carried import Bytes, Piece as Sent, as_file, carried, table_maps
from rplctl.data_source.column_type import spark_type
from rplctl.data_source.json_rows import dict_rows, json_text
from rplctl.data_source.live import LiveLogs
from rplctl.data_source.options import QueryOptions
from rplctl.data_source.walk import LogWalk
from rplctl.decode.arrow import column_array
from rplctl.decode.asked import Asked
from rplctl.decode.change_columns import HEAD, columns_of, head_of, tail_of
from rplctl.decode.changes import Changes, TableChanges, changes_of
from rplctl.decode.piece import Piece
from rplctl.decode.row_stream import TableRows
from rplctl.errors import RplError, UsageError
from rplctl.event.rows import Ints
from rplctl.position import BinlogPosition
from rplctl.schema.model import Column, TableModel

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1: such a query runs as one batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


_TABLE: Final = (pa.field("database", pa.string()), pa.field("table", pa.string()))
_HEAD: Final = from_arrow_schema(pa.schema([*HEAD, *_TABLE])).fields
_TAIL: Final = [sql.StructField("is_partial", sql.BooleanType()), sql.StructField("statement", sql.StringType())]
_BATCH_ROWS: Final = 100_000
MOST_CARRIED: Final = 512 << 20  # bytes per query or trigger, all in the driver's memory
MOST_IN_PARTITION: Final = 96 << 20  # bytes; spark.rpc.message.maxSize is 128 MiB
# Spark's program that calls pushFilters. It runs only if the session allows filters to be pushed down.
_FILTERS_PUSHED_BY: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class BinlogError(Exception):
    """An RplError as one text, because Spark passes on only the text of an error."""


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except RplError as error:
        number, at = f"[{error.errno}] " if error.errno else "", f" (at {error.position})" if error.position else ""
        hint = f"; {error.hint}" if error.hint else ""
        raise BinlogError(f"{number}{error.message}{at}{hint}") from error


class BinlogDataSource(api.DataSource):
    """The data source `binlog`. options.py and man rplctl-dataframe(7) explain its options."""

    @classmethod
    def name(cls) -> str:
        return "binlog"

    def schema(self) -> sql.StructType:
        """Return the schema of the rows. Raises BinlogError if the logs or the options are not usable."""
        with _reported():
            return self._schema(_with_logs(QueryOptions.parse(self.options)))

    @staticmethod
    def _schema(options: QueryOptions) -> sql.StructType:
        row: sql.DataType = sql.StringType()
        if options.table is not None:
            walk = LogWalk(options)
            walk.to()
            if not walk.versions:
                raise UsageError(
                    f"the logs of {options.path} do not mention the table {'.'.join(options.table)}",
                    hint="check the case of the name, or set option schema_file to an output of mysqldump --no-data",
                )
            row = _struct(list(walk.versions))
        rows = [sql.StructField("before", row), sql.StructField("after", row)]
        return sql.StructType([*_HEAD, *rows, *_TAIL])

    def reader(self, schema: sql.StructType) -> api.DataSourceReader:
        """Return a reader for a batch query.

        The reader accepts filters only if Spark pushes filters. Otherwise, Spark rejects a reader that accepts them.
        """
        kind = FilteredBinlogReader if _FILTERS_PUSHED_BY in sys.modules else BinlogReader
        with _reported():
            return kind(_with_logs(QueryOptions.parse(self.options)), schema)

    def streamReader(self, schema: sql.StructType) -> api.DataSourceStreamReader:
        with _reported():
            return BinlogStreamReader(QueryOptions.parse(self.options), schema)


class _Reads:
    """The common part of the readers for batches and streams: the partitions, and the work of the tasks."""

    def __init__(self, options: QueryOptions, schema: sql.StructType) -> None:
        self._options, self._schema = options, schema
        self._asked = Asked.table(options.table)

    def read(self, partition: api.InputPartition) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self._schema, timezone="UTC")
        for piece, sent in partition.value:
            with _reported():
                batches = self._batches(piece, schema, as_file(sent, piece.end) if sent else None)
            yield from batches

    def _batches(self, piece: Piece, schema: pa.Schema, data: Bytes | None) -> Iterator[pa.RecordBatch]:
        found = changes_of(piece, self._asked, data)
        row = _typed_rows if self._options.table else _json_rows
        batches = [
            _batch(piece, found, part, slice(first, first + _BATCH_ROWS), schema, self._options, row)
            for part in found.tables
            for first in range(0, len(part.number), _BATCH_ROWS)
        ]
        if found.statements:
            batches.append(_statement_batch(piece, found, schema))
        return _in_order(batches) if len(found.tables) + bool(found.statements) > 1 else iter(batches)

    def _partitions(self, pieces: Sequence[Piece]) -> list[api.InputPartition]:
        """Group the pieces into partitions of about `partition_bytes`.

        At least one partition is returned, because without a partition, Spark would create its own. Raises UsageError
        if the logs are too large to be sent (`carry`).
        """
        shares: list[list[Piece]] = [[]]
        size = 0
        for piece in pieces:
            if size and size + piece.end - piece.start > self._options.partition_bytes:
                shares.append([])
                size = 0
            shares[-1].append(piece)
            size += piece.end - piece.start
        if self._options.carry:
            _refuse_much(shares)
        return [api.InputPartition(tuple((piece, self._sent(piece)) for piece in share)) for share in shares]

    def _sent(self, piece: Piece) -> tuple[Sent, ...]:
        """Return (offset in the log, bytes) pairs for a task that cannot read the log.

        The result is empty without the option `carry`.
        """
        if not self._options.carry:
            return ()
        maps = table_maps(piece.path, piece.table_maps, piece.start)
        return (*maps, (piece.start, carried(piece.path, piece.start, piece.end)))


class BinlogReader(_Reads, api.DataSourceReader):
    """A reader for a batch query, which divides the requested logs into partitions."""

    def partitions(self) -> Sequence[api.InputPartition]:
        with _reported():
            return self._partitions(LogWalk(self._options, self._asked).to())


class FilteredBinlogReader(BinlogReader):
    """A `BinlogReader` that uses filters of the query to read fewer bytes."""

    def pushFilters(self, filters: list[api.Filter]) -> Iterator[api.Filter]:
        """Use filters to skip bytes, and return all filters, so that Spark checks every row again."""
        for given in filters:
            column, value = getattr(given, "attribute", None), getattr(given, "value", None)
            asked = self._asked
            if self._options.table is None and isinstance(given, api.EqualTo | api.In):
                if column == ("database",):
                    self._asked = replace(asked, databases=_texts(value) or asked.databases)
                elif column == ("table",):
                    self._asked = replace(asked, names=_texts(value) or asked.names)
            if column == ("ts",) and isinstance(value, datetime) and value.tzinfo:
                if isinstance(given, api.EqualTo | api.GreaterThan | api.GreaterThanOrEqual):
                    self._asked = replace(asked, since=max(asked.since, value.timestamp()))
                if isinstance(given, api.EqualTo | api.LessThan | api.LessThanOrEqual):
                    self._asked = replace(self._asked, until=min(asked.until, value.timestamp()))
            yield given


class BinlogStreamReader(_Reads, api.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader for a streaming query. `_walks` has a `LogWalk` at each known offset, so that no log is walked twice."""

    def __init__(self, options: QueryOptions, schema: sql.StructType) -> None:
        super().__init__(options, schema)
        self._live = _live(options)
        self._end: BinlogPosition | None = None  # the end of the logs at the start of a query that ends there
        self._walks: dict[BinlogPosition, LogWalk] = {}
        self._pieces: dict[tuple[BinlogPosition, BinlogPosition], list[Piece]] = {}

    def initialOffset(self) -> dict[str, Any]:
        with _reported():
            self._look()
            walk = LogWalk(self._options)
        self._walks[walk.place] = walk
        return _offset(walk.place)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Return the end of the next micro-batch.

        Spark before 4.2 passes no `start`. The micro-batch then begins at the last known offset.
        """
        begun = _place(start) if start else (max(self._walks, key=BinlogPosition.order_key) if self._walks else None)
        with _reported():
            self._look()
            walk = (self._at(begun) if begun else LogWalk(self._options)).copy()
            came_from = walk.place
            pieces = walk.to(self._end, self._options.max_bytes_per_trigger)
        self._walks[walk.place] = walk
        self._pieces[came_from, walk.place] = pieces
        return _offset(walk.place)

    def prepareForTriggerAvailableNow(self) -> None:
        with _reported():
            self._look()
            walk = LogWalk(self._options)
            walk.to()
        self._end = walk.place

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[api.InputPartition]:
        bounds = _place(start), _place(end)
        pieces = self._pieces.pop(bounds, None)
        if pieces is None:
            with _reported():
                self._look()
                walk = self._at(bounds[0]).copy()
                pieces = walk.to(bounds[1])
            self._walks[walk.place] = walk
        with _reported():
            return self._partitions(pieces)

    def _look(self) -> None:
        if self._live is not None:
            self._options = replace(self._options, path=self._live.copy_new_bytes())

    def commit(self, end: dict[str, Any]) -> None:
        place = _place(end)
        self._walks = {at: walk for at, walk in self._walks.items() if not at.is_before(place)}
        self._pieces = {bounds: found for bounds, found in self._pieces.items() if not bounds[0].is_before(place)}

    def _at(self, place: BinlogPosition) -> LogWalk:
        if place not in self._walks:
            walk = LogWalk(self._options)
            walk.to(place)
            if walk.place != place:
                raise UsageError(
                    f"the stream continues at {place}, which the logs of {self._options.path} do not have: "
                    f"the last position before it is {walk.place}",
                    hint="the logs were purged, or belong to another source: start the query with a new checkpoint",
                )
            self._walks[place] = walk
        return self._walks[place]


def _refuse_much(shares: Sequence[Sequence[Piece]]) -> None:
    sizes = [sum(piece.end - piece.start for piece in share) for share in shares]
    if sum(sizes) > MOST_CARRIED:
        raise UsageError(
            f"option carry: the logs have {sum(sizes) >> 20} MiB, but the driver sends at most {MOST_CARRIED >> 20}",
            hint="read the logs in parts (start and end, or max_bytes_per_trigger), or put them into a folder that "
            "every executor sees",
        )
    if max(sizes) > MOST_IN_PARTITION:
        raise UsageError(
            f"option carry: a task would get {max(sizes) >> 20} MiB, more than {MOST_IN_PARTITION >> 20}",
            hint="set a smaller partition_bytes; for large events, put the logs into a folder that every executor sees",
        )


def _live(options: QueryOptions) -> LiveLogs | None:
    """Return the logs of the server that the query reads, or None if the query reads a folder.

    The copy begins with the oldest log of the server, because the DDL in the logs defines the tables. With a schema
    file, it begins with the log of the option `start`.
    """
    if options.server is None:
        return None
    return LiveLogs(options.server, options.start.log_name if options.start and options.schema_file else "")


def _with_logs(options: QueryOptions) -> QueryOptions:
    """Copy the logs of a live server up to now, and return the options with the folder of the copies as `path`.

    If the query reads a folder, the options are unchanged.
    """
    live = _live(options)
    if live is None:
        return options
    try:
        return replace(options, path=live.copy_until_now(options.end))
    finally:
        live.close()


def _offset(place: BinlogPosition) -> dict[str, Any]:
    return {"log": place.log_name, "pos": place.log_pos}


def _place(offset: dict[str, Any]) -> BinlogPosition:
    return BinlogPosition(offset["log"], offset["pos"])


def _texts(value: Any) -> frozenset[str]:
    return frozenset(value if isinstance(value, list | tuple) else [value] if isinstance(value, str) else ())


def _struct(versions: Sequence[TableModel]) -> sql.StructType:
    """Return the type of a row.

    It has the columns of the last definition, and after them the columns that only earlier definitions had.
    """
    columns: dict[str, Column] = {}
    for model in reversed(versions):
        for column in model.columns:
            columns.setdefault(column.name, column)
    return sql.StructType([sql.StructField(name, spark_type(column)) for name, column in columns.items()])


def _batch(  # noqa: PLR0913 - parts of a batch
    piece: Piece, found: Changes, part: TableChanges, of: slice, schema: pa.Schema, options: QueryOptions, row: Any
) -> pa.RecordBatch:
    rows, images = part.rows, part.rows.images
    return pa.RecordBatch.from_arrays(
        [
            *head_of(part, found.transactions, piece.log_name, of),
            *(pa.repeat(pa.scalar(name), len(images.ops[of])) for name in (rows.model.database, rows.model.name)),
            row(rows, images.before[of], schema, options),
            row(rows, images.after[of], schema, options),
            *tail_of(images, of),
        ],
        schema=schema,
    )


def _json_rows(rows: TableRows, images: Ints, _schema: pa.Schema, _options: QueryOptions) -> pa.Array:
    return pa.array([json_text(row) for row in dict_rows(rows, images)], pa.string())


def _typed_rows(rows: TableRows, images: Ints, schema: pa.Schema, options: QueryOptions) -> pa.Array:
    wanted = schema.field("after").type
    own = {column.name: number for number, column in enumerate(rows.model.columns)}
    if unknown := own.keys() - {field.name for field in wanted}:
        raise RplError(
            f"table {rows.model.qualified_name} has new columns since the query began: {', '.join(sorted(unknown))}",
            hint="start the query again: it continues at its position, with these columns",
        )
    arrays = []
    for field in wanted:
        number = own.get(field.name)
        if number is None or number >= len(rows.formats):
            arrays.append(pa.nulls(len(images), field.type))
            continue
        column, fmt = rows.model.columns[number], rows.formats[number]
        own_type = to_arrow_schema(sql.StructType([sql.StructField("c", spark_type(column))]), timezone="UTC").types[0]
        array = column_array(rows.images, images, number, fmt, column, own_type, zero_null=options.zero_dates == "null")
        try:
            arrays.append(array if own_type == field.type else array.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise RplError(
                f"column `{field.name}` of {rows.model.qualified_name} was {own_type} here and is {field.type} now: "
                f"{error}",
                hint="read each definition separately, with the options start and end",
            ) from error
    is_none = images < 0
    return pa.StructArray.from_arrays(arrays, fields=list(wanted), mask=pa.array(is_none) if is_none.any() else None)


def _statement_batch(piece: Piece, found: Changes, schema: pa.Schema) -> pa.RecordBatch:
    gtids, ends = found.transactions.gtid, found.transactions.end
    rows = [
        (
            *(one.kind, piece.log_name, one.position, 0, gtids[one.transaction]),
            *(found.transactions.end_log, int(ends[one.transaction]), one.time * 1_000_000),
            *(one.database, one.table or None, None, None, False, one.text),
        )
        for one in found.statements
    ]
    return pa.RecordBatch.from_arrays(columns_of(rows, schema), schema=schema)


def _in_order(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of several tables in the order of the log."""
    table = pa.Table.from_batches(batches)
    ordered = table.take(pa.compute.sort_indices(table, [("pos", "ascending"), ("row_number", "ascending")]))
    yield from ordered.combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)
