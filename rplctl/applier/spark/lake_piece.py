"""The input and the result of a Spark task for a lake (lake_task.py). This module loads no library of a lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rplctl.decode.piece import Piece
from rplctl.schema.statement import TableName
from rplctl.target.lake import FileWriter, WrittenFile


@dataclass(frozen=True, slots=True)
class LakePiece:
    """The input of a task for a lake.

    `folders`: for each table that the piece may change, the folder of its files.
    """

    piece: Piece
    folders: dict[TableName, str]
    writer: FileWriter


@dataclass(frozen=True, slots=True)
class LakeFiles:
    """The result of a task for a lake: the files that the task has written.

    `error`: the fields of an RplError if the task failed. There are no files then.
    """

    files: tuple[WrittenFile, ...] = ()
    error: dict[str, Any] | None = None

    @property
    def rows(self) -> int:
        """The number of row changes in all files."""
        return sum(file.rows for file in self.files)
