"""Where each column's values come from when a table is altered: converted, computed, numbered, or not to be had."""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.context import DdlContext
from rplctl.schema.default_value import NotComputable, default_value
from rplctl.schema.model import INTEGER_BITS, Column
from rplctl.schema.plan import AlterStep
from rplctl.target.computed_columns import Arithmetic, computed, is_calculated_anew
from rplctl.target.ddl_parts import FilledColumn, clustered_key, quote
from rplctl.target.sqlite.conversion import convert
from rplctl.target.sqlite.ddl_type import literal, stored_value

_ARITHMETIC = Arithmetic("{}", "typeof({}) = 'real' OR ")


def filled_columns(step: AlterStep, context: DdlContext, *, original_names: bool) -> list[FilledColumn]:
    """One per column of the new table, over the old names (`guards`, before renaming) or the new ones."""
    found = []
    for column, origin in zip(step.new.columns, step.origins, strict=True):
        if origin is None:
            found.append(_added(column, step, context, original_names=original_names))
            continue
        old = step.old.find(origin)
        assert old is not None, "an origin names a column of the old table"
        if is_calculated_anew(column, old, step, context):
            found.append(replace(_added(column, step, context, original_names=original_names), origin=origin))
            continue
        value = quote(origin if original_names else column.name)
        conversion = convert(old, column, value, context)
        found.append(
            FilledColumn(
                column,
                origin,
                conversion.expression,
                conversion.impossible,
                conversion.why,
                is_unchanged=conversion.expression == value,
            )  # fmt: skip
        )
    return found


def _added(column: Column, step: AlterStep, context: DdlContext, *, original_names: bool) -> FilledColumn:
    if column.auto_increment:
        return _numbered(column, step, context, original_names=original_names)
    try:
        value = literal(stored_value(column, default_value(column, context)))
    except NotComputable as error:
        text = column.generated or column.default or ""
        made = computed(column, text, step, context, original_names=original_names, arithmetic=_ARITHMETIC)
        if made is not None:
            return FilledColumn(column, None, made.expression, made.impossible, f"column '{column.name}': {error}")
        why = f"existing rows get values that only the source knows: {error}"
        return FilledColumn(column, None, "NULL", "1", why, constant=None)
    lasting = column.default is None or "CURRENT" not in column.default.upper()
    return FilledColumn(column, None, value, constant=value if lasting else None)


def _numbered(column: Column, step: AlterStep, context: DdlContext, *, original_names: bool) -> FilledColumn:
    """ADD COLUMN … AUTO_INCREMENT numbers the rows in the order of the old clustered key.

    That order is known here for numbers and temporals, and for text of digits and letters of one case, in which every
    collation but the few with digraphs agrees with the bytes. Without a key it is the source's secret unless one row.
    """
    step_size, first = context.auto_increment_increment, context.auto_increment_offset
    key = clustered_key(step.old)
    why = f"existing rows are numbered in an order that only the source knows (column '{column.name}')"
    if key is None:
        several = f"(SELECT count(*) FROM {_old_table(step)}) > 1"
        return FilledColumn(column, None, str(first), several, why)
    renamed = {o: c.name for o, c in zip(step.origins, step.new.columns, strict=True) if o is not None}
    order, doubts = [], []
    for part in key.parts:
        key_column = step.old.find(part.column)
        assert key_column is not None, "keys name columns of their table"
        name = quote(part.column if original_names else renamed.get(part.column, part.column))
        order.append(name + (" DESC" if part.descending else ""))
        if key_column.is_unsigned_64:
            doubts.append(f"typeof({name}) = 'text'")
        elif key_column.type not in (*INTEGER_BITS, "year", "date", "datetime", "timestamp", "binary", "varbinary"):
            doubts.append(f"({name} GLOB '*[^0-9a-z]*' AND {name} GLOB '*[^0-9A-Z]*')")
    expression = f"{first} + {step_size} * (ROW_NUMBER() OVER (ORDER BY {', '.join(order)}) - 1)"
    return FilledColumn(column, None, expression, " OR ".join(doubts), why)


def _old_table(step: AlterStep) -> str:
    return quote(f"{step.old.database}__{step.old.name}")
