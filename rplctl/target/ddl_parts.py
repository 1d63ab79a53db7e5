"""Functions for DDL that several kinds of target share: names, keys, foreign keys, and the order of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.context import NO_AUTO_VALUE_ON_ZERO, DdlContext
from rplctl.schema.default_value import default_value
from rplctl.schema.generated import integer_expressions
from rplctl.schema.lexer import WAY_OUT_OF_ALTER
from rplctl.schema.model import INTEGER_BITS, MERGE_ENGINES, Column, ForeignKey, Key, TableModel, below_merge
from rplctl.schema.naming import keep_index_names
from rplctl.schema.plan import AlterStep, Catalog, DdlPlan, DropStep, MoveRowsStep, RenameStep, Step, TruncateStep
from rplctl.schema.structure import is_compared_by_collation
from rplctl.schema.value import NotComputable, Value
from rplctl.sql_text import NOTHING, Grammar, Sql, double_quoted, joined, matched, standard_literal, word, written
from rplctl.target.conversion import integer_range

_ACTIONS = {"CASCADE": written("CASCADE"), "SET NULL": written("SET NULL")}
# These collations sort digits and lower-case letters in byte order. Collations of other languages have digraphs.
_NO_DIGRAPHS = re.compile(r"^(latin1_swedish_ci)$|_(bin|general_ci|0900_ai_ci|unicode_ci|uca1400_ai_ci)$")


def quote(name: str) -> Sql:
    return double_quoted(name)


def text_literal(text: str) -> Sql:
    return standard_literal(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A query that must return no row before the plan's statements run, and the error to raise if it returns a row."""

    query: Sql
    message: str
    hint: str = WAY_OUT_OF_ALTER


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledColumn:
    """A column of the new table, with SQL that computes the value for existing rows. `origin`: the old name, or None if
    the column is new. `constant`: SQL of the value if the value is the same for all rows, also for later rows.
    """

    column: Column
    origin: str | None
    expression: Sql
    impossible: Sql = NOTHING  # SQL condition for rows whose value cannot be computed on the target
    why: str = ""
    constant: Sql | None = None
    is_unchanged: bool = False


def column_line(column: Column, kind: Sql, default: Sql) -> Sql:
    """Return a column's definition for CREATE TABLE or ADD COLUMN. `kind` is the SQL type, `default` the SQL of the
    default value; both may be empty.
    """
    required = written("NOT NULL") if is_required(column) else NOTHING
    return joined(" ", filter(None, (quote(column.name), kind, required, default and written("DEFAULT {}", default))))


def is_required(column: Column) -> bool:
    """True if the column is NOT NULL on the target. A generated column is never NOT NULL, because the applier sets its
    value after the row is inserted.
    """
    return not column.nullable and column.generated is None


def rename_columns(
    step: AlterStep, table: Sql, parked: str, folded: Callable[[str], str] = str
) -> tuple[list[Sql], TableModel]:
    """Return RENAME COLUMN statements for all renamed columns, and the model after these statements.

    If another column still has the new name, the column first gets a temporary name that begins with `parked`. A column
    that will be dropped is also renamed if a new column has its name. Targets update indexes and foreign keys
    themselves. `folded`: returns the same text for names that the target regards as equal.
    """
    old = step.old
    pairs = [(o, c.name) for o, c in zip(step.origins, step.new.columns, strict=True) if o is not None and o != c.name]
    names = {folded(column.name) for column in step.new.columns}
    in_the_way = [c.name for c in old.columns if c.name not in step.origins and folded(c.name) in names]
    pairs += [(name, f"{parked} old {i}") for i, name in enumerate(in_the_way)]
    taken = {folded(column.name) for column in old.columns}
    first, second = [], []
    for number, (name, new_name) in enumerate(pairs):
        if folded(new_name) in taken:
            first.append(rename_column(table, name, f"{parked} {number}"))
            second.append(rename_column(table, f"{parked} {number}", new_name))
        else:
            first.append(rename_column(table, name, new_name))
    return first + second, with_renamed_columns(old, dict(pairs))


