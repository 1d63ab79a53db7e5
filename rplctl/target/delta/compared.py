"""Reads a mirror's rows for `rplctl verify`. DECIMAL and times become texts in the format of the source's log.

The stage, into which verify loads rows of the source, consists of the changes of an open transaction that is never
committed. Invariant: verify writes no file and no table's log. Values of the source are also converted to the column's
Arrow type, and an invalid date is NULL on both sides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from rplctl.schema.model import Column, TableModel
from rplctl.target.compared import Columns, ComparedRows, PlainRow, Rows, celled, staged_model
from rplctl.target.delta.columns import arrow_type, row_schema
from rplctl.target.delta.mirror import MirrorTarget, folder_of, open_files
from rplctl.target.delta.rewrite import column_of
from rplctl.target.delta.tables import DeltaTables, columns_of, mapped
from rplctl.target.dialect import OWN_SCHEMA

_STAGE: Final = "verify"
_ROWS: Final = 20_000
_WHOLE_SECONDS: Final = 19  # characters of a time without a fraction


class MirrorRows(ComparedRows):
    @property
    def _mirror(self) -> MirrorTarget:
        return cast(MirrorTarget, self.target)

    @staticmethod
    def of_source(values: list[Any], column: Column) -> list[Any]:
        return _plain(column_of(values, column, arrow_type(column), zero_null=True), column)

    def drift(self, model: TableModel) -> list[str]:
        found = DeltaTables(self._mirror.writer).snapshot(folder_of(model))
        if found is None:
            return [f"-- {model.qualified_name} is missing in the lake; create the mirror again in another folder"]
        there, wanted = _types(found[0]), _types(columns_of(row_schema(model)))
        return [
            f"-- {model.qualified_name}: {name} is {there.get(name, 'not there')}, not {kind}"
            for name, kind in wanted.items()
            if there.get(name) != kind
        ]

    def scan(self, model: TableModel, columns: Columns) -> Iterator[list[PlainRow]]:
        with _mapped(model):
            files = open_files(self._mirror.writer, model)
            for path in files.stats:
                yield from _pieces(files.read(path, [column.name for column in columns]), columns)

    def make_stage(self, model: TableModel, columns: Columns) -> TableModel:
        self.target.rollback()  # discards the previous stage
        return staged_model(model, OWN_SCHEMA, _STAGE)

    def staged(self, columns: Columns) -> Rows:
        rows = self._mirror.changed_rows(OWN_SCHEMA, _STAGE)
        values = [self.of_source([row[n] for row in rows], column) for n, column in enumerate(columns)]
        return celled(zip(*values, strict=True))

    def all_rows(self, model: TableModel, columns: Columns) -> Rows:
        for rows in self.scan(model, columns):
            yield from celled(rows)

    def of_keys(self, model: TableModel, columns: Columns, key: Sequence[int], keys: Sequence[PlainRow]) -> Rows:
        if not keys:
            return
        with _mapped(model):
            files = open_files(self._mirror.writer, model)
            for table in files.of_keys(model, key, keys, zero_null=True):
                for rows in _pieces(table.select([column.name for column in columns]), columns):
                    yield from celled(rows)


def _types(columns: str) -> dict[str, Any]:
    return {field["name"]: field["type"] for field in json.loads(columns)["fields"]}


def _pieces(table: pa.Table, columns: Sequence[Column]) -> Iterator[list[PlainRow]]:
    for at in range(0, len(table), _ROWS):
        part = table.slice(at, _ROWS)
        values = [_plain(part[n].combine_chunks(), column) for n, column in enumerate(columns)]
        yield list(zip(*values, strict=True))


def _plain(values: pa.Array, column: Column) -> list[Any]:
    if pa.types.is_timestamp(values.type):
        fraction = column.length or 0
        values = values.cast(pa.timestamp("us")).cast(pa.string())
        values = pc.utf8_slice_codeunits(values, 0, _WHOLE_SECONDS + fraction + bool(fraction))
    elif pa.types.is_date(values.type):
        values = values.cast(pa.string())
    found: list[Any] = values.to_pylist()
    if column.is_unsigned_64:
        return [None if value is None else int(value) for value in found]
    if pa.types.is_decimal(values.type):
        return [None if value is None else f"{value:f}" for value in found]
    return found


@contextmanager
def _mapped(model: TableModel) -> Iterator[None]:
    """Convert errors of Arrow and delta-rs in a `with` block to TargetError. Arrow fails if a column's type differs
    from the model, for example because a DDL statement is executed at the same time.
    """
    try:
        with mapped(model.qualified_name):
            yield
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TargetError(f"{model.qualified_name}: {error}", errno=er.TABLE_DEF_CHANGED) from error


COMPARED: Final = MirrorRows
