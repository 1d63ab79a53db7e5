"""load-schema: models at the channel's position, missing tables made, tables that are there left alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rplctl.errors import TargetError
from rplctl.own_tables.initial_models import adopt_tables, load_catalog, needs_models
from rplctl.own_tables.models import load_models
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.target import open_target
from rplctl.target.base import Target

POSITION = BinlogPosition("bin.000002", 500)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    opened = open_target(f"sqlite:///{tmp_path / 'target.db'}")
    yield opened
    opened.close()


def catalog_of(*statements: str) -> Catalog:
    catalog = Catalog()
    for sql in statements:
        catalog = catalog.after(plan_ddl(sql, "shop", DdlContext(), catalog))
    return catalog


TWO = catalog_of("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY, a INT REFERENCES a (id))")


def names(target: Target) -> set[str]:
    found = {row[0] for row in target.connection.exec_driver_sql("SELECT name FROM sqlite_schema WHERE type='table'")}
    target.rollback()
    return {name for name in found if "__" in name}


def test_missing_tables_are_made_and_models_hold_from_the_position_on(target: Target) -> None:
    assert load_catalog(target, "", POSITION, TWO) == [("shop", "a"), ("shop", "b")]
    assert names(target) == {"shop__a", "shop__b"}
    with target.engine.connect() as connection:
        assert load_models(connection, "", POSITION).tables == TWO.tables
        assert load_models(connection, "", BinlogPosition("bin.000002", 499)).tables == {}
        assert load_models(connection, "other", POSITION).tables == {}


def test_a_table_that_is_there_keeps_its_rows(target: Target) -> None:
    target.begin(foreign_keys=True)
    target.connection.exec_driver_sql('CREATE TABLE "shop__a" ("id" INTEGER PRIMARY KEY)')
    target.connection.exec_driver_sql('INSERT INTO "shop__a" VALUES (7)')
    target.commit()
    assert load_catalog(target, "", POSITION, TWO) == [("shop", "b")]
    assert target.connection.exec_driver_sql('SELECT id FROM "shop__a"').scalar() == 7


def test_a_table_with_other_columns_is_refused_and_nothing_is_stored(target: Target) -> None:
    target.begin(foreign_keys=True)
    target.connection.exec_driver_sql('CREATE TABLE "shop__b" ("other" INTEGER)')
    target.commit()
    with pytest.raises(TargetError) as caught:
        load_catalog(target, "", POSITION, TWO)
    assert caught.value.errno == 1677
    assert names(target) == {"shop__b"}
    with target.engine.connect() as connection:
        assert load_models(connection, "", POSITION).tables == {}


def test_only_tables_that_are_there_are_adopted(target: Target) -> None:
    assert needs_models(target.engine, "")
    target.begin(foreign_keys=True)
    target.connection.exec_driver_sql('CREATE TABLE "shop__a" ("id" INTEGER PRIMARY KEY)')
    target.commit()
    assert adopt_tables(target, "", POSITION, TWO) == ["shop.a"]
    assert names(target) == {"shop__a"}
    assert not needs_models(target.engine, "")
    with target.engine.connect() as connection:
        assert set(load_models(connection, "", POSITION).tables) == {("shop", "a")}
