"""Converts errors of PostgreSQL about a row or a DDL statement to MySQL's errors, with the row's key and value."""

from __future__ import annotations

import psycopg
from psycopg import errors

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.model import Column, TableModel
from rplctl.schema.plan import AlterStep, DdlPlan
from rplctl.sql_text import written
from rplctl.target.base import RowChange, RowSet, describe_key
from rplctl.target.ddl_parts import quote
from rplctl.target.postgresql.connection import target_error
from rplctl.target.postgresql.ddl import DDL
from rplctl.target.postgresql.ddl_type import DATED, index_of, is_odd_date, table

_SECONDS = len("2024-01-01 10:00:00")


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
    if found.errno == er.TRUNCATED_WRONG_VALUE and (odd := _odd_dates(image, model, str(error))):
        column, text = odd[0]
        table_name = table(model)
        ways = [f"ALTER TABLE {table_name} ALTER COLUMN {quote(c.name)} TYPE text{_using(c)}" for c, _ in odd]
        return TargetError(
            f"Incorrect {column.type} value: '{text}' for column '{column.name}': PostgreSQL cannot store this date",
            errno=er.TRUNCATED_WRONG_VALUE,
            position=describe_key(image, model),
            hint=f"to store dates as text, run on the target: {'; '.join(ways)}\n"
            "To continue after that, run: rplctl start",
        )
    found.position = found.position or describe_key(image, model)
    return found


def _using(column: Column) -> str:
    """Return the clause with which ALTER COLUMN … TYPE text gives the existing values the form of the row events."""
    if column.type == "date":
        return ""
    moment = quote(column.name) if column.type == "datetime" else written("{} AT TIME ZONE 'UTC'", quote(column.name))
    if not column.fraction_digits:
        return f" USING to_char({moment}, 'YYYY-MM-DD HH24:MI:SS')"
    return f" USING left(to_char({moment}, 'YYYY-MM-DD HH24:MI:SS.US'), {_SECONDS + 1 + column.fraction_digits})"


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


def _odd_dates(image: RowSet, model: TableModel, said: str) -> list[tuple[Column, str]]:
    """Return the columns of the row image with a date that PostgreSQL cannot store, with their text.

    `said`: PostgreSQL's error. If it has the text of some of these dates, only these are returned, because a column
    with another one may be text already. The list is empty if PostgreSQL can store all dates of the image.
    """
    pairs = [(model.columns[c], v) for c, v in zip(image.columns, image.rows[0], strict=True)]
    odd = [(column, v) for column, v in pairs if isinstance(v, str) and is_odd_date(v, column)]
    return [(column, text) for column, text in odd if f'"{text}"' in said] or odd[:1]
