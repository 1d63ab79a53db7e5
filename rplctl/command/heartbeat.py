"""`heartbeat`: write the time into a row at the source, as pt-heartbeat does, or report the lag of a channel.

    update    write the row. It is replicated like any other row, so its age in the target is the channel's lag.
    check     report the age of such a row, which rplctl or pt-heartbeat has written. Without a row, ask the source for
              its clock and the end of its log. This needs only privileges to read.

Invariant: times are those of the source's clock in UTC. The difference of the clocks is measured, subtracted and shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rplctl import mysql_errors as er
from rplctl.command.channel.context import ask_source, one_engine, open_repositories
from rplctl.command.channel.true_lag import heartbeats
from rplctl.command.process.thread_report import clock
from rplctl.command.show_status import status_and_threads
from rplctl.config import Config
from rplctl.errors import SourceError, UsageError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.sql_text import Sql, backticked, joined, text_literal, written

if TYPE_CHECKING:
    from rplctl.source.survey import Ask

_COLUMNS = written(
    "ts varchar(26) NOT NULL, server_id int unsigned NOT NULL PRIMARY KEY, file varchar(255) DEFAULT NULL, "
    "position bigint unsigned DEFAULT NULL, relay_master_log_file varchar(255) DEFAULT NULL, "
    "exec_master_log_pos bigint unsigned DEFAULT NULL"
)
_CHANGED = written(
    "ts=VALUES(ts), file=VALUES(file), position=VALUES(position), relay_master_log_file=VALUES(relay_master_log_file), "
    "exec_master_log_pos=VALUES(exec_master_log_pos)"
)
_NULLS = (written("NULL"), written("NULL"))
_NOT_ALLOWED = (er.DBACCESS_DENIED_ERROR, er.TABLEACCESS_DENIED_ERROR)
_CONNECTION = range(2000, 2100)  # error numbers of the client: no server answered


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatLag:
    """The lag of one channel at one moment. Times are in seconds, and positions are FILE:POS or ''."""

    Channel_Name: str
    True_Lag: float | None
    True_Lag_From: str  # heartbeat | source | ''
    Server_Id: int  # the server on which the row was written; 0 without a row
    Clock_Skew: float | None
    Clock_Skew_Error: float | None
    Source_End: str
    Applied: str
    Last_Applied_Timestamp: str


@one_engine()
def heartbeat(config: Config, name: str) -> HeartbeatLag:
    """Ask the source for its clock and the end of its log, and return the lag of the channel.

    Raises SourceError if the source does not answer or refuses, and UsageError if the source is a folder of logs.
    """
    from rplctl.source.keeps import look

    info = _info(config, name)
    try:
        with ask_source(config, info) as ask:
            kept = look(ask)
    except SourceError as error:
        raise _with_way_out(error, config, info) from None
    status, threads = status_and_threads(config, name)
    there = time.time() + kept.clock.difference
    applied = BinlogPosition(status.Relay_Master_Log_File, status.Exec_Master_Log_Pos)
    beats = heartbeats(threads.applier.status.heartbeats)
    last = threads.applier.status.last_applied_timestamp
    lag, how, server = None, "", 0
    if beats:
        server = info.master_server_id if info.master_server_id in beats else max(beats, key=beats.__getitem__)
        lag, how = there - beats[server], "heartbeat"
    elif applied.log_name and not applied.is_before(kept.end):
        lag, how = 0.0, "source"
    elif last:  # an upper limit: the source may have had no transactions since then
        lag, how = there - (threads.applier.status.last_event_timestamp or last), "source"
    return HeartbeatLag(
        Channel_Name=name,
        True_Lag=None if lag is None else round(max(0.0, lag), 3),
        True_Lag_From=how,
        Server_Id=server,
        Clock_Skew=round(kept.clock.difference, 3) + 0.0,  # no -0.0
        Clock_Skew_Error=round(kept.clock.error, 3),
        Source_End=kept.end.or_else(""),
        Applied=applied.or_else(""),
        Last_Applied_Timestamp=clock(last) if last else "",
    )


def update(config: Config, name: str, *, creates: bool, beat: Callable[[], bool]) -> None:
    """Write the heartbeat row on the channel's source until `beat` returns False. `beat` waits between two writes.

    If the source becomes unreachable after the first row, write again when it answers. `creates` creates the table.
    Raises UsageError if the source is a folder of logs, and SourceError if the source rejects the row: 1044 or 1142
    without the privileges, 1146 without the table.
    """
    info, rows_written = _info(config, name), 0

    def after() -> bool:
        nonlocal rows_written
        rows_written += 1
        return beat()

    while True:
        try:
            return _write(info, config, creates=creates, beat=after)
        except SourceError as error:
            if error.errno not in _CONNECTION or not rows_written:
                raise _with_way_out(error, config, info) from None
            if not beat():
                return


def _write(info: MasterInfo, config: Config, *, creates: bool, beat: Callable[[], bool]) -> None:
    database, table = _place(config)
    with ask_source(config, info) as ask:
        ask(written("SET SESSION autocommit=1"))
        if creates:
            ask(written("CREATE DATABASE IF NOT EXISTS {}", database))
            ask(written("CREATE TABLE IF NOT EXISTS {}.{} ({})", database, table, _COLUMNS))
        while True:
            values = joined(", ", _row(ask))
            ask(written("INSERT INTO {}.{} VALUES ({}) ON DUPLICATE KEY UPDATE {}", database, table, values, _CHANGED))
            if not beat():
                return


def _row(ask: Ask) -> Iterator[Sql]:
    """Yield the values of the heartbeat row as SQL, one for each column.

    The time is read last, after all other values, because the lag is measured from it.
    """
    end = _end(ask)
    moment, server = ask(written("SELECT DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%f'), @@GLOBAL.server_id"))[0]
    yield from (text_literal(str(moment)), written("{}", int(server)))
    yield from (text_literal(end.log_name), written("{}", end.log_pos)) if end else _NULLS
    yield from _NULLS  # These columns are for a source that is itself a replica. Readers of pt-heartbeat accept NULL.


def _end(ask: Ask) -> BinlogPosition | None:
    """Return the end of the source's log. Return None if the account may not read it."""
    from rplctl.source.survey import log_end

    try:
        return log_end(ask)
    except SourceError as error:
        if error.errno in _CONNECTION:
            raise
        return None


