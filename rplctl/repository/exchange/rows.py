"""Read the rows of MySQL's slave_master_info and slave_relay_log_info from text that the client `mysql` printed.

This is necessary for servers that do not store their positions in files. The operator creates the text in this way:

    mysql -E -e 'SELECT * FROM mysql.slave_master_info; SELECT * FROM mysql.slave_relay_log_info' > FILE

The module reads the output of `-E` (or `\\G`) and `-B` (tab-separated with names) from MySQL 5.6 to 9. If a version
lacks a column, the result has the column's default. Invariant: a text is refused if it does not have exactly one row of
each table for the channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rplctl import mysql_errors as er
from rplctl.errors import UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.fields import MASTER_INFO_LINES, RELAY_LOG_INFO_LINES, Field, FieldError, OneOf

_ROW_HEAD = re.compile(r"^\*{5,} \d+\. row \*{5,}$", re.MULTILINE)
_COLUMN = re.compile(r"^ *(\w+): ?(.*)$")
_FIRST_COLUMN = "number_of_lines"


def import_rows(text: str, channel: str) -> tuple[MasterInfo, RelayLogInfo]:
    """Return MasterInfo and RelayLogInfo of `channel` from the text that the client printed.

    If a table has only one row, the row may have another channel name. Raises UsageError if a row is missing or not
    valid.
    """
    rows = list(read_rows(text))
    master = _row_of([row for row in rows if "host" in row], channel, "slave_master_info")
    relay = _row_of([row for row in rows if "relay_log_name" in row], channel, "slave_relay_log_info")
    values = [
        _values(master, MASTER_INFO_LINES, channel, er.MASTER_INFO),
        _values(relay, RELAY_LOG_INFO_LINES, channel, er.SLAVE_RLI_INIT_REPOSITORY),
    ]
    return MasterInfo(**values[0] | {"channel_name": channel}), RelayLogInfo(**values[1] | {"channel_name": channel})


def read_rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows in a text that `mysql -E` (vertical) or `mysql -B` (tab-separated) printed.

    The column names in the result are in lower case.
    """
    if _ROW_HEAD.search(text):
        for block in _ROW_HEAD.split(text)[1:]:
            found = [match for match in map(_COLUMN.match, block.splitlines()) if match]
            yield {match[1].lower(): match[2] for match in found}
        return
    names: list[str] = []
    for line in text.splitlines():
        cells = line.split("\t")
        if cells[0].lower() == _FIRST_COLUMN:
            names = [cell.lower() for cell in cells]
        elif len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def _row_of(rows: list[dict[str, str]], channel: str, table: str) -> dict[str, str]:
    named = [row for row in rows if row.get("channel_name", "").casefold() == channel.casefold()]
    found = named or rows
    if len(found) != 1:
        raise UsageError(
            f"the text has {len(found)} rows of {table}, expected one for channel '{channel}'",
            channel=channel,
            hint="to print the rows, run: "
            "mysql -E -e 'SELECT * FROM mysql.slave_master_info; SELECT * FROM mysql.slave_relay_log_info'",
        )
    return found[0]


def _values(row: dict[str, str], fields: tuple[Field, ...], channel: str, errno: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields:
        stored = row.get(field.column.lower())
        if stored is None:
            continue
        text = "" if stored == "NULL" else stored
        try:
            is_word = isinstance(field.notation, OneOf)
            values[field.name] = field.notation.from_column(text) if is_word else field.notation.from_line(text)
        except FieldError as error:
            raise UsageError(f"column {field.column}: {error}", errno=errno, channel=channel) from None
    return values
