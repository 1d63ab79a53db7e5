"""Make the model of a table from its table map alone, for a table whose CREATE TABLE is unknown.

Invariant: nothing is guessed. MySQL always logs signedness and character sets, but names only with
binlog_row_metadata=FULL. MariaDB logs signedness and character sets only with binlog_row_metadata=MINIMAL or FULL.
Columns without names are called @1, @2, …, as in the dump tools of both vendors.
"""

from __future__ import annotations

from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.event.column import column_formats, fraction_digits
from rplctl.event.table_map import ColumnType as Wire, TableMap
from rplctl.schema.model import Column, TableModel

_TYPES: Final[dict[int, str]] = {
    Wire.TINY: "tinyint",
    Wire.SHORT: "smallint",
    Wire.INT24: "mediumint",
    Wire.LONG: "int",
    Wire.LONGLONG: "bigint",
    Wire.FLOAT: "float",
    Wire.DOUBLE: "double",
    Wire.NEWDECIMAL: "decimal",
    Wire.BIT: "bit",
    Wire.YEAR: "year",
    Wire.DATE: "date",
    Wire.NEWDATE: "date",
    Wire.TIME: "time",
    Wire.TIME2: "time",
    Wire.DATETIME: "datetime",
    Wire.DATETIME2: "datetime",
    Wire.TIMESTAMP: "timestamp",
    Wire.TIMESTAMP2: "timestamp",
    Wire.ENUM: "enum",
    Wire.SET: "set",
    Wire.JSON: "json",
    Wire.GEOMETRY: "geometry",
    Wire.VECTOR: "vector",
}
_TEXT: Final[dict[int, tuple[str, str]]] = {  # (type with bytes, type with characters)
    Wire.STRING: ("binary", "char"),
    Wire.VARCHAR: ("varbinary", "varchar"),
    Wire.VAR_STRING: ("varbinary", "varchar"),
    Wire.VARCHAR_COMPRESSED: ("varbinary", "varchar"),
}
_LARGE: Final = ("longblob", "longtext")


def logged_model(table_map: TableMap) -> TableModel:
    """Return the model of a table from its table map. Raises RplError 1146 if the source logged too little."""
    name = f"{table_map.database}.{table_map.table}"
    if table_map.unsigned is None:
        raise RplError(
            f"Table '{name}': neither its row events nor the logs that are read contain its definition",
            errno=er.NO_SUCH_TABLE,
            hint="set the option schema_file of the query to the output of `mysqldump --no-data` from the time when "
            "the logs begin\n"
            "For later logs, run on the source: SET GLOBAL binlog_row_metadata=FULL",
        )
    names = table_map.column_names or [f"@{number}" for number in range(1, table_map.column_count + 1)]
    columns = []
    for column_name, fmt in zip(names, column_formats(table_map), strict=True):
        kind, length, scale = fmt.real_type, None, None
        is_text = fmt.charset is not None and fmt.charset != "binary"
        word = _TYPES.get(kind) or _TEXT.get(kind, _LARGE)[is_text]
        if kind == Wire.NEWDECIMAL:
            length, scale = fmt.metadata >> 8, fmt.metadata & 0xFF
        elif kind == Wire.BIT:
            length = (fmt.metadata >> 8) * 8 + (fmt.metadata & 0xFF)
        elif word in ("time", "datetime", "timestamp"):
            length = fraction_digits(fmt)
        charset = fmt.charset if is_text else None
        columns.append(
            Column(
                name=column_name,
                type=word,
                length=length,
                scale=scale,
                unsigned=fmt.unsigned,
                charset=charset,
                labels=fmt.labels or (),
            )
        )
    return TableModel(database=table_map.database, name=table_map.table, columns=tuple(columns))
