"""Models that the target keeps: DDL alone changes them, and nothing is asked of the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.applier.apply.table_source import StoredModels
from rplctl.applier.spark.pipeline import UnknownTables
from rplctl.errors import TargetError
from rplctl.own_tables.models import store_models
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition
from rplctl.schema.plan import Catalog
from rplctl.target.sqlite.target import SqliteTarget, open_engine
from tests.applier.apply.live_target import catalog_of, run_with, table_map
from tests.event.row_events import rows_event

PARENT = "CREATE TABLE parent (a INT PRIMARY KEY)"
MAP = table_map("parent", b"\x03", b"")


def deletes(flags: int) -> bytes:
    raw = rows_event(32, 1, b"\x01", b"\x00" + bytes(4))
    return raw[:25] + bytes([flags]) + raw[26:]


def test_ddl_alone_brings_models() -> None:
    models = StoredModels(catalog_of(PARENT))
    before = models.catalog
    assert models.know([("d", "none")]) is before
    assert models.introduce(run_with(MAP)) is before
    with pytest.raises(UnknownTables):
        models.find(UnknownTables([("d", "none")]))
    models.committed(after := Catalog())
    assert models.catalog is after
    assert models.take_moves() == []


def test_it_begins_with_the_models_that_are_valid_at_the_position(tmp_path: Path) -> None:
    target = SqliteTarget(open_engine(f"sqlite:///{tmp_path / 'target.db'}"))
    create_own_tables(target.engine)
    early, late = BinlogPosition("b.000001", 4), BinlogPosition("b.000001", 400)
    catalog = catalog_of(PARENT)
    with target.engine.begin() as connection:
        store_models(connection, "east", late, catalog.tables, {})
    assert StoredModels.open(target, "east", early).catalog.tables == {}
    assert StoredModels.open(target, "east", late).catalog.tables == catalog.tables
    assert StoredModels.open(target, "west", late).catalog.tables == {}
    target.close()


def test_nothing_commits_by_itself_and_nothing_is_tried_by_the_server() -> None:
    models = StoredModels(Catalog())
    assert not models.position_follows(run_with(MAP), in_xa=True)
    assert not models.replay_from_now(TargetError("x"), run_with(MAP), 0)


@pytest.mark.parametrize(
    ("rule", "acts"), [("ON DELETE CASCADE", True), ("ON UPDATE SET NULL", True), ("ON DELETE RESTRICT", False)]
)
def test_a_parent_is_told_when_its_foreign_keys_act(rule: str, acts: bool) -> None:
    child = f"CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES parent (a) {rule})"
    parents = StoredModels(catalog_of(PARENT, child)).cascading_parents()
    assert parents == ({("d", "parent")} if acts else set())


@pytest.mark.parametrize(("flags", "can"), [((0, 0), True), ((2, 2), True), ((0, 2), False)])
def test_transactions_share_one_unless_some_check_foreign_keys_and_others_do_not(
    flags: tuple[int, int], can: bool
) -> None:
    run = run_with(MAP, *(deletes(one) for one in flags))
    assert StoredModels(Catalog()).can_share(run) is can
