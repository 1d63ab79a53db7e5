"""The Spark tasks for rows of a copy, and for rows events whose order counts.

Their results are encoded like those of a split. Errors are returned as values, as in split_task.py. A missing chunk
file is not an error, because the cloner removes the file when it begins the table again.
"""

from __future__ import annotations

from rplctl.applier.spark.split_task import SplitResult, encode_chunks, packed, shown_error
from rplctl.decode.copied_rows import CopyPiece, copied_chunk
from rplctl.decode.ordered_rows import OrderedPiece, ordered_chunks
from rplctl.errors import RplError
from rplctl.schema.plan import Catalog


def run_copy(piece: CopyPiece, spool_name: str) -> SplitResult:
    """Decode one piece of a copy, and return its rows. `spool_name`: the name of the file for a large result.

    If the chunk file is missing, the result has `is_unseen`.
    """
    try:
        chunk = copied_chunk(piece)
        return packed(encode_chunks([chunk]), chunk.change_count, piece.spool_folder, spool_name)
    except FileNotFoundError:
        return SplitResult(is_unseen=True)
    except RplError as error:
        return SplitResult(error=shown_error(error))


def run_ordered(piece: OrderedPiece, catalog: Catalog, spool_name: str) -> SplitResult:
    """Decode rows events that are applied one by one, and return the changes of each event.

    `spool_name`: the name of the file for a large result.
    """
    chunks = ordered_chunks(piece, catalog)
    rows = sum(chunk.change_count for chunk in chunks)
    return packed(encode_chunks(chunks), rows, piece.spool_folder, spool_name)
