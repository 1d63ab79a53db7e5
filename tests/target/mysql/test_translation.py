"""Edits of DDL for the other vendor: no name of the source becomes a clause of its own (design D33)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.event.query import Query, QueryContext
from rplctl.schema.context import DdlContext
from rplctl.schema.model import Check, TableModel
from rplctl.schema.parse import parse_create_table
from rplctl.target.mysql.session import ServerKind
from rplctl.target.mysql.translation import translated

ANSI_QUOTES = 4
HOSTILE = ["x", "x y", "x`, b INT, CHECK (1), y", "x``", 'x"', "x\\", "x'", "x -- ", "x /* ", "x;", "`", '"', "ä`"]
FORMS = [
    "CREATE TABLE {0} (a INT CHECK (a > 0), CHECK (a < 9))",
    "CREATE TABLE {0} ({1} JSON, g INT AS ({1}->'$.a'), KEY {1} ((a + 1)) INVISIBLE, a INT)",
    "CREATE TABLE {0} (a VARCHAR(9) CHARACTER SET utf8mb4, {1} INT CONSTRAINT {1} CHECK (a <> 'b')) CHARSET utf8mb4",
]


def edited(text: str, context: DdlContext, model: TableModel | None = None) -> str:
    session = QueryContext(flags2=0, sql_mode=context.sql_mode, default_collation_for_utf8mb4=255)
    query = Query(
        timestamp=1_700_000_000,
        thread_id=7,
        execution_time=0,
        error_code=0,
        database="d",
        sql_bytes=text.encode(),
        context=session,
        uses_temporary_tables=False,
        suppress_use=False,
    )
    (made,) = translated(query, context, ServerKind(True, 110800), lambda *_: model, dict).queries
    return made.sql_bytes.decode()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("quote", ["`", '"'])
def test_no_name_becomes_another_column(quote: str, name: str, form: str) -> None:
    context = DdlContext(sql_mode=ANSI_QUOTES if quote == '"' else 0, server_version="9.7.0")
    text = form.format(
        quote + name.replace(quote, 2 * quote) + quote, f"{quote}c{name.replace(quote, 2 * quote)}{quote}"
    )
    before, after = (parse_create_table(sql, "d", context) for sql in (text, edited(text, context)))
    assert edited(text, context) != text
    assert (after.name, [column.name for column in after.columns]) == (
        before.name,
        [column.name for column in before.columns],
    )


def test_the_name_of_a_check_of_the_target_is_quoted() -> None:
    context = DdlContext(server_version="9.7.0")
    model = parse_create_table("CREATE TABLE t (a INT, b INT)", "d", context)
    model = replace(model, checks=(Check("x`, DROP COLUMN b, DROP CONSTRAINT `t_chk_1", "a > 0"),))
    found = edited("ALTER TABLE t DROP CHECK u_chk_1", context, model)
    assert found == "ALTER TABLE t DROP CONSTRAINT `x``, DROP COLUMN b, DROP CONSTRAINT ``t_chk_1`"


@pytest.mark.parametrize(("version", "is_kept"), [("5.7.21", False), ("8.4.6", False), ("9.7.4", True)])
@pytest.mark.parametrize(
    "clause", ["REFERENCES p", "REFERENCES `e`.`p` (id, b) MATCH FULL ON UPDATE SET NULL ON DELETE NO ACTION"]
)
def test_a_reference_that_the_source_ignores_is_not_passed_on(clause: str, version: str, is_kept: bool) -> None:
    for text in ("CREATE TABLE t (a INT NOT NULL COMMENT 'x' {}, b INT)", "ALTER TABLE t ADD a INT UNIQUE {} FIRST"):
        made = edited(text.format(clause), DdlContext(server_version=version))
        assert made == text.format(clause if is_kept else "")
