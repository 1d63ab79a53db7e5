"""A table map that does not fit its model stops with both shown; one that fits is read by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.decode.table_shape import fitted, formats_of
from rplctl.errors import RplError
from rplctl.event.table_map import ColumnType, TableMap
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, plan_ddl

DDL = "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(20) CHARACTER SET latin1, kind ENUM('a','b'))"
MODEL: TableModel = Catalog().after(plan_ddl(DDL, "shop", DdlContext(), Catalog())).tables["shop", "t"]
MAP = TableMap(
    table_id=7,
    flags=0,
    database="shop",
    table="t",
    type_codes=(ColumnType.LONGLONG, ColumnType.VARCHAR, ColumnType.STRING),
    metadata=(0, 20, 0xF701),
    nullable=(False, True, True),
)


def test_what_the_map_leaves_out_comes_from_the_model() -> None:
    assert fitted(MAP, MODEL, is_targets=False) is MODEL
    key, name, kind = formats_of(MAP, MODEL)
    assert key.unsigned
    assert name.charset == "latin1"
    assert kind.labels == ("a", "b")


def test_a_last_bigint_is_a_hidden_hash_of_a_unique_key_in_mariadbs_log_alone() -> None:
    """MySQL has none: there a column more than the model has is one whose values would be lost."""
    more = replace(
        MAP,
        type_codes=(*MAP.type_codes, ColumnType.LONGLONG),
        metadata=(*MAP.metadata, 0),
        nullable=(*MAP.nullable, True),
    )
    unique = plan_ddl(DDL.replace("kind ENUM", "UNIQUE (name), kind ENUM"), "shop", DdlContext(), Catalog())
    model = Catalog().after(unique).tables["shop", "t"]
    assert fitted(more, model, is_targets=False, is_mariadb=True) is model
    for refused, is_mariadb in ((model, False), (MODEL, True)):
        with pytest.raises(RplError) as caught:
            fitted(more, refused, is_targets=False, is_mariadb=is_mariadb)
        assert caught.value.errno == 1677


@pytest.mark.parametrize(
    ("table_map", "words"),
    [
        (
            replace(MAP, type_codes=MAP.type_codes[:2], metadata=(0, 20), nullable=(False, True)),
            "2 columns without names",
        ),
        (replace(MAP, column_names=("id", "name", "sort")), "id, name, sort"),
        (replace(MAP, type_codes=(ColumnType.LONG, *MAP.type_codes[1:])), "column 0 `id` is bigint in the model, LONG"),
    ],
    ids=["fewer columns", "other names", "other type"],
)
def test_a_map_of_another_shape_is_refused_and_both_are_shown(table_map: TableMap, words: str) -> None:
    with pytest.raises(RplError) as caught:
        fitted(table_map, MODEL, is_targets=False)
    assert caught.value.errno == 1677
    assert words in caught.value.message
    assert "load-schema" in caught.value.hint
