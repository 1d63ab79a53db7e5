"""Each kind has every rule, and a column that stays as it is has none. Text that MODIFY makes a number: what both
targets make of it is what MariaDB 10.11 and MySQL 9 made of it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from rplctl.schema.context import DdlContext
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.schema.plan import AlterStep, Catalog, CreateStep, plan_ddl
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target.conversion import RULES, Modify
from rplctl.target.postgresql.conversion import PostgresqlModify
from rplctl.target.registry import KINDS, dialect_of
from rplctl.target.sqlite import conversion as sqlite_conversion
from rplctl.target.sqlite.conversion import SqliteModify
from tests.kit.servers import PostgresqlServer
from tests.schema.recorded_ddl import recorded

NUMBERS = {"1": 1.0, "-0.1": -0.1, " 7": 7.0, "7 ": 7.0, "+.5": 0.5, "3.": 3.0, "123456789012.345": 123456789012.345}
# without strict mode: 0, 12, 0, 1, 0, 1 and the greatest double
OTHERS = ["abc", "12abc", "", "1,5", "0x10", "1e", "1e400", ".", "-", "1 2", "1.2.3", "٣"]


@pytest.mark.parametrize("kind", [SqliteModify, PostgresqlModify])
def test_each_kind_has_every_rule(kind: type[Modify]) -> None:
    assert [name for name in RULES.values() if not callable(getattr(kind, name, None))] == []


def created(name: str) -> list[TableModel]:
    """Every table that the recorded statements create: all types are among their columns."""
    catalog, found = Catalog(), []
    for sql, database, context in recorded(name):
        plan = plan_ddl(sql, database, context, catalog)
        catalog = catalog.after(plan)
        found += [step.model for step in plan.steps if isinstance(step, CreateStep) and not step.model.is_sequence]
    return found


@pytest.mark.long("SQLite stays in make test; it asks what a statement would rewrite.", keeps=r"sqlite")
@pytest.mark.parametrize("name", ["ddl_mariadb.sql", "ddl_mysql.sql"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if dialect_of(kind).ddl is not None])
def test_a_new_index_rewrites_no_column_of_any_type(kind: str, name: str) -> None:
    """The whole table would be written anew, for a change that takes the source a moment."""
    ddl, tables = dialect_of(kind).ddl, created(name)
    assert ddl is not None
    assert len(tables) > 50
    rewritten = set()
    for model in tables:
        index = Key(name="one_more", kind="index", parts=(KeyPart(model.columns[0].name),))
        step = AlterStep(
            old=model, new=replace(model, keys=(*model.keys, index)), origins=tuple(c.name for c in model.columns)
        )
        for filled in ddl.filled_columns(step, DdlContext(), original_names=True):
            if filled.impossible or not filled.is_unchanged:
                rewritten.add((filled.column.type, filled.expression))
    assert rewritten == set()


@pytest.mark.parametrize("text", [*NUMBERS, *OTHERS, "1\0002", "1234567890123.4567"])
def test_sqlite_tells_what_it_can(text: str) -> None:
    number, bad = sqlite_conversion.text_to_number(as_sql("v"))
    with sqlite3.connect(":memory:") as connection:
        found = connection.execute(f"SELECT {number}, {bad} FROM (SELECT ? AS v)", (text,)).fetchone()
    assert found == (NUMBERS[text], 0) if text in NUMBERS else found[1] == 1


def modify(kind: str) -> PostgresqlModify:
    return PostgresqlModify(
        old=Column(name="v", type="varchar"), new=Column(name="v", type=kind), value=as_sql("v"), context=DdlContext()
    )


@pytest.mark.postgresql
def test_postgresql_tells_more(postgresql: PostgresqlServer) -> None:
    more = {"1e10": 1e10, "1234567890123.4567": 1234567890123.4567, "-1.5E-3": -0.0015}
    number, bad = modify("double").number_of_text()
    for text, expected in (NUMBERS | more).items():
        assert postgresql.sql(f"SELECT {number}, {bad} FROM (SELECT '{text}' AS v) t") == [(expected, False)], text
    for text in OTHERS:
        assert postgresql.sql(f"SELECT {bad} FROM (SELECT '{text}' AS v) t") == [(True,)], text
    number, bad = modify("float").number_of_text()
    assert postgresql.sql(f"SELECT ({number})::double precision, {bad} FROM (SELECT '-0.1' AS v) t") == [
        (-0.10000000149011612, False)
    ]