def rename_column(table: Sql, name: str, new_name: str) -> Sql:
    return written("ALTER TABLE {} RENAME COLUMN {} TO {}", table, quote(name), quote(new_name))


def constant_default(column: Column) -> Value:
    """Return the column's default value, or None if the default is NULL or depends on the time or the session."""
    if column.default is None or "CURRENT" in column.default.upper() or column.type == "timestamp":
        return None
    try:
        return default_value(column, DdlContext(time_zone="?", server_version=""))
    except NotComputable:
        return None


def computed_values(
    model: TableModel, given: Mapping[int, Sql], name_of: Callable[[int], Sql], operand: Callable[[Sql], Sql]
) -> dict[int, Sql]:
    """Return SQL for the generated columns that a row lacks, by column index. `given`: the SQL of the columns that the
    row has. Only generated columns that depend on a `given` column are returned.

    `name_of`: returns a column's SQL. `operand`: converts it to a type in which no result overflows. A source without
    strict mode stores the nearest value of the column's type, and a strict one has no other values.
    """
    found = {}
    for number, expression in integer_expressions(model).items():
        if number in given or given.keys().isdisjoint(expression):
            continue
        terms = (
            matched(Grammar.TERM, part) if isinstance(part, str) else operand(name_of(part)) for part in expression
        )
        value = written("({})", joined(" ", terms))
        low, high = integer_range(model.columns[number])
        found[number] = written(
            "CASE WHEN {} < {} THEN {} WHEN {} > {} THEN {} ELSE {} END", value, low, low, value, high, high, value
        )
    return found


def new_tables(plan: DdlPlan, catalog: Catalog) -> list[TableModel]:
    """Return the tables that the plan creates under names that no table had before. Tables without rows on the target
    (such as BLACKHOLE) are excluded.
    """
    changes = plan.model_changes.items()
    return [model for name, model in changes if model and name not in catalog.tables and model.holds_rows]


def may_be_alike(model: TableModel, catalog: Catalog) -> list[TableModel]:
    """Return the other tables that may have the same name on the target as the model's table. This function only
    compares the total length of database name and table name, which is quick for many tables. The caller must compare
    the names.
    """
    size = len(model.database) + len(model.name)
    alike = [other for other in catalog.tables.values() if len(other.database) + len(other.name) == size]
    return [other for other in alike if other is not model and other.holds_rows]


def steps_here(plan: DdlPlan) -> Iterator[Step]:
    """Yield the plan's steps for tables that have rows on the target. If ALTER TABLE selects an engine that stores no
    rows in the table (such as MERGE or BLACKHOLE), yield a step that drops the table.

    Raises TargetError 1235 if a MERGE table would change other tables. Raises TargetError 1846 if ALTER TABLE replaces
    such an engine by one that stores rows, because the target lacks the rows.
    """
    for step in plan.steps:
        match step:
            case AlterStep(old=old, new=new) if old.holds_rows != new.holds_rows:
                if new.engine.upper() in MERGE_ENGINES:
                    raise below_merge(new, "the new rows of ALTER TABLE")
                if new.holds_rows:
                    what = f"ALTER TABLE {new.qualified_name}: its rows come from elsewhere ({old.engine})"
                    raise TargetError(what, errno=er.ALTER_OPERATION_NOT_SUPPORTED_REASON)
                yield DropStep(old)
            case TruncateStep(model) if model.engine.upper() in MERGE_ENGINES:
                raise below_merge(model, "TRUNCATE TABLE")
            case _ if model_of(step).holds_rows:
                yield step


def model_of(step: Step) -> TableModel:
    return step.old if isinstance(step, AlterStep | RenameStep | MoveRowsStep) else step.model


def is_enforceable(key: ForeignKey, model: TableModel, catalog: Catalog) -> bool:
    """True if the target can check the foreign key. Targets require a unique key on the parent's columns, but InnoDB
    accepts any index. An unknown parent table counts as suitable, because it may be created later. A key without an
    action is not enforceable if the source compares its text by a collation, because 'abc' may refer to 'ABC'. Nor is a
    key of a system-versioned table, because its old versions may refer to parent rows that are gone.
    """
    if not key.ref_columns or model.system_versioned or (is_compared_by_collation(key, model) and not key.acts):
        return False
    same = (key.ref_database, key.ref_table) == (model.database, model.name)
    parent = model if same else catalog.tables.get((key.ref_database, key.ref_table))
    if parent is None:
        return True
    wanted = {name.casefold() for name in key.ref_columns}
    return any(k.is_unique and {name.casefold() for name in k.columns} == wanted for k in parent.keys)


