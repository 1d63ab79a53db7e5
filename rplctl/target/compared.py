"""Rows of a kind of target that does not speak MySQL, as `rplctl verify` compares them; `COMPARED` in a kind's folder.

A row comes as plain values (int, float, str, bytes, None), which the source's rows are made into, too, and as cells
that are the same where the target keeps the same. A stage is a temporary table of a table's columns, in which the
target says what it makes of rows of the source. Invariant: nothing else is written, and no lock is held.
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
    """The rows of one target. `columns`: the columns of the model that are compared, which are its first ones. All
    methods except `of_source` raise TargetError.
    """

    stage_commits: ClassVar[bool] = False  # what is loaded into a stage needs a transaction

    def __init__(self, target: Target) -> None:
        self.target = target

    @staticmethod
    def of_source(values: list[Any], column: Column) -> list[Any]:
        """Return decoded values of the source as the target reports them."""
        return values

    @abstractmethod
    def drift(self, model: TableModel) -> list[str]:
        """Return how the definition of the table differs from the one that the applier makes: statements that repair
        it, or after `--` a difference that no statement repairs without the rows.
        """

    @abstractmethod
    def scan(self, model: TableModel, columns: Columns) -> Iterator[list[PlainRow]]:
        """Yield all rows, some at a time, on a connection of its own."""

    @abstractmethod
    def make_stage(self, model: TableModel, columns: Columns) -> TableModel:
        """Make an empty stage, and return the model to load it by."""

    @abstractmethod
    def staged(self, columns: Columns) -> Rows: ...

    @abstractmethod
    def all_rows(self, model: TableModel, columns: Columns) -> Rows: ...

    @abstractmethod
    def of_keys(self, model: TableModel, columns: Columns, key: Sequence[int], keys: Sequence[PlainRow]) -> Rows:
        """Return rows that have one of these keys in the columns of these numbers."""


def celled(rows: Iterable[PlainRow]) -> Iterator[tuple[PlainRow, Cells]]:
    """Return rows with their cells, for a target to which equal values are the same."""
    return ((row, tuple(map(repr, row))) for row in rows)


def single(value: Any) -> float:
    """Return the number that a FLOAT keeps of the value."""
    (found,) = struct.unpack("<f", struct.pack("<f", float(value)))
    return float(found)


def staged_model(model: TableModel, database: str, name: str) -> TableModel:
    """Return the model by which a stage is loaded."""
    return replace(model, database=database, name=name, foreign_keys=())
