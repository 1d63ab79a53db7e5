"""The Spark task for a lake: turns a piece of the relay log into files of changes, one for each table in the piece.

The rows never leave the task, which returns only the names and sizes of the files. If a task runs twice, no table
refers to the files of the other run. Errors are returned as values, as in split_task.py.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.applier.spark.lake_piece import LakeFiles, LakePiece
from rplctl.decode.changes import changes_of
from rplctl.decode.lake_rows import change_rows
from rplctl.errors import RplError
from rplctl.schema.plan import Catalog


def write_changes(task: LakePiece, catalog: Catalog) -> LakeFiles:
    piece = replace(task.piece, models=tuple(catalog.tables.values()))
    written = []
    try:
        found = changes_of(piece)
        for part in found.tables:
            if len(part.number):
                model = part.rows.model
                rows = change_rows(part, found.transactions, piece.log_name, zero_null=task.writer.zero_dates_null)
                written.append(task.writer.write(model, task.folders[model.database, model.name], rows))
    except RplError as error:
        return LakeFiles(error={name: getattr(error, name) for name in ("message", "errno", "position", "hint")})
    return LakeFiles(tuple(written))
