"""The rows of the tables that monitoring tools read, computed from the same state as SHOW REPLICA STATUS.

Invariant: no row contains a password. The rows of a table are computed only for a statement that names the table.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from rplctl.accounts import ADMIN
from rplctl.command.change_filter import FILTERS
from rplctl.command.log_status import log_status
from rplctl.command.process.thread_report import ThreadReport
from rplctl.command.show_status import rewrites
from rplctl.event.gtid import MariadbGtidState
from rplctl.front.dump.serve import is_by_gtid
from rplctl.front.front import ClientSession, Front, denied
from rplctl.front.looks import Look
from rplctl.front.table_columns import COLUMNS, DATABASES
from rplctl.front.variables import counters, variables
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, Record

Row = dict[str, object]  # values by column name; a missing column is NULL
_RECORDS: Final[dict[str, Record[Any]]] = {f"mysql.{record.table}": record for record in (MASTER_INFO, RELAY_LOG_INFO)}
COLUMN_TYPE: Final = "longtext"  # the type that clients see for every column of these tables
_SECRET: Final = "User_password"
_NEVER: Final = "0000-00-00 00:00:00.000000"
_YES_NO: Final = ("NO", "YES")
_SYSTEM_USER: Final = "system user"  # a server shows this account for replication threads in its process list


def table_names() -> list[str]:
    """Return the sorted names of all tables that SELECT can read, as `database.table`."""
    return sorted((*COLUMNS, *_RECORDS))


def columns_of(table: str) -> list[str]:
    """Return the columns of a table that `table_names` lists."""
    if table in _RECORDS:
        return ["Number_of_lines", *(field.column for field in _RECORDS[table].fields)]
    return COLUMNS[table]


def rows_of(table: str, front: Front, session: ClientSession) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table, with the values in the order of its columns.

    Raises RplError 1227 if the client reads log_status and does not have the role `admin`.
    """
    if table in _RECORDS:
        made: Iterator[Row] = _records(front, _RECORDS[table])
    else:
        made = _MAKERS.get(table, _empty)(front, session)
    names = columns_of(table)
    for row in made:
        yield tuple(row.get(name) for name in names)


def _command(session: ClientSession) -> str:
    if session.dump is not None:
        return "Binlog Dump GTID" if is_by_gtid(session.dump) else "Binlog Dump"
    return "Query" if session.statement else "Sleep"


def process_list(front: Front) -> Iterator[Row]:
    """Yield the rows of the process list: the connections of this server, and the running threads of each channel."""
    now = time.time()
    for each in list(front.sessions.values()):
        yield {
            "ID": each.number, "USER": each.client.account, "HOST": each.client.address, "DB": each.database or None,
            "COMMAND": _command(each), "TIME": int(now - each.since), "STATE": "",
            "INFO": each.statement or None,
        }  # fmt: skip
    for look in front.looks.readable()[0]:
        for thread in (look.threads.receiver, look.threads.applier):
            if thread.pid is not None:
                yield {
                    "ID": thread.pid, "USER": _SYSTEM_USER, "HOST": "", "DB": None,
                    "COMMAND": "Connect" if thread is look.threads.receiver else "Query",
                    "TIME": max(0, int(now - (thread.status.worked or now))), "STATE": thread.status.state,
                    "INFO": None,
                }  # fmt: skip


def _empty(front: Front, session: ClientSession) -> Iterator[Row]:
    return iter(())


def _records(front: Front, record: Record[Any]) -> Iterator[Row]:
    for look in front.looks.all():
        info = look.master if record is MASTER_INFO else look.relay
        if record.has_data(info):
            row: Row = {"Number_of_lines": record.number_of_lines}
            row |= {field.column: field.notation.to_column(getattr(info, field.name)) for field in record.fields}
            if _SECRET in row:
                row[_SECRET] = ""
            yield row


def _processes(front: Front, session: ClientSession) -> Iterator[Row]:
    return process_list(front)


