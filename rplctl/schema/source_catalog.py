"""Reads table models from a live source, by SHOW CREATE TABLE (load-schema --from-source, design D18).

The caller owns the connection, and passes a function `query` that runs one statement and returns its rows. The server's
text goes through the same parser as the later DDL in the binary log, so both give the same model.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, DatabaseModel, load_table
from rplctl.sql_text import Sql, backticked, written

_Answer = TypeVar("_Answer")
Query = Callable[[Sql], Sequence[tuple[Any, ...]]]

# The server's own databases, and rplctl's database, because a source may be the target of another rplctl.
SYSTEM_DATABASES = frozenset({"information_schema", "performance_schema", "mysql", "sys", "ndbinfo", "rplctl"})
# The output of SHOW CREATE TABLE depends on these variables, so the functions below first set them in the session.
_SESSION = written(
    "SET SESSION sql_mode='', SESSION sql_quote_show_create=1, SESSION time_zone='+00:00'"  # as of the target's session
    " /*!80030 , SESSION show_gipk_in_create_table_and_information_schema=ON */"
)


def read_catalog(
    query: Query, databases: Iterable[str] = (), *, is_wanted: Callable[[str, str], bool] = lambda *name: True
) -> Catalog:
    """Return the models of every base table, and of every MariaDB sequence, of these databases.

    If `databases` is empty, all databases except the server's own are read. `is_wanted(database, table)`: returns False
    to exclude a table. A table that is dropped or renamed between two queries is missing in the result. Raises RplError
    for a table that is not understood, and the errors of `query`. The caller must hold a lock or a snapshot, so that
    the models belong to one position of the binary log.
    """
    query(_SESSION)
    version = str(query(written("SELECT @@version"))[0][0])
    given = list(databases)
    names = given or [name for (name,) in query(written("SHOW DATABASES")) if name.lower() not in SYSTEM_DATABASES]
    databases_known = _defaults(query, names)
    tables = {}
    context = DdlContext(sql_mode=0, server_version=version)
    for database in names:
        listing = written("SHOW FULL TABLES FROM {}", quote(database))
        for table, kind in query(listing) if given else unless_gone(query, listing) or ():
            if kind not in ("BASE TABLE", "SYSTEM VERSIONED", "SEQUENCE"):
                continue
            if unless_gone(is_wanted, database, str(table)) and (
                found := unless_gone(query, written("SHOW CREATE TABLE {}", quote(database, table)))
            ):
                text = str(found[0][1])
                if kind == "SEQUENCE":  # MariaDB prints CREATE TABLE … SEQUENCE=1, but the model only needs the name
                    text = f"CREATE SEQUENCE {quote(str(table))}"
                defaults = databases_known.get(database) or DatabaseModel(name=database, charset=context.charset)
                tables[database, str(table)] = _model(database, str(table), text, defaults, context)
    return Catalog(tables, databases_known)


def read_table(query: Query, database: str, table: str) -> tuple[TableModel, DatabaseModel, str]:
    """Return the model of one base table, the defaults of its database, and the text of SHOW CREATE TABLE.

    Raises RplError if the table is not understood, and the errors of `query`.
    """
    query(_SESSION)
    version = str(query(written("SELECT @@version"))[0][0])
    context = DdlContext(sql_mode=0, server_version=version)
    defaults = _defaults(query, [database]).get(database) or DatabaseModel(name=database, charset=context.charset)
    text = str(query(written("SHOW CREATE TABLE {}", quote(database, table)))[0][1])
    return _model(database, table, text, defaults, context), defaults, text


def _model(database: str, table: str, text: str, defaults: DatabaseModel, context: DdlContext) -> TableModel:
    """Return the model of a table from the text of SHOW CREATE TABLE.

    The text does not come from a transaction. So the hint of an error does not tell the operator to skip a transaction.
    """
    try:
        return load_table(text, defaults, context)
    except RplError as error:
        exclude = f"rplctl change-filter --replicate-ignore-table {shlex.quote(f'{database}.{table}')}"
        error.hint = f"check which server answers: rplctl doctor\nTo exclude the table, run: {exclude}"
        raise


def unless_gone(ask: Callable[..., _Answer], *what: str) -> _Answer | None:
    """Call `ask` with the arguments `what`, which name a table or a database. Return the result of `ask`.

    Return None if the table or the database no longer exists.
    """
    try:
        return ask(*what)
    except RplError as error:
        if error.errno not in (er.NO_SUCH_TABLE, er.BAD_DB_ERROR):
            raise
        return None


def _defaults(query: Query, names: Iterable[str]) -> dict[str, DatabaseModel]:
    rows = query(
        written(
            "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata"
        )
    )
    wanted = set(names)
    return {str(name): DatabaseModel(name=str(name), charset=_utf8(str(charset)), collation=_utf8(str(collation)))
            for name, charset, collation in rows if name in wanted}  # fmt: skip


def _utf8(name: str) -> str:
    """Return the name of a charset or collation, with utf8mb3 instead of utf8, which MySQL 5.7 and MariaDB
    still print.
    """
    return "utf8mb3" + name[4:] if name == "utf8" or name.startswith("utf8_") else name


def quote(*names: str) -> Sql:
    """Return a name for a statement on the source, in backticks. Several names are the parts of one name (`a`.`b`)."""
    return backticked(*names)
