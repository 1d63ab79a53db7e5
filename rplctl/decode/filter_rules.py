"""Replication filters of a channel: they decide which row events and statements the applier applies (MySQL manual).

The rules are MySQL's (sql/rpl_filter.cc), for names that are compared bytewise (lower_case_table_names=0):
* rewrite_db comes first. It changes the database of a row event and the current database of a statement, but no name in
  the text of a statement.
* Database rules: if do_db is set, it must list the database. Otherwise, ignore_db must not list the database. For a row
  event, this is the database of the table. For a statement, it is the current database.
* A statement without a current database: if do_db is set, it must list the databases of all tables that the statement
  changes. This differs from MySQL, which excludes each such statement, but not the rows of a table that it creates.
* Table rules: the first table in the text of the statement that matches a rule decides. A table is compared with
  do_table (accept), ignore_table (exclude), wild_do_table (accept) and wild_ignore_table (exclude), in this order. If
  no table matches a rule, a statement is excluded if do_table or wild_do_table is set, and accepted otherwise. The
  table rules do not apply to a statement that updates no table.
* CREATE, ALTER and DROP DATABASE: if do_db or ignore_db is set, they decide. Otherwise, the wild rules decide, and are
  compared with `NAME.`. For a MySQL source, NAME is the rewritten name, although the statement creates the database
  with the name in its text. MySQL does the same. For a MariaDB source, the rules must accept both names.
* The database `rplctl`: its rows, and statements that update it, are always excluded. It may be a part of the source,
  because the source may be the target of another rplctl. mysqld does not log its own repository tables either. If the
  source has a database of the same name for another purpose, rewrite_db can give it another name on the target.

Invariant: the rules are pure and picklable, so all strategies and tasks make the same decision. Of an excluded event,
only the names are read, and the position moves past the event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rplctl.config import Config, split_list
from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import refuse
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog
from rplctl.schema.statement import TableName
from rplctl.schema.updated_names import updated_names

OWN_DATABASE = "rplctl"  # equal to target.dialect.OWN_SCHEMA, which tasks do not load
# A server logs this statement at the end of a temporary table. Its IF EXISTS would pass the other filters.
_OWN_TEMPORARY = re.compile(
    rf"DROP\s+(?:/\*!40005\s+)?TEMPORARY(?:\s+\*/)?\s+TABLE\s+(?:IF\s+EXISTS\s+)?`?{OWN_DATABASE}`?\s*\.[^,]*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationFilter:
    """The replication filters of a channel.

    The rules and patterns for tables have the form `db.table`. `rewrite_db` has pairs (from, to), of which the first
    that matches counts.
    """

    do_db: tuple[str, ...] = ()
    ignore_db: tuple[str, ...] = ()
    do_table: tuple[str, ...] = ()
    ignore_table: tuple[str, ...] = ()
    wild_do_table: tuple[str, ...] = ()
    wild_ignore_table: tuple[str, ...] = ()
    rewrite_db: tuple[tuple[str, str], ...] = ()
    lower_case: int = field(default=0, compare=False)  # lower_case_table_names; not a rule
    waiting: frozenset[TableName] = frozenset()  # excluded tables, because rplctl clone has not copied them yet

    @classmethod
    def from_config(cls, config: Config) -> ReplicationFilter:
        rewrites = (rule.partition("->") for rule in split_list(config.replicate_rewrite_db))
        return cls(
            do_db=tuple(split_list(config.replicate_do_db)),
            ignore_db=tuple(split_list(config.replicate_ignore_db)),
            do_table=tuple(split_list(config.replicate_do_table)),
            ignore_table=tuple(split_list(config.replicate_ignore_table)),
            wild_do_table=tuple(split_list(config.replicate_wild_do_table)),
            wild_ignore_table=tuple(split_list(config.replicate_wild_ignore_table)),
            rewrite_db=tuple((old.strip(), new.strip()) for old, _, new in rewrites),
            lower_case=config.lower_case_table_names,
        )

    @property
    def has_table_rules(self) -> bool:
        return bool(self.do_table or self.ignore_table or self.wild_do_table or self.wild_ignore_table)

    @property
    def reads_statements(self) -> bool:
        """True if the rules need the tables in a statement's text, not only its current database."""
        return bool(self.has_table_rules or self.do_db or self.ignore_db or self.waiting)

    def rewritten(self, database: str) -> str:
        """Return the name that a database of the source has on the target."""
        return next((new for old, new in self.rewrite_db if old == database), database)

    def original(self, database: str) -> str:
        """Return the name that a database of the target has on the source."""
        return next((old for old, new in self.rewrite_db if new == database), database)

    def accepts_database(self, database: str) -> bool:
        """True if the database rules accept the current database, whose name is already rewritten.

        '' means that there is no current database. It is accepted, because then the names in the statement decide.
        """
        if not database:
            return True
        if self.do_db:
            return database in self.do_db
        return database not in self.ignore_db

    def accepts_tables(self, names: Iterable[TableName]) -> bool:
        """True if the table rules accept the tables that one statement or row event updates.

        `names` has the tables in the order of the text.
        """
        names = tuple(names)
        for database, table in names:
            decision = self._decision(f"{database}.{table}")
            if decision is not None:
                return decision
        return bool(names) and not (self.do_table or self.wild_do_table)

    def accepts_rows(self, database: str, table: str) -> bool:
        """True if all rules accept rows of the table. `database` is the rewritten name."""
        return (
            not is_own(database)
            and (database, table) not in self.waiting
            and self.accepts_database(database)
            and (not self.has_table_rules or self.accepts_tables([(database, table)]))
        )

    def accepts_statement(self, sql: str, database: str, context: DdlContext, charset: str = "") -> bool:
        """True if the rules accept a statement. The caller has checked its current database with `accepts_database`.

        `sql` has the bytes of the statement decoded as latin-1, and `charset` is their real character set. Raises
        RplError 1064 if the rules need the changed tables, and the text does not show them.
        """
        may_be_own = mentions_own(sql)
        if not self.reads_statements and not may_be_own and not is_own(database):
            return True
        names = updated_names(sql, database, context, charset)
        if is_own(names.database or "") or any(is_own(name) for name, _ in names.tables or ()):
            return False
        if may_be_own and _OWN_TEMPORARY.fullmatch(sql):
            return False
        if names.tables and self.waiting.issuperset(names.tables):
            return False  # tables_to_requeue.py handles a statement that also names other tables
        if self.do_db and not database and names.database is None:
            changed = names.tables or names.some_of
            if not changed or not all(self.accepts_database(of) for of, _ in changed):
                return False
        if names.some_of:
            verdicts = {self._accepts_name(name) for name in names.some_of}
            if len(verdicts) > 1:
                refuse("the statement joins tables that the channel's filters tell apart", sql, charset)
            return verdicts.pop()
        if names.database is not None:
            if context.is_mariadb:
                return self.accepts_database(names.database) and self._accepts_all_of(names.database)
            by_name = self.accepts_database if self.do_db or self.ignore_db else self._accepts_all_of
            return by_name(self.rewritten(names.database))
        return not (self.has_table_rules and names.tables) or self.accepts_tables(names.tables)

    def _accepts_name(self, name: TableName) -> bool:
        if is_own(name[0]) or name in self.waiting:
            return False
        return not self.has_table_rules or self.accepts_tables([name])

    def _decision(self, name: str) -> bool | None:
        if name in self.do_table:
            return True
        if name in self.ignore_table:
            return False
        return self._wild_decision(name)

    def _wild_decision(self, name: str) -> bool | None:
        if any(_pattern(rule).fullmatch(name.encode()) for rule in self.wild_do_table):
            return True
        if any(_pattern(rule).fullmatch(name.encode()) for rule in self.wild_ignore_table):
            return False
        return None

    def _accepts_all_of(self, database: str) -> bool:
        decision = self._wild_decision(f"{database}.")
        return not self.wild_do_table if decision is None else decision


