"""The input of a task that decodes single changes: whole events of one log file, and the information that decoding them
needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.event.format_description import FormatDescription
from rplctl.position import BinlogPosition
from rplctl.schema.model import TableModel


@dataclass(frozen=True, slots=True)
class Transaction:
    """The transaction to which a piece belongs. `end`: the position after it. `shift`: see `Piece.is_relay`."""

    gtid: str
    end: BinlogPosition
    shift: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a log file, the bytes from `start` to `end`.

    `source`: the position in the source's log at `start`. `models`: the table models in force.
    `table_maps`: offsets of the table maps in force at `start`.
    `transaction`: the transaction of the whole piece, if it begins or ends outside of the piece (a part of a large
    transaction, XA). Otherwise the piece contains whole transactions.
    `is_mixed`: statements or savepoints may be between the rows.
    `is_relay`: the file is a relay log. The event at an offset is `shift` bytes before it in the source's log, and a
    table without a model is an error.
    `rules`: the replication filters.
    """

    path: str
    log_name: str
    start: int
    end: int
    description: FormatDescription
    source: BinlogPosition
    models: tuple[TableModel, ...]
    table_maps: tuple[int, ...] = ()
    transaction: Transaction | None = None
    is_mixed: bool = False
    is_relay: bool = False
    rules: ReplicationFilter = ReplicationFilter()
