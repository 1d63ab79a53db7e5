"""Reads a table's rows on the target: all rows for hashes, or the rows with given keys for a comparison.

For a comparison, `stage` first writes the source's rows to a temporary table with the same columns, with the applier's
own encoder. Then both tables are read in the same way. So each conversion by the target affects both of them.
Invariant: nothing is written except the temporary table. The connection does not have the channel's lock in the target,
which the applier has.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np

from rplctl.applier.apply.clone_rows import chunk_of_rows
from rplctl.errors import SourceError, TargetError
from rplctl.event.images import Images
from rplctl.handshake import GuardedConnection
from rplctl.result_set.columns import SESSION, SelectedColumn, selected_columns
from rplctl.schema.definition import table_definition
from rplctl.schema.model import TableModel
from rplctl.schema.source_catalog import quote
from rplctl.schema.structure import END_OF_TIME, LATER_END_OF_TIME, ROW_END, row_end
from rplctl.source.select import SelectedRows
from rplctl.sql_text import NOTHING, Sql, joined, proven_statement, word, written
from rplctl.target import dialect_of, mapped_errors, open_engine, target_kind
from rplctl.target.base import ChangeKind, Row as TargetRow, RowChange, RowSet, Target
from rplctl.target.compared import ComparedRows
from rplctl.target.registry import compared_rows
from rplctl.verify.drift import drift_of
from rplctl.verify.hashes import hash_values
from rplctl.verify.key_values import Key, where_keys
from rplctl.verify.pair import Pair, RowHashes, batch_of_images, batch_of_values, keys_of_images, stream_images
from rplctl.verify.server_sums import Ask

_STAGE: Final = "rplctl_verify"
_NOT_STAGED: Final = re.compile(
    r" GENERATED ALWAYS AS ROW (START|END)|,`\w+` WITHOUT OVERLAPS| WITH(OUT)? SYSTEM VERSIONING| AUTO_INCREMENT"
)
_CHARSET: Final = re.compile(r"DEFAULT CHARSET=\w+( COLLATE=\w+)?")
_KEYS_AT_ONCE: Final = 500
_CURRENT: Final = frozenset({END_OF_TIME, LATER_END_OF_TIME, str(2**64 - 1)})
Row = tuple[Key, tuple[Any, ...]]  # (key, cells); values are equal on the target if their cells are equal


class TargetSide(ABC):
    """The target's side of a comparison: a connection that reads a table, and loads rows of the source.

    An object is for one thread. But `scan` opens a connection of its own, so it may run in another thread.
    """

    _stage_commits = True  # loading the stage needs a transaction

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        self.target: Target = dialect_of(target_kind(url)).open_target(self._engine)

    def close(self) -> None:
        self.target.close()

    @property
    def _driver(self) -> GuardedConnection:
        return cast("GuardedConnection", self.target.connection.connection.driver_connection)

    @abstractmethod
    def drift(self, source: TableModel, create: str, known: TableModel) -> tuple[str, ...]:
        """Return the differences between the table's definitions on the source and the target, each as text.

        A text is a statement that repairs the difference, or a comment after `--`. `source`, `create`: the source's
        definition, as a model and as the text of SHOW CREATE TABLE. `known`: the definition that the applier uses.
        """

    @abstractmethod
    def scan(self, pair: Pair) -> Iterator[RowHashes]:
        """Yield hashes of all rows of the table on the target, to compare them with those of the source.

        Raises TargetError if the target reports an error.
        """

    @abstractmethod
    def stage(self, pair: Pair, rows: Iterable[Images]) -> None:
        """Create the temporary table, even if one exists, and load these rows of the source into it.

        Raises TargetError if the target reports an error, and RplError for a value that the target cannot store.
        """

    def restage(self, pair: Pair, gone: Iterable[Key], rows: Iterable[TargetRow]) -> None:
        """Delete the rows with the keys `gone` from the temporary table, and insert `rows` into it.

        A repair calls this for rows that the source has changed since `stage`. Raises TargetError if the target reports
        an error.
        """
        model, target, whole = self._stage, self.target, tuple(range(pair.width))
        with self._staging():
            for key in gone:
                target.apply_change(
                    RowChange(kind=ChangeKind.DELETE, before=RowSet(pair.key, [key]), after=None), model
                )
            for row in rows:
                target.apply_change(RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet(whole, [row])), model)

    def _load(self, model: TableModel, columns: Sequence[SelectedColumn], rows: Iterable[Images]) -> None:
        self._stage = model
        with self._staging():
            for images in rows:
                chunk = chunk_of_rows(images, columns, model, self.target)
                self.target.apply_chunks([chunk], {(model.database, model.name): model})

    @contextmanager
    def _staging(self) -> Iterator[None]:
        if not self._stage_commits:
            yield
            return
        self.target.begin(foreign_keys=False)
        try:
            yield
        except BaseException:
            self.target.rollback()
            raise
        self.target.commit()

    @abstractmethod
    def read(self, pair: Pair, keys: Sequence[Key]) -> tuple[list[Row], list[Row]]:
        """Return the rows of the temporary table, and the rows of the table itself that are compared with them.

        From the table itself, the rows with one of `keys`, or with the key of a row in the temporary table, are
        returned. Raises TargetError if the target reports an error.
        """

    @abstractmethod
    def count(self, pair: Pair, hashes: set[int]) -> tuple[Counter[Any], Counter[Any]]:
        """Count each row in the temporary table, and each row in the table itself, for a table without a key.

        In the table, only rows with one of the hashes, or with the hash of a row in the temporary table, are counted.
        Raises TargetError if the target reports an error.
        """


class ValuesSide(TargetSide):
    """The target's side for targets other than MySQL and MariaDB. Its rows are read as plain values."""

    def __init__(self, url: str, compared: type[ComparedRows]) -> None:
        super().__init__(url)
        self._compared, self._stage_commits = compared(self.target), compared.stage_commits

    def drift(self, source: TableModel, create: str, known: TableModel) -> tuple[str, ...]:
        return tuple(self._compared.drift(known))

    def scan(self, pair: Pair) -> Iterator[RowHashes]:
        for rows in self._compared.scan(pair.target, pair.target.columns[: pair.width]):
            yield batch_of_values([row for row in rows if _is_current(row, pair)], pair)

    def stage(self, pair: Pair, rows: Iterable[Images]) -> None:
        self.target.check_table(pair.target)
        model = self._compared.make_stage(pair.target, pair.target.columns[: pair.width])
        self._load(model, pair.selected(), rows)

    def read(self, pair: Pair, keys: Sequence[Key]) -> tuple[list[Row], list[Row]]:
        columns = pair.target.columns[: pair.width]
        staged = self._rows(pair, self._compared.staged(columns))
        wanted = list(dict.fromkeys([*keys, *(key for key, _ in staged)]))
        found = self._compared.of_keys(pair.target, columns, pair.key, wanted)
        return staged, self._rows(pair, found)

    def _rows(self, pair: Pair, rows: Iterable[tuple[Any, Any]]) -> list[Row]:
        return [(tuple(plain[c] for c in pair.key), pair.compared(cells)) for plain, cells in rows]

    def count(self, pair: Pair, hashes: set[int]) -> tuple[Counter[Any], Counter[Any]]:
        columns = pair.target.columns[: pair.width]
        staged = list(self._compared.staged(columns))
        wanted = hashes.union(hash_values(pair.compared(plain) for plain, _ in staged).tolist())
        found: Counter[Any] = Counter()
        for plain, cells in self._compared.all_rows(pair.target, columns):
            if _is_current(plain, pair) and hash_values([pair.compared(plain)]).tolist()[0] in wanted:
                found[pair.compared(cells)] += 1
        return Counter(pair.compared(cells) for _, cells in staged), found


