"""The input of a task that decodes single changes: whole events of one log file, and their context."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.event.format_description import FormatDescription
from rplctl.position import BinlogPosition
from rplctl.schema.model import TableModel


@dataclass(frozen=True, slots=True)
class Transaction:
    """The transaction of which a piece is a part. `end` is the position after the transaction.

    The docstring of `Piece` explains `shift`.
    """

    gtid: str
    end: BinlogPosition
    shift: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a log file: the bytes from `start` to `end`.

    `source` is the position in the source's log at `start`. `models` are the table models in force. `table_maps` has
    the offsets of the table maps in force at `start`. `rules` are the replication filters.

    If the piece is a part of one transaction (large, or XA), `transaction` is this transaction. Otherwise it is None,
    and the piece contains whole transactions. `is_mixed` is true if statements or savepoints may be between the rows.

    `is_relay` is true if the file is a relay log. In a relay log, the offset of an event is `shift` bytes larger than
    its position in the source's log. For a relay log, a table without a model is an error.
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
