"""Answers DESCRIBE, EXPLAIN, SHOW COLUMNS, SHOW INDEX and SHOW TABLE STATUS for the tables that SELECT can read.

There are no other tables: the tables of the target are not visible to clients.
"""

from __future__ import annotations

from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.front.front import ClientSession, Front, not_yet
from rplctl.front.result import Answer, texts
from rplctl.front.statement import ClientStatement
from rplctl.front.table_columns import DATABASES
from rplctl.front.tables import COLUMN_TYPE, columns_of, table_names

_EXPLAINED: Final = frozenset({"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "REPLACE", "ANALYZE", "FORMAT"})
_STATUS: Final = (
    "Name,Engine,Version#,Row_format,Rows#,Avg_row_length#,Data_length#,Max_data_length#,Index_length#,Data_free#,"
    "Auto_increment#,Create_time,Update_time,Check_time,Collation,Checksum#,Create_options,Comment"
)
_INDEX: Final = (
    "Table,Non_unique#,Key_name,Seq_in_index#,Column_name,Collation,Cardinality#,Sub_part#,Packed,Null,Index_type,"
    "Comment,Index_comment"
)


def no_database_selected() -> RplError:
    return RplError("No database selected", errno=er.NO_DB_ERROR)


def unknown_database(name: str) -> RplError:
    return RplError(f"Unknown database '{name}'", errno=er.BAD_DB_ERROR)


def no_such_table(front: Front, session: ClientSession, name: str) -> RplError:
    """Return the error that MySQL or MariaDB reports for a table that does not exist.

    `name`: `table` or `database.table`.
    """
    database, dot, table = name.rpartition(".")
    database = database if dot else session.database
    if not database:
        return no_database_selected()
    if database.lower() == "information_schema":
        return RplError(f"Unknown table '{table}' in information_schema", errno=er.UNKNOWN_TABLE)
    if not front.is_mariadb and database.lower() not in DATABASES:
        return unknown_database(database)
    return RplError(f"Table '{database}.{table}' doesn't exist", errno=er.NO_SUCH_TABLE)


def describe(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer DESCRIBE or EXPLAIN with the columns of a table.

    EXPLAIN of a statement always fails, because rplctl has no execution plans. It raises RplError 1146 if a table does
    not exist, and otherwise RplError 1235.
    """
    if words.token.value in _EXPLAINED:
        while not words.at_end:
            if words.next().value in ("FROM", "JOIN", "INTO", "UPDATE") and words.token.kind in ("word", "quoted"):
                _table(front, session, words)
        raise not_yet("EXPLAIN of a statement")
    return _columns(front, session, words, is_full=False)


def show_columns(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    is_full = words.tokens[1].value == "FULL"
    words.expect("FROM|IN")
    return _columns(front, session, words, is_full=is_full)


def show_create_table(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    _table(front, session, words)
    raise not_yet("SHOW CREATE TABLE")


def show_index(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    """Answer SHOW INDEX without a row, because no table has an index."""
    words.expect("FROM|IN")
    _table(front, session, words)
    return texts(f"{_INDEX},Ignored" if front.is_mariadb else f"{_INDEX},Visible,Expression")


def show_table_status(front: Front, session: ClientSession, words: ClientStatement) -> Answer:
    names = f"{_STATUS},Max_index_length#,Temporary" if front.is_mariadb else _STATUS
    database = words.name() if words.accept("FROM|IN") else session.database
    check_database(database)
    width = names.count(",")
    found = (name.partition(".")[2] for name in table_names() if name.startswith(f"{database.lower()}."))
    return texts(names, [(name, *[None] * width) for name in found])


def check_database(database: str) -> None:
    """Raise RplError 1046 if the database is '' (no database is selected), and 1049 if there is no such database."""
    if not database:
        raise no_database_selected()
    if database.lower() not in DATABASES:
        raise unknown_database(database)


def _columns(front: Front, session: ClientSession, words: ClientStatement, *, is_full: bool) -> Answer:
    rows = [(name, COLUMN_TYPE) for name in columns_of(_table(front, session, words))]
    if is_full:
        names = "Field,Type,Collation,Null,Key,Default,Extra,Privileges,Comment"
        return texts(names, [(*row, None, "YES", "", None, "", "select", "") for row in rows])
    return texts("Field,Type,Null,Key,Default,Extra", [(*row, "YES", "", None, "") for row in rows])


def _table(front: Front, session: ClientSession, words: ClientStatement) -> str:
    """Read the name of a table, and return it as `database.table` in lower case.

    The statement has `table`, `database.table` or `table FROM database`. Raises RplError if there is no such table.
    """
    first = words.name()
    if words.accept("."):
        name = f"{first}.{words.name()}"
    elif words.accept("FROM|IN"):
        name = f"{words.name()}.{first}"
    else:
        name = f"{session.database}.{first}" if session.database else first
    if name.lower() not in table_names():
        raise no_such_table(front, session, name)
    return name.lower()
