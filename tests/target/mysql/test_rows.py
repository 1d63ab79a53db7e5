"""Statements of row changes: what is written, what is left alone, which row is meant."""

from __future__ import annotations

import pytest

from rplctl.errors import TargetError
from rplctl.schema.model import Column, ForeignKey, Key, KeyPart, TableModel
from rplctl.target.base import ChangeKind, RowChange, RowSet, TableChunk
from rplctl.target.mysql import rows as mysql_rows
from rplctl.target.mysql.rows import (
    change_statement,
    delete_statements,
    finds_by_key,
    has_empty_enum,
    implicit_zeros,
    insert_statements,
    kept_times,
    parents_first,
    update_statements,
    where_row,
)

PRIMARY = (Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"), KeyPart("part"))),)
COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="part", type="int", nullable=False),
    Column(name="v", type="varchar", length=9, charset="utf8mb4"),
    Column(name="t", type="timestamp"),
    Column(name="g", type="int", generated="`id` + 1"),
)
KEYED = TableModel(database="d`b", name="t", columns=COLUMNS, keys=PRIMARY)
BARE = TableModel(database="d", name="t", columns=COLUMNS)


def test_an_insert_names_its_columns_and_writes_no_generated_one() -> None:
    rows = RowSet((2, 0, 1, 4), [("x", 1, 2, 2), (None, 3, 4, 4)])
    assert list(insert_statements(KEYED, rows)) == [
        (b"INSERT INTO `d``b`.`t` (`v`, `id`, `part`) VALUES ('x',1,2),(NULL,3,4)", 2)
    ]


def test_statements_are_closed_at_so_many_rows_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = RowSet((0, 1), [(n, 0) for n in range(5)])
    monkeypatch.setattr(mysql_rows, "ROWS_PER_STATEMENT", 2)
    assert [count for _, count in insert_statements(KEYED, rows)] == [2, 2, 1]
    monkeypatch.setattr(mysql_rows, "STATEMENT_BYTES", 5)
    assert [count for _, count in insert_statements(KEYED, rows)] == [1] * 5
    assert [count for _, count in delete_statements(KEYED, [(1, 2), (3, 4)])] == [1, 1]
    assert list(delete_statements(KEYED, [])) == []


def test_a_column_of_the_replicas_own_gets_the_zero_of_its_type() -> None:
    own = (
        Column(name="n", type="int", nullable=False),
        Column(name="s", type="set", labels=("a",), nullable=False),
        Column(name="d", type="date", nullable=False),
        Column(name="null", type="int"),
        Column(name="default", type="int", nullable=False, default="5"),
        Column(name="auto", type="int", nullable=False, auto_increment=True),
        Column(name="made", type="int", nullable=False, generated="1"),
        Column(name="shape", type="point", nullable=False),
    )
    model = TableModel(database="d", name="t", columns=(Column(name="id", type="int"), *own))
    assert [(column.name, zero) for column, zero in implicit_zeros(model, (0,))] == [
        ("n", b"0"),
        ("s", b"''"),
        ("d", b"'0000-00-00'"),
    ]
    assert [column.name for column, _ in implicit_zeros(model, (0, 1, 2))] == ["d"]
    assert list(insert_statements(model, RowSet((0,), [(7,)]))) == [
        (b"INSERT INTO `d`.`t` (`id`, `n`, `s`, `d`) VALUES (7,0,'','0000-00-00')", 1)
    ]


def test_an_update_keeps_times_and_is_found_by_its_whole_key() -> None:
    rows = RowSet((2,), [("x", 1, 2), ("y", 3, 4)])
    assert list(update_statements(KEYED, rows)) == [
        (
            b"UPDATE `d``b`.`t` SET `v`='x', `t`=`t` WHERE `id`=1 AND `part`=2;"
            b"UPDATE `d``b`.`t` SET `v`='y', `t`=`t` WHERE `id`=3 AND `part`=4",
            2,
        )
    ]
    assert kept_times(KEYED, (3,)) == []
    assert [column.name for column in kept_times(KEYED, ())] == ["t"]
    made = TableModel(
        database="d",
        name="t",
        columns=(Column(name="t", type="datetime", generated="now()"), Column(name="u", type="datetime")),
    )
    assert [column.name for column in kept_times(made, ())] == ["u"]


