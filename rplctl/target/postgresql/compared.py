"""Reads PostgreSQL's rows in the form in which `rplctl verify` compares them with the source's rows.

A value is read as the text that PostgreSQL prints for its type, without any loss. PostgreSQL prints no zeros at the end
of a fraction, prints the zero date as -infinity, and has its own format of addresses. So some of the source's values
are converted to the same text.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from rplctl.schema.model import BINARY_TYPES, GEOMETRY_TYPES, INTEGER_BITS, Column, TableModel
from rplctl.schema.plan import Catalog
from rplctl.sql_text import Sql, joined, percent_doubled, written
from rplctl.target.compared import Cells, Columns, ComparedRows, PlainRow, Rows, single, staged_model
from rplctl.target.ddl_parts import is_zero_date, quote
from rplctl.target.postgresql.connection import mapped_errors, nul_in_text
from rplctl.target.postgresql.ddl_table import create_table
from rplctl.target.postgresql.ddl_type import ZERO_DATE, declared, table
from rplctl.target.postgresql.driver import PostgresqlDriver, driver_of
from rplctl.target.postgresql.rows import where_keys
from rplctl.target.postgresql.values import parameter

_STAGE: Final = written("rplctl_verify")
_ROWS: Final = 20_000
_KEYS_AT_ONCE: Final = 500
_TYPES: Final = written(
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
)
_SESSION: Final = written(
    "SET bytea_output = hex; SET extra_float_digits = 1; SET TimeZone = 'UTC'; SET DateStyle = 'ISO';"
    " SET IntervalStyle = postgres"
)


class PostgresqlRows(ComparedRows):
    stage_commits = True

    @property
    def driver(self) -> PostgresqlDriver:
        return driver_of(self.target.connection)

    @staticmethod
    def of_source(values: list[Any], column: Column) -> list[Any]:
        how = _PRINTED.get(column.type)
        return values if how is None else [None if value is None else how(value) for value in values]

    def drift(self, model: TableModel) -> list[str]:
        """Return statements that give the table's columns the types of `model`, or [] if all types are equal.

        If the table is missing, the statements create it. PostgreSQL itself prints the types of the table and of the
        model, so spellings do not matter.
        """
        driver = self.driver
        with mapped_errors():
            found = dict(driver.execute(_TYPES, (table(model),)).fetchall())
            if found:
                wanted = joined(
                    ", ", (written("{} {}", quote(column.name), declared(column)) for column in model.columns)
                )
                driver.execute(written("CREATE TEMP TABLE rplctl_drift ({})", wanted))
                made = dict(driver.execute(_TYPES, ("pg_temp.rplctl_drift",)).fetchall())
            driver.rollback()
        if not found:
            return [*create_table(model, Catalog({(model.database, model.name): model}))]
        return [
            f"ALTER TABLE {table(model)} {'ALTER' if name in found else 'ADD'} COLUMN {quote(name)}"
            f"{' TYPE' if name in found else ''} {kind}"
            for name, kind in made.items()
            if found.get(name) != kind
        ]

    def scan(self, model: TableModel, columns: Columns) -> Iterator[list[PlainRow]]:
        with mapped_errors(), self.target.engine.connect() as connection:
            driver = driver_of(connection)
            driver.execute(_SESSION)
            with driver.cursor(name=_STAGE) as cursor:
                cursor.execute(_select(columns, table(model)))
                while rows := cursor.fetchmany(_ROWS):
                    yield [plain for plain, _ in _plain(rows, columns)]
            connection.invalidate()  # the session's settings have changed

    def make_stage(self, model: TableModel, columns: Columns) -> TableModel:
        driver, names = self.driver, joined(", ", (quote(column.name) for column in columns))
        with mapped_errors():
            driver.execute(_SESSION)
            driver.execute(written("DROP TABLE IF EXISTS pg_temp.{}", _STAGE))
            driver.execute(
                written("CREATE TEMP TABLE {} AS SELECT {} FROM {} WITH NO DATA", _STAGE, names, table(model))
            )
            driver.commit()
        return staged_model(model, "pg_temp", _STAGE)

    def staged(self, columns: Columns) -> Rows:
        return self._rows(columns, _select(columns, written("pg_temp.{}", _STAGE)))

    def all_rows(self, model: TableModel, columns: Columns) -> Rows:
        return self._rows(columns, _select(columns, table(model)))

    def of_keys(self, model: TableModel, columns: Columns, key: Sequence[int], keys: Sequence[PlainRow]) -> Rows:
        select = percent_doubled(_select(columns, table(model)))
        nul = nul_in_text(self.target.engine)
        texts = (tuple(parameter(value, columns[c], nul) for value, c in zip(row, key, strict=True)) for row in keys)
        different = list(dict.fromkeys(texts))  # different keys of the source may be equal on the target
        for at in range(0, len(different), _KEYS_AT_ONCE):
            some = different[at : at + _KEYS_AT_ONCE]
            where = where_keys(model, len(some))
            given = {f"c{number}": text for number, text in enumerate(chain.from_iterable(some))}
            yield from self._rows(columns, written("{} WHERE {}", select, where), given)

    def _rows(self, columns: Columns, sql: Sql, given: dict[str, str | None] | None = None) -> Rows:
        with mapped_errors():
            rows = self.driver.execute(sql, given).fetchall()
            self.driver.rollback()
        return _plain(rows, columns)


def _select(columns: Sequence[Column], name: Sql) -> Sql:
    shown = (
        written("host({})", quote(c.name)) if c.type in ("inet4", "inet6") else written("{}::text", quote(c.name))
        for c in columns
    )
    return written("SELECT {} FROM {}", joined(", ", shown), name)


def _plain(rows: list[Cells], columns: Sequence[Column]) -> Iterator[tuple[PlainRow, Cells]]:
    if rows:
        cells = zip(zip(*rows, strict=True), columns, strict=True)
        yield from zip(zip(*(_read(texts, column) for texts, column in cells), strict=True), rows, strict=True)


def _read(texts: Iterable[str | None], column: Column) -> list[Any]:
    """Convert a column's values from the text that PostgreSQL prints to plain values, which verify compares."""
    kind = column.type
    how: Callable[[str], Any] | None = _PRINTED.get(kind)
    if kind == "bit":
        how = _from_bits
    elif kind in INTEGER_BITS or kind == "year":
        how = int
    elif kind in BINARY_TYPES or kind in GEOMETRY_TYPES or kind == "vector":
        how = _from_hex
    elif kind == "double":
        how = float
    return [*texts] if how is None else [None if text is None else how(text) for text in texts]


def _from_bits(text: str) -> int:
    return int(text, 2)


def _from_hex(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def _moment(value: Any) -> str:
    text = str(value).removesuffix("+00")
    if is_zero_date(text):
        return ZERO_DATE
    return text.rstrip("0").rstrip(".") if "." in text else text


def _address(value: Any) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return str(value)


_PRINTED: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("time", "datetime", "timestamp", "date"), _moment),
    **dict.fromkeys(("inet4", "inet6"), _address),
    "float": single,
}
COMPARED: Final = PostgresqlRows
