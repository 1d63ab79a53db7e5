"""Table models: what was valid at a position is found again, also after the position moved back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from rplctl.own_tables.models import (
    forget_models,
    load_models,
    mark_made_empty,
    rebase_models,
    store_models,
    tables_made_empty,
)
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.parse import parse_ddl
from rplctl.schema.plan import Catalog, DatabaseModel, plan_ddl
from rplctl.schema.statement import moves_of
from rplctl.target import open_engine

ONE = Catalog().after(plan_ddl("CREATE TABLE t (a INT)", "d", DdlContext(), Catalog()))
TWO = ONE.after(plan_ddl("ALTER TABLE t ADD b TEXT", "d", DdlContext(), ONE))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = open_engine(f"sqlite:///{tmp_path / 'target.db'}")
    create_own_tables(opened)
    yield opened
    opened.dispose()


def at(number: int, offset: int) -> BinlogPosition:
    return BinlogPosition(f"bin.{number:06d}", offset)


def test_each_position_has_its_model(engine: Engine) -> None:
    with engine.begin() as connection:
        store_models(connection, "", at(9, 500), ONE.tables, {"d": DatabaseModel(name="d", charset="latin1")})
        store_models(connection, "", at(10, 40), TWO.tables)
        store_models(connection, "", at(10, 90), {("d", "t"): None}, {"d": None})
        for position, expected in [
            (at(9, 499), {}),
            (at(9, 500), ONE.tables),
            (at(10, 39), ONE.tables),
            (at(10, 40), TWO.tables),
            (at(10, 90), {}),
        ]:
            assert load_models(connection, "", position).tables == expected
        assert load_models(connection, "", at(9, 500)).databases == {"d": DatabaseModel(name="d", charset="latin1")}
        assert load_models(connection, "", at(11, 4)).databases == {}


def test_a_statement_that_runs_again_replaces_its_model(engine: Engine) -> None:
    with engine.begin() as connection:
        store_models(connection, "", at(1, 4), ONE.tables)
        store_models(connection, "", at(1, 4), TWO.tables)
        assert load_models(connection, "", at(1, 4)).tables == TWO.tables


def test_channels_do_not_see_each_other(engine: Engine) -> None:
    with engine.begin() as connection:
        store_models(connection, "one", at(1, 4), ONE.tables)
        store_models(connection, "two", at(1, 4), TWO.tables)
        forget_models(connection, "one")
        assert load_models(connection, "one", at(9, 9)).tables == {}
        assert load_models(connection, "two", at(9, 9)).tables == TWO.tables


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("RENAME TABLE t TO e.u", {("e", "u")}),
        ("ALTER TABLE t RENAME TO u, ADD b INT", {("d", "u")}),
        ("RENAME TABLE t TO x, full TO t, x TO full", {("d", "full")}),
        ("RENAME TABLE full TO x", {("d", "t")}),
        ("ALTER TABLE t ADD b INT", {("d", "t")}),
        ("CREATE TABLE u LIKE t", {("d", "t")}),
        ("DROP TABLE full", {("d", "t")}),
        ("DROP TABLE t", set()),
        ("TRUNCATE t", set()),
        ("CREATE OR REPLACE TABLE t (b INT)", set()),
        ("CREATE OR REPLACE TABLE t LIKE full", set()),
        ("DROP DATABASE d", set()),
    ],
)
def test_a_table_without_its_rows_is_known_under_each_name_until_the_source_has_none_of_them(
    engine: Engine, sql: str, left: set[tuple[str, str]], server: bool
) -> None:
    """`server`: the target executes the statement, and has no plan of it."""
    both = ONE.after(plan_ddl("CREATE TABLE full (a INT)", "d", DdlContext(), ONE))
    plan = plan_ddl(sql, "d", DdlContext(), both)
    with engine.begin() as connection:
        store_models(connection, "", at(1, 4), both.tables)
        mark_made_empty(connection, "", at(1, 4), ONE.tables)
        if server:
            moves = [move for action in parse_ddl(sql, "d", DdlContext()) for move in moves_of(action)]
            store_models(connection, "", at(1, 9), {}, {}, moves)
        else:
            store_models(connection, "", at(1, 9), plan.model_changes, plan.database_changes, list(plan.moves()))
            assert load_models(connection, "", at(1, 9)).tables == both.after(plan).tables
        assert set(tables_made_empty(connection, "")) == left


def test_another_source_does_not_bring_the_rows(engine: Engine) -> None:
    with engine.begin() as connection:
        store_models(connection, "", at(7, 4), ONE.tables)
        mark_made_empty(connection, "", at(7, 4), ONE.tables)
        rebase_models(connection, "", ONE)
        assert tables_made_empty(connection, "") == [("d", "t")]
        assert load_models(connection, "", at(1, 4)).tables == ONE.tables
