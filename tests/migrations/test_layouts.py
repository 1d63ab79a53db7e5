"""A layout that was released is history: its revision makes the same tables for ever, from whatever was there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import MetaData, Table, inspect
from sqlalchemy.engine import make_url
from sqlalchemy.schema import CreateTable

from rplctl.repository import create_tables
from rplctl.repository.layout import COMMENTS, NAMES
from rplctl.target.registry import dialect_of
from tests.migrations.revisions import columns_of
from tests.repository.conftest import Target, datadir as datadir, target as target
from tests.repository.test_layout_versions import alembic, make_by_hand

LAYOUTS = ("0001", "0002", "0003")
URLS = {
    "sqlite": "sqlite://",
    "mariadb": "mariadb+pymysql://",
    "mysql": "mysql+pymysql://",
    "postgresql": "postgresql+psycopg://",
}
RELEASED = Path(__file__).parent / "layouts"


def created(kind: str) -> str:
    """CREATE TABLE of both tables in each layout."""
    dialect, statements = dialect_of(kind), []
    compiler = make_url(URLS[kind]).get_dialect()()
    for revision in LAYOUTS:
        for name, columns in columns_of(revision, kind).items():
            options: dict[str, Any] = {"comment": COMMENTS[name], **dialect.table_options("")}
            table = Table(name, MetaData(schema=dialect.own_schema), *columns, **options)
            lines = str(CreateTable(table).compile(dialect=compiler)).strip().expandtabs(4).splitlines()
            statements.append("\n".join((f"-- {revision}", *(line.rstrip() for line in lines))))
    return "\n\n".join(statements) + "\n"


@pytest.mark.parametrize("kind", URLS)
def test_a_released_layout_never_changes(kind: str) -> None:
    assert created(kind) == (RELEASED / f"{kind}.sql").read_text()


@pytest.mark.long(
    "SQLite and one layout of MariaDB stay; the migrations are the same.",
    keeps=r"^(sqlite|mariadb-0001)",
)
@pytest.mark.parametrize("revision", LAYOUTS[:2])
def test_an_upgraded_repository_is_as_a_fresh_one(target: Target, revision: str) -> None:
    create_tables(target.engine())
    fresh = shape(target)
    alembic(target.engine(), "base", command.downgrade)
    target.execute(f"DROP TABLE {target.table('rplctl_version')}")
    make_by_hand(target, revision)
    assert shape(target) != fresh
    create_tables(target.engine())
    assert shape(target) == fresh


def shape(target: Target) -> list[Any]:
    """All that the database says of both tables."""
    inspector, schema = inspect(target.engine()), dialect_of(target.engine().dialect.name).own_schema
    has_comments = target.engine().dialect.supports_comments
    return [
        (
            [{key: str(value) for key, value in column.items()} for column in inspector.get_columns(name, schema)],
            inspector.get_pk_constraint(name, schema),
            inspector.get_unique_constraints(name, schema),
            inspector.get_indexes(name, schema),
            inspector.get_table_comment(name, schema) if has_comments else None,
        )
        for name in NAMES
    ]
