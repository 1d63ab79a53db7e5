"""Values of columns in the form of `event/values.py`, and the error for a value that only the source knows."""

from __future__ import annotations

from rplctl.schema.context import DdlContext

Value = int | float | str | bytes | None

ASCII_INTRODUCERS = frozenset({"_UTF8", "_UTF8MB3", "_UTF8MB4", "_LATIN1", "_ASCII"})


class NotComputable(Exception):
    """The error for a value that only the source knows. The text gives the reason."""


def is_mariadb(context: DdlContext, what: str) -> bool:
    """True if the server of the context is MariaDB, False if it is MySQL.

    Raises NotComputable if the server is unknown. `what`: the words for an expression that MariaDB and MySQL
    compute differently, for the error's text.
    """
    if not context.server_version:
        raise NotComputable(f"{what} has another value in MariaDB than in MySQL")
    return context.is_mariadb
