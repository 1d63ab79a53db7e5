"""Models survive JSON and their own SQL; whatever names, labels and comments hold."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import Check, Column, ForeignKey, Key, KeyPart, Partition, Partitioning, TableModel
from rplctl.schema.parse import parse_create_table
from rplctl.schema.plan import Catalog
from rplctl.target.sqlite import ddl
from tests.schema.mysql_text import create_table

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
NAMES = TEXT.map(str.strip).filter(bool)
FLAT = [
    *[Column(name="", type=kind) for kind in ("int", "bigint", "double", "date", "json", "text", "blob", "year")],
    Column(name="", type="bigint", unsigned=True),
    Column(name="", type="int", length=7, unsigned=True, zerofill=True),
    Column(name="", type="decimal", length=12, scale=3),
    Column(name="", type="varchar", length=30),
    Column(name="", type="char", length=4),
    Column(name="", type="binary", length=3),
    Column(name="", type="bit", length=64),
    Column(name="", type="datetime", length=6),
    Column(name="", type="timestamp", length=3),
    Column(name="", type="time"),
    Column(name="", type="point"),
    Column(name="", type="float", length=7, scale=2),
    Column(name="", type="varchar", length=9, generated="concat('a',`b`)", stored=True),
]


@st.composite
def columns(draw: st.DrawFn) -> Column:
    labels = draw(st.lists(TEXT.map(lambda text: text.rstrip(" ")), min_size=1, max_size=4, unique=True))
    column = draw(st.sampled_from([*FLAT, Column(name="", type="enum", labels=tuple(labels))]))
    if column.type in ("varchar", "char", "text", "enum"):
        charset, collation = draw(st.sampled_from([("utf8mb4", None), ("latin1", "latin1_bin")]))
        column = replace(column, charset=charset, collation=collation)
    comment = draw(st.one_of(st.just(""), TEXT))
    return replace(column, nullable=draw(st.booleans()), comment=comment, invisible=draw(st.booleans()))


@st.composite
def models(draw: st.DrawFn) -> TableModel:
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique_by=lambda text: sqlite_safe(text)))
    found = [replace(draw(columns()), name=name) for name in names]
    picks = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)
    keys = []
    if draw(st.booleans()):
        primary = draw(picks)
        keys.append(Key(name="PRIMARY", kind="primary", parts=tuple(KeyPart(name) for name in primary)))
        found = [replace(c, nullable=c.nullable and c.name not in primary) for c in found]
    for number in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["unique", "index"]))
        parts = tuple(KeyPart(name, descending=draw(st.booleans())) for name in draw(picks))
        keys.append(Key(name=f"k '{number}`", kind="unique" if kind == "unique" else "index", parts=parts))
    return TableModel(
        database="d",
        name=draw(NAMES),
        columns=tuple(found),
        keys=tuple(keys),
        charset="utf8mb4",
        engine="InnoDB",
        comment=draw(TEXT),
    )


def sqlite_safe(text: str) -> str:
    return text.casefold()


@settings(max_examples=80, deadline=None)
@given(models())
def test_reading_a_models_own_create_table_gives_the_model_back(model: TableModel) -> None:
    assert parse_create_table(create_table(model), "d", DdlContext(server_version="9.0.1")) == model
    assert TableModel.from_json(model.to_json()) == model


@settings(max_examples=60, deadline=None)
@given(models())
def test_sqlite_accepts_the_table_of_any_model(model: TableModel) -> None:
    connection = sqlite3.connect(":memory:")
    for statement in ddl.create_table(model, Catalog()):
        connection.execute(statement)
    names = [row[1] for row in connection.execute(f"PRAGMA table_xinfo({ddl.table(model)})")]
    assert names == [column.name for column in model.columns]
    connection.close()


def test_json_keeps_every_field() -> None:
    model = TableModel(
        database="d",
        name="t",
        columns=(Column(name="e", type="enum", labels=("a", "b'c"), charset="utf8mb4"),),
        keys=(Key(name="k", kind="index", parts=(KeyPart("e", 3),), implicit=True, stored_as="old"),),
        foreign_keys=(
            ForeignKey(
                name="f", columns=("e",), ref_database="d", ref_table="p", ref_columns=("x",), on_delete="CASCADE"
            ),
        ),
        checks=(Check("c", "e > 1"),),
        charset="utf8mb4",
        collation="utf8mb4_bin",
        engine="InnoDB",
        comment="✓",
        partitioning=Partitioning(method="RANGE", expression="e", partitions=(Partition("p", "LESS THAN (1)"),)),
        system_versioned=True,
    )
    assert TableModel.from_json(model.to_json()) == model


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"format":99}', '{"format":1,"columns":[]}', '{"format":1,"columns":[{"x":1}]}']
)
def test_damaged_json_is_an_error_with_a_way_out(text: str) -> None:
    with pytest.raises(RplError) as caught:
        TableModel.from_json(text)
    assert "load-schema" in caught.value.hint
