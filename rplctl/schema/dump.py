"""Reads table models from the text of `mysqldump --no-data` or `mariadb-dump --no-data` (load-schema FILE, design D18).

It reads USE, CREATE DATABASE and CREATE TABLE, also in versioned comments. Everything else is skipped: views and their
placeholder tables, routines, triggers, and the INSERTs of a dump with data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from rplctl.errors import UsageError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DatabaseModel, load_table, plan_ddl
from rplctl.schema.statement import TableName
from rplctl.schema.token_stream import TokenStream

_VERSION = re.compile(r"^-- Server version\s+(\S+)", re.MULTILINE)
# mysqldump prints this line, also in a dump without USE
_DATABASE = re.compile(r"^-- Host: .*? Database: (\S.*)$", re.MULTILINE)
_VIEW = re.compile(r"/\*!50001 (?:CREATE VIEW|VIEW) `((?:[^`]|``)+)`")
_LEXEMES = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|--(?=\s|$)[^\n]*|\#[^\n]*|/\*.*?\*/|[^'"`\-#/;]+|.""",
    re.DOTALL,
)


def load_catalog(text: str, database: str = "", context: DdlContext | None = None) -> Catalog:
    """Return the models of the tables in the dump, in the dump's order, and the defaults of its databases.

    `database`: the database if the dump names no database. `context`: None for the settings of the server that the dump
    names. Raises RplError if a CREATE TABLE is not understood, and UsageError if a table's database is unknown.
    """
    if context is None:
        version = _VERSION.search(text)
        context = DdlContext(server_version=version[1]) if version else DdlContext()
    if named := _DATABASE.search(text):
        database = context.fold_name(named[1].strip())
    catalog = Catalog()
    tables: dict[TableName, TableModel] = {}
    views = {name.replace("``", "`") for name in _VIEW.findall(text)}
    for statement in split_statements(text):
        tokens = TokenStream(statement, context)
        if tokens.accept("USE"):
            database = context.fold_name(tokens.identifier())
        elif tokens.is_word("CREATE") and tokens.ahead().value in ("DATABASE", "SCHEMA"):
            catalog = catalog.after(plan_ddl(statement, "", context, catalog))
        elif _makes_a_table(tokens):
            if not database and not _names_its_database(tokens):
                raise UsageError(
                    "the dump does not name its database",
                    hint="make USE DATABASE the first line of the dump: sed -i '1i USE `DATABASE`;' FILE",
                )
            defaults = catalog.databases.get(database) or DatabaseModel(
                name=database, charset=context.charset, collation=context.collation
            )
            model = load_table(statement, defaults, context)
            tables[model.database, model.name] = model
    return replace(catalog, tables={name: model for name, model in tables.items() if not _stands_in(model, views)})


def _makes_a_table(tokens: TokenStream) -> bool:
    if not tokens.accept("CREATE"):
        return False
    tokens.accept("OR REPLACE")
    return tokens.is_word("TABLE", "SEQUENCE")


def _names_its_database(tokens: TokenStream) -> bool:
    tokens.next()
    tokens.accept("IF NOT EXISTS")
    return tokens.ahead().value == "."


def _stands_in(model: TableModel, views: set[str]) -> bool:
    """True if the table is the placeholder of a view. For each view, old dumps create a table with only tinyint
    columns.
    """
    return model.name in views and all(column.type == "tinyint" for column in model.columns)


def split_statements(text: str) -> Iterator[str]:
    """Yield the statements of a dump, without bodies of routines and triggers. Comments inside a statement are kept.

    DELIMITER lines are obeyed.
    """
    delimiter, parts = ";", list[str]()
    for block in re.split(r"^(DELIMITER\s+\S+)\s*$", text, flags=re.MULTILINE | re.IGNORECASE):
        if re.match(r"DELIMITER\s", block, re.IGNORECASE):
            delimiter = block.split()[1]
            continue
        if delimiter != ";":  # such blocks have the bodies of routines and triggers
            continue
        for match in _LEXEMES.finditer(block):
            if match[0] == ";":
                if statement := "".join(parts).strip():
                    yield statement
                parts = []
            elif not match[0].startswith(("-- ", "--\n", "#")):
                parts.append(match[0])
    if statement := "".join(parts).strip():
        yield statement