def test_an_update_of_generated_columns_alone_still_finds_its_row() -> None:
    model = TableModel(
        database="d",
        name="t",
        columns=(COLUMNS[0], COLUMNS[4]),
        keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),),
    )
    change = RowChange(kind=ChangeKind.UPDATE, before=RowSet((0,), [(1,)]), after=RowSet((1,), [(2,)]))
    assert change_statement(change, model) == b"UPDATE `d`.`t` SET `id`=`id` WHERE `id`=1"


def test_an_empty_geometry_is_not_written() -> None:
    model = TableModel(
        database="d",
        name="t",
        columns=(COLUMNS[0], Column(name="p", type="point")),
        keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),),
    )
    change = RowChange(kind=ChangeKind.UPDATE, before=RowSet((0,), [(1,)]), after=RowSet((0, 1), [(2, b"")]))
    assert change_statement(change, model) == b"UPDATE `d`.`t` SET `id`=2 WHERE `id`=1"


def test_a_row_is_found_by_key_where_the_image_holds_it_else_by_all_and_once() -> None:
    image = RowSet((1, 0, 2), [(2, 1, "x")])
    assert finds_by_key(KEYED, image) and where_row(KEYED, image) == b"`id`=1 AND `part`=2"
    assert not finds_by_key(KEYED, RowSet((0,), [(1,)]))
    assert where_row(KEYED, RowSet((0,), [(1,)])) == b"`id`=1 LIMIT 1"
    assert not finds_by_key(BARE, image)
    whole = RowSet((0, 2, 4), [(1, None, 2)])
    assert where_row(BARE, whole) == b"`id`=1 AND `v` IS NULL LIMIT 1"
    with pytest.raises(TargetError, match="find record") as caught:
        where_row(BARE, RowSet((4,), [(2,)]))
    assert caught.value.errno == 1032


def test_changes_as_statements() -> None:
    image = RowSet((0, 1), [(1, 2)])
    delete = RowChange(kind=ChangeKind.DELETE, before=image, after=None)
    assert change_statement(delete, KEYED) == b"DELETE FROM `d``b`.`t` WHERE `id`=1 AND `part`=2"
    insert = RowChange(kind=ChangeKind.INSERT, before=None, after=image)
    assert change_statement(insert, KEYED) == b"INSERT INTO `d``b`.`t` (`id`, `part`) VALUES (1,2)"
    assert list(delete_statements(KEYED, [(1, 2), (3, 4)])) == [
        (b"DELETE FROM `d``b`.`t` WHERE (`id`=1 AND `part`=2) OR (`id`=3 AND `part`=4)", 2)
    ]


def test_an_empty_enum_anywhere_is_seen() -> None:
    model = TableModel(
        database="d", name="t", columns=(Column(name="id", type="int"), Column(name="e", type="enum", labels=("a",)))
    )
    assert not has_empty_enum(model, [RowSet((0, 1), [(0, 1), (0, None)])])
    assert has_empty_enum(model, [RowSet((0,), [(0,)]), RowSet((1, 0), [(1, 5), (0, 5)])])


def test_parents_come_before_their_children_and_a_cycle_stays() -> None:
    def table(name: str, *parents: str) -> TableModel:
        keys = tuple(
            ForeignKey(name="f", columns=("id",), ref_database="d", ref_table=parent, ref_columns=("id",))
            for parent in parents
        )
        return TableModel(database="d", name=name, columns=COLUMNS, foreign_keys=keys)

    models = {("d", m.name): m for m in (table("c", "b", "x"), table("b", "a"), table("a", "c"), table("z", "z"))}
    chunks = [
        TableChunk(database="d", table=name, change_count=1, foreign_keys_off=False) for name in ("c", "z", "b", "a")
    ]
    assert [chunk.table for chunk in parents_first(chunks, models)] == ["a", "b", "c", "z"]
