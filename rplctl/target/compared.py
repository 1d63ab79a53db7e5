"""Rows of targets that do not speak MySQL, as `rplctl verify` compares them. A kind's folder defines `COMPARED`.

A row has plain values (int, float, str, bytes, None), into which the source's rows are converted too, and cells, which
are equal if the target stores equal values. A stage is a temporary table with a table's columns. verify loads rows of
the source into a stage to see how the target stores them. Invariant: nothing else is written, and no lock is held.
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
    """The rows of one target, for `rplctl verify`. `columns`: the compared columns, which are the first columns of the
    model. Each method may raise TargetError, except `of_source`, which cannot fail.
    """

    stage_commits: ClassVar[bool] = False  # the load of a stage needs a transaction that commits

    def __init__(self, target: Target) -> None:
        self.target = target

    @staticmethod
    def of_source(values: list[Any], column: Column) -> list[Any]:
        """Convert a column's decoded values of the source to the form in which the target reports its own values."""
        return values

    @abstractmethod
    def drift(self, model: TableModel) -> list[str]:
        """Return the differences between the target's table and the one that the applier would create. Each is a
        statement that repairs it, or a comment after `--` if no statement can repair it without the rows.
        """

    @abstractmethod
    def scan(self, model: TableModel, columns: Columns) -> Iterator[list[PlainRow]]:
        """Yield all rows of the table in lists. They are read on a separate connection."""

    @abstractmethod
    def make_stage(self, model: TableModel, columns: Columns) -> TableModel:
        """Create an empty stage, and return the model with which rows are loaded into it."""

    @abstractmethod
    def staged(self, columns: Columns) -> Rows: ...

    @abstractmethod
    def all_rows(self, model: TableModel, columns: Columns) -> Rows: ...

    @abstractmethod
    def of_keys(self, model: TableModel, columns: Columns, key: Sequence[int], keys: Sequence[PlainRow]) -> Rows:
        """Return the table's rows with one of these keys. `key`: indexes of the key's columns; `keys`: values in that
        order.
        """


def celled(rows: Iterable[PlainRow]) -> Iterator[tuple[PlainRow, Cells]]:
    """Return each row with its cells, which are the printed values. For a target that stores equal values
    identically.
    """
    return ((row, tuple(map(repr, row))) for row in rows)


def single(value: Any) -> float:
    """Round the value to FLOAT (4 bytes), and return the number as a Python float."""
    (found,) = struct.unpack("<f", struct.pack("<f", float(value)))
    return float(found)


def staged_model(model: TableModel, database: str, name: str) -> TableModel:
    """Return the model with which rows are loaded into the stage `database`.`name`, without foreign keys."""
    return replace(model, database=database, name=name, foreign_keys=())
