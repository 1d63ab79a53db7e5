"""Converts errors of PostgreSQL about a row or a DDL statement to MySQL's errors, with the row's key and value."""

from __future__ import annotations

import psycopg
from psycopg import errors

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.model import TableModel
from rplctl.schema.plan import AlterStep, DdlPlan
from rplctl.target.base import RowChange, RowSet, describe_key
from rplctl.target.ddl_parts import quote
from rplctl.target.postgresql.connection import target_error
from rplctl.target.postgresql.ddl import DDL
from rplctl.target.postgresql.ddl_type import DATED, index_of, is_odd_date, table


def change_error(error: psycopg.Error | TargetError, change: RowChange, model: TableModel) -> TargetError:
    """Return MySQL's error for a row change that PostgreSQL refused, with the row's key and the refused value."""
    image = change.after or change.before
    assert image is not None
    if isinstance(error, TargetError):
        error.position = error.position or describe_key(image, model)
        return error
    if isinstance(error, errors.UniqueViolation):
        index = error.diag.constraint_name or ""  # for a primary key, a name that PostgreSQL has chosen
        key = next((k for k in model.keys if k.is_unique and index_of(model, k) == index), model.primary_key)
        at = {column: i for i, column in enumerate(image.columns)}
        names = [column.name for column in model.columns]
        columns = [names.index(name) for name in (key.columns if key else ())]
        entry = "-".join(str(image.rows[0][at[c]]) for c in columns if c in at)
        return TargetError(f"Duplicate entry '{entry}' for key '{key.name if key else 'PRIMARY'}'", errno=er.DUP_ENTRY)
    if isinstance(error, errors.NotNullViolation):
        return TargetError(f"Column '{error.diag.column_name}' cannot be null", errno=er.BAD_NULL_ERROR)
    found = target_error(error)
    if found.errno == er.TRUNCATED_WRONG_VALUE and (odd := _odd_date(image, model)) is not None:
        column, text = model.columns[odd[0]], odd[1]
        return TargetError(
            f"Incorrect {column.type} value: '{text}' for column '{column.name}': PostgreSQL cannot store this date",
            errno=er.TRUNCATED_WRONG_VALUE,
            position=describe_key(image, model),
            hint=f"to store dates as text, run on the target: "
            f"ALTER TABLE {table(model)} ALTER COLUMN {quote(column.name)} TYPE text\n"
            "To continue after that, run: rplctl start",
        )
    found.position = found.position or describe_key(image, model)
    return found


def ddl_error(error: TargetError, plan: DdlPlan) -> TargetError:
    """Return the error for a DDL statement that PostgreSQL refused.

    If the result of a conversion is an invalid date, the text names the columns that may have such a date.
    """
    for step in plan.steps:
        if isinstance(step, AlterStep) and error.errno == er.TRUNCATED_WRONG_VALUE:
            filled = DDL.filled_columns(step, plan.context, original_names=True)
            names = [f"'{one.column.name}'" for one in filled if one.column.type in DATED and not one.is_unchanged]
            text = f"ALTER TABLE {step.old.qualified_name}: column {' or '.join(names)}: {error.message}"
            return TargetError(text, errno=error.errno, hint=error.hint)
    return error


def _odd_date(image: RowSet, model: TableModel) -> tuple[int, str] | None:
    """Return the first date of the row image that PostgreSQL cannot store: its column index, and its text.

    Return None if PostgreSQL can store all dates of the image.
    """
    pairs = zip(image.columns, image.rows[0], strict=True)
    return next(
        ((c, value) for c, value in pairs if isinstance(value, str) and is_odd_date(value, model.columns[c])), None
    )
