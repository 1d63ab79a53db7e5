"""Answers SHOW REPLICA STATUS with the columns, the order and the types of MySQL 8 or MariaDB.

These are the numbers of columns:

    SHOW SLAVE STATUS of MySQL          57 columns
    SHOW REPLICA STATUS of MySQL        60 columns
    SHOW SLAVE STATUS of MariaDB        54 columns
    SHOW ALL SLAVES STATUS of MariaDB   62 columns
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from rplctl.command.channel.source_terms import to_source, to_source_text
from rplctl.command.show_status import WORKLOG_COLUMNS
from rplctl.front.looks import Look
from rplctl.front.result import Column, Rows
from rplctl.front.wire import DOUBLE, LONG, LONGLONG, VAR_STRING

_LONG: Final = frozenset(
    "Master_Port Connect_Retry Last_Errno Skip_Counter Last_IO_Errno Last_SQL_Errno Master_Server_Id SQL_Delay "
    "SQL_Remaining_Delay Auto_Position Get_Master_public_key Retried_transactions Executed_log_entries "
    "Slave_received_heartbeats".split()
)
_LONGLONG: Final = frozenset(
    "Read_Master_Log_Pos Relay_Log_Pos Exec_Master_Log_Pos Relay_Log_Space Until_Log_Pos Seconds_Behind_Master "
    "Master_Retry_Count Slave_DDL_Groups Slave_Non_Transactional_Groups Slave_Transactional_Groups "
    "Max_relay_log_size".split()
)
_IN_BOTH = WORKLOG_COLUMNS[: WORKLOG_COLUMNS.index("Master_UUID")]
MARIADB_COLUMNS: Final = (
    *_IN_BOTH,
    *("Master_SSL_Crl", "Master_SSL_Crlpath", "Using_Gtid", "Gtid_IO_Pos", "Replicate_Do_Domain_Ids"),
    *("Replicate_Ignore_Domain_Ids", "Parallel_Mode", "SQL_Delay", "SQL_Remaining_Delay", "Slave_SQL_Running_State"),
    *("Slave_DDL_Groups", "Slave_Non_Transactional_Groups", "Slave_Transactional_Groups", "Replicate_Rewrite_DB"),
)
ALL_COLUMNS: Final = (
    *("Connection_name", "Slave_SQL_State", *MARIADB_COLUMNS),
    *("Retried_transactions", "Max_relay_log_size", "Executed_log_entries", "Slave_received_heartbeats"),
    *("Slave_heartbeat_period", "Gtid_Slave_Pos"),
)
_LARGEST_RELAY_LOG = 1 << 30


def shown(looks: list[Look], columns: tuple[str, ...], *, as_source: bool = False) -> Rows:
    """Return an answer with one row for each channel in `looks`.

    `as_source`: use the new names and texts of MySQL since 8.0.22, with SOURCE and REPLICA.
    """
    rows = [tuple(_values(look, columns, as_source=as_source)) for look in looks]
    return Rows(_described(columns, as_source=as_source), tuple(rows))


@cache
def _described(columns: tuple[str, ...], *, as_source: bool) -> tuple[Column, ...]:
    return tuple((to_source(name) if as_source else name, kind_of(name)[1]) for name in columns)


def kind_of(name: str) -> Column:
    """Return a column of SHOW REPLICA STATUS with its type, which is the same in MySQL and MariaDB."""
    if name == "Slave_heartbeat_period":
        return name, DOUBLE
    return name, LONG if name in _LONG else LONGLONG if name in _LONGLONG else VAR_STRING


def _values(look: Look, columns: tuple[str, ...], *, as_source: bool) -> Iterator[object]:
    status = look.status
    made: dict[str, Callable[[], object]] = {
        "Last_Error": lambda: _with_hint(status.Last_Error, status.Last_SQL_Hint),
        "Last_IO_Error": lambda: _with_hint(status.Last_IO_Error, status.Last_IO_Hint),
        "Last_SQL_Error": lambda: _with_hint(status.Last_SQL_Error, status.Last_SQL_Hint),
        "Gtid_IO_Pos": lambda: status.Retrieved_Gtid_Set if status.Using_Gtid != "No" else "",
        "Parallel_Mode": lambda: "conservative",
        "Slave_DDL_Groups": lambda: 0,
        "Slave_Non_Transactional_Groups": lambda: 0,
        "Slave_Transactional_Groups": lambda: status.Transactions_Applied,
        "Connection_name": lambda: status.Channel_Name,
        "Slave_SQL_State": lambda: status.Slave_SQL_Running_State,
        "Max_relay_log_size": lambda: _LARGEST_RELAY_LOG,
        "Executed_log_entries": lambda: status.Transactions_Applied,
        "Slave_received_heartbeats": lambda: look.threads.receiver.status.received_heartbeats,
        "Slave_heartbeat_period": lambda: look.master.heartbeat,
        "Replicate_Rewrite_DB": lambda: _rewrites(status.Replicate_Rewrite_DB, is_mariadb="Using_Gtid" in columns),
        "Gtid_Slave_Pos": lambda: status.Executed_Gtid_Set,
    }
    for name in columns:
        value = made[name]() if name in made else getattr(status, name)
        yield to_source_text(name, value) if as_source else value


def _rewrites(rules: str, *, is_mariadb: bool) -> str:
    """Return the rules as the vendor shows them: MySQL (old,new),(old,new), and MariaDB old->new,old->new."""
    if not (rules and is_mariadb):
        return rules
    return ",".join(rule.replace(",", "->", 1) for rule in rules[1:-1].split("),("))


def _with_hint(error: str, hint: str) -> str:
    """Return the error with its hint on a second line, because a server has no column for a hint."""
    return f"{error}\nHint: {hint}" if hint else error
