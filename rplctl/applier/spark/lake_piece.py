"""The input and the result of a Spark task for a lake (lake_task). Loads no lake library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rplctl.decode.piece import Piece
from rplctl.schema.statement import TableName
from rplctl.target.lake import FileWriter, WrittenFile


@dataclass(frozen=True, slots=True)
class LakePiece:
    """The input of a task for a lake. `folders`: table → folder of its files, for all tables that the piece
    may change.
    """

    piece: Piece
    folders: dict[TableName, str]
    writer: FileWriter


@dataclass(frozen=True, slots=True)
class LakeFiles:
    """The result of a task for a lake. `error`: the fields of an RplError if the task failed; there are no
    files then.
    """

    files: tuple[WrittenFile, ...] = ()
    error: dict[str, Any] | None = None

    @property
    def rows(self) -> int:
        """The number of row changes in all files."""
        return sum(file.rows for file in self.files)
