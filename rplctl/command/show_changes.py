"""`show-changes`: list the changes of a table or a row from binary logs, without Spark (see also man rplctl-dataframe).

Invariant: only changes of committed transactions are listed, in the order of the log. Each change is decoded with the
definition that the table had at that time. Nothing is written, and no position moves.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rplctl import mysql_errors as er
from rplctl.command.channel.context import open_repositories
from rplctl.config import Config
from rplctl.data_source.json_rows import dict_rows
from rplctl.data_source.options import QueryOptions
from rplctl.data_source.walk import LogWalk
from rplctl.decode.changes import OPS, Changes, changes_of
from rplctl.errors import UsageError

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownChange:
    """One change of a row, or one DDL statement.

    `Before` and `After` map columns to values; None if the row did not exist. `Statement` is the text of a DDL
    statement with masked passwords, or ''.
    """

    Log_name: str
    Pos: int
    Row_number: int
    Time: str
    Op: str
    Gtid: str
    Before: Row | None
    After: Row | None
    Statement: str


def show_changes(  # noqa: PLR0913 - the conditions of the search
    config: Config,
    channel_name: str,
    table: str,
    key: Mapping[str, str] | None = None,
    path: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> Iterator[ShownChange]:
    """Yield the changes of a table or, with `key`, of one of its rows. `key` maps columns to values as the server
    prints them.

    `path` is a folder or an index of binary logs; None means the logs that the channel reads. `more` has further
    options of the data source. Raises UsageError if there are no logs or an option is not valid (1146: the logs do not
    mention the table). Raises SourceError if a log cannot be opened, BinlogFormatError if it is damaged, and RplError
    if the events do not match the table.
    """
    if path is None:
        repositories = open_repositories(config, channel_name)
        folder = repositories.master().master_binlog_dir
        path = Path(folder) if folder else repositories.channel.relay_log_index_path
        if path.is_file() and not path.stat().st_size or not path.exists():
            hint = "to fetch logs, run: rplctl start\nTo read other logs, add: --in FOLDER"
            raise UsageError(f"channel '{channel_name}' has no relay logs", hint=hint)
    walk = LogWalk(QueryOptions.parse({**(more or {}), "path": str(path), "table": table, "statements": "skip"}))
    pieces = walk.to()
    if not walk.versions:
        raise UsageError(
            f"the logs of {path} do not mention the table {table}",
            errno=er.NO_SUCH_TABLE,
            hint="write the name as on the source, with its letter case. To read older logs, run: "
            f"rplctl show-changes --table {shlex.quote(table)} --in FOLDER",
        )
    for piece in pieces:
        found = changes_of(piece, walk.asked)
        yield from (shown for shown in _in_order(piece.log_name, found) if _is_asked_for(shown, key or {}))


def _in_order(log_name: str, found: Changes) -> Iterator[ShownChange]:
    shown = [
        ShownChange(
            Log_name=log_name,
            Pos=row.position,
            Row_number=0,
            Time=_time(row.time),
            Op=row.kind,
            Gtid=found.transactions.gtid[row.transaction],
            Before=None,
            After=None,
            Statement=row.text,
        )
        for row in found.statements
    ]
    for part in found.tables:
        images = part.rows.images
        rows = zip(
            images.ops.tolist(),
            part.position.tolist(),
            part.number.tolist(),
            part.time.tolist(),
            part.transaction.tolist(),
            dict_rows(part.rows, images.before),
            dict_rows(part.rows, images.after),
            strict=True,
        )
        for op, position, number, time, transaction, before, after in rows:
            gtid = found.transactions.gtid[transaction]
            shown.append(
                ShownChange(
                    Log_name=log_name,
                    Pos=position,
                    Row_number=number,
                    Time=_time(time),
                    Op=OPS[op],
                    Gtid=gtid,
                    Before=_plain(before),
                    After=_plain(after),
                    Statement="",
                )
            )
    return iter(sorted(shown, key=lambda change: (change.Pos, change.Row_number)))


def _is_asked_for(change: ShownChange, key: Mapping[str, str]) -> bool:
    """True if the row before or after the change has the values in `key`. True for a statement, which may change every
    row.
    """
    rows = [row for row in (change.Before, change.After) if row is not None]
    return not rows or any(all(name in row and _text(row[name]) == text for name, text in key.items()) for row in rows)


def _text(value: Any) -> str:
    return "NULL" if value is None else str(value)


def _plain(row: Row | None) -> Row | None:
    """Return the row with bytes as hexadecimal digits, as the function HEX() of the servers prints them."""
    if row is None:
        return None
    return {name: value.hex().upper() if isinstance(value, bytes) else value for name, value in row.items()}


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
