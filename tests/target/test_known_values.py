"""Values that SQL cannot convert are replaced by constants, and too many of them stop the channel."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from rplctl.errors import TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.target import known_values
from rplctl.target.sqlite.ddl import DDL

LOOSE = DdlContext(sql_mode=0, server_version="10.11.6-MariaDB")
TABLE = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(2000))"


def altered(sql: str, rows: list[tuple[int, int, str]]) -> list[tuple[object, ...]]:
    """Return the rows of a table after an ALTER of a source without strict mode."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        catalog = Catalog()
        for number, statement in enumerate((TABLE, sql)):
            plan = plan_ddl(statement, "db", LOOSE, catalog)
            DDL.carry_out(plan, catalog, connection.execute)
            catalog = catalog.after(plan)
            if not number:
                connection.executemany("INSERT INTO db__t VALUES (?, ?, ?)", rows)
        return connection.execute("SELECT * FROM db__t ORDER BY id").fetchall()


def test_each_value_is_clipped_as_on_the_source() -> None:
    rows = [(1, 300, "a"), (2, -300, "12x"), (3, 7, "")]
    expected = [(1, 127, 0), (2, -128, 12), (3, 7, 0)]
    assert altered("ALTER TABLE t MODIFY a TINYINT, MODIFY b INT", rows) == expected


def test_a_renamed_column_keeps_its_values() -> None:
    assert altered("ALTER TABLE t CHANGE a z TINYINT, DROP b", [(1, 999, "a")]) == [(1, 127)]


def test_too_many_different_values_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(number, 1000 + number % 4, "") for number in range(9)]
    monkeypatch.setattr(known_values, "MOST_VALUES", 4)
    assert {row[1] for row in altered("ALTER TABLE t MODIFY a TINYINT", rows)} == {127}
    monkeypatch.setattr(known_values, "MOST_VALUES", 3)
    with pytest.raises(TargetError) as error:
        altered("ALTER TABLE t MODIFY a TINYINT", rows)
    assert error.value.errno == 1846


def test_as_many_values_as_are_allowed_fit_into_a_statement() -> None:
    rows = [(number, 1000 + number, f"x{number}" + "y" * 200) for number in range(known_values.MOST_VALUES)]
    assert set(altered("ALTER TABLE t MODIFY a TINYINT, MODIFY b INT", rows)) == {(row[0], 127, 0) for row in rows}


def test_a_long_value_stops() -> None:
    with pytest.raises(TargetError):
        altered("ALTER TABLE t MODIFY b INT", [(1, 1, "x" * 300)])
