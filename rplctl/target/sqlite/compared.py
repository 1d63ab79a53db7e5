"""Reads SQLite's rows in the form in which `rplctl verify` compares them: the type and the bytes of each value.

SQLite stores no negative zero, so the source's negative zeros are converted. The source's rows are loaded into a
temporary table. SQLite stores this table in another file, so loading it needs no lock on the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rplctl.schema.model import Column, TableModel
from rplctl.schema.naming import physical_name
from rplctl.schema.plan import Catalog
from rplctl.sql_text import Sql, joined, written
from rplctl.target.compared import Columns, ComparedRows, PlainRow, Rows, celled, staged_model
from rplctl.target.ddl_parts import quote
from rplctl.target.sqlite.ddl import create_table, table
from rplctl.target.sqlite.ddl_type import affinity
from rplctl.target.sqlite.driver import SqliteDriver, driver_of
from rplctl.target.sqlite.errors import mapped_errors

_DATABASE, _NAME = "rplctl", "verify"
_STAGE: Final = quote(physical_name(_DATABASE, _NAME))
_ROWS: Final = 20_000


class SqliteRows(ComparedRows):
    @property
    def driver(self) -> SqliteDriver:
        return _lossless(driver_of(self.target.connection))

    @staticmethod
    def of_source(values: list[Any], column: Column) -> list[Any]:
        if column.type in ("float", "double"):
            return [None if value is None else value + 0.0 for value in values]
        return values

    def drift(self, model: TableModel) -> list[str]:
        with mapped_errors():
            found = self.driver.execute(written("PRAGMA main.table_info({})", table(model))).fetchall()
        if not found:
            return [*create_table(model, Catalog({(model.database, model.name): model}))]
        types = {name.casefold(): _kind(declared) for _, name, declared, *_ in found}
        drift: list[str] = []
        for column in model.columns:
            wanted, there = affinity(column), types.get(column.name.casefold())
            if there is None:
                drift.append(f"ALTER TABLE {table(model)} ADD COLUMN {quote(column.name)} {wanted}".rstrip())
            elif there != _kind(wanted):
                drift.append(f"-- {table(model)}: {column.name} is {there}, not {_kind(wanted)}; copy the table again")
        return drift

    def scan(self, model: TableModel, columns: Columns) -> Iterator[list[PlainRow]]:
        with mapped_errors(), self.target.engine.connect() as connection:
            cursor = _lossless(driver_of(connection)).execute(_select(columns, written("main.{}", table(model))))
            while rows := cursor.fetchmany(_ROWS):
                yield rows

    def make_stage(self, model: TableModel, columns: Columns) -> TableModel:
        driver = self.driver
        with mapped_errors():
            found = driver.execute(written("PRAGMA main.table_info({})", table(model))).fetchall()
            types = {name.casefold(): declared for _, name, declared, *_ in found}
            driver.execute(written("DROP TABLE IF EXISTS temp.{}", _STAGE))
            made = joined(
                ", ",
                (_declared(column, types.get(column.name.casefold(), "")) for column in columns),
            )
            driver.execute(written("CREATE TEMP TABLE {} ({})", _STAGE, made))
        return staged_model(model, _DATABASE, _NAME)

    def staged(self, columns: Columns) -> Rows:
        return self._rows(_select(columns, written("temp.{}", _STAGE)))

    def all_rows(self, model: TableModel, columns: Columns) -> Rows:
        return self._rows(_select(columns, written("main.{}", table(model))))

    def of_keys(self, model: TableModel, columns: Columns, key: Sequence[int], keys: Sequence[PlainRow]) -> Rows:
        where = joined(" AND ", (written("{} = ?", quote(columns[c].name)) for c in key))
        one = written("{} WHERE {}", _select(columns, written("main.{}", table(model))), where)
        return (row for values in keys for row in self._rows(one, values))

    def _rows(self, sql: Sql, values: PlainRow = ()) -> Rows:
        with mapped_errors():
            yield from celled(self.driver.execute(sql, values))


def _declared(column: Column, kind: str) -> Sql:
    """Return the definition of a column of the temporary table, with the type `kind` of the target's column.

    The type is quoted, because an operator may have declared any text as the type. Quotes do not change the affinity.
    """
    return written("{} {}", quote(column.name), quote(kind)) if kind else quote(column.name)


def _kind(declared: str) -> str:
    """Return the word that determines the affinity of a declared type (manual of SQLite: Column Affinity)."""
    word = declared.upper()
    return "INT" if "INT" in word else word or "BLOB"


def _select(columns: Sequence[Column], name: Sql) -> Sql:
    return written("SELECT {} FROM {}", joined(", ", (quote(column.name) for column in columns)), name)


def _lossless(driver: SqliteDriver) -> SqliteDriver:
    """Make the connection also return text that is not valid UTF-8, with surrogate escapes. Return the connection."""
    driver.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    return driver


COMPARED: Final = SqliteRows
