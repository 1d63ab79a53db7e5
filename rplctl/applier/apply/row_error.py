"""Provides MySQL's error text for a rows event that cannot be executed."""

from __future__ import annotations

from rplctl import mysql_errors as er
from rplctl.decode.row_stream import EventRun
from rplctl.errors import TargetError
from rplctl.event.types import EventType
from rplctl.schema.model import TableModel
from rplctl.target.base import ChangeKind, RowChange

_HANDLER_ERRORS = {
    er.KEY_NOT_FOUND: "HA_ERR_KEY_NOT_FOUND",
    er.DUP_ENTRY: "HA_ERR_FOUND_DUPP_KEY",
    er.NO_REFERENCED_ROW_2: "HA_ERR_NO_REFERENCED_ROW",
}
_EVENT_NAMES = {ChangeKind.INSERT: "Write_rows", ChangeKind.UPDATE: "Update_rows", ChangeKind.DELETE: "Delete_rows"}


def row_error(error: TargetError, change: RowChange, model: TableModel, run: EventRun, number: int) -> TargetError:
    """Return the error for a rows event that could not be executed, with the text that MySQL uses for it.

    `error`: the target's error for the row `change`. `number`: the number of the event in the run.
    """
    at = run.end_position(number)
    version = "_v1" if run.types[number] < EventType.WRITE_ROWS else ""
    key = f" ({error.position})" if error.position else ""
    handler = f" handler error {_HANDLER_ERRORS[error.errno]};" if error.errno in _HANDLER_ERRORS else ""
    end = f" the event's end_log_pos {at}" if at else " the event has no end_log_pos of its own"
    text = (
        f"Could not execute {_EVENT_NAMES[change.kind]}{version} event on table {model.qualified_name}; "
        f"{error.message}{key}, Error_code: {error.errno};{handler}{end}"
    )
    return TargetError(text, errno=error.errno, position=at, hint=error.hint, transient=error.transient)
