"""Finds differences between a table's definitions on the source and on a target server, as ALTER TABLE statements.

Only properties that affect values and keys count: types, lengths, signedness, character sets, labels, NULL, plain
defaults, the table's character set, and keys. Additional columns and plain indexes of the target are the operator's
choice and not reported. Invariant: MySQL and MariaDB spell some columns differently (integer widths, JSON, defaults).
Such spellings are not differences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rplctl.schema.definition import table_definition
from rplctl.schema.model import INTEGER_BITS, Column, Key, TableModel
from rplctl.schema.source_catalog import quote
from rplctl.sql_text import Sql, word, written

_KEY = re.compile(r"(?:PRIMARY |UNIQUE |FULLTEXT |SPATIAL )?KEY ")


def drift_of(source: TableModel, create: str, target: TableModel) -> Iterator[Sql]:
    """Yield the statements that change the target's table to the source's definition.

    `create`: the text of SHOW CREATE TABLE on the source. Raises RplError if this text is more than a table definition,
    because parts of it become statements that an operator may execute.
    """
    elements = table_definition(create, source.name).elements
    columns = {element.column: element.text for element in elements if element.column}
    keys = [element.text for element in elements if not element.column and _KEY.match(element.text)]
    change = written("ALTER TABLE {}", quote(target.database, target.name))
    if source.charset and target.charset and source.charset != target.charset:  # first: columns may inherit it
        yield written("{} DEFAULT CHARACTER SET {}", change, word(source.charset))
    before = ""
    for column in source.columns:
        theirs = target.find(column.name)
        if column.name in columns and theirs is None:
            where = written("AFTER {}", quote(before)) if before else written("FIRST")
            yield written("{} ADD COLUMN {} {}", change, columns[column.name], where)
        elif column.name in columns and theirs is not None and not _are_alike(column, theirs):
            yield written("{} MODIFY COLUMN {}", change, columns[column.name])
        before = column.name
    there = {_key(key) for key in target.keys}
    printed = [key for key in source.keys if key.kind != "vector"]
    for key, text in zip(printed, keys, strict=False):
        if _key(key) not in there and not key.has_expression and len(printed) == len(keys):
            yield written("{} ADD {}", change, text)
    ours = {_key(key) for key in source.keys}
    for key in target.keys:
        if key.is_unique and _key(key) not in ours:
            dropped = written("PRIMARY KEY") if key.kind == "primary" else written("INDEX {}", quote(key.name))
            yield written("{} DROP {}", change, dropped)


def _are_alike(one: Column, other: Column) -> bool:
    ours, theirs = _default(one), _default(other)
    return _shape(one) == _shape(other) and (ours == theirs or "(" in f"{ours}{theirs}")


def _default(column: Column) -> str | None:
    """Return the default of a column as text to compare. Return None if the default is NULL or missing.

    The text of an expression contains a parenthesis. The caller does not compare such texts, because MySQL and MariaDB
    print expressions differently.
    """
    text = column.default
    if text is None or text.upper() == "NULL":
        return None
    if text.upper().startswith("CURRENT_TIMESTAMP"):
        return "now" + "".join(re.findall(r"[1-6]", text))
    return text[1:-1] if text[:1] == text[-1:] == "'" else text


def _shape(column: Column) -> tuple[object, ...]:
    kind = "longtext" if column.type == "json" else column.type
    has_width = kind in INTEGER_BITS or kind in ("year", "float", "double", "longtext")
    length = None if has_width else column.length or (1 if kind in ("char", "binary", "bit") else 0)
    charset = None if kind == "longtext" and column.type == "json" else column.charset
    charset = "utf8mb4" if charset is None and kind == "longtext" else charset
    return kind, length, column.scale or 0, column.unsigned, charset, column.labels, column.nullable


def _key(key: Key) -> tuple[object, ...]:
    return key.kind, tuple((part.column.casefold(), part.length) for part in key.parts)
