"""Executes DDL on a mirror: computes the files and columns that a table has after the statement.

Invariant: no value may change. A statement that could change a value is refused (error 1846) before a file is written.
Added columns that are NULL change no file. Other changes rewrite the table's files, and one commit replaces the old
files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rplctl import mysql_errors as er
from rplctl.errors import OR_EXCLUDE, TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.default_value import default_value
from rplctl.schema.model import INTEGER_BITS, TEXT_BYTES, Column, TableModel
from rplctl.schema.plan import AddKeysStep, AlterStep, CreateStep, DdlPlan, DropStep, RenameStep, Step, TruncateStep
from rplctl.schema.value import NotComputable
from rplctl.target.conversion import integer_range
from rplctl.target.ddl_parts import numbered_by_source, steps_here
from rplctl.target.delta.columns import arrow_type, row_schema
from rplctl.target.delta.place import INSTEAD_OF_MIRROR, LakePlace
from rplctl.target.delta.rewrite import MirrorFiles, column_of
from rplctl.target.delta.tables import columns_of
from rplctl.target.lake import PendingTable

_TEXTS: Final = frozenset({"varchar", "char", "enum", *TEXT_BYTES})


class MirrorDdl:
    """Computes the changes that one DDL statement makes to tables of a mirror. `folder_of`: returns a table's folder.
    `files_of`: returns a table's files, with the columns before the statement.
    """

    def __init__(self, place: LakePlace, folder_of: Callable[[TableModel], str],
                 files_of: Callable[[TableModel], MirrorFiles]) -> None:  # fmt: skip
        self._place = place
        self._folder_of = folder_of
        self._files_of = files_of
        self._now: dict[str, tuple[TableModel, list[pa.Table] | MirrorFiles | None]] = {}  # None: the table has no rows

    def carry_out(self, plan: DdlPlan) -> list[PendingTable]:
        """Write the new files for a DDL plan, and return the changes of each table. The caller commits them later.
        Raises TargetError if the plan is not supported, or if the lake cannot be read or written.
        """
        for step in steps_here(plan):
            self._step(step, plan.context)
        return [self._pending(folder, *now) for folder, now in self._now.items()]

    def _step(self, step: Step, context: DdlContext) -> None:
        match step:
            case CreateStep(model) | DropStep(model) | TruncateStep(model):
                self._now[self._folder_of(model)] = (model, None)
            case RenameStep(old, new):
                rows = self._rows(old)
                self._now[self._folder_of(old)] = (old, None)
                self._now[self._folder_of(new)] = (new, rows)
            case AlterStep():
                self._alter(step, context)
            case AddKeysStep():
                pass
            case _:
                raise TargetError(
                    "a lake of layer=mirror cannot find the rows that a statement on partitions or history removes",
                    errno=er.ALTER_OPERATION_NOT_SUPPORTED_REASON,
                    hint=f"{INSTEAD_OF_MIRROR}{OR_EXCLUDE}",
                )

    def _rows(self, model: TableModel) -> list[pa.Table] | None:
        """Return all rows of a table, as one Arrow table for each file, or None if the table has no rows."""
        folder = self._folder_of(model)
        rows = self._now[folder][1] if folder in self._now else self._files_of(model)
        return [rows.read(path) for path in rows.stats] if isinstance(rows, MirrorFiles) else rows

    def _alter(self, step: AlterStep, context: DdlContext) -> None:
        old, new, folder = step.old, step.new, self._folder_of(step.new)
        fills = [self._filled(column, origin, old, context) for column, origin in zip(new.columns, step.origins,
                                                                                      strict=True)]  # fmt: skip
        is_wider = folder == self._folder_of(old) and folder not in self._now
        is_wider &= len([origin for origin in step.origins if origin is not None]) == len(old.columns)
        if is_wider and all(fill is None for fill in fills):
            self._now[folder] = (new, self._files_of(old))
            return
        schema, made = row_schema(new), list[pa.Table]()
        for rows in self._rows(old) or []:
            arrays = []
            for column, origin, fill in zip(new.columns, step.origins, fills, strict=True):
                if origin is None:
                    nulls = pa.nulls(len(rows), arrow_type(column))
                    arrays.append(nulls if fill is None else pa.repeat(fill[0], len(rows)))
                else:
                    arrays.append(_cast(rows[origin], column, new))
            made.append(pa.Table.from_arrays(arrays, schema=schema))
        self._now[self._folder_of(old)] = (old, None)
        self._now[folder] = (new, made)

    def _filled(self, column: Column, origin: str | None, old: TableModel, context: DdlContext) -> pa.Array | None:
        """Return an array with the value of an added column in all existing rows. Return None if the files need not
        change for this column. For a changed column, the array only shows that the files must change.

        `origin`: the column's old name, or None if it is added. Raises TargetError if only the source knows the values.
        """
        before = old.find(origin) if origin is not None else None
        if before is not None:
            same = before.name == column.name and arrow_type(before) == arrow_type(column)
            if not _is_plain(before, column):
                raise _refused(f"column '{column.name}' of {old.qualified_name}: {before.type} to {column.type}")
            if column.auto_increment and not before.auto_increment:
                self._refuse_numbered(column, before, old, context)
            elif before.nullable and not column.nullable:
                self._refuse_null(column, before, old, context)
            return None if same else pa.array([None])
        try:
            value = default_value(column, context)
        except NotComputable as error:
            raise _refused(f"existing rows get values that only the source knows: {error}") from error
        if value is None:
            return None
        return column_of([value], column, arrow_type(column), zero_null=self._place.zero_dates_null)

    def _refuse_numbered(self, column: Column, before: Column, old: TableModel, context: DdlContext) -> None:
        """Raise TargetError if a row gets a new number on the source, because the column becomes AUTO_INCREMENT."""
        zeros, nulls = numbered_by_source(column, context)
        for rows in self._rows(old) or []:
            values = rows[before.name]
            if (nulls and values.null_count) or (zeros and pc.any(pc.equal(values, 0)).as_py()):
                raise _refused(f"existing rows get numbers that only the source knows (column '{column.name}')")

    def _refuse_null(self, column: Column, before: Column, old: TableModel, context: DdlContext) -> None:
        """Raise TargetError if a column with a NULL becomes NOT NULL, because the source replaced the NULL."""
        if context.is_strict and column.type != "timestamp":
            return  # the source has no NULL in the column
        if any(rows[before.name].null_count for rows in self._rows(old) or []):
            raise _refused(f"NULL in column '{column.name}' of {old.qualified_name}, which becomes NOT NULL")

    def _pending(self, folder: str, model: TableModel, rows: list[pa.Table] | MirrorFiles | None) -> PendingTable:
        columns = columns_of(row_schema(model))
        if isinstance(rows, MirrorFiles):
            return PendingTable(folder=folder, columns=columns)
        files = MirrorFiles(self._place, folder, row_schema(model), {})
        written = [file for part in rows or [] for file in files.write(model, part)]
        return PendingTable(
            folder=folder, columns=columns, files=tuple((f.path, f.size, f.stats) for f in written), replaces=True
        )


def _is_plain(old: Column, new: Column) -> bool:
    """True if the source's conversion from `old` to `new` keeps every value that fits the new type."""
    if old.fraction_digits > new.fraction_digits or (old.type == "time" and old.length != new.length):
        return False
    if old.type == new.type:
        is_same = old.type != "binary" or old.length == new.length
        return is_same and (old.type != "set" or new.labels[: len(old.labels)] == old.labels)
    return {old.type, new.type} <= _TEXTS or {old.type, new.type} <= INTEGER_BITS.keys()


