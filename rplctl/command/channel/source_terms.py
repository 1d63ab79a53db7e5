"""Replace MySQL's old words by the ones that it has used since 8.0.22: master → source, slave → replica."""

from __future__ import annotations

_WORDS = (("Master", "Source"), ("master", "source"), ("MASTER", "SOURCE"))
_REPLICA = (("Slave", "Replica"), ("slave", "replica"))
_TEXT_COLUMNS = frozenset({"Slave_IO_State", "Slave_SQL_Running_State", "Until_Condition"})


def to_source(text: str) -> str:
    for old, new in (*_WORDS, *_REPLICA):
        text = text.replace(old, new)
    return text


def to_source_text(column: str, value: object) -> object:
    """Return the value of a status column with MySQL's new words, if rplctl itself composes the text in this column.

    Errors, file names and host names are returned unchanged.
    """
    return to_source(value) if column in _TEXT_COLUMNS and isinstance(value, str) else value