def _schemata(front: Front, session: ClientSession) -> Iterator[Row]:
    for name in DATABASES:
        yield {
            "CATALOG_NAME": "def", "SCHEMA_NAME": name, "DEFAULT_CHARACTER_SET_NAME": "utf8mb4",
            "DEFAULT_COLLATION_NAME": "utf8mb4_general_ci", "DEFAULT_ENCRYPTION": "NO",
        }  # fmt: skip


def _tables(front: Front, session: ClientSession) -> Iterator[Row]:
    for name in table_names():
        database, _, table = name.partition(".")
        kind = table_type(database)
        yield {"TABLE_CATALOG": "def", "TABLE_SCHEMA": database, "TABLE_NAME": table, "TABLE_TYPE": kind}


def _columns(front: Front, session: ClientSession) -> Iterator[Row]:
    for name in table_names():
        database, _, table = name.partition(".")
        for place, column in enumerate(columns_of(name), 1):
            yield {
                "TABLE_CATALOG": "def", "TABLE_SCHEMA": database, "TABLE_NAME": table, "COLUMN_NAME": column,
                "ORDINAL_POSITION": place, "IS_NULLABLE": "YES", "DATA_TYPE": COLUMN_TYPE, "COLUMN_TYPE": COLUMN_TYPE,
                "CHARACTER_SET_NAME": "utf8mb4", "COLLATION_NAME": "utf8mb4_general_ci", "COLUMN_KEY": "", "EXTRA": "",
                "PRIVILEGES": "select", "COLUMN_COMMENT": "", "GENERATION_EXPRESSION": "",
            }  # fmt: skip


def table_type(database: str) -> str:
    return "SYSTEM VIEW" if database == "information_schema" else "BASE TABLE"


def _variables(front: Front, session: ClientSession) -> Iterator[Row]:
    return _pairs(variables(front.looks.config_of(""), front.looks, front.version))


def _session_variables(front: Front, session: ClientSession) -> Iterator[Row]:
    own = {name: value or "" for name, value in session.charsets.variables.items()}
    return _pairs(variables(front.looks.config_of(""), front.looks, front.version) | own)


def _counters(front: Front, session: ClientSession) -> Iterator[Row]:
    return _pairs(counters(front.looks, front.counters, front.version))


def _pairs(found: dict[str, object]) -> Iterator[Row]:
    for name in sorted(found):
        yield {"VARIABLE_NAME": name, "VARIABLE_VALUE": str(found[name])}


def _log_status(front: Front, session: ClientSession) -> Iterator[Row]:
    if session.client.role != ADMIN:
        raise denied("BACKUP_ADMIN")
    row = log_status(front.looks.config_of, "mysql8").row
    yield {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()}


def _processes_of_mysql(front: Front, session: ClientSession) -> Iterator[Row]:
    return ({**row, "EXECUTION_ENGINE": "PRIMARY"} for row in process_list(front))


def _gtid_slave_pos(front: Front, session: ClientSession) -> Iterator[Row]:
    """Yield the rows of mysql.gtid_slave_pos: the last applied GTID of each domain, in each channel.

    Channels with MySQL's GTIDs have no rows in this table.
    """
    for look in front.looks.all():
        text = look.status.Executed_Gtid_Set
        if ":" not in text:
            for domain, (server_id, sequence) in sorted(MariadbGtidState.parse(text).domains.items()):
                yield {"domain_id": domain, "sub_id": 1, "server_id": server_id, "seq_no": sequence}


def _threads(front: Front, session: ClientSession) -> Iterator[Row]:
    names = {"Connect": "thread/sql/replica_io", "Query": "thread/sql/replica_sql"}
    for row in process_list(front):
        is_ours = row["USER"] != _SYSTEM_USER
        yield {
            "THREAD_ID": row["ID"], "NAME": "thread/sql/one_connection" if is_ours else names[str(row["COMMAND"])],
            "TYPE": "FOREGROUND", **{f"PROCESSLIST_{name}": value for name, value in row.items()},
            "PROCESSLIST_HOST": re.sub(r":\d+$", "", str(row["HOST"])),
            "INSTRUMENTED": "NO", "HISTORY": "NO", "THREAD_OS_ID": os.getpid() if is_ours else row["ID"],
            "CONTROLLED_MEMORY": 0, "MAX_CONTROLLED_MEMORY": 0, "TOTAL_MEMORY": 0, "MAX_TOTAL_MEMORY": 0,
        }  # fmt: skip


