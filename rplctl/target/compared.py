"""Rows of a kind of target that does not speak MySQL, as `rplctl verify` compares them; `COMPARED` in a kind's folder.

A row comes as plain values (int, float, str, bytes, None), which the source's rows are made into, too, and as cells
that are the same where the target keeps the same. A stage is a temporary table of a table's columns, in which the
target says what it makes of rows of the source. Invariant: nothing else is written, and no lock is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from rplctl.schema.model import Column, TableModel
from rplctl.target.base import Target

if TYPE_CHECKING:
    from sqlalchemy import Engine

PlainRow = tuple[Any, ...]
Cells = tuple[Any, ...]


class ComparedRows(Protocol):
    """`columns`: those of the model that are compared, its first ones."""

    stage_commits: bool  # what is loaded into a stage needs a transaction

    def of_source(self, values: list[Any], column: Column) -> list[Any]:
        """Decoded values as the target will say them."""

    def drift(self, target: Target, model: TableModel) -> list[str]:
        """How the table there is defined otherwise than the applier makes it: statements that mend it, or behind `--`
        what no statement mends without its rows. Raises TargetError.
        """

    def scan(self, engine: Engine, model: TableModel, columns: Sequence[Column]) -> Iterator[list[PlainRow]]:
        """All rows, some at a time. Raises TargetError."""

    def make_stage(self, target: Target, model: TableModel, columns: Sequence[Column]) -> TableModel:
        """An empty one; the model to load it by. Raises TargetError."""

    def staged(self, target: Target, columns: Sequence[Column]) -> Iterable[tuple[PlainRow, Cells]]:
        """Raises TargetError."""

    def all_rows(
        self, target: Target, model: TableModel, columns: Sequence[Column]
    ) -> Iterable[tuple[PlainRow, Cells]]:
        """Raises TargetError."""

    def of_keys(
        self,
        target: Target,
        model: TableModel,
        columns: Sequence[Column],
        key: Sequence[int],
        keys: Sequence[PlainRow],
    ) -> Iterable[tuple[PlainRow, Cells]]:
        """Rows that have one of these keys in the columns of these numbers. Raises TargetError."""


def celled(rows: Iterable[PlainRow]) -> Iterator[tuple[PlainRow, Cells]]:
    """Where equal values are the same to the target, too."""
    return ((row, tuple(map(repr, row))) for row in rows)


def staged_model(model: TableModel, database: str, name: str) -> TableModel:
    """To load a stage by."""
    return replace(model, database=database, name=name, foreign_keys=())
