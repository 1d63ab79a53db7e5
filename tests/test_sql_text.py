"""SQL is made of our own templates, quoted names, literals and words that match a grammar; of nothing else."""

from __future__ import annotations

import pytest

from rplctl.errors import RplError
from rplctl.schema.bounds import Chunk, chunk_key, condition
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.sql_text import (
    Grammar,
    Sql,
    backticked,
    double_quoted,
    float_literal,
    joined,
    matched,
    standard_literal,
    text_literal,
    utf8_literal,
    word,
    written,
)
from rplctl.verify.key_values import from_json, literal

FITS = {
    Grammar.WORD: ["utf8mb4", "utf8mb4_0900_ai_ci"],
    Grammar.INTEGER: ["0", "-9223372036854775808", "18446744073709551615"],
    Grammar.DECIMAL: ["0", "-1.50", "9" * 65, ".5"],
    Grammar.DOUBLE: ["1.5", "-1.7e308", "1e+300", "5e-324", "0.1e0"],
    Grammar.HEX: ["", "00ff", "E9"],
    Grammar.MOMENT: ["2024-01-02", "0000-00-00 00:00:00", "-838:59:59.000000", "2024-01-02 03:04:05.123456"],
    Grammar.ADDRESS: ["::1", "::ffff:1.2.3.4", "255.255.255.255"],
    Grammar.UUID: ["123e4567-e89b-12d3-a456-426655440000"],
    Grammar.MYSQL_GTIDS: ["", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7,3e11fa47-71ca-11e1-9e33-c80aa9429562:tag:1"],
    Grammar.TERM: ["0", "18446744073709551615", "*", "("],
    Grammar.MARIADB_GTIDS: ["", "0-1-5,1-2-3"],
    Grammar.XID: ["rplctl:0123456789ab:0123456789ab:0123456789abcdef", "rplctl-branch:0:0:00.1"],
}  # fmt: skip
EVIL = [
    "1; DROP DATABASE x; -- ",
    "' OR 1",
    "1 OR 1=1",
    "1--",
    "1/**/",
    "a)b",
    "0x41`",
    "1\n",
    "\\",
    "é",
    "1 UNION",
    "(1)",
]


IN_QUOTES = (Grammar.MYSQL_GTIDS, Grammar.MARIADB_GTIDS, Grammar.XID)  # two dashes are no comment there


@pytest.mark.parametrize("grammar", Grammar)
def test_grammars_take_what_servers_say_and_no_more(grammar: Grammar) -> None:
    for text in FITS[grammar]:
        assert matched(grammar, text) == text
        for evil in (";", "'", '"', "`", "\n", " ", "#", "/*", "\\", *["--"][: grammar not in IN_QUOTES]):
            with pytest.raises(RplError, match="cannot execute a text"):
                matched(grammar, text + evil)


def test_parts_of_a_template_are_sql_or_numbers() -> None:
    name = backticked("d", "a`b{}")
    assert written("SELECT {} FROM {}", 5, name) == "SELECT 5 FROM `d`.`a``b{}`"
    assert type(joined(", ", [name, name])) is Sql
    for foreign in ("1; DROP DATABASE x", f"{name}", name + "x", True, 1.5, None):
        with pytest.raises(TypeError, match="is not SQL"):
            written("{}", foreign)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="is not SQL"):
            joined(",", [foreign])  # type: ignore[list-item]


def test_values_are_quoted() -> None:
    assert double_quoted('a"b', "c") == '"a""b"."c"'
    assert (text_literal("a'b\\"), standard_literal("a'b\\")) == ("'a''b\\\\'", "'a''b\\'")
    assert (utf8_literal("é'"), float_literal(1), word("latin1")) == ("_utf8mb4 x'c3a927'", "1.0e0", "latin1")


COLUMNS = (
    Column(name="i", type="bigint"),
    Column(name="n", type="decimal", length=9, scale=2),
    Column(name="d", type="datetime"),
    Column(name="t", type="varchar", length=9),
    Column(name="b", type="varbinary", length=9),
    Column(name="f", type="double"),
    Column(name="a", type="inet6"),
    Column(name="u", type="uuid"),
    Column(name="y", type="year"),
)
GOOD = {
    "i": "5",
    "n": "1.5",
    "d": "2024-01-01 00:00:00",
    "t": "6162",
    "b": "00FF",
    "f": "1.5",
    "a": "::1",
    "u": "123e4567-e89b-12d3-a456-426655440000",
    "y": "2024",
}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.type)
def test_bounds_of_a_source_and_of_a_file_are_of_their_columns_type(column: Column) -> None:
    model = TableModel(
        database="d",
        name="t",
        columns=(column,),
        keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart(column.name),)),),
    )
    (key,) = chunk_key(model)
    bound = key.bound(GOOD[column.name])
    assert bound in condition((key,), Chunk(None, (bound,)))
    for evil in (*EVIL, ""):
        if evil or column.type not in ("varchar", "varbinary"):
            with pytest.raises(RplError, match="cannot execute a text"):
                key.bound(evil)
        for stored in (evil, bound + evil, evil + bound, f"{key.before}{evil}{key.behind}"):
            if stored not in (bound, f"{key.before}{key.behind}"):
                with pytest.raises(RplError, match="cannot execute a text"):
                    condition((key,), Chunk((stored,), None))
    with pytest.raises(RplError, match="cannot execute a text"):
        condition((key,), Chunk((bound, bound), None))


@pytest.mark.parametrize("column", [c for c in COLUMNS if c.type not in ("varchar", "varbinary", "double")])
def test_keys_of_a_report_are_of_their_columns_type(column: Column) -> None:
    good = from_json(GOOD[column.name], column, "mysql")
    assert literal(good, column).strip("'") == GOOD[column.name]
    for evil in EVIL:
        with pytest.raises(ValueError, match=r"cannot execute a text|invalid literal"):
            from_json(evil, column, "mysql")
        with pytest.raises(RplError, match="cannot execute a text"):
            literal(evil, column)


def test_a_charset_of_a_model_is_a_word() -> None:
    column = Column(name="t", type="varchar", length=9, charset="utf8mb4 x'' OR 1; --")
    with pytest.raises(RplError, match="cannot execute a text"):
        chunk_key(
            TableModel(
                database="d",
                name="t",
                columns=(column,),
                keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("t"),)),),
            )
        )
