"""The values that a Spark task gets and returns for a lake (lake_task). Loads no library of a lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rplctl.applier.decode.piece import Piece
from rplctl.schema.statement import TableName
from rplctl.target.lake import FileWriter, WrittenFile


@dataclass(frozen=True, slots=True)
class LakePiece:
    """`folders`: of the tables that may be in it."""

    piece: Piece
    folders: dict[TableName, str]
    writer: FileWriter


@dataclass(frozen=True, slots=True)
class LakeFiles:
    """`error`: the fields of an RplError, instead of files."""

    files: tuple[WrittenFile, ...] = ()
    error: dict[str, Any] | None = None

    @property
    def rows(self) -> int:
        """The row changes in all files."""
        return sum(file.rows for file in self.files)
