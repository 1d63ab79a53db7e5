"""Random ALTER TABLE statements give the columns, their order, values and defaults that real servers give."""

from __future__ import annotations

import random
from contextlib import closing

import pymysql
import pytest

from rplctl.errors import RplError
from rplctl.schema.alter import alter
from rplctl.schema.alter_clause import parse_alter_table
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.schema.token_stream import TokenStream
from tests.kit.servers import MariadbServer

pytestmark = pytest.mark.slow

COLUMNS = "(a INT DEFAULT 1, b INT DEFAULT 2, c INT DEFAULT 3)"
STATEMENTS = 600
# MariaDB alone accepts clauses that change a column which the same statement adds
CHANGED_AGAIN = [
    "ADD d INT FIRST, MODIFY a BIGINT DEFAULT 7 AFTER d, MODIFY d BIGINT DEFAULT 6",
    "ADD d INT FIRST, MODIFY a BIGINT DEFAULT 7 AFTER d, CHANGE d d BIGINT DEFAULT 6 AFTER b",
    "ADD d INT, ADD e INT AFTER d, MODIFY d BIGINT DEFAULT 6 FIRST, MODIFY e INT DEFAULT 5",
    "ADD d INT AFTER a, MODIFY d BIGINT DEFAULT 6 AFTER a, ALTER d SET DEFAULT 9",
    "ADD d INT, MODIFY d INT DEFAULT 4 FIRST, MODIFY d BIGINT DEFAULT 6, ALTER d DROP DEFAULT, ALTER d SET DEFAULT 9",
    "DROP c, ADD c INT FIRST, MODIFY c BIGINT DEFAULT 6 AFTER a",
    "ADD c INT FIRST, MODIFY c BIGINT DEFAULT 6 AFTER a, DROP c",
]


def clause(chance: random.Random, *, is_mariadb: bool) -> str:
    """One clause over the columns a, b, c of the table and new names d, e, that may be refused."""
    old, new = chance.choice("abc"), chance.choice("abcdddeee")
    place = chance.choice(["", "", " FIRST", *(f" AFTER {name}" for name in "abcde")])
    kinds = [
        f"ADD {new} INT{place}", f"MODIFY {old} BIGINT DEFAULT 7{place}", f"CHANGE {old} {new} BIGINT DEFAULT 8{place}",
        f"DROP {old}", f"RENAME COLUMN {old} TO {new}", f"ALTER {new} SET DEFAULT 9",
    ]  # fmt: skip
    if is_mariadb:
        kinds += [
            f"MODIFY {chance.choice('de')} BIGINT DEFAULT 6{place}",
            f"ADD COLUMN IF NOT EXISTS {new} INT{place}", f"MODIFY IF EXISTS {new} BIGINT DEFAULT 7{place}",
            f"DROP COLUMN IF EXISTS {new}", f"ALTER COLUMN IF EXISTS {new} SET DEFAULT 9",
            f"ALTER COLUMN IF EXISTS {new} DROP DEFAULT", f"RENAME COLUMN IF EXISTS {new} TO d",
        ]  # fmt: skip
    return chance.choice(kinds)


def create(cursor: pymysql.cursors.Cursor) -> None:
    cursor.execute("DROP TEMPORARY TABLE IF EXISTS t")
    cursor.execute(f"CREATE TEMPORARY TABLE t {COLUMNS}")
    cursor.execute("INSERT INTO t VALUES (10, 20, 30)")


def expected(cursor: pymysql.cursors.Cursor, clauses: str) -> list[tuple[str, object, object]] | None:
    """Each column's name, default and value after the statement on the server; None if the server refuses it."""
    try:
        cursor.execute(f"ALTER TABLE t {clauses}")
    except pymysql.Error:
        return None
    cursor.execute("SHOW COLUMNS FROM t")
    columns = [(str(row[0]), None if row[4] == "NULL" else row[4]) for row in cursor.fetchall()]
    cursor.execute("SELECT * FROM t")
    (values,) = cursor.fetchall()
    create(cursor)
    return [(name, default, value) for (name, default), value in zip(columns, values, strict=True)]


def found(model: TableModel, clauses: str, context: DdlContext) -> list[tuple[str, object, object]] | str:
    """The same of the model. Old values are known by the columns that they come from."""
    try:
        statement = parse_alter_table(TokenStream(f"t {clauses}", context), "d")
        altered = alter(model, statement.operations, context, "utf8mb4")
    except RplError as error:
        return str(error)
    values = {"a": 10, "b": 20, "c": 30}
    columns: list[tuple[str, object, object]] = []
    for column, origin in zip(altered.model.columns, altered.origins, strict=True):
        default = None if column.default == "NULL" else column.default
        value = values[origin] if origin else default and int(default)  # a new column's value is its default
        columns.append((column.name, default, value))
    return columns


@pytest.mark.parametrize(
    "vendor",
    ["mariadb", pytest.param("mysql", marks=pytest.mark.long("MariaDB has more clauses; MySQL repeats the rest."))],
)
def test_altered_columns_are_those_of_a_real_server(request: pytest.FixtureRequest, vendor: str) -> None:
    server: MariadbServer = request.getfixturevalue(vendor)
    chance, executed, different = random.Random(43), 0, []
    server.sql("CREATE DATABASE IF NOT EXISTS altered")
    with closing(server.connect("altered")) as connection, connection.cursor() as cursor:
        create(cursor)
        cursor.execute("SELECT @@version")
        ((version,),) = cursor.fetchall()
        context = DdlContext(server_version=version)
        model = plan_ddl(f"CREATE TABLE t {COLUMNS}", "d", context, Catalog()).model_changes["d", "t"]
        assert model is not None
        is_mariadb = vendor == "mariadb"
        for number in range(STATEMENTS):
            clauses = ", ".join(clause(chance, is_mariadb=is_mariadb) for _ in range(chance.randint(2, 4)))
            if number < len(CHANGED_AGAIN):
                clauses = CHANGED_AGAIN[number]
            if (right := expected(cursor, clauses)) is not None:
                executed += 1
                if (ours := found(model, clauses, context)) != right:
                    different.append((clauses, right, ours))
    assert different == [], "\n".join(map(str, different))
    assert executed > STATEMENTS / 10
