"""What identifies a row, what an error says of it, and which rows go together."""

from __future__ import annotations

import sqlite3

import pytest

from rplctl.errors import TargetError
from rplctl.schema.model import TableModel
from rplctl.target.base import (
    ChangeKind,
    CountMismatch,
    KeylessMismatch,
    RowChange,
    RowSet,
    TableChunk,
    check_columns,
    chunk_model,
    describe_key,
    has_one_unique_key,
    inserts_together,
    keyless_mismatch,
)
from tests.schema.test_row_key import model


def chunk(**parts: object) -> TableChunk:
    fields: dict[str, object] = {"absent": [], "deletes": [], "updates": [], "inserts": [], "ordered": []} | parts
    return TableChunk(database="d", table="t", change_count=1, foreign_keys_off=False, **fields)  # type: ignore[arg-type]


def test_one_unique_key_or_several() -> None:
    assert has_one_unique_key(model(("primary", "a"), ("index", "b")))
    assert not has_one_unique_key(model(("primary", "a"), ("unique", "b")))
    assert not has_one_unique_key(model(("index", "a")))


def test_an_error_names_the_key_or_the_whole_image_and_no_long_value() -> None:
    keyed = model(("primary", "ca"))
    assert describe_key(RowSet((0, 1, 2), [(1, 2, "x")]), keyed) == "c='x', a=1"
    assert describe_key(RowSet((1, 2), [(2, "x")]), keyed) == "c='x'"
    assert describe_key(RowSet((1, 0), [(None, 5)]), model()) == "b=None, a=5"
    assert describe_key(None, keyed) == ""
    assert describe_key(RowSet((2,), [("x" * 64,)]), model()) == "c='" + "x" * 64 + "'"
    assert describe_key(RowSet((2,), [(memoryview(b"x" * 65),)]), model()) == "c=b'" + "x" * 64 + "'…"


def test_inserts_of_the_same_columns_go_together_and_the_order_stays() -> None:
    def insert(*row: int) -> RowChange:
        return RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet(tuple(range(len(row))), [row]))

    update = RowChange(kind=ChangeKind.UPDATE, before=RowSet((0,), [(1,)]), after=RowSet((0,), [(2,)]))
    delete = RowChange(kind=ChangeKind.DELETE, before=RowSet((0,), [(1,)]), after=None)
    changes = [insert(1), insert(2), insert(3, 4), update, delete, insert(5)]
    assert list(inserts_together(changes)) == [
        RowSet((0,), [(1,), (2,)]),
        RowSet((0, 1), [(3, 4)]),
        update,
        delete,
        RowSet((0,), [(5,)]),
    ]


def test_a_table_or_column_that_is_missing() -> None:
    check_columns(model(), {"a", "b", "c", "own"}, '"t"')
    with pytest.raises(TargetError) as caught:
        check_columns(model(), set(), '"t"')
    assert caught.value.errno == 1146
    with pytest.raises(TargetError, match=r"Column 1 of table 'd.t'.*\(it has a, c\)") as caught:
        check_columns(model(), {"c", "a"}, '"t"')
    assert caught.value.errno == 1677


def test_a_bag_that_does_not_fit_is_tried_in_order_but_for_what_may_pass() -> None:
    def named(error: object) -> TargetError:
        return TargetError("busy", transient="busy" in str(error))

    def raised(error: Exception, of: TableModel) -> type[BaseException]:
        with pytest.raises(Exception) as caught, keyless_mismatch(chunk(), of, sqlite3.Error, named):
            raise error
        return caught.type

    assert raised(CountMismatch("1"), model()) is KeylessMismatch
    assert raised(sqlite3.IntegrityError("1"), model()) is KeylessMismatch
    assert raised(sqlite3.OperationalError("busy"), model()) is sqlite3.OperationalError
    assert raised(CountMismatch("1"), model(("primary", "a"))) is CountMismatch
    assert raised(ValueError("1"), model()) is ValueError


def test_chunks_tell_how_many_rows_they_hold_and_by_which_key() -> None:
    full = chunk(
        absent=[(1,)], deletes=[(2,), (3,)], updates=[RowSet((0,), [(1, 2)])], inserts=[RowSet((0,), [(4,)] * 3)]
    )
    assert full.net_count == 7
    assert full.takes_copies(model()) and not full.takes_copies(model(("primary", "a")))
    assert not chunk(absent=[(1,)]).takes_copies(model())
    narrow = chunk(width=1)
    keyed = model(("primary", "a"), ("unique", "c"))
    assert [key.kind for key in chunk_model(narrow, {("d", "t"): keyed}).keys] == ["primary", "index"]
    assert chunk_model(chunk(), {("d", "t"): keyed}) is keyed
