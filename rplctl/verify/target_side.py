"""The target's rows: all of a table for its hashes; those of some keys beside what the target makes of the source's.

`stage` puts rows of the source through the applier's own encoder into a temporary table of the same columns, and that
table is read as the real one is: whatever the target does to a value it does to both. Invariant: nothing is written
but the temporary table, of a connection of our own without the fence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from rplctl.applier.apply.clone_load import chunk_of_rows
from rplctl.errors import SourceError, TargetError
from rplctl.event.images import Images
from rplctl.result_set.columns import SESSION, SelectedColumn, quote, selected_columns
from rplctl.schema.model import TableModel
from rplctl.source.select import SelectedRows
from rplctl.target import dialect_of, mapped_errors, open_engine, target_kind
from rplctl.target.base import Target
from rplctl.target.compared import ComparedRows
from rplctl.target.registry import compared_rows
from rplctl.verify.drift import drift_of
from rplctl.verify.hashes import hash_values
from rplctl.verify.key_values import Key, where_keys
from rplctl.verify.pair import Batch, Pair, batch_of_images, batch_of_values, keys_of_images, stream_images

_STAGE: Final = "rplctl_verify"
_KEYS_AT_ONCE: Final = 500
Row = tuple[Key, tuple[Any, ...]]  # and its cells, alike where the target keeps the same


class TargetSide(ABC):
    """Of one thread; `scan` has a connection of its own."""

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        self.target: Target = dialect_of(target_kind(url)).open_target(self._engine)

    def close(self) -> None:
        self.target.close()

    @property
    def _driver(self) -> Any:
        return self.target.connection.connection.driver_connection

    @abstractmethod
    def drift(self, source: TableModel, create: str, known: TableModel) -> tuple[str, ...]:
        """How the table is defined otherwise. `create`: what SHOW CREATE TABLE prints on the source."""

    @abstractmethod
    def scan(self, pair: Pair) -> Iterator[Batch]:
        """Hashes of all rows. Raises TargetError."""

    @abstractmethod
    def stage(self, pair: Pair, rows: Iterable[Images]) -> None:
        """Into a new stage. Raises TargetError; RplError for a value that the target cannot hold."""

    def _load(self, model: TableModel, columns: Sequence[SelectedColumn], rows: Iterable[Images]) -> None:
        for images in rows:
            chunk = chunk_of_rows(images, columns, model, self.target)
            self.target.apply_chunks([chunk], {(model.database, model.name): model})

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self.target.begin(foreign_keys=False)
        try:
            yield
        except BaseException:
            self.target.rollback()
            raise
        self.target.commit()

    @abstractmethod
    def read(self, pair: Pair, keys: Sequence[Key]) -> tuple[list[Row], list[Row]]:
        """What is staged, and what the table has of these keys and of the staged ones. Raises TargetError."""

    @abstractmethod
    def count(self, pair: Pair, hashes: set[int]) -> tuple[Counter[Any], Counter[Any]]:
        """Of a table without a key: how often each row is staged, and is in the table, of rows with one of the hashes
        or with a staged one's. Raises TargetError.
        """


class ValuesSide(TargetSide):
    """A kind that does not speak MySQL."""

    def __init__(self, url: str, compared: ComparedRows) -> None:
        super().__init__(url)
        self._compared = compared

    def drift(self, source: TableModel, create: str, known: TableModel) -> tuple[str, ...]:
        return tuple(self._compared.drift(self.target, known))

    def scan(self, pair: Pair) -> Iterator[Batch]:
        for rows in self._compared.scan(self._engine, pair.target, pair.target.columns[: pair.width]):
            yield batch_of_values(rows, pair)

    def stage(self, pair: Pair, rows: Iterable[Images]) -> None:
        self.target.check_table(pair.target)
        model = self._compared.make_stage(self.target, pair.target, pair.target.columns[: pair.width])
        if self._compared.stage_commits:
            with self._transaction():
                self._load(model, pair.selected(), rows)
        else:
            self._load(model, pair.selected(), rows)

    def read(self, pair: Pair, keys: Sequence[Key]) -> tuple[list[Row], list[Row]]:
        columns = pair.target.columns[: pair.width]
        staged = self._rows(pair, self._compared.staged(self.target, columns))
        wanted = list(dict.fromkeys([*keys, *(key for key, _ in staged)]))
        found = self._compared.of_keys(self.target, pair.target, columns, pair.key, wanted)
        return staged, self._rows(pair, found)

    def _rows(self, pair: Pair, rows: Iterable[tuple[Any, Any]]) -> list[Row]:
        return [(tuple(plain[c] for c in pair.key), cells) for plain, cells in rows]

    def count(self, pair: Pair, hashes: set[int]) -> tuple[Counter[Any], Counter[Any]]:
        columns = pair.target.columns[: pair.width]
        staged = list(self._compared.staged(self.target, columns))
        wanted = hashes.union(hash_values(plain for plain, _ in staged).tolist())
        found: Counter[Any] = Counter()
        for plain, cells in self._compared.all_rows(self.target, pair.target, columns):
            if hash_values([plain]).tolist()[0] in wanted:
                found[cells] += 1
        return Counter(cells for _, cells in staged), found


class ServerSide(TargetSide):
    """MySQL, MariaDB: the rows come as they come from the source."""

    def drift(self, source: TableModel, create: str, known: TableModel) -> tuple[str, ...]:
        return tuple(drift_of(source, create, known))

    def scan(self, pair: Pair) -> Iterator[Batch]:
        columns, modes = pair.hashed(of_target=True)
        with mapped_errors(self.target.kind), self._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.query(SESSION)
            try:
                for images in _images(driver, columns, _name(pair), ""):
                    yield batch_of_images(images, _of_target(pair), columns, modes)
            finally:
                connection.invalidate()  # its session is another one now

    def stage(self, pair: Pair, rows: Iterable[Images]) -> None:
        stage = f"{quote(pair.target.database)}.{quote(_STAGE)}"
        with mapped_errors(self.target.kind):
            self._driver.query(f"DROP TEMPORARY TABLE IF EXISTS {stage}")
            self._driver.query(f"CREATE TEMPORARY TABLE {stage} LIKE {_name(pair)}")
            self._driver.rollback()
        model = replace(pair.target, name=_STAGE, foreign_keys=())
        with self._transaction():
            self._load(model, pair.selected(), rows)

    def read(self, pair: Pair, keys: Sequence[Key]) -> tuple[list[Row], list[Row]]:
        columns = selected_columns(pair.target.columns[: pair.width], takes_numbers=True)
        own = [pair.target.columns[c] for c in pair.key]
        with self._raw() as driver:
            staged = [row for images in self._staged(pair, columns) for row in _rows_of(images, pair, columns)]
            wanted = list(dict.fromkeys([*keys, *(key for key, _ in staged)]))
            found: list[Row] = []
            for at in range(0, len(wanted), _KEYS_AT_ONCE):
                for images in _images(driver, columns, _name(pair), where_keys(own, wanted[at : at + _KEYS_AT_ONCE])):
                    found += _rows_of(images, pair, columns)
        return staged, found

    def count(self, pair: Pair, hashes: set[int]) -> tuple[Counter[Any], Counter[Any]]:
        columns, modes = pair.hashed(of_target=True)
        staged: Counter[Any] = Counter()
        found: Counter[Any] = Counter()
        wanted = set(hashes)
        with self._raw() as driver:
            for images in self._staged(pair, columns):
                wanted.update(batch_of_images(images, pair, columns, modes).rows.tolist())
                staged.update(_cells(images, row, len(columns)) for row in range(len(images.cell_start)))
            for images in _images(driver, columns, _name(pair), ""):
                rows = enumerate(batch_of_images(images, pair, columns, modes).rows.tolist())
                found.update(_cells(images, row, len(columns)) for row, value in rows if value in wanted)
        return staged, found

    def _staged(self, pair: Pair, columns: Sequence[SelectedColumn]) -> Iterator[Images]:
        return _images(self._driver, columns, f"{quote(pair.target.database)}.{quote(_STAGE)}", "")

    @contextmanager
    def _raw(self) -> Iterator[Any]:
        """Text comes as it lies there, all of one snapshot; the session is what it was behind the block."""
        driver = self._driver
        with mapped_errors(self.target.kind):
            driver.query("SET SESSION character_set_results = NULL, @rplctl_mode = @@sql_mode, SESSION sql_mode = ''")
            driver.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            driver.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            try:
                yield driver
            finally:
                driver.query("ROLLBACK")
                driver.query("SET SESSION character_set_results = utf8mb4, SESSION sql_mode = @rplctl_mode")


def _images(driver: Any, columns: Sequence[SelectedColumn], name: str, where: str) -> Iterator[Images]:
    what = ", ".join(column.expression for column in columns)
    try:
        yield from stream_images(SelectedRows(driver, f"SELECT {what} FROM {name}{where}", "the target"), columns)
    except SourceError as error:
        raise TargetError(error.message, errno=error.errno) from error


def _name(pair: Pair) -> str:
    return f"{quote(pair.target.database)}.{quote(pair.target.name)}"


def _of_target(pair: Pair) -> Pair:
    """Its keys are read by the target's own columns."""
    return replace(pair, source=pair.target)


def _rows_of(images: Images, pair: Pair, columns: Sequence[SelectedColumn]) -> list[Row]:
    formats = [column.format for column in columns]
    keys = keys_of_images(images, formats, _of_target(pair), np.arange(len(images.cell_start)))
    return [(key, _cells(images, row, len(columns))) for row, key in enumerate(keys)]


def _cells(images: Images, row: int, count: int) -> tuple[bytes | None, ...]:
    return tuple(_cell(images, row, column) for column in range(count))


def _cell(images: Images, row: int, column: int) -> bytes | None:
    start = int(images.cell_start[row, column])
    if start < 0:
        return None
    raw: bytes = images.data[start : start + int(images.cell_length[row, column])].tobytes()
    return raw


def open_side(url: str) -> TargetSide:
    """Raises TargetError."""
    compared = compared_rows(target_kind(url))
    return ServerSide(url) if compared is None else ValuesSide(url, compared)
