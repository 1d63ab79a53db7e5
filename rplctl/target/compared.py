"""Reads rows of a target that is not MySQL, so that `rplctl verify` can compare them with the rows of the source.

The folder of each kind of target defines `COMPARED`, a subclass of `ComparedRows`. A row has plain values (int, float,
str, bytes, None); rows of the source are converted to such values, too. Each value also has a cell. Two cells are equal
if the target stores equal values. A stage is a temporary table. verify loads rows of the source into a stage to see how
the target stores these rows. Invariant: only stages are written, and no lock is held.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rplctl.schema.model import Column, TableModel
from rplctl.target.base import Target

PlainRow = tuple[Any, ...]
Cells = tuple[Any, ...]
Rows = Iterable[tuple[PlainRow, Cells]]
Columns = Sequence[Column]


class ComparedRows(ABC):
    """The rows of one target, for `rplctl verify`. In each method, `columns` are the compared columns, which are the
    first columns of the model. Each method may raise TargetError, except `of_source`, which cannot fail.
    """

    stage_commits: ClassVar[bool] = False  # the load of a stage needs a transaction that commits

    def __init__(self, target: Target) -> None:
        self.target = target

    @staticmethod
    def of_source(values: list[Any], column: Column) -> list[Any]:
        """Convert values of the source to the Python types that the target returns for this column."""
        return values

    @abstractmethod
    def drift(self, model: TableModel) -> list[str]:
        """Compare the target's table with the table that the applier would create. Return one text per difference. This
        is a statement that repairs the difference, or a comment after `--` if only a new copy of the rows can do so.
        """

    @abstractmethod
    def scan(self, model: TableModel, columns: Columns) -> Iterator[list[PlainRow]]:
        """Yield all rows of the table, in lists of many rows. A separate connection reads the rows."""

    @abstractmethod
    def make_stage(self, model: TableModel, columns: Columns) -> TableModel:
        """Create an empty stage (usually a temporary table), and return the model for loading rows into the stage."""

    @abstractmethod
    def staged(self, columns: Columns) -> Rows: ...

    @abstractmethod
    def all_rows(self, model: TableModel, columns: Columns) -> Rows: ...

    @abstractmethod
    def of_keys(self, model: TableModel, columns: Columns, key: Sequence[int], keys: Sequence[PlainRow]) -> Rows:
        """Return the table's rows that have one of these keys. `key`: the indexes of the key's columns. `keys`: the
        values of these columns for each row, in the same order.
        """


def celled(rows: Iterable[PlainRow]) -> Iterator[tuple[PlainRow, Cells]]:
    """Return each row with its cells: the printed form of each value. Use this function only for a target that returns
    equal values in the same form.
    """
    return ((row, tuple(map(repr, row))) for row in rows)


def single(value: Any) -> float:
    """Return the value rounded to single precision (FLOAT, 4 bytes), as a Python float."""
    (found,) = struct.unpack("<f", struct.pack("<f", float(value)))
    return float(found)


def staged_model(model: TableModel, database: str, name: str) -> TableModel:
    """Return the model with which verify loads rows into the temporary table `name`. It has no foreign keys."""
    return replace(model, database=database, name=name, foreign_keys=())
