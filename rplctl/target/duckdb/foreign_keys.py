"""Executes and checks the foreign keys of a DuckDB target, which rplctl stores in a table.

DuckDB's own foreign keys are not used: they are checked at each statement, have no actions, and block ALTER. The
source's log does not contain the changes of foreign key actions, so this module executes the actions for single
changes. The applier sends single changes for tables whose foreign keys have actions. Constraints are checked before
COMMIT, but only those that a change of the transaction may have violated. Invariant: an action changes exactly the same
rows as in InnoDB, because all rows are found before the first row is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.model import ForeignKey, TableModel
from rplctl.schema.plan import Catalog, DdlPlan
from rplctl.sql_text import NOTHING, NULL, Sql, joined, number, written
from rplctl.target.ddl_parts import is_enforceable, quote, text_literal
from rplctl.target.dialect import OWN_SCHEMA
from rplctl.target.duckdb.ddl_type import CATALOG, table
from rplctl.target.duckdb.driver import DuckdbDriver
from rplctl.target.duckdb.errors import hidden_numbers
from rplctl.target.duckdb.relation import Relation
from rplctl.target.duckdb.rows import hides_numbers

_TABLE: Final = written("{}.{}.foreign_keys", quote(CATALOG), quote(OWN_SCHEMA))
_MAKE: Final = (
    written("CREATE SCHEMA IF NOT EXISTS {}.{}", quote(CATALOG), quote(OWN_SCHEMA)),
    written(
        "CREATE TABLE IF NOT EXISTS {} (child_schema VARCHAR, child_table VARCHAR, name VARCHAR, "
        "child_columns VARCHAR[], parent_schema VARCHAR, parent_table VARCHAR, parent_columns "
        "VARCHAR[], on_delete VARCHAR, on_update VARCHAR)",
        _TABLE,
    ),
)
_ONE_ROW: Final = Relation(written("(SELECT 1) AS s"))
_THERE: Final = (
    "EXISTS (SELECT 1 FROM duckdb_tables() WHERE database_name = current_catalog()"
    " AND schema_name = k.{0}_schema AND table_name = k.{0}_table)"
)


def keep_foreign_keys(plan: DdlPlan, before: Catalog, after: Catalog) -> Iterator[Sql]:
    """Yield the statements that update the stored foreign keys after a DDL plan. `before`, `after`: all tables before
    and after the plan. Raises TargetError if a table with a foreign key has a column named rowid.
    """
    first = True
    with_keys = [name for name, model in after.tables.items() if model.foreign_keys]
    for name in dict.fromkeys([*plan.model_changes, *with_keys]):
        if name in plan.model_changes:
            _refuse_hidden_numbers(after, name)
        had, has = (_rows(catalog, name) for catalog in (before, after))
        if had == has:
            continue
        if first:
            yield from _MAKE
            first = False
        database, plain = map(text_literal, name)
        yield written("DELETE FROM {} WHERE child_schema = {} AND child_table = {}", _TABLE, database, plain)
        yield from (written("INSERT INTO {} VALUES ({})", _TABLE, row) for row in has)


def _refuse_hidden_numbers(catalog: Catalog, name: tuple[str, str]) -> None:
    """Raise TargetError if a foreign key from or to the table `name` connects a table that has a column named rowid.
    Such a column hides DuckDB's row numbers, which the actions of foreign keys need.
    """
    for model in catalog.tables.values():
        for key in model.foreign_keys:
            both = ((model.database, model.name), (key.ref_database, key.ref_table))
            if name in both and is_enforceable(key, model, catalog):
                for other in filter(None, map(catalog.tables.get, both)):
                    if hides_numbers(other):
                        raise hidden_numbers(other, "the table has a foreign key or is the parent of one")


def _rows(catalog: Catalog, name: tuple[str, str]) -> list[Sql]:
    model = catalog.tables.get(name)
    if model is None:
        return []
    return [_row(key, model) for key in model.foreign_keys if is_enforceable(key, model, catalog)]


def _row(key: ForeignKey, model: TableModel) -> Sql:
    def listed(names: Iterable[str]) -> Sql:
        return written("[{}]", joined(", ", map(text_literal, names)))

    texts = (model.database, model.name, key.name or "")
    parent = (key.ref_database, key.ref_table)
    return joined(
        ", ",
        [
            *map(text_literal, texts),
            listed(key.columns),
            *map(text_literal, parent),
            listed(key.ref_columns),
            *map(text_literal, (key.on_delete or "", key.on_update or "")),
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKeyLink:
    """A foreign key whose child table and parent table exist on the target. The names of both tables are quoted."""

    child: Sql
    columns: tuple[str, ...]
    parent: Sql
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str

    def children_of(self, rows: Sql) -> Sql:
        """Return an SQL condition for the child rows that refer to some parent rows. `rows`: an SQL condition for these
        parent rows.
        """
        theirs = joined(", ", map(quote, self.parent_columns))
        return written(
            "({}) IN (SELECT ({}) FROM {} WHERE {})", joined(", ", map(quote, self.columns)), theirs, self.parent, rows
        )

    @property
    def orphans(self) -> Sql:
        filled = joined(" AND ", (written("c.{} IS NOT NULL", quote(name)) for name in self.columns))
        same = joined(
            " AND ",
            (
                written("p.{} = c.{}", quote(ref), quote(own))
                for own, ref in zip(self.columns, self.parent_columns, strict=True)
            ),
        )
        return written("{} AND NOT EXISTS (SELECT 1 FROM {} AS p WHERE {})", filled, self.parent, same)


class ForeignKeys:
    """The foreign keys of all tables, for one connection. The object remembers which keys the open transaction may have
    violated.
    """

    def __init__(self, driver: DuckdbDriver) -> None:
        self._driver = driver
        self._links: list[ForeignKeyLink] | None = None
        self._has_any = True  # False only if the target is known to have no foreign key
        self._doubtful: set[ForeignKeyLink] = set()  # the keys to check before COMMIT
        self.acts = True  # False if the changes ran without foreign key checks on the source

    def begin(self, *, acts: bool) -> None:
        self.acts = acts
        self._doubtful = set()

    def may_change(self, models: Iterable[TableModel | None]) -> bool:
        """True if DDL on these tables may change foreign keys, because the target or a table has a foreign key."""
        return self._has_any or any(model is not None and model.foreign_keys for model in models)

    def forget(self) -> None:
        """Discard the cached keys, because DDL or the rollback of DDL may have changed them."""
        self._links = None

    def check(self) -> None:
        """Check the foreign keys that the transaction may have violated. The caller commits afterwards. Raises
        TargetError 1452 if a child row has no parent row.
        """
        for link in self._doubtful:
            sql = written("SELECT 1 FROM {} AS c WHERE {} LIMIT 1", link.child, link.orphans)
            if self._driver.execute(sql).fetchone() is not None:
                raise TargetError(
                    "Cannot add or update a child row: a foreign key constraint fails "
                    f"({link.child} ({', '.join(link.columns)}) references {link.parent})",
                    errno=er.NO_REFERENCED_ROW_2,
                )

    # changes that may violate a key

    def note_parent_changes(self, model: TableModel, columns: Iterable[int] | None = None) -> None:
        """Remember to check foreign keys before COMMIT, because parent rows were deleted, or updated in these columns.
        `columns`: indexes of the updated columns, or None for a delete.
        """
        if not self.acts:
            return
        for link in self._of_parent(table(model)):
            if columns is None or _names(model, columns) & {name.casefold() for name in link.parent_columns}:
                self._doubtful.add(link)

    def note_child_changes(self, model: TableModel, columns: Sequence[int], rows: Relation) -> None:
        """Remember to check foreign keys before COMMIT, because child rows were inserted, or updated in these columns.
        Keys whose parents already exist need no check. `rows`: the rows, whose first values belong to `columns`.
        """
        if not self.acts:
            return
        at = {model.columns[c].name.casefold(): number for number, c in enumerate(columns)}
        for link in self.links:
            if link.child != table(model) or link in self._doubtful:
                continue
            places = [at.get(name.casefold(), -1) for name in link.columns]
            if all(place < 0 for place in places):
                continue
            if -1 in places:
                self._doubtful.add(link)
                continue
            filled = joined(" AND ", (written("s.c{} IS NOT NULL", place) for place in places))
            same = joined(
                " AND ",
                (
                    written("p.{} = s.c{}", quote(ref), place)
                    for ref, place in zip(link.parent_columns, places, strict=True)
                ),
            )
            parents = written("SELECT 1 FROM {} AS p WHERE {}", link.parent, same)
            sql = written("SELECT 1 FROM {} WHERE {} AND NOT EXISTS ({}) LIMIT 1", rows.sql, filled, parents)
            if self._driver.execute(sql, rows.values).fetchone() is not None:
                self._doubtful.add(link)

    # actions of the change of one row

    def follow_delete(self, model: TableModel, row: int) -> None:
        """Execute the ON DELETE actions for a row, and recursively for the child rows. The caller deletes the row
        afterwards. `row`: DuckDB's row number.
        """
        if self.acts and self._of_parent(table(model)):
            gone, nulls = self._reached(table(model), row)
            gone[table(model)].discard(row)
            for name, rows in gone.items():
                if rows:
                    self._driver.execute(written("DELETE FROM {} WHERE {}", name, _in(rows)))
            for (child, columns), rows in _by_columns(gone, nulls).items():
                self._update(child, _in(rows), dict.fromkeys(map(str.casefold, columns), NULL), _ONE_ROW, ())
                names = joined(", ", (written("{} = NULL", quote(name)) for name in sorted(columns)))
                self._driver.execute(written("UPDATE {} SET {} WHERE {}", child, names, _in(rows)))

    def _reached(self, parent: Sql, row: int) -> tuple[dict[Sql, set[int]], dict[ForeignKeyLink, set[int]]]:
        """Find the rows that change by ON DELETE actions if the row is deleted. Return two dictionaries: table → row
        numbers to delete, including `row`; foreign key → row numbers in which the key's columns become NULL.
        """
        gone: dict[Sql, set[int]] = {parent: {row}}
        nulls: dict[ForeignKeyLink, set[int]] = {}
        work = [(parent, {row})]
        while work:
            name, rows = work.pop()
            for link in self._of_parent(name):
                if link.on_delete not in ("CASCADE", "SET NULL"):
                    self._doubtful.add(link)
                    continue
                sql = written("SELECT rowid FROM {} WHERE {}", link.child, link.children_of(_in(rows)))
                found = {number for (number,) in self._driver.execute(sql).fetchall()}
                if link.on_delete == "SET NULL":
                    nulls.setdefault(link, set()).update(found)
                elif more := found - gone.setdefault(link.child, set()):
                    gone[link.child] |= more
                    work.append((link.child, more))
        return gone, nulls

    def follow_update(self, model: TableModel, row: int, after: Relation, columns: Sequence[int]) -> None:
        """Execute the ON UPDATE actions for a row. The caller updates the row afterwards. `row`: DuckDB's row number.
        `after`: the new values of `columns`.
        """
        at = {model.columns[c].name.casefold(): written("s.c{}", number) for number, c in enumerate(columns)}
        if self.acts:
            self._update(table(model), written("rowid = {}", row), at, after, ())

    def _update(
        self, parent: Sql, rows: Sql, new: dict[str, Sql], after: Relation, path: tuple[ForeignKeyLink, ...]
    ) -> None:
        for link in self._of_parent(parent):
            refs = [name.casefold() for name in link.parent_columns]
            if link in path or not any(name in new for name in refs):
                continue
            changed = joined(
                " OR ",
                (
                    written("{} IS DISTINCT FROM (SELECT {} FROM {})", quote(name), new[name.casefold()], after.sql)
                    for name in link.parent_columns
                    if name.casefold() in new
                ),
            )
            values = after.values * changed.count(after.sql)
            found = self._driver.execute(
                written("SELECT rowid FROM {} WHERE ({}) AND ({})", parent, rows, changed), values
            ).fetchall()
            if not found:
                continue
            if link.on_update not in ("CASCADE", "SET NULL"):
                self._doubtful.add(link)
                continue
            moved = {
                own.casefold(): NULL if link.on_update == "SET NULL" else new[ref]
                for own, ref in zip(link.columns, refs, strict=True)
                if link.on_update == "SET NULL" or ref in new
            }
            where = link.children_of(_in({number for (number,) in found}))
            children = {
                n
                for (n,) in self._driver.execute(written("SELECT rowid FROM {} WHERE {}", link.child, where)).fetchall()
            }
            if not children:
                continue
            self._update(link.child, _in(children), moved, after, (*path, link))
            names = {name.casefold(): name for name in link.columns}
            assigned = joined(", ", (written("{} = {}", quote(names[name]), value) for name, value in moved.items()))
            sql = written(
                "UPDATE {} AS t SET {} FROM {} WHERE {}", link.child, assigned, after.sql, _in(children, written("t."))
            )
            self._driver.execute(sql, after.values)

    @property
    def links(self) -> list[ForeignKeyLink]:
        if self._links is None:
            self._has_any = _has_table(self._driver)
            self._links = list(_read(self._driver)) if self._has_any else []
        return self._links

    def _of_parent(self, name: Sql) -> list[ForeignKeyLink]:
        return [link for link in self.links if link.parent == name]


def _by_columns(
    gone: dict[Sql, set[int]], nulls: dict[ForeignKeyLink, set[int]]
) -> dict[tuple[Sql, frozenset[str]], set[int]]:
    """Group the rows that an action sets to NULL: (child table, columns that become NULL) → row numbers.

    Rows that are also deleted are omitted. Each row is in one group only, because an UPDATE may change its row number.
    `gone`, `nulls`: the result of `ForeignKeys._reached`.
    """
    columns_of: dict[tuple[Sql, int], set[str]] = {}
    for link, rows in nulls.items():
        for row in rows - gone.get(link.child, set()):
            columns_of.setdefault((link.child, row), set()).update(link.columns)
    found: dict[tuple[Sql, frozenset[str]], set[int]] = {}
    for (child, row), columns in columns_of.items():
        found.setdefault((child, frozenset(columns)), set()).add(row)
    return found


def _has_table(driver: DuckdbDriver) -> bool:
    is_there = written(
        "SELECT 1 FROM duckdb_tables() WHERE database_name = current_catalog() AND schema_name = ?"
        " AND table_name = 'foreign_keys'"
    )
    return driver.execute(is_there, [OWN_SCHEMA]).fetchone() is not None


def _read(driver: DuckdbDriver) -> Iterator[ForeignKeyLink]:
    both = joined(" AND ", (written(_THERE, side) for side in (written("child"), written("parent"))))
    for row in driver.execute(written("SELECT * FROM {} AS k WHERE {}", _TABLE, both)).fetchall():
        child, columns, parent, parent_columns = _named(*row[:2]), tuple(row[3]), _named(*row[4:6]), tuple(row[6])
        yield ForeignKeyLink(
            child=child,
            columns=columns,
            parent=parent,
            parent_columns=parent_columns,
            on_delete=row[7],
            on_update=row[8],
        )


def _named(schema: str, name: str) -> Sql:
    return written("{}.{}.{}", quote(CATALOG), quote(schema), quote(name))


def _names(model: TableModel, columns: Iterable[int]) -> set[str]:
    return {model.columns[c].name.casefold() for c in columns}


def _in(rows: Iterable[int], prefix: Sql = NOTHING) -> Sql:
    return written("{}rowid IN ({})", prefix, joined(", ", map(number, rows)))
