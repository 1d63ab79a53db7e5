"""The rows of a PostgreSQL target as `neutral_state` compares them, and a database of its own for a test."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import psycopg

from rplctl.schema.model import Column
from rplctl.schema.structure import END_OF_TIME, ROW_END
from rplctl.target.ddl_parts import is_zero_date, quote
from rplctl.target.postgresql.conversion import shown as shown_as_text
from rplctl.target.postgresql.ddl_type import ZERO_DATE
from tests.kit.neutral_state import Rows, TableState, parse_state, shown
from tests.kit.servers import PostgresqlServer

_MYSQL_TYPE = {"date": "date", "timestamp": "datetime", "timestamptz": "timestamp", "interval": "time"}
_numbers = itertools.count()


def new_database(server: PostgresqlServer) -> str:
    """The URL of a new, empty database."""
    name = f"test{next(_numbers)}"
    server.sql(f"DROP DATABASE IF EXISTS {name}")
    server.sql(f"CREATE DATABASE {name}")
    return server.url(name)


def connect(url: str) -> psycopg.Connection[Any]:
    connection: psycopg.Connection[Any] = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
    connection.execute("SET timezone = 'UTC'")
    return connection


def postgresql_rows(target: psycopg.Connection[Any], state: TableState) -> tuple[Rows, set[int]]:
    """The target's rows, and which columns are dates that an operator made text."""
    name = f"{quote(state.database)}.{quote(state.table)}"
    sql = "SELECT attname, typname, atttypmod FROM pg_attribute JOIN pg_type t ON t.oid = atttypid"
    sql += " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
    types = {row[0]: (row[1], row[2]) for row in target.execute(sql.encode(), (name,))}
    parts = [_text(column, kind, *types[column]) for column, kind in state.columns]
    where = ""
    if ROW_END in types and ROW_END not in dict(state.columns):
        where = f" WHERE {quote(ROW_END)} = '{END_OF_TIME}+00'"
    found = target.execute(f"SELECT {', '.join(parts)} FROM {name}{where}".encode())
    kinds = [kind for _, kind in state.columns]
    rows = Counter(tuple(_shown(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in found)
    return rows, {i for i, (c, kind) in enumerate(state.columns) if kind == "tmp" and types[c][0] == "text"}


def _text(column: str, kind: str, type_name: str, modifier: int) -> str:
    name = quote(column)
    if kind == "tmp" and type_name in _MYSQL_TYPE:
        digits = modifier & 0xFFFF if modifier >= 0 else 0
        return shown_as_text(Column(name=column, type=_MYSQL_TYPE[type_name], length=digits), name)
    if type_name == "inet":
        return f"host({name})"
    if kind in ("float", "double"):
        return f"{name}::double precision"
    return name if type_name == "bytea" else f"{name}::text"


def _shown(value: Any, kind: str) -> Any:
    if value is not None and kind == "bit":
        return f"{int(value, 2):X}"
    return shown(int(value) if kind == "tmp" and str(value).isdecimal() else value, kind)


def differences(target: psycopg.Connection[Any], state: str, without: frozenset[str] = frozenset()) -> list[str]:
    """Tables whose rows differ, each with up to two rows that only one side has."""
    found, compared = [], 0
    for expected in parse_state(state):
        if expected.name in without or expected.table in without:
            continue
        compared += 1
        rows, as_text = postgresql_rows(target, expected)
        wanted = Counter(
            tuple(ZERO_DATE if i in as_text and is_zero_date(v) else v for i, v in enumerate(row))
            for row in expected.rows.elements()
        )
        if rows != wanted:
            missing, surplus = list(wanted - rows)[:2], list(rows - wanted)[:2]
            found.append(f"{expected.name}: the source has {missing}, the target {surplus}"[:2000])
    assert compared
    return found
