"""Reads and caches facts about the tables of a MySQL or MariaDB server: triggers, foreign keys, storage engines.

Invariant: an answer is cached until a statement may have changed the fact. Each executed statement also discards
answers that are older than a minute. The cache is necessary because MariaDB opens every table for one answer. A
migration with 20,000 tables cannot repeat the query after each statement.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Final

from pymysql import err

from rplctl import mysql_errors as er
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.sql_text import Sql, backticked, written
from rplctl.target.mysql.connection import target_error

Names = frozenset[tuple[str, str]]

_TRIGGERS = written(
    "SELECT EVENT_OBJECT_SCHEMA, EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA <> 'sys'"
)
_PARENTS = written(
    "SELECT UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS"
)
_FOREIGN_KEYS = written(
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME "
    "FROM information_schema.REFERENTIAL_CONSTRAINTS"
)
_FUNCTIONS = written(
    "SELECT ROUTINE_SCHEMA, ROUTINE_NAME FROM information_schema.ROUTINES "
    "WHERE ROUTINE_TYPE <> 'PROCEDURE' AND ROUTINE_SCHEMA NOT IN ('mysql', 'sys')"
)
_WITHOUT_TRANSACTIONS = written(
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE NOT IN ('VIEW', 'SYSTEM VIEW') "
    "AND TABLE_SCHEMA NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') AND ENGINE IN "
    "(SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'NO' AND ENGINE <> 'BLACKHOLE')"
)
_ACTS = written("IN ('CASCADE', 'SET NULL')")
_TELLS: Final = re.compile(
    rb"REFERENCES|FOREIGN|CONSTRAINT|RENAME(?!\s+(?:COLUMN|INDEX|KEY)\b)|TRIGGER|DATABASE|SCHEMA|FUNCTION|PACKAGE"
    rb"|ENGINE\s*=?\s*(?!InnoDB\b)\w",
    re.IGNORECASE,
)
_KEPT_S: Final = 60.0
_NO_TABLE: Final = frozenset({er.NO_SUCH_TABLE, er.BAD_DB_ERROR, er.NO_SUCH_TABLE_IN_ENGINE})

GENERATED_KEY = "my_row_id"  # MySQL's name for the column of a generated invisible primary key


class ServerTables:
    """Answers questions about a server's tables, and caches the answers. `query`: executes a SELECT in the session for
    row changes.
    """

    def __init__(self, query: Callable[[Sql], list[tuple[Any, ...]]]) -> None:
        self._query = query
        self._known: dict[str, Names] = {}
        self._engines: dict[str, bool] = {}
        self._first_asked = 0.0

    def forget(self) -> None:
        self._known.clear()

    def follow(self, statement: bytes) -> None:
        """Discard the cached answers if the executed statement may have changed them, or if they are older than a
        minute.
        """
        is_old = time.monotonic() - self._first_asked > _KEPT_S
        if is_old or _TELLS.search(statement) or self._names_one(statement.lower()):
            self.forget()

    def _names_one(self, statement: bytes) -> bool:
        """True if the statement's text contains the name of a table in a cached answer. Such a statement may drop the
        table or create it again.
        """
        tables = {table for names in self._known.values() for _, table in names}
        return any(not table.isascii() or table.lower().encode() in statement for table in tables)

    def has_triggers(self, model: TableModel) -> bool:
        return (model.database, model.name) in self._names(_TRIGGERS)

    def is_referenced(self, model: TableModel) -> bool:
        """True if a foreign key of any table on the server references this table."""
        return (model.database, model.name) in self._names(_PARENTS)

    def foreign_keys(self) -> list[tuple[tuple[str, str], tuple[str, str]]]:
        """Return for each foreign key on the server its table and the table to which it refers."""
        return [((str(a), str(b)), (str(c), str(d))) for a, b, c, d in self._query(_FOREIGN_KEYS)]

    def cascading_parents(self) -> Names:
        """Return the tables that a foreign key with the action CASCADE or SET NULL references."""
        return self._names(written("{} WHERE DELETE_RULE {} OR UPDATE_RULE {}", _PARENTS, _ACTS, _ACTS))

    def other_nontransactional(self, named: Collection[TableModel], statement: bytes) -> Names:
        """Return the nontransactional tables that a statement may change through triggers or stored functions.

        `named`: the tables in the statement. If one of them has a trigger, if the statement may call a function, or if
        `named` is empty, return all nontransactional tables. Otherwise return no table.
        """
        words, functions = statement.lower(), self._names(_FUNCTIONS)
        calls = any(not name.isascii() or name.lower().encode() in words for _, name in functions)
        if named and not calls and not any(map(self.has_triggers, named)):
            return frozenset()
        return self._names(_WITHOUT_TRANSACTIONS)

    def is_transactional(self, engine: str) -> bool:
        if not self._engines:
            rows = self._query(written("SELECT ENGINE, TRANSACTIONS FROM information_schema.ENGINES"))
            self._engines = {str(name).lower(): answer == "YES" for name, answer in rows}
        return not engine or self._engines.get(engine.lower(), False)

    def _names(self, sql: Sql) -> Names:
        if sql not in self._known:
            if not self._known:
                self._first_asked = time.monotonic()
            self._known[sql] = frozenset((str(database), str(table)) for database, table in self._query(sql))
        return self._known[sql]


def read_model(
    query: Callable[[Sql], list[tuple[Any, ...]]], database: str, table: str, server_version: str
) -> TableModel | None:
    """Return the model of a table on the target, read with SHOW CREATE TABLE. Return None for a view or a missing
    table.

    `query`: executes a SELECT and returns texts as bytes. Raises TargetError if the server reports an error.
    """
    try:
        rows = query(written("SHOW CREATE TABLE {}", backticked(database, table)))
    except err.Error as error:
        if error.args[0] in _NO_TABLE:
            return None
        raise target_error(error) from error
    if len(rows[0]) != 2:
        return None
    text = re.sub(r"\) ENGINE=\w+ SEQUENCE=1", ") ENGINE=InnoDB", rows[0][1].decode("utf-8", "replace"))
    context = DdlContext(sql_mode=0, server_version=server_version)
    return next(iter(Catalog().after(plan_ddl(text, database, context, Catalog())).tables.values()))


def without_generated_key(model: TableModel) -> TableModel:
    """Return the model without the column and the primary key that sql_generate_invisible_primary_key has generated.
    The rows in the source's log lack this column.
    """
    first = model.columns[0]
    if first.name != GENERATED_KEY or not (first.invisible and first.auto_increment):
        return model
    keys = tuple(key for key in model.keys if GENERATED_KEY not in key.columns)
    return replace(model, columns=model.columns[1:], keys=keys)