def _is_current(row: Sequence[Any], pair: Pair) -> bool:
    """True if a SELECT on the source shows the row. It does not show old versions in a system-versioned table."""
    if not pair.target.system_versioned:
        return True
    end = row_end(pair.target) or ROW_END
    at = next(number for number, column in enumerate(pair.target.columns) if column.name == end)
    return str(row[at]) in _CURRENT


class ServerSide(TargetSide):
    """The target's side for MySQL and MariaDB. Its rows have the same form as the source's rows."""

    def drift(self, source: TableModel, create: str, known: TableModel) -> tuple[str, ...]:
        return tuple(drift_of(source, create, known))

    def scan(self, pair: Pair, wheres: Iterable[Sql] = (NOTHING,)) -> Iterator[RowHashes]:
        """Yield hashes of all rows, or of the rows that the conditions `wheres` select."""
        columns, modes = pair.hashed(of_target=True)
        with self._session() as driver:
            for where in wheres:
                for images in _images(driver, columns, _name(pair), where):
                    yield batch_of_images(images, _of_target(pair), columns, modes)

    @contextmanager
    def asked(self) -> Iterator[Ask]:
        """Yield a function that runs queries on the target, in a session with the same settings as on the source.

        The function is for use in one thread. Both this method and the function raise TargetError if the target reports
        an error.
        """
        with self._session() as driver:

            def ask(sql: Sql) -> Sequence[tuple[Any, ...]]:
                with mapped_errors(self.target.kind), driver.cursor() as cursor:
                    cursor.execute(sql)
                    found: Sequence[tuple[Any, ...]] = cursor.fetchall()
                    return found

            yield ask

    @contextmanager
    def _session(self) -> Iterator[GuardedConnection]:
        with mapped_errors(self.target.kind), self._engine.connect() as connection:
            driver = cast("GuardedConnection", connection.connection.driver_connection)
            driver.query(SESSION)
            try:
                yield driver
            finally:
                connection.invalidate()  # its session variables were changed

    def stage(self, pair: Pair, rows: Iterable[Images]) -> None:
        stage = quote(pair.target.database, _STAGE)
        with mapped_errors(self.target.kind), self._driver.cursor() as cursor:
            cursor.execute(written("SHOW CREATE TABLE {}", _name(pair)))
            made = stage_of(str(cursor.fetchall()[0][1]), pair.target)
            cursor.execute(written("DROP TEMPORARY TABLE IF EXISTS {}", stage))
            cursor.execute(
                written("SET @rplctl_mode = @@sql_mode, SESSION sql_mode = ''")
            )  # defaults may be zero dates, which strict mode refuses
            cursor.execute(written("CREATE TEMPORARY TABLE {} {}", stage, made))
            cursor.execute(written("SET SESSION sql_mode = @rplctl_mode"))
            self._driver.rollback()
        model = replace(pair.target, name=_STAGE, foreign_keys=(), partitioning=None, system_versioned=False)
        self._load(model, pair.selected(), rows)

    def read(self, pair: Pair, keys: Sequence[Key]) -> tuple[list[Row], list[Row]]:
        columns = selected_columns(pair.target.columns[: pair.width], takes_numbers=True)
        own = [pair.target.columns[c] for c in pair.key]
        with self._raw() as driver:
            staged = [row for images in self._staged(pair, columns) for row in _rows_of(images, pair, columns)]
            wanted = list(dict.fromkeys([*keys, *(key for key, _ in staged)]))
            found: list[Row] = []
            for at in range(0, len(wanted), _KEYS_AT_ONCE):
                some = wanted[at : at + _KEYS_AT_ONCE]
                part = set(some)
                for images in _images(driver, columns, _name(pair), where_keys(own, some)):
                    # the collation treats other keys as equal, too
                    found += [row for row in _rows_of(images, pair, columns) if row[0] in part]
        return staged, found

    def count(self, pair: Pair, hashes: set[int]) -> tuple[Counter[Any], Counter[Any]]:
        columns, modes = pair.hashed(of_target=True)
        staged: Counter[Any] = Counter()
        found: Counter[Any] = Counter()
        wanted = set(hashes)
        with self._raw() as driver:
            for images in self._staged(pair, columns):
                wanted.update(batch_of_images(images, pair, columns, modes).rows.tolist())
                staged.update(_cells(images, row) for row in range(len(images.cell_start)))
            for images in _images(driver, columns, _name(pair), NOTHING):
                rows = enumerate(batch_of_images(images, pair, columns, modes).rows.tolist())
                found.update(_cells(images, row) for row, value in rows if value in wanted)
        return staged, found

    def _staged(self, pair: Pair, columns: Sequence[SelectedColumn]) -> Iterator[Images]:
        return _images(self._driver, columns, quote(pair.target.database, _STAGE), NOTHING)

    @contextmanager
    def _raw(self) -> Iterator[GuardedConnection]:
        """Let the session return text without conversion, and read one snapshot, during the `with` block.

        Afterwards, the settings of the session are restored.
        """
        driver = self._driver
        with mapped_errors(self.target.kind):
            driver.query(
                written("SET SESSION character_set_results = NULL, @rplctl_mode = @@sql_mode, SESSION sql_mode = ''")
            )
            driver.query(written("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            driver.query(written("START TRANSACTION WITH CONSISTENT SNAPSHOT"))
            try:
                yield driver
            finally:
                driver.query(written("ROLLBACK"))
                driver.query(written("SET SESSION character_set_results = utf8mb4, SESSION sql_mode = @rplctl_mode"))


def stage_of(create: str, model: TableModel) -> Sql:
    """Return the end of the statement CREATE TEMPORARY TABLE, from the columns on, for a copy of the table's columns.

    `create`: the table's text from SHOW CREATE TABLE. CREATE TABLE … LIKE cannot be used, because it fails for tables
    with partitions, system versioning or a FULLTEXT key. Raises RplError if `create` is more than a table definition.
    """
    made = table_definition(create, model.name)
    kept = [one.text for one in made.elements if one.column or one.text.startswith("PRIMARY KEY")]
    lines = [proven_statement(_NOT_STAGED.sub("", line)) for line in kept]  # only complete words are removed
    there = {one.column for one in made.elements}
    for column in model.columns:
        if column.name not in there:  # a hidden column of system versioning
            lines.append(written("{} {}({}) NULL", quote(column.name), word(column.type), column.length or 0))
    charset = _CHARSET.search(made.tail)
    return written("({}) {}", joined(", ", lines), proven_statement(charset[0]) if charset else NOTHING)


def _images(driver: Any, columns: Sequence[SelectedColumn], name: Sql, where: Sql) -> Iterator[Images]:
    what = joined(", ", [column.expression for column in columns])
    try:
        yield from stream_images(
            SelectedRows(driver, written("SELECT {} FROM {}{}", what, name, where), "the target"), columns
        )
    except SourceError as error:
        raise TargetError(error.message, errno=error.errno) from error


def _name(pair: Pair) -> Sql:
    return quote(pair.target.database, pair.target.name)


def _of_target(pair: Pair) -> Pair:
    """Return the pair with the target's model on both sides, because the target's rows have the target's columns."""
    return replace(pair, source=pair.target)


def _rows_of(images: Images, pair: Pair, columns: Sequence[SelectedColumn]) -> list[Row]:
    formats = [column.format for column in columns]
    keys = keys_of_images(images, formats, _of_target(pair), np.arange(len(images.cell_start)))
    return [(key, _cells(images, row)) for row, key in enumerate(keys)]


def _cells(images: Images, row: int) -> tuple[bytes | None, ...]:
    cells = zip(images.cell_start[row].tolist(), images.cell_length[row].tolist(), strict=True)
    return tuple(images.data[start : start + length].tobytes() if start >= 0 else None for start, length in cells)


def open_side(url: str) -> TargetSide:
    """Open a connection to the target for a comparison. Raises TargetError if the target does not answer."""
    compared = compared_rows(target_kind(url))
    return ServerSide(url) if compared is None else ValuesSide(url, compared)