def is_indexed(key: Key) -> bool:
    """True if the target creates an index for the key. FULLTEXT, SPATIAL, VECTOR and expression keys get no index."""
    return key.kind in ("unique", "index") and not key.has_expression


def is_in_order(column: Column) -> bool:
    """True if every target sorts the values of the column's type in the same order as the source."""
    return column.type in (*INTEGER_BITS, "year", "date", "datetime", "timestamp", "binary", "varbinary")


def is_in_known_order(model: TableModel, key: Key, context: DdlContext) -> bool:
    """True if the source stores the rows in the order of the table's clustered key `key`, and every target sorts this
    key alike.

    The order is unknown for other engines than InnoDB, and for partitioned tables, which sort each partition
    separately. MariaDB before 10.8 stores a DESC part in ascending order.
    """
    if model.engine.casefold() not in ("", "innodb") or model.partitioning is not None:
        return False
    ignores_desc = context.is_mariadb and context.version_number < 100800
    for part in key.parts:
        column = model.find(part.column)
        if column is None or part.length is not None or (part.descending and ignores_desc):
            return False
        is_plain_text = column.type in ("char", "varchar") and _NO_DIGRAPHS.search(column.collation or "_general_ci")
        if not is_in_order(column) and not is_plain_text:
            return False
    return True


def numbered_by_source(column: Column, context: DdlContext) -> tuple[bool, bool]:
    """Return two bools for a column that becomes AUTO_INCREMENT. The first is True if the source gives new numbers to
    rows with 0, the second if it does so for rows with NULL. Tested on MariaDB 10.11 and MySQL 9.7.
    """
    keeps_zeros = bool(context.sql_mode & NO_AUTO_VALUE_ON_ZERO)
    return not keeps_zeros, not (column.nullable and (keeps_zeros or not context.is_mariadb))


def clustered_key(model: TableModel) -> Key | None:
    """Return the key by which InnoDB stores the rows: the primary key, else the first unique key without NULLs."""
    if model.primary_key is not None:
        return model.primary_key
    nullable = {column.name for column in model.columns if column.nullable}
    for key in model.keys:
        if key.kind == "unique" and not key.has_expression and not nullable.intersection(key.columns):
            return key
    return None


def actions(key: ForeignKey) -> Sql:
    """Return the ON DELETE and ON UPDATE clauses of the foreign key. RESTRICT is omitted and so becomes NO ACTION.

    In InnoDB, RESTRICT and NO ACTION mean the same. On the target, only NO ACTION can be checked at the end of a
    transaction. A transaction on the target may contain several transactions of the source.
    """
    return joined(
        "",
        (
            written(" ON {} {}", word(change), _ACTIONS[action])
            for change, action in (("DELETE", key.on_delete), ("UPDATE", key.on_update))
            if action in ("CASCADE", "SET NULL")
        ),
    )


def with_renamed_columns(model: TableModel, names: Mapping[str, str]) -> TableModel:
    """Return the model with columns renamed as in `names` (old name → new name). The names of indexes do not change."""

    def new(name: str) -> str:
        return names.get(name, name)

    return replace(
        model,
        columns=tuple(replace(column, name=new(column.name)) for column in model.columns),
        keys=tuple(
            replace(key, parts=tuple(replace(part, column=new(part.column)) for part in key.parts))
            for key in keep_index_names(model).keys
        ),
        foreign_keys=tuple(replace(key, columns=tuple(map(new, key.columns))) for key in model.foreign_keys),
    )


def is_zero_date(text: str) -> bool:
    """True for the zero date '0000-00-00', with or without a time of zeros."""
    return text.startswith("0000-00-00") and not text.strip("0-:. ")
