"""Check that a table map matches its table's model, and find the format in which the cells are read (design D18).

Invariant: no row is decoded with a model that does not match. The number and the names of the columns must be the same,
and the wire type of a column must belong to its type. Otherwise, the channel stops with an error that shows both
definitions.

If the model was read from a MySQL or MariaDB target, the rules are those of such a server as a replica. Columns are
matched by position. The table of the source or of the target may have more columns at its end, and column names may
differ (manual: "Replication with More Columns on Source or Replica"). rplctl is stricter in one case: if the source
logs column names, a column at another position on the target is an error. And in another case rplctl permits more: a
server refuses each column with another definition, but rplctl only one in which the server would change values without
an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.event.column import ColumnFormat, column_formats
from rplctl.event.table_map import ColumnType as Wire, TableMap, real_type
from rplctl.schema.cell_format import known_formats
from rplctl.schema.model import GEOMETRY_TYPES, Column, TableModel

_BLOBS: Final = frozenset({Wire.BLOB, Wire.TINY_BLOB, Wire.MEDIUM_BLOB, Wire.LONG_BLOB, Wire.BLOB_COMPRESSED})
_VARIABLE: Final = frozenset({Wire.VARCHAR, Wire.VAR_STRING, Wire.VARCHAR_COMPRESSED})
_WITH_FRACTION: Final = frozenset({Wire.TIME2, Wire.DATETIME2, Wire.TIMESTAMP2})
_STRINGS: Final = frozenset({Wire.VARCHAR, Wire.VAR_STRING, Wire.VARCHAR_COMPRESSED, Wire.STRING})
_WIRE_TYPES: Final[dict[str, frozenset[Wire]]] = {
    "tinyint": frozenset({Wire.TINY}),
    "smallint": frozenset({Wire.SHORT}),
    "mediumint": frozenset({Wire.INT24}),
    "int": frozenset({Wire.LONG}),
    "bigint": frozenset({Wire.LONGLONG}),
    "float": frozenset({Wire.FLOAT}),
    "double": frozenset({Wire.DOUBLE}),
    "decimal": frozenset({Wire.NEWDECIMAL, Wire.DECIMAL}),
    "bit": frozenset({Wire.BIT}),
    "year": frozenset({Wire.YEAR}),
    "date": frozenset({Wire.DATE, Wire.NEWDATE}),
    "time": frozenset({Wire.TIME, Wire.TIME2}),
    "datetime": frozenset({Wire.DATETIME, Wire.DATETIME2}),
    "timestamp": frozenset({Wire.TIMESTAMP, Wire.TIMESTAMP2}),
    "enum": frozenset({Wire.ENUM}),
    "set": frozenset({Wire.SET}),
    **dict.fromkeys(("char", "varchar", "binary", "varbinary", "inet4", "inet6", "uuid"), _STRINGS),
    "json": frozenset({Wire.JSON, *_BLOBS}),
    "vector": frozenset({Wire.VECTOR, *_STRINGS}),
}


def fitted(table_map: TableMap, model: TableModel, *, is_targets: bool, is_mariadb: bool = False) -> TableModel:
    """Return `model` for rows that have the columns of this table map.

    `is_targets` is true if the model was read from the target, and not made from the source's DDL. `is_mariadb` is true
    if the source may log hidden columns. Raises RplError 1677 if the table map does not match the model.
    """
    names = table_map.column_names
    own = [column.name for column in model.columns]
    if is_targets:
        fits = not names or not _moved(names, own)
    else:
        hidden = _hidden_hashes(table_map, model) if is_mariadb else 0
        fits = len(own) == table_map.column_count - hidden and (not names or list(names[: len(own)]) == own)
    if not fits:
        shown = ", ".join(names) if names else f"{table_map.column_count} columns without names"
        raise _mismatch(
            model, f"its row events have ({shown}), its model has ({', '.join(c.name for c in model.columns)})"
        )
    for number, column in enumerate(model.columns[: table_map.column_count]):
        wire = real_type(table_map.type_codes[number], table_map.metadata[number])
        if wire not in _wire_types(column) and not (is_targets and wire == Wire.JSON and _holds_json_text(column)):
            found = Wire(wire).name if wire in Wire._value2member_map_ else str(wire)
            raise _mismatch(
                model, f"column {number} `{column.name}` is {column.type} in the model, {found} in its row events"
            )
        if is_targets and (lost := _lost(wire, table_map.metadata[number], column)):
            raise _mismatch(
                model,
                f"the target's column `{column.name}` cannot store {lost} of its row events",
                "to continue after you have given the column the source's definition (ALTER TABLE), run: rplctl start",
            )
    return model.as_known_by(table_map.column_count)


def formats_of(table_map: TableMap, model: TableModel) -> tuple[ColumnFormat, ...]:
    """Return the format in which the cells of each column are read.

    The wire type is that of the table map. The model adds the properties that the map lacks.
    """
    known = known_formats(model.columns)[: table_map.column_count]
    more = (ColumnFormat(type_code=code) for code in table_map.type_codes[len(known) :])
    return tuple(column_formats(table_map, (*known, *more)))


def _hidden_hashes(table_map: TableMap, model: TableModel) -> int:
    """Return the number of columns at the end of the table map that may be hidden columns of a MariaDB source.

    MariaDB stores a hash for a UNIQUE key of TEXT, of BLOB, of a long VARCHAR or with USING HASH. The hash is the last
    column of the row events, a BIGINT named DB_ROW_HASH_1. More such keys add more columns (seen in MariaDB 10.11). The
    target does not have these columns.
    """
    more = table_map.type_codes[len(model.columns) :]
    names = (table_map.column_names or ())[len(model.columns) :]
    are_hashes = {*more} <= {Wire.LONGLONG} and all(name.startswith("DB_ROW_HASH_") for name in names)
    return len(more) if are_hashes and len(more) <= sum(key.kind == "unique" for key in model.keys) else 0


def _moved(names: Sequence[str], own: Sequence[str]) -> bool:
    """True if one of the source's columns is at another position on the target."""
    theirs, ours = ([name.casefold() for name in side] for side in (names, own))
    differing = [(a, b) for a, b in zip(theirs, ours, strict=False) if a != b]
    return any(a in ours or b in theirs for a, b in differing)


def _wire_types(column: Column) -> frozenset[int]:
    if column.type in GEOMETRY_TYPES:
        return frozenset({Wire.GEOMETRY})
    return _WIRE_TYPES.get(column.type, _BLOBS)


def _lost(wire: int, metadata: int, column: Column) -> str:
    """Return what a MySQL or MariaDB server loses of the values without an error, also in strict mode, or ''."""
    if wire == Wire.NEWDECIMAL and metadata & 0xFF > (column.scale or 0):
        return f"all {metadata & 0xFF} digits after the decimal point"
    if wire in _WITH_FRACTION and metadata > column.fraction_digits:
        return f"all {metadata} digits of the fractions of a second"
    if wire in _VARIABLE and column.type in ("char", "binary"):
        return "the lengths of the values"
    return ""


def _holds_json_text(column: Column) -> bool:
    """True if the column has the type that MariaDB uses for a column declared as JSON."""
    return column.type == "longtext" and column.charset == "utf8mb4"


def _mismatch(model: TableModel, what: str, hint: str = "") -> RplError:
    return RplError(
        f"Table definition on source and replica does not match: table '{model.qualified_name}': {what}",
        errno=er.SLAVE_CONVERSION_FAILED,
        hint=hint
        or "to load the source's definitions and to keep the rows, if nobody has changed a table on the source since "
        "this position, run: rplctl load-schema --from-source; rplctl start",
    )