def is_own(database: str) -> bool:
    """True if this is the name of rplctl's own database, in upper or lower case (lower_case_table_names)."""
    return database.lower() == OWN_DATABASE


def mentions_own(sql: str | bytes) -> bool:
    """True if the statement's text contains the name of rplctl's own database.

    Few statements contain the name, so only few statements must be parsed to check this.
    """
    return OWN_DATABASE in sql.lower() if isinstance(sql, str) else OWN_DATABASE.encode() in sql.lower()


def filtered_catalog(catalog: Catalog, rules: ReplicationFilter) -> Catalog:
    """Return a catalog of the source's tables whose rows the rules accept, with rewritten database names."""
    tables = {}
    for model in (moved(model, rules) for model in catalog.tables.values()):
        if rules.accepts_rows(model.database, model.name):
            tables[model.database, model.name] = model
    renamed = ((rules.rewritten(name), defaults) for name, defaults in catalog.databases.items())
    return Catalog(tables, {name: replace(defaults, name=name) for name, defaults in renamed})


def moved(model: TableModel, rules: ReplicationFilter) -> TableModel:
    """Return the model with the rewritten name of its database, as on the target."""
    keys = tuple(replace(key, ref_database=rules.rewritten(key.ref_database)) for key in model.foreign_keys)
    return replace(model, database=rules.rewritten(model.database), foreign_keys=keys)


@lru_cache(maxsize=1024)
def _pattern(rule: str) -> re.Pattern[bytes]:
    """Return the regular expression of a wild rule.

    In a rule, `%` matches any bytes and `_` matches one byte. A backslash makes the next byte literal.
    """
    raw, parts, i = rule.encode(), [], 0
    while i < len(raw):
        character = raw[i : i + 1]
        if character == b"\\" and i + 1 < len(raw):
            i += 1
            parts.append(re.escape(raw[i : i + 1]))
        else:
            parts.append({b"%": b".*", b"_": b"."}.get(character) or re.escape(character))
        i += 1
    return re.compile(b"".join(parts), re.DOTALL)