def _cast(values: pa.ChunkedArray, column: Column, model: TableModel) -> pa.ChunkedArray:
    """Convert values to the column's Arrow type. Raises TargetError if a value does not fit the column, because only
    the source knows the result of such a conversion.
    """
    try:
        made = values.cast(arrow_type(column))
    except pa.ArrowInvalid as error:
        raise _refused(f"column '{column.name}' of {model.qualified_name}: {error}") from error
    if column.type in INTEGER_BITS:
        bounds, (low, high) = pc.min_max(made).as_py(), integer_range(column)
        fits = bounds["min"] is None or (bounds["min"] >= low and bounds["max"] <= high)
    elif column.type == "enum":
        fits = bool(pc.all(pc.is_in(made.drop_null(), value_set=pa.array(column.labels))).as_py() in (True, None))
    elif column.type in ("char", "varchar"):
        fits = (pc.max(pc.utf8_length(made)).as_py() or 0) <= (column.length or 1)
        fits &= column.type != "char" or not pc.any(pc.ends_with(made, " ")).as_py()
    else:
        fits = True
    if not fits:
        raise _refused(f"column '{column.name}' of {model.qualified_name} has values that do not fit")
    return made


def _refused(why: str) -> TargetError:
    return TargetError(
        f"a lake of layer=mirror cannot execute ALTER TABLE: {why}",
        errno=er.ALTER_OPERATION_NOT_SUPPORTED_REASON,
        hint=f"{INSTEAD_OF_MIRROR}{OR_EXCLUDE}",
    )
