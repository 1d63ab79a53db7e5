"""Choose the type that a column of a table has in Spark's DataFrame.

    TINYINT … BIGINT                 the smallest type that has all values of the column
    BIGINT UNSIGNED, BIT(64)         decimal(20,0)
    BIT                              bigint
    DECIMAL                          decimal(p,s), or string beyond 38 digits
    DATE                             date
    DATETIME                         timestamp_ntz
    TIMESTAMP                        timestamp (UTC)
    TIME                             interval day to second, because a TIME can exceed 24 hours
    CHAR … TEXT, ENUM, SET           string
    JSON, UUID, INET4, INET6         string
    BINARY … BLOB, GEOMETRY, VECTOR  binary

Invariant: the type can have every value of the column, except invalid dates (decode/arrow.py).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import types as sql

from rplctl.schema.model import BINARY_TYPES, GEOMETRY_TYPES, INTEGER_BITS, Column

_LARGEST_DECIMAL: Final = 38
_UNSIGNED_64: Final = sql.DecimalType(20, 0)
_WHOLE: Final = {8: sql.ByteType(), 16: sql.ShortType(), 32: sql.IntegerType(), 64: sql.LongType()}
_PLAIN: Final[dict[str, sql.DataType]] = {
    "float": sql.FloatType(),
    "double": sql.DoubleType(),
    "year": sql.ShortType(),
    "date": sql.DateType(),
    "datetime": sql.TimestampNTZType(),
    "timestamp": sql.TimestampType(),
    "time": sql.DayTimeIntervalType(),
}
_BYTES: Final = BINARY_TYPES | GEOMETRY_TYPES | {"vector"}


def spark_type(column: Column) -> sql.DataType:
    """Return the type that the DataFrame has for the column."""
    if column.is_unsigned_64:
        return _UNSIGNED_64
    if column.type in INTEGER_BITS:
        bits = INTEGER_BITS[column.type] + column.unsigned
        return _WHOLE[next(size for size in _WHOLE if bits <= size)]
    if column.type == "bit":
        return sql.LongType()
    if column.type == "decimal":
        precision = column.length or 10
        return sql.DecimalType(precision, column.scale or 0) if precision <= _LARGEST_DECIMAL else sql.StringType()
    if column.type in _BYTES:
        return sql.BinaryType()
    return _PLAIN.get(column.type, sql.StringType())
