"""MariaDB and MySQL convert stored values alike for each pair of types that is executed as the other logged it."""

from __future__ import annotations

from contextlib import closing
from itertools import product

import pymysql
import pytest

from rplctl.schema.context import DdlContext
from rplctl.schema.model import Column
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.target.mysql.between_vendors import converts_alike
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow

OLD = {
    "TINYINT": "-128 127 5 NULL", "INT": "-2147483648 2147483647 20240102", "BIGINT UNSIGNED": "0 18446744073709551615",
    "BIGINT": "-9223372036854775808 9223372036854775807 123456789012345678", "YEAR": "2024 1901 0 NULL",
    "DECIMAL(20,4)": "1.5000 -2.5000 1234567890123456.7891 0.0001", "BIT(8)": "b'1' 255",
    "BIT(64)": "1 9223372036854775808",
    "FLOAT": "1.5 2.5 -0.1 16777216 1e30 3e-5 9223372036854775807 123456.7 NULL",
    "DOUBLE": "1.5 2.5 -0.1 9007199254740993 1e30 3e-5 1e16 123456789.123", "DATE": "'2024-01-02' '0000-00-00'",
    "VARCHAR(30)": "'1.5' 'abc' '2024-01-02' '10:11:12' '1e3' '' '2024-01-02T03:04:05.678' '18446744073709551615'",
    "CHAR(10)": "'1.5' 'abc' '7'", "TEXT": "'1.5' 'abc' '7' NULL", "VARBINARY(30)": "'1.5' X'FF' 'abc' '7'",
    "TIME": "'10:11:12' '-100:00:01'", "TIME(6)": "'10:11:12.789' '10:11:59.999999'",
    "DATETIME": "'2024-01-02T03:04:05' NULL", "DATETIME(6)": "'2024-01-02T03:04:05.678' '2024-01-02T23:59:58.999999'",
    "TIMESTAMP": "'2024-01-02T03:04:05'", "TIMESTAMP(6)": "'2024-01-02T03:04:05.678'",
    "ENUM('a','b','1')": "'a' '1'", "SET('a','b','1')": "'a,b' '1'",
}  # fmt: skip
ONLY_NEW = ["SMALLINT UNSIGNED", "MEDIUMINT", "DECIMAL(6,1)", "DOUBLE(7,1)", "FLOAT(7,1)", "VARCHAR(5)", "BINARY(8)"]
# a target has the rule of its source for fractions of a second, by sql_mode
ROUNDS, CUTS = {"mariadb": "TIME_ROUND_FRACTIONAL"}, {"mysql": "TIME_TRUNCATE_FRACTIONAL"}


def column(definition: str) -> Column:
    plan = plan_ddl(f"CREATE TABLE t (v {definition})", "d", DdlContext(), Catalog())
    model = plan.model_changes["d", "t"]
    assert model is not None
    return model.columns[0]


def converted(server: MariadbServer, pairs: list[tuple[str, str]], mode: str) -> dict[tuple[str, str, str], object]:
    """The new value of each old one that the server converts, by both types and the old value."""
    server.sql("CREATE DATABASE IF NOT EXISTS alike CHARACTER SET utf8mb4")
    found: dict[tuple[str, str, str], object] = {}
    with closing(server.connect("alike")) as connection, connection.cursor() as cursor:
        cursor.execute("SET timestamp=1700000000")
        for old, new in pairs:
            values = OLD[old].split()
            shown = "v+0" if new.startswith("BIT") else "v" if new.startswith(("FLOAT", "DOUBLE")) else "HEX(v)"
            for some in [[value] for value in values] if mode.startswith("STRICT") else [values]:
                cursor.execute("SET sql_mode=''")
                cursor.execute("DROP TEMPORARY TABLE IF EXISTS t")
                cursor.execute(f"CREATE TEMPORARY TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v {old})")
                cursor.execute("INSERT INTO t (v) VALUES " + ",".join(f"({value})" for value in some))
                cursor.execute(f"SET sql_mode='{mode}'")
                try:
                    cursor.execute(f"ALTER TABLE t MODIFY v {new}")
                except pymysql.Error:
                    continue
                cursor.execute(f"SELECT {shown} FROM t ORDER BY id")
                found |= {(old, new, value): row for value, row in zip(some, cursor.fetchall(), strict=True)}
    return found


@pytest.mark.long("It shows that the list of pairs is right, which no change of ours alters.")
@pytest.mark.parametrize("rule", [ROUNDS, CUTS], ids=["rounds", "cuts"])
@pytest.mark.parametrize("strict", [False, True], ids=["lax", "strict"])
def test_pairs_that_are_executed_as_logged_give_equal_values(
    mariadb: MariadbServer, mysql: MysqlServer, rule: dict[str, str], strict: bool
) -> None:
    columns = {name: column(name) for name in (*OLD, *ONLY_NEW)}
    pairs = [(old, new) for old, new in product(OLD, columns) if converts_alike(columns[old], columns[new],
                                                                               is_strict=strict)]  # fmt: skip
    if rule is ROUNDS:  # a DATE is asked for by itself
        pairs = [(old, new) for old, new in pairs if new != "DATE" or not columns[old].fraction_digits]
    modes = ["STRICT_ALL_TABLES"] if strict else []
    ours, theirs = (
        converted(server, pairs, ",".join(filter(None, [*modes, rule.get(server.kind, "")])))
        for server in (mariadb, mysql)
    )
    both = ours.keys() & theirs.keys()  # a server that refuses stops the channel
    assert len(both) > len(pairs)
    assert {key: (ours[key], theirs[key]) for key in both if ours[key] != theirs[key]} == {}
