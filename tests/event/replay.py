"""Replays the row events of a recorded binary log in plain Python: the other half of `test_replay`.

Slow and simple on purpose: rows are dictionaries, an update looks for a row that equals its before image. DDL is
followed only as far as it removes rows; tables that an ALTER rewrites are named by the test and left out.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rplctl.event.cells import cells_of, raw_cells
from rplctl.event.column import ColumnFormat, column_formats
from rplctl.event.format_description import FormatDescription, parse_format_description
from rplctl.event.images import Images, walk_images
from rplctl.event.json import apply_diffs, parse_text, print_json
from rplctl.event.payload import decompress_payload
from rplctl.event.rows import parse_rows_events
from rplctl.event.table_map import TableMap, parse_table_map
from rplctl.event.types import PLAIN_ROWS, EventType
from rplctl.event.values import decode_column

DATA = Path(__file__).parents[1] / "data"
Row = dict[int, Any]
Models = dict[str, list[tuple[str, str, str | None]]]


@dataclass(slots=True)
class Table:
    names: list[str]
    formats: list[ColumnFormat]
    rows: list[Row] = field(default_factory=list)


def recorded(name: str) -> bytes:
    return lzma.decompress((DATA / name).read_bytes())


def events_of(log: bytes) -> Iterator[tuple[bytes, FormatDescription]]:
    """Every event, those inside of compressed transactions too."""
    description: FormatDescription | None = None
    offset = 4
    while offset < len(log):
        event = log[offset : offset + int.from_bytes(log[offset + 9 : offset + 13], "little")]
        offset += len(event)
        if event[4] == EventType.FORMAT_DESCRIPTION:
            description = parse_format_description(event)
        assert description is not None
        if event[4] == EventType.TRANSACTION_PAYLOAD:
            inner = decompress_payload(event, description, 1 << 30)
            plain = replace(description, checksum_algorithm=0)
            at = 0
            while at < len(inner):
                length = int.from_bytes(inner[at + 9 : at + 13], "little")
                yield inner[at : at + length], plain
                at += length
        else:
            yield event, description


def replay(log: bytes, models: Models | None = None, skip: frozenset[str] = frozenset()) -> dict[str, Table]:
    """Every table by `database.table` after all row events, but those of `skip`.

    `models`: (name, type, charset) of the columns of tables whose source logged no metadata.
    """
    tables: dict[str, Table] = {}
    maps: dict[int, TableMap] = {}
    for event, description in events_of(log):
        if event[4] == EventType.TABLE_MAP:
            table_map = parse_table_map(event, description)
            maps[table_map.table_id] = table_map
        elif event[4] in PLAIN_ROWS:
            data = np.frombuffer(event, np.uint8)
            code = np.array([event[4]], np.uint8)
            events = parse_rows_events(data, np.array([0]), np.array([len(event)]), code, description.checksum_length)
            table_map = maps[int(events.table_id[0])]
            if f"{table_map.database}.{table_map.table}" not in skip:
                table = _table(tables, table_map, models)
                _apply(table, walk_images(events, table.formats))
        elif event[4] == EventType.QUERY:
            _follow_ddl(tables, event, description)
    return tables


def _table(tables: dict[str, Table], table_map: TableMap, models: Models | None) -> Table:
    name = f"{table_map.database}.{table_map.table}"
    known = None
    names = list(table_map.column_names or [])
    if models is not None and len(models.get(name, [])) == table_map.column_count:
        names = [column[0] for column in models[name]]
        known = [_known(column[1], column[2]) for column in models[name]]
    table = tables.setdefault(name, Table(names, []))
    table.names, table.formats = names, column_formats(table_map, known)
    return table


def _known(column_type: str, charset: str | None) -> ColumnFormat:
    word = column_type.split("(")[0].split()[0]
    labels = None
    if word in ("enum", "set"):
        members = re.findall(r"'((?:[^']|'')*)'", column_type)
        labels = tuple(member.replace("''", "'") for member in members)
    return ColumnFormat(
        type_code=0,
        metadata=0,
        unsigned="unsigned" in column_type,
        charset=charset,
        labels=labels,
        sql_type=column_type if word in _TEMPORAL else word,
    )


def _apply(table: Table, images: Images) -> None:
    rows = np.arange(len(images.cell_start))
    present = images.cell_start != -2
    no_diff = [np.where(images.is_diff[:, c], -1, rows) if images.is_diff.size else rows for c in range(len(present.T))]
    columns = [decode_column(images, no_diff[c], c, fmt) for c, fmt in enumerate(table.formats)]
    decoded = [{c: columns[c][r] for c in np.flatnonzero(present[r]).tolist()} for r in rows.tolist()]
    for before, after in zip(images.before.tolist(), images.after.tolist(), strict=True):
        if before < 0:
            table.rows.append(decoded[after])
            continue
        at = next(i for i, row in enumerate(table.rows) if decoded[before].items() <= row.items())
        if after < 0:
            del table.rows[at]
            continue
        new = table.rows[at] | decoded[after]
        if images.is_diff.size:
            for c in np.flatnonzero(images.is_diff[after]).tolist():
                diff = raw_cells(cells_of(images, np.array([after]), c))[0]
                if images.cell_start[before, c] >= 0:
                    new[c] = decode_column(images, np.array([after]), c, table.formats[c])[0]
                else:
                    new[c] = print_json(apply_diffs(parse_text(table.rows[at][c]), diff))
        table.rows[at] = new


_TEMPORAL = ("time", "datetime", "timestamp")
_NAME = r"(?:`((?:[^`]|``)+)`|(\w+))"


def _follow_ddl(tables: dict[str, Table], event: bytes, description: FormatDescription) -> None:
    end = len(event) - description.checksum_length
    database_length = event[27]
    status_length = int.from_bytes(event[30:32], "little")
    database = event[32 + status_length : 32 + status_length + database_length].decode()
    sql = event[32 + status_length + database_length + 1 : end].decode("utf-8", "replace")
    verb = re.match(
        rf"(?:TRUNCATE(?: TABLE)?|DROP TABLE(?: IF EXISTS)?|CREATE OR REPLACE TABLE) {_NAME}", sql, re.IGNORECASE
    )
    if verb:
        tables.pop(f"{database}.{verb[1] or verb[2]}", None)
