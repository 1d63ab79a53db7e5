"""Index names: kept when a table is renamed, never taken twice, compared as the strictest target does."""

from __future__ import annotations

from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.schema.naming import choose_index_names, fold, index_name, keep_index_names, physical_name

KEYS = (Key(name="PRIMARY", kind="primary", parts=(KeyPart("a"),)), Key(name="K", kind="index", parts=(KeyPart("a"),)))
TABLE = TableModel(database="d", name="t", columns=(Column(name="a", type="int"),), keys=KEYS)


def test_only_ascii_letters_have_no_case() -> None:
    assert fold("AbÉ") == "abÉ"
    assert fold("ABC") == "abc"
    assert fold("İ") == "İ"


def test_an_index_is_named_after_its_table_until_that_is_renamed() -> None:
    assert physical_name("d", "t") == "d__t"
    assert index_name(TABLE, KEYS[1]) == "d__t::K"
    kept = keep_index_names(TABLE)
    assert [key.stored_as for key in kept.keys] == ["", "d__t::K"]
    assert index_name(kept, kept.keys[1]) == "d__t::K"


def test_a_name_that_a_renamed_table_took_along_is_not_used_again() -> None:
    away = TableModel(
        database="d",
        name="old",
        columns=TABLE.columns,
        keys=(Key(name="k", kind="index", parts=(KeyPart("a"),), stored_as="D__T::k"),),
    )
    again = TableModel(
        database="d",
        name="x",
        columns=TABLE.columns,
        keys=(Key(name="k", kind="index", parts=(KeyPart("a"),), stored_as="d__t::K~2"),),
    )
    chosen = choose_index_names(TABLE, [away, again])
    assert [key.stored_as for key in chosen.keys] == ["", "d__t::K~3"]
    assert choose_index_names(TABLE, []) == TABLE
