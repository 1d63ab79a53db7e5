"""replica_exec_mode and replica_skip_errors on SQLite: what is overwritten, what is passed over, what stops still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rplctl.applier.apply.tolerance import PassedOver, Tolerance, undone_on_error
from rplctl.errors import DifferentErrors, LockBusy, RelayLogError, RplError, TargetError, error_numbers
from rplctl.own_tables.tables import create_own_tables
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.target import open_target
from rplctl.target.base import ChangeKind, RowChange, RowSet, Target

COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="code", type="int"),
    Column(name="name", type="varchar"),
)
KEYS = (
    Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),
    Key(name="code", kind="unique", parts=(KeyPart("code"),)),
)
MODEL = TableModel(database="d", name="t", columns=COLUMNS, keys=KEYS)
Values = tuple[int, int | None, str]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    made = open_target(f"sqlite:///{tmp_path / 't.db'}")
    create_own_tables(made.engine)
    with made.engine.begin() as connection:
        connection.exec_driver_sql('CREATE TABLE "d__t" (id INTEGER PRIMARY KEY, code UNIQUE, name, extra DEFAULT 7)')
        connection.exec_driver_sql("INSERT INTO d__t VALUES (1, 10, 'one', 70), (2, 20, 'two', 80), (3, NULL, 'x', 90)")
    made.begin(foreign_keys=True)
    yield made
    made.rollback()
    made.close()


def row(*values: object) -> RowSet:
    return RowSet((0, 1, 2), [values])  # type: ignore[list-item]


def rows(target: Target) -> list[tuple[object, ...]]:
    return [tuple(r) for r in target.connection.exec_driver_sql("SELECT id, code, name, extra FROM d__t ORDER BY id")]


@pytest.mark.parametrize(
    ("inserted", "expected"),
    [
        ((1, 11, "new"), [(1, 11, "new", 70), (2, 20, "two", 80)]),  # its key: columns of the target's own stay
        ((4, 20, "new"), [(1, 10, "one", 70), (4, 20, "new", 80)]),  # another unique key
        ((1, 20, "new"), [(1, 20, "new", 80)]),  # both: one is changed, the other gone
        ((1, None, "new"), [(1, None, "new", 70), (2, 20, "two", 80)]),  # NULL equals nothing
    ],
)
def test_an_insert_takes_the_place_of_all_rows_with_one_of_its_keys(
    target: Target, inserted: Values, expected: list[tuple[object, ...]]
) -> None:
    change = RowChange(kind=ChangeKind.INSERT, before=None, after=row(*inserted))
    with pytest.raises(TargetError, match="Duplicate entry"):
        Tolerance().apply_row(target, change, MODEL)
    found = Tolerance(idempotent=True).apply_row(target, change, MODEL)
    assert found is not None and found.errno == 1062
    assert [r for r in rows(target) if r[0] != 3] == expected
    assert (3, None, "x", 90) in rows(target)


@pytest.mark.parametrize(
    ("change", "errno"),
    [
        (RowChange(kind=ChangeKind.UPDATE, before=row(9, 9, "x"), after=row(9, 9, "y")), 1032),
        (RowChange(kind=ChangeKind.DELETE, before=row(9, 9, "x"), after=None), 1032),
        (RowChange(kind=ChangeKind.UPDATE, before=row(1, 10, "one"), after=row(1, 20, "taken")), 1062),
    ],
)
def test_what_does_not_fit_is_passed_over_and_told(target: Target, change: RowChange, errno: int) -> None:
    before = rows(target)
    found = Tolerance(idempotent=True).apply_row(target, change, MODEL)
    assert found is not None and found.errno == errno
    assert rows(target) == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            RowChange(kind=ChangeKind.INSERT, before=None, after=row(4, 40, "new")),
            {1: "one", 2: "two", 3: "x", 4: "new"},
        ),
        (RowChange(kind=ChangeKind.INSERT, before=None, after=row(1, 10, "new")), {1: "new", 2: "two", 3: "x"}),
        (RowChange(kind=ChangeKind.INSERT, before=None, after=row(4, 20, "new")), {1: "one", 3: "x", 4: "new"}),
        (
            RowChange(kind=ChangeKind.UPDATE, before=row(1, 10, "one"), after=row(5, 10, "new")),
            {2: "two", 3: "x", 5: "new"},
        ),
        (
            RowChange(kind=ChangeKind.UPDATE, before=row(9, 9, "x"), after=row(5, 50, "new")),
            {1: "one", 2: "two", 3: "x", 5: "new"},
        ),
        (RowChange(kind=ChangeKind.UPDATE, before=row(1, 10, "one"), after=row(1, 20, "new")), {1: "new", 3: "x"}),
        (RowChange(kind=ChangeKind.UPDATE, before=row(1, 10, "one"), after=row(2, 10, "new")), {2: "new", 3: "x"}),
        (RowChange(kind=ChangeKind.DELETE, before=row(1, 10, "one"), after=None), {2: "two", 3: "x"}),
        (RowChange(kind=ChangeKind.DELETE, before=row(9, 9, "x"), after=None), {1: "one", 2: "two", 3: "x"}),
    ],
)
def test_a_change_that_may_be_there_already_leaves_the_same_rows_twice(
    target: Target, change: RowChange, expected: dict[int, str]
) -> None:
    for _ in range(2):
        assert Tolerance(again=True).apply_row(target, change, MODEL) is None
        assert {number: name for number, _, name, _ in rows(target)} == expected
    target.connection.exec_driver_sql('ALTER TABLE "d__t" RENAME TO gone')
    with pytest.raises(TargetError) as caught:
        Tolerance(again=True).apply_row(target, change, MODEL)
    assert caught.value.errno == 1146


def test_a_change_that_fits_is_none_and_other_errors_stop_in_idempotent_mode_too(target: Target) -> None:
    mode = Tolerance(idempotent=True)
    assert (
        mode.apply_row(target, RowChange(kind=ChangeKind.DELETE, before=row(1, 10, "one"), after=None), MODEL) is None
    )
    target.connection.exec_driver_sql('ALTER TABLE "d__t" RENAME TO gone')
    with pytest.raises(TargetError) as caught:
        mode.apply_row(target, RowChange(kind=ChangeKind.INSERT, before=None, after=row(5, 5, "x")), MODEL)
    assert caught.value.errno == 1146


def test_skip_errors_are_a_list_all_or_off() -> None:
    assert error_numbers("off") == frozenset() and error_numbers("ALL") is None
    assert error_numbers("1062, 1032") == frozenset({1062, 1032})
    as_mysql_9_says = {1007, 1008, 1050, 1051, 1054, 1060, 1061, 1068, 1091, 1146}
    assert error_numbers("ddl_exist_errors,1062") == frozenset(as_mysql_9_says | {1062})
    for wrong in ("", "0", "65536", "off,1062", "1062,all", "-1", "1e3", "duplicate"):
        with pytest.raises(ValueError, match=r".*"):
            error_numbers(wrong)


def test_what_may_go_away_and_a_damaged_log_are_never_passed_over() -> None:
    everything = Tolerance(ignored=None)
    assert everything.ignores(TargetError("x", errno=1062)) and everything.ignores(RplError("x"))
    assert not everything.ignores(TargetError("x", errno=1205, transient=True))
    assert not everything.ignores(RelayLogError("x", errno=1594)) and not everything.ignores(LockBusy("x"))
    some = Tolerance(ignored=frozenset({1062}))
    assert some.ignores(TargetError("x", errno=1062)) and not some.ignores(TargetError("x", errno=1032))
    assert not Tolerance().ignores(TargetError("x", errno=1062))


def test_different_errors_are_skipped_if_the_error_of_the_source_or_of_the_target_is_listed() -> None:
    different = DifferentErrors("x", errno=3002)
    different.numbers = frozenset({1062, 1146})
    for listed, ignores in ((1062, True), (1146, True), (3002, False), (1032, False)):
        assert Tolerance(ignored=frozenset({listed})).ignores(different) is ignores


def test_a_list_of_tables_is_never_left_half_dropped() -> None:
    idempotent = Tolerance(ddl_is_idempotent=True)
    assert idempotent.drops_missing(is_mariadb=True) and not idempotent.drops_missing(is_mariadb=False)
    for ignored in (None, frozenset({1051})):
        assert Tolerance(ignored=ignored).drops_missing(is_mariadb=False)
    for ignored in (frozenset(), frozenset({1050})):
        assert not Tolerance(ignored=ignored).drops_missing(is_mariadb=True)


def test_many_are_counted_and_the_first_shown() -> None:
    passed = PassedOver()
    for number in range(25):
        passed.add(TargetError(f"row {number}", errno=1032 if number % 2 else 1062), f"{number}")
    assert (passed.count, len(passed.messages)) == (25, 10)
    assert passed.messages[3] == "ignored at 3: row 3 (1032)"
    assert "25 errors ignored in this batch (1032: 12, 1062: 13)" in passed.summary()


def test_a_row_without_a_key_is_found_as_mysql_57_prints_its_json(target: Target) -> None:
    model = TableModel(database="d", name="k", columns=(Column(name="n", type="int"), Column(name="j", type="json")))
    target.connection.exec_driver_sql('CREATE TABLE "d__k" (n INT, j TEXT)')
    target.connection.exec_driver_sql("INSERT INTO d__k VALUES (1, '[3]'), (2, '[3.0]'), (2, '[3]')")

    def moved(n: int, text: str) -> RowChange:
        return RowChange(kind=ChangeKind.UPDATE, before=RowSet((0, 1), [(n, text)]), after=RowSet((0, 1), [(n, "[]")]))

    Tolerance().apply_row(target, moved(1, "[3.0]"), model)
    Tolerance().apply_row(target, moved(2, "[3.0]"), model)
    found = [tuple(r) for r in target.connection.exec_driver_sql("SELECT n, j FROM d__k ORDER BY n, j")]
    assert found == [(1, "[]"), (2, "[3]"), (2, "[]")]
    for change in (moved(1, "[3.0]"), moved(2, "[4.0]")):
        with pytest.raises(TargetError) as raised:
            Tolerance().apply_row(target, change, model)
        assert raised.value.errno == 1032 and ".0]" in raised.value.position


def test_text_that_looks_like_json_is_compared_as_it_is(target: Target) -> None:
    model = TableModel(database="d", name="l", columns=(Column(name="t", type="varchar", length=9),))
    target.connection.exec_driver_sql('CREATE TABLE "d__l" (t TEXT)')
    target.connection.exec_driver_sql("INSERT INTO d__l VALUES ('[3]')")
    with pytest.raises(TargetError) as raised:
        Tolerance().apply_row(
            target, RowChange(kind=ChangeKind.DELETE, before=RowSet((0,), [("[3.0]",)]), after=None), model
        )
    assert raised.value.errno == 1032


@pytest.mark.parametrize("wanted", [True, False])
def test_a_step_that_fails_half_way_is_undone_where_it_is_wanted(target: Target, wanted: bool) -> None:
    before = rows(target)
    with pytest.raises(TargetError), undone_on_error(target, wanted=wanted):
        target.connection.exec_driver_sql("DELETE FROM d__t")
        raise TargetError("half way")
    assert rows(target) == (before if wanted else [])