def _of_channels(make: Callable[[Look], Row]) -> Callable[[Front, ClientSession], Iterator[Row]]:
    """Return a function that yields one row for each channel. `make` computes the row from the state of the channel."""

    def rows(front: Front, session: ClientSession) -> Iterator[Row]:
        for look in front.looks.all():
            yield {"CHANNEL_NAME": look.status.Channel_Name, **make(look)}

    return rows


def _connection(look: Look) -> Row:
    status, master = look.status, look.master
    return {
        "HOST": status.Master_Host, "PORT": status.Master_Port, "USER": status.Master_User,
        "NETWORK_INTERFACE": status.Master_Bind, "AUTO_POSITION": str(status.Auto_Position),
        "SSL_ALLOWED": status.Master_SSL_Allowed.upper(), "SSL_CA_FILE": status.Master_SSL_CA_File,
        "SSL_CA_PATH": status.Master_SSL_CA_Path, "SSL_CERTIFICATE": status.Master_SSL_Cert,
        "SSL_CIPHER": status.Master_SSL_Cipher, "SSL_KEY": status.Master_SSL_Key,
        "SSL_VERIFY_SERVER_CERTIFICATE": status.Master_SSL_Verify_Server_Cert.upper(),
        "SSL_CRL_FILE": status.Master_SSL_Crl, "SSL_CRL_PATH": status.Master_SSL_Crlpath,
        "CONNECTION_RETRY_INTERVAL": status.Connect_Retry, "CONNECTION_RETRY_COUNT": status.Master_Retry_Count,
        "HEARTBEAT_INTERVAL": master.heartbeat, "TLS_VERSION": status.Master_TLS_Version,
        "PUBLIC_KEY_PATH": status.Master_public_key_path, "GET_PUBLIC_KEY": _YES_NO[status.Get_Master_public_key],
        "NETWORK_NAMESPACE": status.Network_Namespace, "COMPRESSION_ALGORITHM": master.master_compression_algorithm,
        "ZSTD_COMPRESSION_LEVEL": master.master_zstd_compression_level, "TLS_CIPHERSUITES": master.tls_ciphersuites,
        "SOURCE_CONNECTION_AUTO_FAILOVER": "0", "GTID_ONLY": "0",
    }  # fmt: skip


def _receiver(look: Look) -> Row:
    status, thread = look.status, look.threads.receiver
    running = {"Yes": "ON", "No": "OFF"}.get(status.Slave_IO_Running, "CONNECTING")
    return {
        "GROUP_NAME": "", "SOURCE_UUID": status.Master_UUID, **_state(thread, running),
        "COUNT_RECEIVED_HEARTBEATS": thread.status.received_heartbeats,
        "LAST_HEARTBEAT_TIMESTAMP": _moment(thread.status.heartbeat_timestamp),
        "RECEIVED_TRANSACTION_SET": status.Retrieved_Gtid_Set, **_transactions("LAST_QUEUED", "QUEUEING"),
    }  # fmt: skip


def _applier_configuration(look: Look) -> Row:
    relay = look.relay
    return {
        "DESIRED_DELAY": relay.sql_delay, "PRIVILEGE_CHECKS_USER": relay.privilege_checks_username,
        "REQUIRE_ROW_FORMAT": _YES_NO[bool(relay.require_row_format)],
        "REQUIRE_TABLE_PRIMARY_KEY_CHECK": relay.require_table_primary_key_check,
        "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_TYPE": relay.assign_gtids_to_anonymous_transactions_type,
        "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS_VALUE": relay.assign_gtids_to_anonymous_transactions_value,
    }  # fmt: skip


def _applier(look: Look) -> Row:
    return {
        "SERVICE_STATE": "ON" if look.status.Slave_SQL_Running == "Yes" else "OFF",
        "REMAINING_DELAY": look.status.SQL_Remaining_Delay,
        "COUNT_TRANSACTIONS_RETRIES": look.status.Retried_transactions,
    }


