"""Replace MySQL's old words by those since 8.0.22: master → source, slave → replica."""

from __future__ import annotations

_WORDS = (("Master", "Source"), ("master", "source"), ("MASTER", "SOURCE"))
_REPLICA = (("Slave", "Replica"), ("slave", "replica"))
_TEXT_COLUMNS = frozenset({"Slave_IO_State", "Slave_SQL_Running_State", "Until_Condition"})


def to_source(text: str) -> str:
    for old, new in (*_WORDS, *_REPLICA):
        text = text.replace(old, new)
    return text


def to_source_text(column: str, value: object) -> object:
    """Return a text of rplctl, such as a state, in the new words. Errors, file names and host names are not
    translated.
    """
    return to_source(value) if column in _TEXT_COLUMNS and isinstance(value, str) else value
