"""Column types with values at their edges, for products of types that a real server converts."""

from __future__ import annotations

from dataclasses import replace

from rplctl.schema.column_definition import parse_column
from rplctl.schema.context import DdlContext
from rplctl.schema.data_type import normalize
from rplctl.schema.model import BINARY_TYPES, CHARACTER_TYPES, INTEGER_BITS, Column
from rplctl.schema.token_stream import TokenStream
from rplctl.schema.value import Value
from tests.kit import ddl_pairs as pairs

NUMBERS = [*pairs.WHOLE, *pairs.BROKEN]
TEXTS = [*pairs.TEXTS, "'20240105'", "'20240105101112'", "'10:11'", "'12abc'", "'1e40'", "'.'", "'-'", "' 7 '", "'+.5'",
         "'3.'", "'-0.4'", "'9.995'", "'99999999999999999999'", "'-1'", "'127.5'", "'255'", "'2024-02-30'", "'null'",
         "'0000-00-00'", "'2024-01-02T03:04:05'", "'24-1-2'", "'-10:11:12.5'", "'838:59:59'", "'900:00:00'", "'70'",
         "'2156'", "'a,b'", "'B'", "'c'", "'3'", "'99'", "'00:00:00'", "'2024-01-02 25:00:00'"]  # fmt: skip
MOMENTS = [*pairs.WIDE_MOMENTS, "'0000-00-00 00:00:00'"]
BYTES = [*pairs.BYTES, *TEXTS]

OLD = {
    **dict.fromkeys(["TINYINT", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "INT(6) ZEROFILL"], pairs.WHOLE),
    **dict.fromkeys(["BIT(1)", "BIT(8)", "BIT(33)", "BIT(64)"], pairs.BITS),
    "YEAR": ["2024", "1901", "2155", "0", "'70'", "69"],
    **dict.fromkeys(["DECIMAL(5,0)", "DECIMAL(10,2)", "DECIMAL(38,10)", "DECIMAL(65,30)", "DECIMAL(20,4) UNSIGNED",
                     "DECIMAL(10,2) ZEROFILL", "DECIMAL(20,0) ZEROFILL"], NUMBERS),
    **dict.fromkeys(["FLOAT", "DOUBLE", "DOUBLE UNSIGNED", "FLOAT UNSIGNED"], [*pairs.FLOATS, *NUMBERS]),
    **dict.fromkeys(["DOUBLE(9,3)", "FLOAT(7,2)"], [*pairs.FLOATS, *pairs.BROKEN]),
    **dict.fromkeys(["VARCHAR(300) CHARACTER SET utf8mb4", "VARCHAR(300) CHARACTER SET latin1", "TEXT",
                     "CHAR(30) CHARACTER SET utf8mb4", "VARCHAR(30) CHARACTER SET ucs2",
                     "VARCHAR(30) CHARACTER SET gbk", "CHAR(30) CHARACTER SET cp1251",
                     "VARCHAR(30) COLLATE utf8mb4_bin"], TEXTS),
    **dict.fromkeys(["VARBINARY(30)", "BINARY(4)", "BLOB"], BYTES),
    "ENUM('a','b','c')": ["'a'", "'b'", "'c'", "''"], "ENUM('1','2','12')": ["'1'", "'12'", "2"],
    "ENUM('','x','ä')": ["''", "'x'", "'ä'"], "SET('a','b','c','d')": ["''", "'a'", "'a,b'", "'d,c'", "15"],
    "SET('1','2','12')": ["''", "'1'", "'12'", "'1,2'"], "DATE": pairs.DATES,
    **dict.fromkeys(["TIME", "TIME(3)", "TIME(6)"], pairs.TIMES),
    **dict.fromkeys(["DATETIME", "DATETIME(2)", "DATETIME(6)"], MOMENTS),
    **dict.fromkeys(["TIMESTAMP NULL", "TIMESTAMP(6) NULL"], pairs.MOMENTS), "JSON": pairs.DOCUMENTS,
}  # fmt: skip
NEW = ["TINYINT", "TINYINT UNSIGNED", "SMALLINT", "MEDIUMINT", "INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED",
       "INT(6) ZEROFILL", "BIT(1)", "BIT(8)", "BIT(33)", "BIT(64)", "YEAR", "DECIMAL(5,0)", "DECIMAL(5,2)",
       "DECIMAL(10,2)", "DECIMAL(20,4) UNSIGNED", "DECIMAL(38,10)", "DECIMAL(65,30)", "FLOAT", "DOUBLE",
       "FLOAT UNSIGNED", "DOUBLE UNSIGNED", "FLOAT(7,2)", "DOUBLE(9,3)", "DOUBLE(7,1)", "CHAR(1)", "CHAR(5)",
       "CHAR(30)", "VARCHAR(1)", "VARCHAR(5)", "VARCHAR(30)", "VARCHAR(300)", "VARCHAR(30) CHARACTER SET latin1",
       "VARCHAR(30) CHARACTER SET ascii", "VARCHAR(30) CHARACTER SET ucs2", "VARCHAR(30) CHARACTER SET gbk",
       "VARCHAR(30) CHARACTER SET cp1251", "TINYTEXT", "TEXT CHARACTER SET utf8mb3", "LONGTEXT",
       "TEXT CHARACTER SET ascii", "BINARY(1)", "BINARY(4)", "VARBINARY(3)", "VARBINARY(30)", "TINYBLOB", "BLOB",
       "ENUM('a','b','c')", "ENUM('c','b','a')", "ENUM('A','b')", "ENUM('1','2','12')", "ENUM('','x','ä')",
       "SET('a','b','c')", "SET('c','b','a')", "SET('1','2','12')", "SET('','x','ä')", "DATE", "TIME", "TIME(3)",
       "TIME(6)", "DATETIME", "DATETIME(2)", "DATETIME(6)", "TIMESTAMP NULL", "TIMESTAMP(2) NULL",
       "TIMESTAMP(6) NULL"]  # fmt: skip


def column_of(definition: str, context: DdlContext) -> Column:
    """Return the column as a table in utf8mb4 has it."""
    column = normalize(parse_column(TokenStream(definition, context), "edges", "c")[0])
    if column.type in CHARACTER_TYPES and column.charset is None:
        return replace(column, charset="utf8mb4")
    return column


def shown(column: Column, name: str) -> str:
    """Return SQL by which a server shows the column's value exactly."""
    if column.type in ("float", "double"):
        return f"{name}+0e0"
    if column.type == "bit":
        return f"{name}+0"
    if column.type in BINARY_TYPES:
        return f"HEX({name})"
    is_text = column.type in CHARACTER_TYPES or column.type == "json"
    return f"HEX(CONVERT({name} USING utf8mb4))" if is_text else f"CAST({name} AS CHAR)"


def value_of(column: Column, cell: object) -> Value:
    """Return the value of a cell that `shown` gave."""
    if cell is None:
        return None
    if column.type in INTEGER_BITS or column.type in ("bit", "year"):
        return int(str(cell))
    if column.type in ("float", "double"):
        return float(str(cell))
    if column.type in BINARY_TYPES:
        return bytes.fromhex(str(cell))
    if column.type in CHARACTER_TYPES or column.type == "json":
        return bytes.fromhex(str(cell)).decode()
    if column.type == "decimal" and column.zerofill:
        whole, point, rest = str(cell).partition(".")
        return (whole.lstrip("0") or "0") + point + rest
    return str(cell)
