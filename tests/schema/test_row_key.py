"""The columns that identify a row: no other row has their values, and no session sees others."""

from __future__ import annotations

from rplctl.schema.model import Column, Key, KeyKind, KeyPart, TableModel
from rplctl.schema.row_key import is_by_time_zone, key_of

COLUMNS = (
    Column(name="a", type="int", nullable=False),
    Column(name="b", type="int"),
    Column(name="c", type="varchar", length=9, nullable=False),
)


def model(*keys: tuple[KeyKind, str]) -> TableModel:
    made = tuple(Key(name=f"k{n}", kind=kind, parts=tuple(map(KeyPart, names))) for n, (kind, names) in enumerate(keys))
    return TableModel(database="d", name="t", columns=COLUMNS, keys=made)


def test_a_key_is_the_primary_else_the_first_unique_one_without_nulls() -> None:
    assert key_of(model(("unique", "a"), ("primary", "ca"))) == (2, 0)
    assert key_of(model(("unique", "ab"), ("unique", "c"))) == (2,)
    assert key_of(model(("index", "a"), ("unique", "b"))) == ()
    assert key_of(model(("primary", "b"))) == (1,)
    prefix = TableModel(
        database="d", name="t", columns=COLUMNS, keys=(Key(name="k", kind="unique", parts=(KeyPart("c", 3),)),)
    )
    assert key_of(prefix) == ()
    computed = TableModel(
        database="d",
        name="t",
        columns=COLUMNS,
        keys=(Key(name="k", kind="unique", parts=(KeyPart("a"), KeyPart("", expression="a+1"))),),
    )
    assert key_of(computed) == ()


def test_a_unique_key_with_another_value_in_each_time_zone_identifies_no_row() -> None:
    columns = (
        Column(name="id", type="int", nullable=False),
        Column(name="created", type="timestamp", nullable=False),
        Column(name="day", type="date", nullable=False, generated="date(`created`)"),
        Column(name="stored", type="date", nullable=False, generated="date(`created`)", stored=True),
    )

    def keyed(*names: str) -> TableModel:
        key = Key(name="k", kind="unique", parts=tuple(map(KeyPart, names)))
        return TableModel(database="d", name="t", columns=columns, keys=(key,))

    assert key_of(keyed("id", "day")) == ()
    assert key_of(keyed("id", "stored")) == (0, 3)
    assert key_of(keyed("id", "created")) == (0, 1)
    assert [is_by_time_zone(keyed(name).keys[0], keyed(name)) for name in ("day", "stored", "created")] == [
        True,
        False,
        False,
    ]