def _place(config: Config) -> tuple[Sql, Sql]:
    database, _, table = (config.heartbeat_table or "heartbeat.heartbeat").partition(".")
    return backticked(database), backticked(table)


def _with_way_out(error: SourceError, config: Config, info: MasterInfo) -> SourceError:
    database, table = _place(config)
    hint = f"on the source, run: GRANT CREATE, INSERT, UPDATE ON {database}.* TO '{info.user_name}'@'HOST'"
    if error.errno in (er.NO_SUCH_TABLE, er.BAD_DB_ERROR):
        hint = "to create the table, run: rplctl heartbeat --update --create-table"
    elif error.errno == er.SPECIFIC_ACCESS_DENIED_ERROR:
        privilege = f"ON *.* TO '{info.user_name}'@'HOST'"
        hint = (
            f"on a MySQL source, run: GRANT REPLICATION CLIENT {privilege}\n"
            f"On a MariaDB source, run: GRANT BINLOG MONITOR {privilege}"
        )
    elif error.errno not in _NOT_ALLOWED:
        hint = error.hint or "to check the source, run: rplctl doctor"
    return SourceError(error.message, errno=error.errno, hint=hint, transient=error.transient)


def _info(config: Config, name: str) -> MasterInfo:
    info = open_repositories(config, name).master()
    if info.master_binlog_dir:
        raise UsageError(
            f"channel '{name}' reads a folder of binary logs, which has no clock",
            hint="to see how old the rows are, run: rplctl show-status --field Last_Applied_Timestamp",
        )
    return info
