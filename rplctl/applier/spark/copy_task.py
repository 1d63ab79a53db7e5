"""What a Spark task does for a copy: packets of a chunk file → rows to insert, encoded as those of a split.

Errors come back as values, as in split_task. A file that is not there any more is no error: the reading end has begun
the table again.
"""

from __future__ import annotations

from rplctl.applier.decode.copied_rows import CopyPiece, copied_chunk
from rplctl.applier.spark.split_task import SplitResult, encode_chunks, packed, shown_error
from rplctl.errors import RplError


def run_copy(piece: CopyPiece, spool_name: str) -> SplitResult:
    """The task. `spool_name`: of the file that a large result goes to."""
    try:
        chunk = copied_chunk(piece)
        return packed(encode_chunks([chunk]), chunk.change_count, piece.spool_folder, spool_name)
    except FileNotFoundError:
        return SplitResult(is_unseen=True)
    except RplError as error:
        return SplitResult(error=shown_error(error))
