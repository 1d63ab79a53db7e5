"""Table models: what was valid at a position is found again, also after the position moved back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from rplctl.commit.models import forget_models, load_models, store_models
from rplctl.commit.tables import create_own_tables
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, DatabaseModel, plan_ddl
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
        store_models(connection, "", at(9, 500), ONE.tables, {"d": DatabaseModel("d", "latin1")})
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
        assert load_models(connection, "", at(9, 500)).databases == {"d": DatabaseModel("d", "latin1")}
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