def _worker(look: Look) -> Row:
    running = "ON" if look.status.Slave_SQL_Running == "Yes" else "OFF"
    retries = {
        f"{which}_TRANSACTION_{name}": value
        for which in ("LAST_APPLIED", "APPLYING")
        for name, value in (
            ("RETRIES_COUNT", 0), ("LAST_TRANSIENT_ERROR_NUMBER", 0), ("LAST_TRANSIENT_ERROR_MESSAGE", ""),
            ("LAST_TRANSIENT_ERROR_TIMESTAMP", _NEVER),
        )
    }  # fmt: skip
    return {
        "WORKER_ID": 0, **_state(look.threads.applier, running), **_transactions("LAST_APPLIED", "APPLYING"), **retries
    }  # fmt: skip


def _state(thread: ThreadReport, running: str) -> Row:
    """Return the columns about the state of a thread and its last error. `running`: the value of SERVICE_STATE."""
    return {
        "THREAD_ID": thread.pid, "SERVICE_STATE": running, "LAST_ERROR_NUMBER": thread.status.last_errno,
        "LAST_ERROR_MESSAGE": thread.status.last_error[:1024],
        "LAST_ERROR_TIMESTAMP": _moment(thread.status.last_error_timestamp),
    }  # fmt: skip


def _moment(timestamp: float) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M:%S.%f}" if timestamp else _NEVER


def _transactions(*which: str) -> Row:
    """Return the columns about single transactions, with empty values.

    rplctl does not store the GTIDs and times of single transactions. `which`: the beginnings of the columns' names.
    """
    row: Row = {}
    for name in which:
        row[f"{name}_TRANSACTION"] = ""
        for moment in ("ORIGINAL_COMMIT", "IMMEDIATE_COMMIT", "START_QUEUE", "END_QUEUE", "START_APPLY", "END_APPLY"):
            row[f"{name}_TRANSACTION_{moment}_TIMESTAMP"] = _NEVER
    return row


def _filters(front: Front, session: ClientSession) -> Iterator[Row]:
    for look in front.looks.all():
        config = front.looks.config_of(look.status.Channel_Name)
        for name in FILTERS:
            rule = rewrites(config) if name == "replicate_rewrite_db" else getattr(config, name)
            if rule:
                yield {
                    "CHANNEL_NAME": look.status.Channel_Name, "FILTER_NAME": name.upper(), "FILTER_RULE": str(rule),
                    "CONFIGURED_BY": "CHANGE_REPLICATION_FILTER_FOR_CHANNEL", "ACTIVE_SINCE": _NEVER, "COUNTER": 0,
                }  # fmt: skip


_MAKERS: Final[dict[str, Callable[[Front, ClientSession], Iterator[Row]]]] = {
    "information_schema.columns": _columns,
    "information_schema.processlist": _processes,
    "information_schema.global_status": _counters,
    "information_schema.global_variables": _variables,
    "information_schema.schemata": _schemata,
    "information_schema.session_status": _counters,
    "information_schema.session_variables": _session_variables,
    "information_schema.tables": _tables,
    "performance_schema.global_status": _counters,
    "performance_schema.global_variables": _variables,
    "mysql.gtid_slave_pos": _gtid_slave_pos,
    "performance_schema.log_status": _log_status,
    "performance_schema.processlist": _processes_of_mysql,
    "performance_schema.session_status": _counters,
    "performance_schema.session_variables": _session_variables,
    "performance_schema.threads": _threads,
    "performance_schema.replication_connection_configuration": _of_channels(_connection),
    "performance_schema.replication_connection_status": _of_channels(_receiver),
    "performance_schema.replication_applier_configuration": _of_channels(_applier_configuration),
    "performance_schema.replication_applier_filters": _filters,
    "performance_schema.replication_applier_status": _of_channels(_applier),
    "performance_schema.replication_applier_status_by_worker": _of_channels(_worker),
}
