"""What foreign keys made of rows on the source: computed anew on the target, or refused before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rplctl.applier.apply.cascade_refresh import Cascade, cascade_of
from rplctl.errors import RplError
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.target.base import ChangeKind, RowChange, RowSet
from rplctl.target.sqlite.target import SqliteTarget, open_engine
from tests.applier.apply.live_target import CONTEXT

PARENT = "CREATE TABLE parent (id INT PRIMARY KEY, code INT, other INT, UNIQUE (code))"
CHILD = (
    "CREATE TABLE child (id INT PRIMARY KEY, code INT, twice INT AS (code + code), "
    "FOREIGN KEY (code) REFERENCES parent (code) {})"
)
ACTS = "ON UPDATE CASCADE ON DELETE SET NULL"


@pytest.fixture
def target(tmp_path: Path) -> Iterator[SqliteTarget]:
    made = SqliteTarget(open_engine(f"sqlite:///{tmp_path / 'target.db'}"))
    made.begin(foreign_keys=False)
    yield made
    made.rollback()
    made.close()


def made(target: SqliteTarget, *statements: str) -> Catalog:
    catalog = Catalog()
    for sql in statements:
        plan = plan_ddl(sql, "d", CONTEXT, catalog)
        target.execute_ddl(plan, catalog)
        catalog = catalog.after(plan)
    return catalog


def run(target: SqliteTarget, sql: str) -> None:
    target.connection.exec_driver_sql(sql)


def children(target: SqliteTarget) -> list[tuple[object, ...]]:
    return [tuple(row) for row in target.connection.exec_driver_sql("SELECT * FROM d__child ORDER BY id")]


def cascade(catalog: Catalog, table: str = "parent") -> Cascade:
    return cascade_of(catalog, catalog.tables["d", table])


def update(before: dict[int, int], after: dict[int, int]) -> RowChange:
    def image(values: dict[int, int]) -> RowSet:
        return RowSet(tuple(values), [tuple(values.values())])

    return RowChange(kind=ChangeKind.UPDATE, before=image(before), after=image(after))


def test_generated_columns_of_children_follow_a_cascade(target: SqliteTarget) -> None:
    found = cascade(made(target, PARENT, CHILD.format(ACTS)))
    assert [(model.name, columns) for model, columns in found.stale] == [("child", (2,))]
    assert found.referenced == {1} and found.lost == ()
    run(target, "INSERT INTO d__child VALUES (1, 5, 7), (2, 6, 12), (3, NULL, 4), (4, NULL, NULL)")
    found.refuse_unknown(target, "p")
    found.refresh(target)
    assert children(target) == [(1, 5, 10), (2, 6, 12), (3, None, None), (4, None, None)]


def test_it_follows_what_may_have_changed_a_column_that_is_pointed_at(target: SqliteTarget) -> None:
    found = cascade(made(target, PARENT, CHILD.format(ACTS)))
    assert found.follows(RowChange(kind=ChangeKind.DELETE, before=RowSet((0,), [(1,)]), after=None))
    assert not found.follows(RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0,), [(1,)])))
    assert found.follows(update({0: 1, 1: 5}, {0: 1, 1: 6}))
    assert not found.follows(update({0: 1, 1: 5, 2: 1}, {0: 1, 1: 5, 2: 2}))
    assert found.follows(update({0: 1}, {1: 5}))  # the old value is not known
    assert not found.follows(update({0: 1, 1: 5}, {2: 2}))
    assert not Cascade(referenced=frozenset({1})).follows(update({0: 1, 1: 5}, {0: 1, 1: 6}))


@pytest.mark.parametrize("rule", ["", "ON DELETE RESTRICT"])
def test_a_foreign_key_without_an_action_changes_nothing(target: SqliteTarget, rule: str) -> None:
    found = cascade(made(target, PARENT, CHILD.format(rule)))
    assert found == Cascade(referenced=frozenset())


def test_a_table_that_nothing_points_at_has_no_cascade(target: SqliteTarget) -> None:
    catalog = made(target, PARENT, CHILD.format(ACTS))
    assert cascade(catalog, "child") == Cascade(referenced=frozenset())


def test_grandchildren_are_reached(target: SqliteTarget) -> None:
    middle = "CREATE TABLE middle (code INT PRIMARY KEY, FOREIGN KEY (code) REFERENCES parent (code) ON UPDATE CASCADE)"
    child = CHILD.format(ACTS).replace("REFERENCES parent", "REFERENCES middle")
    catalog = made(target, PARENT, middle, child)
    assert [model.name for model, _ in cascade(catalog).stale] == ["child"]
    assert cascade(catalog).referenced == {1}
    assert cascade(catalog, "middle").referenced == {0}


def test_a_value_that_only_the_source_knows_is_refused_where_rows_have_it(target: SqliteTarget) -> None:
    child = CHILD.format(ACTS).replace("twice INT AS (code + code)", "twice INT AS (abs(code))")
    found = cascade(made(target, PARENT, child))
    run(target, "INSERT INTO d__child VALUES (1, NULL, 3)")
    found.refuse_unknown(target, "p")
    found.refresh(target)
    assert children(target) == [(1, None, 3)]
    run(target, "INSERT INTO d__child VALUES (2, 5, 5)")
    with pytest.raises(RplError, match="twice") as caught:
        found.refuse_unknown(target, "p")
    assert (caught.value.errno, caught.value.position) == (1364, "p")


def test_a_foreign_key_that_the_target_does_not_have_is_refused_where_rows_hang_on_it(target: SqliteTarget) -> None:
    key = "FOREIGN KEY (other) REFERENCES parent (other) ON DELETE CASCADE"
    plain = f"CREATE TABLE child (id INT PRIMARY KEY, other INT, {key})"
    found = cascade(made(target, PARENT.replace("UNIQUE (code)", "KEY (other)"), plain))
    assert [(model.name, key.ref_columns) for model, key in found.lost] == [("child", ("other",))]
    assert found.referenced == {2} and found.stale == ()
    assert found.follows(RowChange(kind=ChangeKind.DELETE, before=RowSet((0,), [(1,)]), after=None))
    run(target, "INSERT INTO d__child VALUES (1, NULL)")
    found.refuse_unknown(target, "p")
    run(target, "INSERT INTO d__child VALUES (2, 5)")
    with pytest.raises(RplError, match="not a unique key") as caught:
        found.refuse_unknown(target, "p")
    assert (caught.value.errno, caught.value.position) == (1451, "p")


def test_the_action_of_a_deleted_row_that_keeps_its_versions_is_refused(target: SqliteTarget) -> None:
    """MariaDB logs the DELETE as an UPDATE of row_end, the last column of the parent."""
    found = cascade(made(target, f"{PARENT} WITH SYSTEM VERSIONING", CHILD.format(ACTS)))
    assert found.referenced == {1, 4}
    assert found.follows(update({0: 1, 1: 5, 4: 2038}, {0: 1, 1: 5, 4: 2026}))
    assert not found.follows(update({0: 1, 1: 5, 2: 1, 4: 2038}, {0: 1, 1: 5, 2: 2, 4: 2038}))
    found.refuse_unknown(target, "p")
    run(target, "INSERT INTO d__child VALUES (1, 5, 10)")
    with pytest.raises(RplError, match="system-versioned") as caught:
        found.refuse_unknown(target, "p")
    assert (caught.value.errno, caught.value.position) == (1451, "p")


def test_only_a_current_row_that_refers_to_the_changed_one_is_in_the_way(target: SqliteTarget) -> None:
    """Old versions refer to parents that are gone, so the target has no foreign key."""
    catalog = made(target, PARENT, f"{CHILD.format(ACTS)} WITH SYSTEM VERSIONING")
    found = cascade(catalog)
    rows = "(1, 5, 10, '2026-01-01', '2026-01-02'), (2, 6, 12, '2026-01-01', '2038-01-19 03:14:07.999999')"
    run(target, f"INSERT INTO d__child VALUES {rows}")
    found.refuse_unknown(target, "p", update({0: 1, 1: 5}, {0: 1, 1: 9}))
    for change in (update({0: 2, 1: 6}, {0: 2, 1: 9}), update({0: 2}, {0: 2, 1: 9}), None):
        with pytest.raises(RplError, match="system-versioned"):
            found.refuse_unknown(target, "p", change)
