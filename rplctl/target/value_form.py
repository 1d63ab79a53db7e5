"""In which form a kind of target wants its values: chosen before decoding, so that no cell is converted twice.

Pure and imported by Spark tasks: it loads no driver. One row per kind of target; the kind travels with the split.

    sqlite      text as str, ENUM and SET as their labels; integers past 2^63-1 as text (no 64-bit unsigned there)
    mysql       text as the bytes of the column's own charset, ENUM and SET as their numbers: stored byte for byte as
                the source has them, no conversion either way. Text of another charset on the target stays str.
    postgresql  text as str, ENUM and SET as their labels; `postgresql_values` makes texts of all
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from rplctl.event.column import ColumnFormat
from rplctl.event.table_map import ColumnType
from rplctl.schema.model import CHARACTER_TYPES, Column, TableModel
from rplctl.target.base import Value
from rplctl.target.mysql.values import double_literal
from rplctl.target.postgresql.values import parameter
from rplctl.target.sqlite.values import storable

_COMPRESSED: Final = frozenset({ColumnType.VARCHAR_COMPRESSED, ColumnType.BLOB_COMPRESSED})


@dataclass(frozen=True, slots=True)
class ValueForm:
    """`format_for`: how to decode a column; `stored`: what becomes of the decoded values. `keeps_json_types`: JSON
    there has typed values (DECIMAL, DATE, BLOB) that its text does not tell; such documents want the event itself.
    `knows_defaults`: it fills in what an INSERT leaves out, generated columns too.
    `describes_itself`: its tables are their own models, and need not be exactly the source's.
    `takes_views`: large bytes may stay where they lie.
    `moves_keys`: an update may name columns of the key, and a key may be deleted and inserted in one chunk.
    `counts_rows`: it takes rows of a table without a key by their numbers, as plain values too.
    `encodes`: tasks encode many rows of such columns for the target's bulk load; `field_text` and `takes_bytes` are
    `binlog.fields.TextForm`'s.
    """

    format_for: Callable[[ColumnFormat, Column], ColumnFormat]
    stored: Callable[[list[Value]], list[Value]]
    keeps_json_types: bool = False
    knows_defaults: bool = False
    describes_itself: bool = False
    takes_views: bool = False
    moves_keys: bool = False
    counts_rows: bool = False
    encodes: Callable[[Sequence[ColumnFormat], TableModel], bool] = lambda _formats, _model: False
    field_text: Callable[[Column, Value], bytes] = lambda _column, value: str(value).encode()
    takes_bytes: bool = False


def value_form(kind: str) -> ValueForm:
    """Of a kind of target (`target.target_kind`)."""
    return _FORMS[kind]


def _own_bytes(fmt: ColumnFormat, column: Column) -> ColumnFormat:
    """ENUM and SET as numbers, text of the same charset on both sides as bytes."""
    if fmt.real_type in (ColumnType.ENUM, ColumnType.SET):
        return ColumnFormat(ColumnType.LONGLONG, unsigned=True)
    if (
        column.type not in CHARACTER_TYPES
        or fmt.sql_type in ("inet4", "inet6", "uuid")
        or fmt.charset != column.charset
    ):
        return fmt
    if fmt.real_type in _COMPRESSED or fmt.real_type != ColumnType.STRING:
        return replace(fmt, charset=None)
    return replace(fmt, type_code=ColumnType.VARCHAR, metadata=0, charset=None)  # a CHAR is not padded as BINARY is


def _loads_as_bytes(formats: Sequence[ColumnFormat], model: TableModel) -> bool:
    """LOAD DATA takes bytes as they are: text must be of the column's own charset."""
    pairs = zip(formats, model.columns, strict=False)  # the target's table may have more of them
    return all(column.type not in CHARACTER_TYPES or fmt.charset == column.charset for fmt, column in pairs)


def _mysql_text(column: Column, value: Any) -> bytes:
    match value:
        case bytes():
            return value
        case str():
            return value.encode()
        case float():
            return double_literal(value).encode("ascii")
    return b"%04d" % value if column.type == "year" else b"%d" % value  # the text '0' is the year 2000


def _postgresql_text(column: Column, value: Value) -> bytes:
    return (parameter(value, column) or "").encode()


_FORMS: Final[dict[str, ValueForm]] = {
    "sqlite": ValueForm(lambda fmt, _column: fmt, storable, takes_views=True, moves_keys=True, counts_rows=True),
    "postgresql": ValueForm(
        lambda fmt, _column: fmt,
        lambda values: values,
        takes_views=True,
        moves_keys=True,
        encodes=lambda _formats, model: not any(column.generated for column in model.columns),
        field_text=_postgresql_text,
    ),
    "mysql": ValueForm(
        _own_bytes,
        lambda values: values,
        keeps_json_types=True,
        knows_defaults=True,
        describes_itself=True,
        takes_views=True,
        encodes=_loads_as_bytes,
        field_text=_mysql_text,
        takes_bytes=True,
    ),
}
