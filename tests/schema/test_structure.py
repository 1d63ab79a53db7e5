"""What a server adds to a table by itself: names of keys, keys of foreign keys, inherited charsets, hidden columns."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import Check, Column, ForeignKey, Key, KeyPart, TableModel
from rplctl.schema.statement import AddForeignKey
from rplctl.schema.structure import (
    add_check,
    add_foreign_key,
    add_key,
    add_versioning,
    check_column_names,
    drop_versioning,
    forget_lost_labels,
    resolve_charsets,
    row_end,
)

TABLE = TableModel(database="d", name="t", columns=(Column(name="A", type="int"), Column(name="b", type="int")))


def key(name: str, *columns: str, kind: str = "index", implicit: bool = False) -> Key:
    return Key(name=name, kind=kind, parts=tuple(map(KeyPart, columns)), implicit=implicit)  # type: ignore[arg-type]


def test_a_key_without_a_name_gets_that_of_its_first_column() -> None:
    table = add_key(add_key(TABLE, key("", "a", "b")), key("", "a"))
    assert [(k.name, k.columns) for k in table.keys] == [("A", ("A", "b")), ("A_2", ("A",))]
    assert (
        add_key(TABLE, Key(name="", kind="index", parts=(KeyPart("", expression="a+1"),))).keys[0].name
        == "functional_index"
    )
    with pytest.raises(RplError) as caught:
        add_key(table, key("a_2", "b"))
    assert caught.value.errno == 1061
    assert add_key(table, key("a_2", "b"), if_not_exists=True) is table
    with pytest.raises(RplError) as caught:
        add_key(table, key("", "c"))
    assert caught.value.errno == 1072


def test_a_primary_key_comes_first_and_its_columns_hold_no_null() -> None:
    table = add_key(add_key(TABLE, key("k", "b")), key("PRIMARY", "b", kind="primary"))
    assert [k.name for k in table.keys] == ["PRIMARY", "k"]
    assert [column.nullable for column in table.columns] == [True, False]


def test_a_foreign_key_is_numbered_and_brings_a_key_until_another_serves() -> None:
    reference = AddForeignKey(ForeignKey(name="", columns=("a",), ref_database="d", ref_table="p", ref_columns=("id",)))
    table = add_foreign_key(add_foreign_key(TABLE, reference), reference)
    assert [fk.name for fk in table.foreign_keys] == ["t_ibfk_1", "t_ibfk_2"]
    assert [(k.name, k.columns, k.implicit) for k in table.keys] == [("A", ("A",), True)]
    served = add_key(table, key("own", "A", "b"))
    assert [(k.name, k.implicit) for k in served.keys] == [("own", False)]
    beside = add_key(table, key("own", "b", "A"))
    assert [k.name for k in beside.keys] == ["A", "own"]
    named = AddForeignKey(
        ForeignKey(name="t_ibfk_7", columns=("b",), ref_database="d", ref_table="p", ref_columns=("id",))
    )
    later = add_foreign_key(add_foreign_key(TABLE, named), reference)
    assert [fk.name for fk in later.foreign_keys] == ["t_ibfk_7", "t_ibfk_8"]
    assert later.keys[0].name == "t_ibfk_7"


def test_checks_are_named_as_the_vendor_does() -> None:
    mysql, mariadb = DdlContext(), DdlContext(server_version="10.11.1-MariaDB")
    two = add_check(add_check(TABLE, Check("", "a"), mysql), Check("", "b"), mysql)
    assert [check.name for check in two.checks] == ["t_chk_1", "t_chk_2"]
    assert add_check(TABLE, Check("", "a"), mariadb).checks[0].name == "CONSTRAINT_1"
    assert [c.expression for c in add_check(two, Check("T_CHK_1", "c"), mysql).checks] == ["b", "c"]


def test_text_inherits_its_charset_and_numbers_none() -> None:
    columns = (
        Column(name="own", type="char", length=1, charset="latin1"),
        Column(name="none", type="char", length=1),
        Column(name="bin", type="char", length=1, collation="_bin"),
        Column(name="default", type="char", length=1, charset="default"),
        Column(name="n", type="int"),
    )
    found = resolve_charsets(TableModel(database="d", name="t", columns=columns), "utf8mb4", "utf8mb4_bin")
    assert [c.charset for c in found.columns] == ["latin1", "utf8mb4", "utf8mb4", "utf8mb4", None]
    assert [c.collation for c in found.columns] == [None, "utf8mb4_bin", "utf8mb4_bin", "utf8mb4_bin", None]
    assert (found.charset, found.collation) == ("utf8mb4", "utf8mb4_bin")
    binary = resolve_charsets(
        TableModel(database="d", name="t", columns=columns[1:2], charset="binary"), "utf8mb4", None
    )
    assert binary.columns[0].type == "binary"


def test_system_versioning_comes_and_goes_with_its_columns() -> None:
    keyed = add_key(TABLE, key("PRIMARY", "A", kind="primary"))
    table = add_versioning(keyed)
    assert [c.name for c in table.columns if c.invisible] == ["row_start", "row_end"]
    assert table.keys[0].columns == ("A", "row_end") and row_end(table) == "row_end"
    assert add_versioning(table) == table
    assert drop_versioning(table) == keyed
    own = TableModel(
        database="d",
        name="t",
        columns=(*keyed.columns, Column(name="e", type="timestamp", length=6, default="(ROW END)")),
        keys=keyed.keys,
    )
    assert add_versioning(own).keys[0].columns == ("A", "e")
    assert [c.name for c in drop_versioning(add_versioning(own)).columns] == ["A", "b", "e"]


def test_names_of_columns_differ_by_more_than_case() -> None:
    check_column_names((Column(name="a", type="int"), Column(name="b", type="int")), "t")
    with pytest.raises(RplError) as caught:
        check_column_names((Column(name="é", type="int"), Column(name="É", type="int")), "t")
    assert caught.value.errno == 1060


def test_labels_that_a_printed_definition_has_lost_are_not_guessed() -> None:
    columns = tuple(
        Column(name="c", type="enum", charset=charset, labels=labels)
        for charset, labels in (("utf8mb4", ("a?", "b")), ("utf8mb3", ("?",)), ("utf8mb4", ("a",)))
    )
    found = forget_lost_labels(TableModel(database="d", name="t", columns=columns))
    assert [column.labels for column in found.columns] == [(), ("?",), ("a",)]
