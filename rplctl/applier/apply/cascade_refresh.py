"""Handles foreign key actions that the target cannot execute as the source did.

The cases are:

* If ON UPDATE CASCADE or SET NULL changes a column, the source recomputes the virtual columns that use it. Only MySQL
  9.6 and later log the new value. On the target, the virtual column is a plain column, so rplctl computes its value.
* InnoDB permits foreign keys to columns that are not a unique key. Other targets cannot have these foreign keys.
* In a system-versioned table, MariaDB logs a DELETE as an UPDATE of row_end, and old versions may refer to a parent row
  that does not exist any more. A target's foreign key does not distinguish versions, so the target has none.

Invariant: after a change of a parent row, its child rows are equal to those of the source. If this is not possible, the
applier refuses the change of the parent row, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.errors import EXCLUDE, OR_EXCLUDE, OR_SKIP, SKIP_AND_REPAIR, RplError
from rplctl.schema.generated import integer_expressions, names_in
from rplctl.schema.model import INTEGER_BITS, ForeignKey, TableModel
from rplctl.schema.plan import Catalog
from rplctl.schema.structure import ROW_END, row_end
from rplctl.sql_run import run
from rplctl.sql_text import Grammar, backticked, joined, matched, written
from rplctl.target import dialect_of
from rplctl.target.base import ChangeKind, RowChange, Target
from rplctl.target.ddl import Ddl
from rplctl.target.ddl_parts import is_enforceable, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """The foreign key actions that follow changes of one parent table.

    `referenced`: indexes of the parent's columns to which foreign keys with actions refer. `stale`: for each child
    table, the indexes of generated columns whose values the actions may make wrong. `lost`: foreign keys with actions
    that the source has, and the target lacks. `versioned`: the tables among these that are system-versioned.
    """

    referenced: frozenset[int]
    stale: tuple[tuple[TableModel, tuple[int, ...]], ...] = ()
    lost: tuple[tuple[TableModel, ForeignKey], ...] = ()
    parent: TableModel | None = None
    versioned: frozenset[tuple[str, str]] = frozenset()

    def follows(self, change: RowChange) -> bool:
        """True if the change starts foreign key actions.

        If the row image lacks the old value of a column, the column counts as changed.
        """
        if not (self.stale or self.lost) or change.before is None:
            return False
        if change.kind is ChangeKind.DELETE or change.after is None:
            return True
        before = dict(zip(change.before.columns, change.before.rows[0], strict=True))
        after = dict(zip(change.after.columns, change.after.rows[0], strict=True))
        return any(c in after and (c not in before or before[c] != after[c]) for c in self.referenced)

    def refuse_unknown(self, target: Target, position: str, change: RowChange | None = None) -> None:
        """Raise RplError if the actions may change rows whose new values rplctl does not know.

        The error is 1364 if these rows have a generated column whose expression rplctl cannot compute. It is 1451 if a
        foreign key that the target lacks may act on rows. `change`: the change of the parent row. Without it, or if its
        key does not consist of integers, each row that refers to some parent row counts.
        """
        for model, key in self.lost:
            if not dialect_of(target.kind).follows_foreign_keys:
                raise _lost(model, key, position, "the target has no foreign keys", f"{EXCLUDE}{OR_SKIP}")
            if _has_rows(target, model, key.columns, self._old_key(key, change)):
                if self.versioned & {(model.database, model.name), (key.ref_database, key.ref_table)}:
                    why = "one of the tables is system-versioned, so the target has no such foreign key"
                    raise _lost(model, key, position, why, f"{SKIP_AND_REPAIR}{OR_EXCLUDE}")
                parent, names = backticked(key.ref_database, key.ref_table), key.ref_columns
                why = f"the columns ({', '.join(names)}) of {key.ref_database}.{key.ref_table} are not a unique key"
                add_key = f"ALTER TABLE {parent} ADD UNIQUE KEY ({joined(', ', map(backticked, names))})"
                hint = f"{SKIP_AND_REPAIR}\nTo prevent this error later, run on the source: {add_key}{OR_EXCLUDE}"
                raise _lost(model, key, position, why, hint)
        for model, columns in self.stale:
            keys = {name.casefold() for key in model.foreign_keys if key.acts for name in key.columns}
            for column in columns:
                if column in integer_expressions(model):
                    continue
                if _has_rows(target, model, [c.name for c in model.columns if c.name.casefold() in keys]):
                    raise _unknown(model, model.columns[column].name, position)

    def _old_key(self, key: ForeignKey, change: RowChange | None) -> tuple[int, ...]:
        """Return the old values of the changed row's columns to which `key` refers.

        Return () if a value is not known or not an integer, or if the key refers to another table.
        """
        parent, before = self.parent, change.before if change is not None else None
        if parent is None or before is None or (parent.database, parent.name) != (key.ref_database, key.ref_table):
            return ()
        numbers = {column.name.casefold(): n for n, column in enumerate(parent.columns) if column.type in INTEGER_BITS}
        row = dict(zip(before.columns, before.rows[0], strict=True))
        values = [row.get(numbers.get(name.casefold(), -1)) for name in key.ref_columns]
        found = tuple(value for value in values if isinstance(value, int))
        return found if len(found) == len(values) else ()

    def refresh(self, target: Target) -> None:
        ddl = _ddl(target)
        for model, columns in self.stale:
            for column in columns:
                if (parts := integer_expressions(model).get(column)) is None:
                    continue
                exact = ddl.arithmetic.operand
                terms = (
                    matched(Grammar.TERM, p) if isinstance(p, str) else exact(quote(model.columns[p].name))
                    for p in parts
                )
                name, expression = quote(model.columns[column].name), written("({})", joined(" ", terms))
                run(
                    target.connection,
                    written(
                        "UPDATE {} SET {} = {} WHERE {} {} {}",
                        ddl.table(model),
                        name,
                        expression,
                        name,
                        ddl.differs,
                        expression,
                    ),
                )


def _has_rows(target: Target, model: TableModel, columns: Iterable[str], values: tuple[int, ...] = ()) -> bool:
    """True if a current row of the table has these values in the columns.

    Without values, each row counts that has a value other than NULL in one of the columns.
    """
    ddl, names = _ddl(target), [quote(name) for name in columns]
    if values:
        found = joined(" AND ", (written("{} = {}", *pair) for pair in zip(names, values, strict=True)))
    else:
        found = joined(" OR ", (written("{} IS NOT NULL", name) for name in names))
    if model.system_versioned:
        found = written("({}) AND {} IN ({})", found, quote(row_end(model) or ROW_END), ddl.ends)
    asked = written("SELECT 1 FROM {} WHERE {} LIMIT 1", ddl.table(model), found)
    return run(target.connection, asked).first() is not None


def _ddl(target: Target) -> Ddl:
    found = dialect_of(target.kind).ddl
    assert found is not None, "a StatementTarget follows foreign keys itself"
    return found


def cascade_of(catalog: Catalog, parent: TableModel, *, are_followed: bool = True) -> Cascade:
    """Return the foreign key actions that follow changes of rows of `parent`, directly or by way of other tables.

    `are_followed`: True if the target executes the actions of the foreign keys that it has.
    """
    reached = {(parent.database, parent.name)}
    models = [model for model in catalog.tables.values() if any(key.acts for key in model.foreign_keys)]
    while more := {(m.database, m.name) for m in models if any(_points(k, reached) for k in m.foreign_keys)} - reached:
        reached |= more
    stale = tuple((model, found) for model in models if (found := tuple(_made_of_keys(model, reached))))
    followed = [(model, key) for model in models for key in model.foreign_keys if _points(key, reached)]
    lost = tuple((model, key) for model, key in followed if not (are_followed and is_enforceable(key, model, catalog)))
    keys = [key for _, key in followed if _points(key, {(parent.database, parent.name)})]
    names = {name.casefold() for key in keys for name in key.ref_columns}
    if parent.system_versioned:  # a DELETE only sets row_end
        names.add((row_end(parent) or ROW_END).casefold())
    referenced = frozenset(n for n, column in enumerate(parent.columns) if column.name.casefold() in names)
    if not keys:
        return Cascade(referenced=referenced)
    versioned = {name for name in reached if (table := catalog.tables.get(name)) is not None and table.system_versioned}
    return Cascade(referenced=referenced, stale=stale, lost=lost, parent=parent, versioned=frozenset(versioned))


def _points(key: ForeignKey, tables: set[tuple[str, str]]) -> bool:
    return key.acts and (key.ref_database, key.ref_table) in tables


def _made_of_keys(model: TableModel, reached: set[tuple[str, str]]) -> Iterator[int]:
    """Yield the indexes of generated columns that use a column of a foreign key to one of the tables `reached`."""
    keys = {name.casefold() for key in model.foreign_keys if _points(key, reached) for name in key.columns}
    for number, column in enumerate(model.columns):
        if keys & names_in(column.generated or ""):
            yield number


def _unknown(model: TableModel, column: str, position: str) -> RplError:
    return RplError(
        f"cannot apply the cascading action of a foreign key to {model.qualified_name}: only the source can compute "
        f"the new value of its generated column '{column}'",
        errno=er.NO_DEFAULT_FOR_FIELD,
        position=position,
        hint=f"{SKIP_AND_REPAIR}{OR_EXCLUDE}",
    )


def _lost(model: TableModel, key: ForeignKey, position: str, why: str, hint: str) -> RplError:
    return RplError(
        f"cannot apply the cascading action of foreign key '{key.name}' from {key.ref_database}.{key.ref_table} to "
        f"{model.qualified_name}: {why}",
        errno=er.ROW_IS_REFERENCED_2,
        position=position,
        hint=hint,
    )
