"""A recorded source for `rplctl demo`: the binary logs of a small shop, and the final contents of its tables.

tests/tools/record_demo.py recorded the logs and the contents from a real MariaDB server. The recording is package data,
so the demo needs no server. Invariant: `source_state()` describes only the end of the last recorded binary log.

crash_log  a second recording, whose states `crash-test` compares with the target
checksum   a checksum of a table that is equal in every database
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

BINLOG_FOLDER = Path(__file__).parent / "data"
STATE_FILE = BINLOG_FOLDER / "source_state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """One table of the source at the end of the recording. `sha256` is the checksum of its rows (`rows_checksum`)."""

    database: str
    name: str
    columns: tuple[str, ...]
    primary_key: tuple[str, ...]
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    server: str  # the version in the server's own format
    transactions: int
    first_log: str
    end_log: str
    end_position: int
    tables: tuple[TableState, ...]


def source_state() -> SourceState:
    """Return the state of the source at the end of the recording."""
    stored = json.loads(STATE_FILE.read_text())
    tables = tuple(
        TableState(**{**table, "columns": tuple(table["columns"]), "primary_key": tuple(table["primary_key"])})
        for table in stored.pop("tables")
    )
    return SourceState(**stored, tables=tables)
