"""Maps column types of the source to Arrow types of a lake. They are the types of the DataFrame format `binlog` (man
rplctl-dataframe), except that TIME is text.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from rplctl.schema.model import BINARY_TYPES, GEOMETRY_TYPES, INTEGER_BITS, Column, TableModel

_LARGEST_DECIMAL: Final = 38
_WHOLE: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_PLAIN: Final[dict[str, pa.DataType]] = {
    "bit": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "year": pa.int16(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    **dict.fromkeys(BINARY_TYPES | GEOMETRY_TYPES | {"vector"}, pa.binary()),
}


def arrow_type(column: Column) -> pa.DataType:
    if column.is_unsigned_64:
        return pa.decimal128(20, 0)
    if column.type in INTEGER_BITS:
        bits = INTEGER_BITS[column.type] + column.unsigned
        return _WHOLE[next(size for size in _WHOLE if bits <= size)]
    if column.type == "decimal" and (precision := column.length or 10) <= _LARGEST_DECIMAL:
        return pa.decimal128(precision, column.scale or 0)
    return _PLAIN.get(column.type, pa.string())


def row_schema(model: TableModel) -> pa.Schema:
    return pa.schema([pa.field(column.name, arrow_type(column)) for column in model.columns])
