"""What the DDL of more than one kind of target is made of. No kind's own words are here, and no schema model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rplctl.schema.lexer import WAY_OUT_OF_ALTER
from rplctl.schema.model import Column, ForeignKey, Key, TableModel
from rplctl.schema.plan import AlterStep, Catalog, MoveRowsStep, RenameStep, Step
from rplctl.schema.structure import END_OF_TIME, LATER_END_OF_TIME, ROW_END, row_end


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Guard:
    """A query that must return no row before the plan's statements run; else raise RplError(message, hint=hint)."""

    query: str
    message: str
    hint: str = WAY_OUT_OF_ALTER


@dataclass(frozen=True, slots=True)
class FilledColumn:
    """A column of the new table. `constant`: SQL of the same value for every row, when that outlives the statement."""

    column: Column
    origin: str | None
    expression: str
    impossible: str = ""  # SQL condition of rows whose value cannot be had here
    why: str = ""
    constant: str | None = None
    is_unchanged: bool = False


def model_of(step: Step) -> TableModel:
    return step.old if isinstance(step, AlterStep | RenameStep | MoveRowsStep) else step.model


def rows_that_fit(step: MoveRowsStep, name: str, condition: str) -> Guard:
    """WITHOUT VALIDATION leaves rows in a partition that is not theirs: nothing here would know them again."""
    query = f"SELECT 1 FROM {name} WHERE ({condition}) IS NOT TRUE LIMIT 1"
    why = f"ALTER TABLE {step.new.qualified_name}: rows of {step.old.qualified_name} do not belong into the partition"
    return Guard(query, f"{why} '{step.must_fit}'")


def is_enforceable(key: ForeignKey, model: TableModel, catalog: Catalog) -> bool:
    """Targets want the parent's columns to be a key; InnoDB takes any index. A parent not known yet may still come."""
    if not key.ref_columns:
        return False
    same = (key.ref_database, key.ref_table) == (model.database, model.name)
    parent = model if same else catalog.tables.get((key.ref_database, key.ref_table))
    if parent is None:
        return True
    wanted = {name.casefold() for name in key.ref_columns}
    return any(k.is_unique and {name.casefold() for name in k.columns} == wanted for k in parent.keys)


def is_indexed(key: Key) -> bool:
    """Whether the target has an index for it: not for words, shapes, vectors and expressions."""
    return key.kind in ("unique", "index") and not key.has_expression


def clustered_key(model: TableModel) -> Key | None:
    """The key InnoDB keeps the rows in: the primary key, else the first unique key without NULLs."""
    if model.primary_key is not None:
        return model.primary_key
    nullable = {column.name for column in model.columns if column.nullable}
    for key in model.keys:
        if key.kind == "unique" and not key.has_expression and not nullable.intersection(key.columns):
            return key
    return None


def history_condition(model: TableModel, suffix: str = "") -> str:
    """SQL that holds for the rows that are no more; `suffix` belongs to a time in the target's dialect."""
    ends = ", ".join(f"'{end}{suffix}'" for end in (END_OF_TIME, LATER_END_OF_TIME))
    return f"{quote(row_end(model) or ROW_END)} NOT IN ({ends})"


def move_rows(old: str, new: str, columns: Sequence[Column], condition: str) -> list[str]:
    """Rows of a table, of some partitions, into another one with the same columns."""
    names = ", ".join(quote(column.name) for column in columns)
    where = f" WHERE {condition}" if condition else ""
    return [f"INSERT INTO {new} ({names}) SELECT {names} FROM {old}{where}", f"DELETE FROM {old}{where}"]
