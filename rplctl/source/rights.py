"""Reads the privileges of the account at the source, and writes the GRANT statements that a copy of tables needs.

A server hides tables for which an account has no privilege, so rplctl cannot list the missing tables. It checks instead
if the account can see all tables of a database. In a GRANT statement, the name of a database is a pattern, but the name
of a table is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.errors import SourceError
from rplctl.schema.source_catalog import SYSTEM_DATABASES, quote
from rplctl.source.survey import Ask
from rplctl.sql_text import Sql, joined, not_executed, written

_GRANT = re.compile(r"GRANT (.+?) ON (\*|`(?:[^`]|``)+`)\.(\*|`(?:[^`]|``)+`) TO ", re.DOTALL)
_REVOKED = re.compile(r"REVOKE (.+?) ON `((?:[^`]|``)+)`\.\* FROM ", re.DOTALL)  # MySQL's partial_revokes
_PARTS_OF_ROLE = r"`((?:[^`]|``)*)`@`((?:[^`]|``)*)`"
_ROLE = r"`(?:[^`]|``)*`@`(?:[^`]|``)*`"
_ALL = frozenset({"ALL PRIVILEGES", "ALL"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """The privileges of one account.

    `account`: the name in the form of a GRANT statement. `everywhere`: the global privileges. `databases`: the names or
    patterns of the databases that the account can read completely.
    """

    account: str
    everywhere: frozenset[str]
    databases: tuple[str, ...]
    revoked: frozenset[str]  # the databases that the global privilege SELECT does not include
    has_patterns: bool  # False for MySQL with partial_revokes, where the names of databases are not patterns

    def reads_all(self) -> bool:
        return self._has("SELECT") and self.revoked <= SYSTEM_DATABASES

    def reads_all_of(self, database: str) -> bool:
        if self._has("SELECT") and database not in self.revoked:
            return True
        return any(_fits(pattern, database) if self.has_patterns else pattern == database for pattern in self.databases)

    def may_replicate(self) -> bool:
        return self._has("REPLICATION SLAVE")

    def _has(self, right: str) -> bool:
        return right in self.everywhere or not _ALL.isdisjoint(self.everywhere)

    def grant(self, right: str, database: str = "", table: str = "") -> str:
        """Return the GRANT statement that gives the privilege `right` to the account.

        If `table` is '', the privilege is for the whole database. If `database` is also '', it is for the whole server.
        """
        name = database if table or not self.has_patterns else re.sub(r"([_%\\])", r"\\\1", database)
        where = f"{quote(name) if database else '*'}.{quote(table) if table else '*'}"
        return f"GRANT {right} ON {where} TO {self.account};"


def read_rights(query: Ask) -> Rights:
    """Return the privileges of the session's account, including those of its active roles.

    Raises SourceError if the source reports an error.
    """
    query(written("SET SESSION sql_mode='', SESSION sql_quote_show_create=1"))
    user, _, host = str(query(written("SELECT CURRENT_USER()"))[0][0]).rpartition("@")
    is_plain = any(
        str(value).upper() == "ON" for _, value in query(written("SHOW GLOBAL VARIABLES LIKE 'partial_revokes'"))
    )
    return rights_of([str(row[0]) for row in _grants(query)], f"{_text(user)}@{_text(host)}", has_patterns=not is_plain)


def _grants(query: Ask) -> list[tuple[object, ...]]:
    try:
        roles = str(query(written("SELECT CURRENT_ROLE()"))[0][0] or "NONE")
    except SourceError:  # MySQL 5.7 has no roles
        roles = "NONE"
    if roles != "NONE" and "`" in roles:  # MySQL; MariaDB's SHOW GRANTS includes the role
        return [*query(written("SHOW GRANTS FOR CURRENT_USER() USING {}", _roles(roles)))]
    return [*query(written("SHOW GRANTS"))]


def _roles(text: str) -> Sql:
    """Return the result of CURRENT_ROLE(), a list of `name`@`host`, as SQL. Raises RplError for any other text."""
    if not re.fullmatch(rf"{_ROLE}(?:,\s*{_ROLE})*", text):
        raise not_executed(text, "a list of roles")
    found = [tuple(name.replace("``", "`") for name in pair) for pair in re.findall(_PARTS_OF_ROLE, text)]
    return joined(", ", [written("{}@{}", quote(name), quote(host)) for name, host in found])


def rights_of(grants: Iterable[str], account: str, *, has_patterns: bool = True) -> Rights:
    """Return the privileges of the account that the lines of SHOW GRANTS list.

    `has_patterns`: True if the names of databases in the lines are patterns, as by default.
    """
    everywhere: set[str] = set()
    databases, revoked = [], set()
    for line in grants:
        if found := _REVOKED.match(line):
            if "SELECT" in _rights(found[1]):
                revoked.add(_plain(found[2]))
        elif (found := _GRANT.match(line)) and found[3] == "*":
            rights = _rights(found[1])
            if found[2] == "*":
                everywhere |= rights
            elif "SELECT" in rights or not _ALL.isdisjoint(rights):
                databases.append(_plain(found[2][1:-1]))
    return Rights(
        account=account,
        everywhere=frozenset(everywhere),
        databases=tuple(databases),
        revoked=frozenset(revoked),
        has_patterns=has_patterns,
    )


def may_select(query: Ask, database: str, table: str) -> bool:
    """True if the account may read the table. Raises SourceError if the source reports another error."""
    try:
        query(written("SELECT * FROM {} LIMIT 0", quote(database, table)))
    except SourceError as error:
        if error.errno not in (er.TABLEACCESS_DENIED_ERROR, er.COLUMNACCESS_DENIED_ERROR):
            raise
        return False
    return True


def _rights(text: str) -> set[str]:
    return {right.strip().upper() for right in text.split(",")}


def _plain(name: str) -> str:
    return name.replace("``", "`")


def _fits(pattern: str, name: str) -> bool:
    """True if the name of a database matches the pattern in a GRANT statement, which has the syntax of LIKE."""
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    texts = {"%": ".*", "_": "."}
    return bool(re.fullmatch("".join(texts.get(p) or re.escape(p[-1]) for p in pieces), name, re.DOTALL))


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
