"""What a DuckDB file holds after a statement: every recorded one runs; what it cannot have is refused, in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rplctl import mysql_errors as er
from rplctl.errors import RplError, TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.sql_text import proven_statement as as_sql
from rplctl.target import open_target
from rplctl.target.duckdb.connection import driver_of
from rplctl.target.duckdb.ddl_type import declared
from rplctl.target.duckdb.rows import present_columns
from rplctl.target.duckdb.target import DuckdbTarget
from tests.schema.recorded_ddl import recorded

NAMED = {"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE"}


class Tables:
    def __init__(self, target: DuckdbTarget) -> None:
        self.target, self.catalog = target, Catalog()

    def run(self, sql: str, database: str = "shop", context: DdlContext | None = None) -> None:
        plan = plan_ddl(sql, database, context or DdlContext(), self.catalog)
        self.target.begin(foreign_keys=True)
        try:
            self.target.execute_ddl(plan, self.catalog)
        except RplError:
            self.target.rollback()
            raise
        self.target.commit()
        self.catalog = self.catalog.after(plan)

    def asked(self, sql: str) -> list[tuple[object, ...]]:
        return driver_of(self.target.connection).execute(as_sql(sql)).fetchall()


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    target = open_target(f"duckdb:///{tmp_path / 't.duckdb'}")
    assert isinstance(target, DuckdbTarget)
    yield Tables(target)
    target.close()


@pytest.mark.long("MariaDB's statements stay; those of MySQL are made from the same models.", keeps=r"mariadb")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ddl_mariadb.sql", "ddl_mysql.sql"])
def test_every_recorded_statement_runs_and_leaves_the_tables_of_the_models(tables: Tables, name: str) -> None:
    refused = []
    for sql, database, context in recorded(name):
        try:
            tables.run(sql, database, context)
        except TargetError as error:
            refused.append(error.message)
    assert ["would share a name in the target" in message for message in refused] == [True]
    models = [model for model in tables.catalog.tables.values() if not model.is_sequence]
    there = tables.asked("SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name <> 'rplctl'")
    assert {*there} == {(model.database, model.name) for model in models}
    for model in models:
        found = present_columns(driver_of(tables.target.connection), model)
        assert found == {c.name: NAMED.get(declared(c), declared(c)) for c in model.columns}, model.qualified_name


def test_unique_keys_are_indexes_and_one_over_a_time_is_of_its_microseconds(tables: Tables) -> None:
    tables.run("CREATE TABLE t (id INT PRIMARY KEY, at TIME(2) UNIQUE, a INT, KEY (a), UNIQUE KEY both_of (a, at))")
    found = tables.asked("SELECT index_name, sql FROM duckdb_indexes() WHERE schema_name = 'shop' ORDER BY 1")
    assert [str(sql).partition(" ON ")[2] for _, sql in found] == [
        "shop.t((epoch_us(\"at\")));", "shop.t(a, (epoch_us(\"at\")));"
    ]  # fmt: skip
    tables.run("ALTER TABLE t DROP KEY at, RENAME KEY both_of TO pair")
    assert len(tables.asked("SELECT 1 FROM duckdb_indexes() WHERE schema_name = 'shop'")) == 1


@pytest.mark.parametrize(
    ("before", "sql", "message"),
    [
        ([], "CREATE DATABASE rplctl", "has the same name as the schema of rplctl's tables"),
        (["CREATE TABLE t (a INT)"], "CREATE TABLE T (a INT)", "would share a name in the target"),
        ([], "CREATE DATABASE Shop", "would share a name in the target"),
        (["CREATE TABLE p (id INT PRIMARY KEY)"],
         "CREATE TABLE c (rowid INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
         "Incorrect column name 'rowid' in shop.c"),
        (["CREATE TABLE p (id INT PRIMARY KEY, RowId INT)"],
         "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
         "Incorrect column name 'rowid' in shop.p"),
        (["CREATE TABLE p (id INT PRIMARY KEY)",
          "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))"],
         "ALTER TABLE p ADD COLUMN rowid INT", "Incorrect column name 'rowid' in shop.p"),
        (["CREATE TABLE p (id INT PRIMARY KEY, rowid INT)"], "CREATE TABLE c (id INT PRIMARY KEY)", ""),
    ],
)  # fmt: skip
def test_what_a_file_cannot_have_is_refused_and_nothing_is_changed(
    tables: Tables, before: list[str], sql: str, message: str
) -> None:
    tables.run("CREATE DATABASE shop")
    for statement in before:
        tables.run(statement)
    there = tables.asked("SELECT sql FROM duckdb_tables() ORDER BY 1")
    if not message:
        return tables.run(sql)
    with pytest.raises(TargetError) as caught:
        tables.run(sql)
    assert message in caught.value.message and caught.value.hint
    assert ("rowid" in message) == (caught.value.errno == er.WRONG_COLUMN_NAME)
    assert tables.asked("SELECT sql FROM duckdb_tables() ORDER BY 1") == there
