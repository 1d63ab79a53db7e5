"""Reads DuckDB's rows for `rplctl verify`.

The SELECT casts each column, so that DuckDB returns the Python types that the decoder returns for the source's rows.
verify loads rows of the source into a temporary table, the stage, which is not stored in the database file. The stage
is in the database `rplctl`, and the target never creates a table of the source there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rplctl.schema.model import Column, TableModel
from rplctl.sql_text import Sql, joined, written
from rplctl.target.compared import Columns, ComparedRows, PlainRow, Rows, celled, single, staged_model
from rplctl.target.ddl_parts import quote
from rplctl.target.dialect import OWN_SCHEMA
from rplctl.target.duckdb import rows as sql_of
from rplctl.target.duckdb.connection import driver_of
from rplctl.target.duckdb.ddl import create_table
from rplctl.target.duckdb.ddl_type import declared, table
from rplctl.target.duckdb.errors import mapped_errors
from rplctl.target.duckdb.relation import relation

_STAGE: Final = written("verify")
_ROWS: Final = 20_000
_KEYS_AT_ONCE: Final = 5_000
_NAMED: Final = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}  # declared type → DuckDB's name in its catalog


class DuckdbRows(ComparedRows):
    @property
    def _driver(self) -> Any:
        return driver_of(self.target.connection)

    @staticmethod
    def of_source(values: list[Any], column: Column) -> list[Any]:
        if column.type == "float":
            return [None if value is None else single(value) for value in values]
        return values

    def drift(self, model: TableModel) -> list[str]:
        with mapped_errors():
            there = sql_of.present_columns(self._driver, model)
        if not there:
            return [*create_table(model)]
        drift: list[str] = []
        for column in model.columns:
            wanted = declared(column)
            if column.name not in there:
                drift.append(written("ALTER TABLE {} ADD COLUMN {} {}", table(model), quote(column.name), wanted))
            elif there[column.name] != _NAMED.get(wanted, wanted):
                text = f"{column.name} is {there[column.name]}, not {wanted}; copy the table again"
                drift.append(f"-- {table(model)}: {text}")
        return drift

    def scan(self, model: TableModel, columns: Columns) -> Iterator[list[PlainRow]]:
        with mapped_errors(), self.target.engine.connect() as connection:
            found = driver_of(connection).execute(_select(columns, table(model)))
            while rows := found.fetchmany(_ROWS):
                yield rows

    def make_stage(self, model: TableModel, columns: Columns) -> TableModel:
        staged = staged_model(model, OWN_SCHEMA, _STAGE)
        names = joined(", ", (quote(column.name) for column in columns))
        made = written("CREATE OR REPLACE TEMP TABLE {} AS SELECT {} FROM {} WITH NO DATA", _STAGE, names, table(model))
        with mapped_errors():
            self._driver.execute(made)
        return staged

    def staged(self, columns: Columns) -> Rows:
        return self._rows(_select(columns, written("temp.main.{}", _STAGE)))

    def all_rows(self, model: TableModel, columns: Columns) -> Rows:
        return self._rows(_select(columns, table(model)))

    def of_keys(self, model: TableModel, columns: Columns, key: Sequence[int], keys: Sequence[PlainRow]) -> Rows:
        for at in range(0, len(keys), _KEYS_AT_ONCE):
            with relation(self._driver, model, key, keys[at : at + _KEYS_AT_ONCE]) as given:
                sql = written(
                    "{} AS t, {} WHERE {}", _select(columns, table(model)), given.sql, sql_of.same_row(model, key)
                )
                yield from self._rows(sql, given.values)

    def _rows(self, sql: Sql, values: Sequence[Any] = ()) -> Rows:
        with mapped_errors():
            return celled(self._driver.execute(sql, list(values)).fetchall())


def _select(columns: Sequence[Column], name: Sql) -> Sql:
    return written("SELECT {} FROM {}", joined(", ", (sql_of.decoded(column) for column in columns)), name)


COMPARED: Final = DuckdbRows
