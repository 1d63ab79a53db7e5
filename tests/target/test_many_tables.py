"""A statement costs the same however many tables there are: a migration of 20,000 of them is 20,000 statements."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import create_engine, event

from rplctl.own_tables.models import load_models, mark_made_empty, store_models, tables_made_empty
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.target.registry import KINDS, dialect_of

STATEMENTS = (
    "ALTER TABLE t5 ADD COLUMN n INT",
    "ALTER TABLE t5 RENAME COLUMN v TO w",
    "CREATE INDEX more ON t5 (v)",
    "CREATE TABLE of_its_own (id INT PRIMARY KEY, v CHAR(10), UNIQUE KEY v (v))",
    "CREATE DATABASE other",
    "RENAME TABLE t5 TO r5",
    "DROP TABLE t5",
    "TRUNCATE TABLE t5",
)


def catalog_of(count: int) -> Catalog:
    catalog = Catalog()
    for sql in (
        "CREATE DATABASE s",
        "CREATE TABLE t (id INT PRIMARY KEY, v CHAR(10), d DATE, KEY v (v))",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t5 (id) ON DELETE CASCADE)",
    ):
        catalog = catalog.after(plan_ddl(sql, "s", DdlContext(), catalog))
    model = catalog.tables["s", "t"]
    return Catalog(
        {**catalog.tables, **{("s", f"t{n}"): replace(model, name=f"t{n}") for n in range(count)}}, catalog.databases
    )


def calls_of(statement: str, kind: str, catalog: Catalog) -> int:
    """Functions in Python that are called for it."""
    ddl, count = dialect_of(kind).ddl, 0
    assert ddl is not None

    def called(_frame: FrameType, what: str, _value: Any) -> None:
        nonlocal count
        count += what == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        plan = plan_ddl(statement, "s", DdlContext(), catalog)
        catalog.after(plan)
        ddl.emit(plan, catalog)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.long("The targets other than lakes stay.", keeps=r"^(?!delta|parquet)")
@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if dialect_of(kind).ddl is not None])
def test_no_function_is_called_once_more_for_each_table_there_is(kind: str, statement: str) -> None:
    calls_of(statement, kind, catalog_of(10))  # what is found out once
    few, many = (calls_of(statement, kind, catalog_of(count)) for count in (10, 3000))
    assert many < few + 1000


def test_of_the_stored_models_no_others_are_read_than_the_statement_is_about() -> None:
    catalog, at = catalog_of(500), BinlogPosition("binlog.000001", 4)
    engine = create_engine("sqlite://")
    create_own_tables(engine)
    with engine.begin() as connection:
        store_models(connection, "", at, catalog.tables)
        mark_made_empty(connection, "", at, {("s", "t7"): catalog.tables["s", "t7"]})
    asked: list[tuple[str, Any]] = []
    event.listen(engine, "before_cursor_execute", lambda _c, _cursor, sql, given, *_: asked.append((sql, given)))
    for number, statement in enumerate(("ALTER TABLE t5 ADD COLUMN n INT", "RENAME TABLE t7 TO r7"), 5):
        plan = plan_ddl(statement, "s", DdlContext(), catalog)
        with engine.begin() as connection:
            moves = tuple(plan.moves())
            store_models(connection, "", BinlogPosition("binlog.000001", number), plan.model_changes, moves=moves)
        catalog = catalog.after(plan)
    assert [given for sql, given in asked if sql.startswith("SELECT") and not {"t5", "t7", "r7"} & {*given}] == []
    with engine.connect() as connection:
        assert tables_made_empty(connection, "") == [("s", "r7")]
        assert load_models(connection, "", BinlogPosition("binlog.000001", 9)) == replace(catalog, databases={})
