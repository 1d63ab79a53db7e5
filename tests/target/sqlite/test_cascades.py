"""Foreign key actions by triggers do what SQLite's own do, can be switched within a transaction, and leave nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import DatabaseModel, load_table
from rplctl.target.sqlite.cascades import follow_foreign_keys, forget_foreign_keys

TABLES = {
    "parent": "(a INT, b INT, n INT, PRIMARY KEY (a,b), UNIQUE (n))",
    "child": "(id INT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a,b) REFERENCES parent (a,b) "
    "ON DELETE CASCADE ON UPDATE CASCADE)",
    "grandchild": "(id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES child (id) ON DELETE SET NULL)",
    "other": "(id INT PRIMARY KEY, n INT, FOREIGN KEY (n) REFERENCES parent (n) ON DELETE SET NULL ON UPDATE SET NULL)",
    "tree": "(id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "guarded": "(id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES tree (id) ON DELETE RESTRICT)",
    "left_out": "(id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES nowhere (id) ON DELETE CASCADE)",
}
ROWS = """
INSERT INTO d__parent VALUES (1,1,10),(1,2,20),(2,1,30);
INSERT INTO d__child VALUES (1,1,1),(2,1,1),(3,1,2),(4,NULL,1);
INSERT INTO d__grandchild VALUES (1,1),(2,3),(3,NULL);
INSERT INTO d__other VALUES (1,10),(2,20),(3,30);
INSERT INTO d__tree VALUES (1,NULL),(2,1),(3,2),(4,NULL),(5,4);
"""
CHANGES = [
    "DELETE FROM d__parent WHERE n=10",
    "UPDATE d__parent SET a=7 WHERE n=20",
    "UPDATE d__parent SET n=31 WHERE n=30",
    "UPDATE d__parent SET n=n",
    "DELETE FROM d__tree WHERE id=1",
    "UPDATE d__tree SET id=40 WHERE id=4",
]


def models() -> list[TableModel]:
    context = DdlContext(server_version="10.11.19-MariaDB")
    database = DatabaseModel(name="d", charset="utf8mb4")
    return [load_table(f"CREATE TABLE {name} {body}", database, context) for name, body in TABLES.items()]


@pytest.fixture
def driver() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for name, body in TABLES.items():
        plain = body
        for parent in TABLES:
            plain = plain.replace(f"REFERENCES {parent} ", f"REFERENCES d__{parent} ")
        if name != "left_out":
            connection.execute(f"CREATE TABLE d__{name} {plain}")
    connection.executescript(ROWS)
    yield connection
    connection.close()


def state(driver: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    return {name: sorted(driver.execute(f"SELECT * FROM d__{name}"), key=repr) for name in TABLES if name != "left_out"}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_does_what_the_foreign_keys_say_or_nothing_else(driver: sqlite3.Connection, change: str) -> None:
    before = state(driver)
    outcomes = []
    for wanted in (None, True, False):  # None: SQLite's own
        driver.execute(f"PRAGMA foreign_keys={'ON' if wanted is None else 'OFF'}")
        driver.execute("BEGIN")
        if wanted is not None:
            follow_foreign_keys(driver, wanted, models())
        assert driver.execute(change).rowcount == driver.execute("SELECT changes()").fetchone()[0] > 0
        outcomes.append(state(driver))
        driver.execute("ROLLBACK")
    own, followed, rested = outcomes
    assert followed == own
    changed = change.split("d__")[1].split()[0]
    assert {name for name in before if rested[name] != before[name]} <= {changed}
    if change != "UPDATE d__parent SET n=n":
        assert rested != own
    assert state(driver) == before


def test_it_is_switched_within_a_transaction_and_nothing_is_left_behind(driver: sqlite3.Connection) -> None:
    for end in ("COMMIT", "ROLLBACK", "COMMIT"):
        driver.execute("BEGIN")
        follow_foreign_keys(driver, True, models())
        driver.execute("DELETE FROM d__tree WHERE id=2")
        follow_foreign_keys(driver, False, models())
        driver.execute("DELETE FROM d__tree WHERE id=4")
        if end == "COMMIT":
            forget_foreign_keys(driver)
        driver.execute(end)
        assert driver.execute("SELECT count(*) FROM sqlite_temp_master").fetchone() == (0,)
    assert driver.execute("SELECT id FROM d__tree ORDER BY 1").fetchall() == [(1,), (5,)]
    forget_foreign_keys(driver)
