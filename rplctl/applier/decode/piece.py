"""The input of one task: whole events of one log file, and all that it must know about them."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.applier.decode.filter_rules import ReplicationFilter
from rplctl.event.format_description import FormatDescription
from rplctl.position import BinlogPosition
from rplctl.schema.model import TableModel


@dataclass(frozen=True, slots=True)
class Transaction:
    """`end`: the place behind it, where a replica that has it stands. `shift`: as Piece.is_relay."""

    gtid: str
    end: BinlogPosition
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """The bytes start to end of the file; `source`: where the source stood before them. `models`: of its tables as they
    are there. `table_maps`: offsets of those in force at `start`. `transaction`: the one that all of it belongs to,
    where that begins or ends elsewhere (a part of a large one, XA); else the piece holds whole ones. `is_mixed`:
    statements or savepoints may stand between the rows. `is_relay`: of a relay log: what lies at an offset stood
    `shift` bytes further back in the source's log, and a table that has no model is an error. `rules`: what counts.
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
