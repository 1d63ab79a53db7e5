"""The format of the values that a kind of target accepts. The decoder uses it, so that no value is converted twice.

Each kind of target has its own format, in the module `form` of its folder. Spark tasks import `value_form` and the
`form` modules, so none of these modules may load a database driver. A task receives a range of the relay log, and the
name of the kind of target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rplctl import mysql_errors as er
from rplctl.errors import CORRECT_VALUE, OR_EXCLUDE, TargetError
from rplctl.event.column import ColumnFormat
from rplctl.schema.model import Column, TableModel
from rplctl.target.base import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueForm:
    """The properties of a kind of target that the decoder needs.

    `format_for`: returns the format in which a column is decoded. `stored`: converts the decoded values of a column.
    `keeps_json_types`: True if the kind's JSON has typed values (DECIMAL, DATE, BLOB). JSON as text would lose these
    types, so the applier then sends the source's row event to the target.
    `knows_defaults`: True if the target fills in the columns that an INSERT omits, also generated columns.
    `describes_itself`: True if the applier uses the target's own table definitions, which may differ from the source's.
    `takes_views`: True if large values may remain references to a file.
    `moves_keys`: True if an update may set columns of the key, and a chunk may delete and insert the same key.
    `counts_rows`: True if the target accepts unencoded deletes from a table without a key. Each delete has a row and
    the number of equal rows to delete.
    `encodes`: returns True if tasks encode many rows of these columns for the target's bulk load. `field_text` and
    `takes_bytes` then describe the encoding, as in `event.fields.TextForm`.
    `takes_delimited`: True if the bulk load also accepts delimited rows, for rows that cannot be length-prefixed.
    """

    format_for: Callable[[ColumnFormat, Column], ColumnFormat] = lambda fmt, _column: fmt
    stored: Callable[[list[Value]], list[Value]] = lambda values: values
    keeps_json_types: bool = False
    knows_defaults: bool = False
    describes_itself: bool = False
    takes_views: bool = False
    moves_keys: bool = False
    counts_rows: bool = False
    encodes: Callable[[Sequence[ColumnFormat], TableModel], bool] = lambda _formats, _model: False
    field_text: Callable[[Column, Value], bytes] = lambda _column, value: str(value).encode()
    takes_bytes: bool = False
    takes_delimited: bool = True


def no_text(text: str, column: str = "") -> TargetError:
    """Return the error for a text of UCS-2 that ends in half a character, which UTF-8 cannot represent."""
    where = f" for column '{column}'" if column else ""
    return TargetError(
        f"Incorrect string value: {text[:40]!r}{where}: half a surrogate pair is not valid UTF-8",
        errno=er.TRUNCATED_WRONG_VALUE_FOR_FIELD,
        hint=f"{CORRECT_VALUE}{OR_EXCLUDE}",
    )
