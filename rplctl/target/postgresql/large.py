"""Sends large parameters to PostgreSQL in pieces. Each parameter becomes a large object, which the statement reads.

Without large objects, a parameter is part of one message, and the driver has two copies of it in memory. Invariant: the
large objects exist only in the statement's transaction. Every role may use large objects (manual of PostgreSQL:
"Server-Side Functions").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from rplctl.event.large_text import LargeText
from rplctl.sql_text import Sql, with_parameter, written
from rplctl.target.base import pieces_of
from rplctl.target.postgresql import values as postgresql_values
from rplctl.target.postgresql.driver import PostgresqlDriver
from rplctl.target.postgresql.values import LargeBytes

PIECE: Final = 4 << 20

Parameters = dict[str, str | LargeBytes | None]


def has_large(values: Iterable[str | LargeBytes | None]) -> bool:
    return any(isinstance(value, LargeBytes) and _is_large(value) for value in values)


def _is_large(value: LargeBytes) -> bool:
    return isinstance(value.raw, LargeText) or len(value.raw) > postgresql_values.LARGEST_PARAMETER


@contextmanager
def in_pieces(driver: PostgresqlDriver, sql: Sql, values: Parameters) -> Iterator[tuple[Sql, Parameters]]:
    """Send the large parameters, and yield the statement and the parameters to execute in the `with` block.

    In the statement, a large parameter is replaced by a function that reads its large object. After the block, the
    large objects are removed. `values`: the parameters c0, c1, … by their names.
    """
    objects: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, LargeBytes) and _is_large(value):
            objects[name] = _sent(driver, value.raw)
            number = int(name.removeprefix("c"))
            read = written("lo_get(%(c{})s::oid)", number)
            if isinstance(value.raw, LargeText):
                read = written("convert_from({}, 'UTF8')", read)
            sql = with_parameter(sql, f"%({name})s", read)
    yield sql, {**values, **objects}
    for oid in objects.values():
        driver.execute(written("SELECT lo_unlink(%s::oid)"), (oid,))


def _sent(driver: PostgresqlDriver, value: bytes | memoryview | LargeText) -> str:
    """Send a value to the server as a large object, in pieces, and return the OID of the object."""
    found = driver.execute(written("SELECT lo_from_bytea(0, ''::bytea)")).fetchone()
    assert found is not None
    oid, at = str(found[0]), 0
    for piece in pieces_of(value, PIECE):
        driver.execute(written("SELECT lo_put(%s::oid, %s::int8, %s)"), (oid, str(at), LargeBytes(piece)))
        at += len(piece)
    return oid
