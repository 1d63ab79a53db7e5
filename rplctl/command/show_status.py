"""SHOW SLAVE STATUS: one row per channel in MySQL's columns, order and value rules (MySQL manual).

Positions are the repositories' (the authority); what only a thread knows (state, error, lag) is in its status file;
whether it runs is its lock, and what it says counts while it is fresh (process/thread_report.py). While the receiver
runs, its own word on the read position is newer than the repository's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields

from rplctl import skip_list
from rplctl.channel import Channel
from rplctl.command.channel.context import (
    kinds_now,
    one_engine,
    open_repositories,
    read_master_info,
    stored_relay_log_info,
)
from rplctl.command.check.sync_record import SyncRecord, read_sync_record
from rplctl.command.process.thread_report import ThreadReport, Threads, threads_of
from rplctl.config import Config, split_list
from rplctl.errors import NotConfigured, UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.purge import relay_log_space
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.status import AWAY, ThreadStatus, read_status
from rplctl.verify.report_file import read_report

USE_GTID_WORDS = ("No", "Current_Pos", "Slave_Pos")
_IGNORED_IDS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class SlaveStatus:
    """Field names are the columns of MySQL 5.7 to 8.0.21; None is NULL. Those after Master_TLS_Version are extra."""

    Slave_IO_State: str
    Master_Host: str
    Master_User: str
    Master_Port: int
    Connect_Retry: int
    Master_Log_File: str
    Read_Master_Log_Pos: int
    Relay_Log_File: str
    Relay_Log_Pos: int
    Relay_Master_Log_File: str
    Slave_IO_Running: str  # Yes | Connecting | No
    Slave_SQL_Running: str  # Yes | No
    Replicate_Do_DB: str
    Replicate_Ignore_DB: str
    Replicate_Do_Table: str
    Replicate_Ignore_Table: str
    Replicate_Wild_Do_Table: str
    Replicate_Wild_Ignore_Table: str
    Last_Errno: int
    Last_Error: str
    Skip_Counter: int
    Exec_Master_Log_Pos: int
    Relay_Log_Space: int
    Until_Condition: str
    Until_Log_File: str
    Until_Log_Pos: int
    Master_SSL_Allowed: str
    Master_SSL_CA_File: str
    Master_SSL_CA_Path: str
    Master_SSL_Cert: str
    Master_SSL_Cipher: str
    Master_SSL_Key: str
    Seconds_Behind_Master: int | None
    Master_SSL_Verify_Server_Cert: str
    Last_IO_Errno: int
    Last_IO_Error: str
    Last_SQL_Errno: int
    Last_SQL_Error: str
    Replicate_Ignore_Server_Ids: str
    Master_Server_Id: int
    Master_UUID: str
    Master_Info_File: str
    SQL_Delay: int
    SQL_Remaining_Delay: int | None
    Slave_SQL_Running_State: str
    Master_Retry_Count: int
    Master_Bind: str
    Last_IO_Error_Timestamp: str
    Last_SQL_Error_Timestamp: str
    Master_SSL_Crl: str
    Master_SSL_Crlpath: str
    Retrieved_Gtid_Set: str
    Executed_Gtid_Set: str
    Auto_Position: int
    Replicate_Rewrite_DB: str
    Channel_Name: str
    Master_TLS_Version: str
    # --- since MySQL 8.0.22
    Master_public_key_path: str
    Get_Master_public_key: int
    Network_Namespace: str
    # --- MariaDB's and ours
    Using_Gtid: str
    Master_Binlog_Dir: str
    Commit_Mode: str
    Transactions_Applied: int
    Row_Changes_Applied: int
    Retried_transactions: int  # MariaDB's: after deadlocks and lock waits
    Skip_Gtids: str  # still to be passed over when they are reached
    Passed_Over_Errors: int  # by replica_exec_mode, replica_skip_errors, on_unsupported_ddl, since the applier's start
    Relay_Log_Info_Repository: str  # FILE | TABLE transactional | TABLE not transactional, as it is now
    Last_Synced_Timestamp: str  # when the last good `start --until-synced` asked where the source's log ends; ''
    Last_Synced_To: str  # and where that was, FILE:POS
    Clone_Tables: int  # that rplctl clone copies and has copied; 0 when none is to come
    Clone_Tables_Done: int
    Clone_Percent: int
    Clone_Rows_Per_Second: int
    Clone_Bytes_Per_Second: int
    Clone_Seconds_Left: int | None
    Clone_Step: str  # how its snapshots know their place in the log: exact, GTID window, share lock; ''
    Clone_Reader_State: str
    Clone_Last_Errno: int  # of its reading end, until something was read behind it
    Clone_Last_Error: str
    Clone_Last_Error_Timestamp: str
    Verify_Timestamp: str  # when the last whole `rplctl verify` began; ''
    Verify_Tables: int
    Verify_Tables_Not_Compared: int
    Verify_Differences: int  # rows that it found to differ


COLUMNS = tuple(f.name for f in fields(SlaveStatus))
WORKLOG_COLUMNS = COLUMNS[: COLUMNS.index("Master_TLS_Version") + 1]  # the 57 of SHOW SLAVE STATUS
SOURCE_COLUMNS = COLUMNS[: COLUMNS.index("Network_Namespace") + 1]  # the 60 of SHOW REPLICA STATUS


def show_status(config: Config, channel_name: str, now: float | None = None) -> SlaveStatus:
    """Raises NotConfigured 3074/1200, RplError 1201/1872 when a record is damaged."""
    return status_and_threads(config, channel_name, now)[0]


@one_engine()
def status_and_threads(config: Config, channel_name: str, now: float | None = None) -> tuple[SlaveStatus, Threads]:
    """As `show_status`, with what it was made of."""
    while True:
        config = kinds_now(config, channel_name)
        try:
            seen = _status_at(config, channel_name, time.time() if now is None else now)
        except NotConfigured:
            if kinds_now(config, channel_name) == config:
                raise
            continue  # a switch removed the record before we read it
        if kinds_now(config, channel_name) == config:
            return seen


def _status_at(config: Config, channel_name: str, now: float) -> tuple[SlaveStatus, Threads]:
    """Of the repositories that `config` names."""
    channel = Channel(channel_name, config.datadir)
    repositories = open_repositories(config, channel_name)
    master = read_master_info(repositories, channel_name)
    stored = repositories.relay_log_info
    relay = stored_relay_log_info(repositories, channel_name)
    threads = threads_of(channel, now)
    said = threads.receiver.status
    if said.connected and said.read_log_name:
        master = master.with_read_position(BinlogPosition(said.read_log_name, said.read_log_pos))
    values = {
        **_connection(master, repositories.master_info.where),
        **_positions(channel, master, relay),
        **_filters(config),
        **_receiver(threads.receiver),
        **_applier(threads.applier, relay),
        **_clone(threads, read_status(channel.status_path("cloner"))),
        **_verified(channel),
        "Relay_Log_Info_Repository": _repository(stored),
        **_synced(read_sync_record(channel)),
        "Seconds_Behind_Master": seconds_behind(master, relay, threads, now),
    }
    return SlaveStatus(**values), threads  # type: ignore[arg-type]  # one key per field, checked at the call


def _repository(stored: InfoRepository[RelayLogInfo]) -> str:
    if stored.kind is RepositoryKind.FILE:
        return "FILE"
    return f"TABLE {'transactional' if stored.is_transactional() else 'not transactional'}"


def _connection(master: MasterInfo, where: str) -> dict[str, object]:
    ignored = ", ".join(map(str, master.ignored_server_ids[:_IGNORED_IDS_SHOWN]))
    if len(master.ignored_server_ids) > _IGNORED_IDS_SHOWN:
        ignored += ", ..."
    return {
        "Master_Host": master.host,
        "Master_User": master.user_name,
        "Master_Port": master.port,
        "Connect_Retry": master.connect_retry,
        "Master_SSL_Allowed": _yes(master.enabled_ssl),
        "Master_SSL_CA_File": master.ssl_ca,
        "Master_SSL_CA_Path": master.ssl_capath,
        "Master_SSL_Cert": master.ssl_cert,
        "Master_SSL_Cipher": master.ssl_cipher,
        "Master_SSL_Key": master.ssl_key,
        "Master_SSL_Verify_Server_Cert": _yes(master.ssl_verify_server_cert),
        "Master_SSL_Crl": master.ssl_crl,
        "Master_SSL_Crlpath": master.ssl_crlpath,
        "Replicate_Ignore_Server_Ids": ignored,
        "Master_Server_Id": master.master_server_id,
        "Master_UUID": master.uuid,
        "Master_Info_File": where,
        "Master_Retry_Count": master.retry_count,
        "Master_Bind": master.bind,
        "Auto_Position": int(master.enabled_auto_position),
        "Channel_Name": master.channel_name,
        "Master_TLS_Version": master.tls_version,
        "Master_public_key_path": master.public_key_path,
        "Get_Master_public_key": int(master.get_public_key),
        "Network_Namespace": master.network_namespace,
        "Using_Gtid": USE_GTID_WORDS[master.using_gtid] if master.using_gtid < len(USE_GTID_WORDS) else "No",
        "Master_Binlog_Dir": master.master_binlog_dir,
    }


def _positions(channel: Channel, master: MasterInfo, relay: RelayLogInfo) -> dict[str, object]:
    return {
        "Master_Log_File": master.master_log_name,
        "Read_Master_Log_Pos": master.master_log_pos,
        "Relay_Log_File": relay.relay_log_name,
        "Relay_Log_Pos": relay.relay_log_pos,
        "Relay_Master_Log_File": relay.master_log_name,
        "Exec_Master_Log_Pos": relay.master_log_pos,
        "Relay_Log_Space": relay_log_space(channel),
        "Skip_Counter": skip_list.read_count(channel.run_folder),
        "Skip_Gtids": ",".join(skip_list.read_gtids(channel.run_folder)),
    }


def _filters(config: Config) -> dict[str, object]:
    rewrites = (rule.partition("->") for rule in split_list(config.replicate_rewrite_db))
    return {
        "Replicate_Do_DB": config.replicate_do_db,
        "Replicate_Ignore_DB": config.replicate_ignore_db,
        "Replicate_Do_Table": config.replicate_do_table,
        "Replicate_Ignore_Table": config.replicate_ignore_table,
        "Replicate_Wild_Do_Table": config.replicate_wild_do_table,
        "Replicate_Wild_Ignore_Table": config.replicate_wild_ignore_table,
        "Replicate_Rewrite_DB": ",".join(f"({old.strip()},{new.strip()})" for old, _, new in rewrites),
    }


def _receiver(thread: ThreadReport) -> dict[str, object]:
    status = thread.status
    return {
        "Slave_IO_State": status.state,
        "Slave_IO_Running": "No" if not thread.runs else "Yes" if thread.is_connected else "Connecting",
        "Last_IO_Errno": status.last_errno,
        "Last_IO_Error": status.last_error,
        "Last_IO_Error_Timestamp": _timestamp(status),
        "Retrieved_Gtid_Set": status.retrieved_gtid_set,
    }


def _applier(thread: ThreadReport, relay: RelayLogInfo) -> dict[str, object]:
    status = thread.status
    return {
        "Slave_SQL_Running": _yes(thread.runs),
        "Slave_SQL_Running_State": _running_state(thread),
        "Last_Errno": status.last_errno,
        "Last_Error": status.last_error,
        "Last_SQL_Errno": status.last_errno,
        "Last_SQL_Error": status.last_error,
        "Last_SQL_Error_Timestamp": _timestamp(status),
        "Until_Condition": status.until_condition,
        "Until_Log_File": status.until_log_name,
        "Until_Log_Pos": status.until_log_pos,
        "SQL_Delay": relay.sql_delay,
        "SQL_Remaining_Delay": status.remaining_delay,
        "Executed_Gtid_Set": relay.gtid_executed,
        "Commit_Mode": status.commit_mode,
        "Transactions_Applied": status.transactions,
        "Row_Changes_Applied": status.row_changes,
        "Retried_transactions": status.retried_transactions,
        "Passed_Over_Errors": status.passed_over_errors,
    }


def _running_state(thread: ThreadReport) -> str:
    """What a copy of tables says comes before what the applier does meanwhile; not before a target that is away."""
    status = thread.status
    shows_clone = thread.runs and status.cloning and thread.silent_since is None and status.state != AWAY
    return status.cloning if shows_clone else status.state


def _clone(threads: Threads, reader: ThreadStatus) -> dict[str, object]:
    """What was last told of it also while no thread runs; a rate only while one does."""
    status = threads.applier.status
    is_open, runs = bool(status.clone_tables), threads.applier.runs
    return {
        "Clone_Tables": status.clone_tables,
        "Clone_Tables_Done": status.clone_done,
        "Clone_Percent": status.clone_percent,
        "Clone_Rows_Per_Second": status.clone_rows if runs else 0,
        "Clone_Bytes_Per_Second": status.clone_bytes if runs else 0,
        "Clone_Seconds_Left": status.clone_left if runs else None,
        "Clone_Step": reader.clone_step if is_open else "",
        "Clone_Reader_State": reader.state if is_open and threads.receiver.runs else "",
        "Clone_Last_Errno": reader.last_errno if is_open else 0,
        "Clone_Last_Error": reader.last_error if is_open else "",
        "Clone_Last_Error_Timestamp": _timestamp(reader) if is_open else "",
    }


def _verified(channel: Channel) -> dict[str, object]:
    try:
        report = read_report(channel.verify_report_path)
    except (OSError, UsageError):  # none; `check` tells what of it is damaged
        return {"Verify_Timestamp": "", "Verify_Tables": 0, "Verify_Tables_Not_Compared": 0, "Verify_Differences": 0}
    return {
        "Verify_Timestamp": _clock(report.header.time),
        "Verify_Tables": len(report.totals),
        "Verify_Tables_Not_Compared": sum(bool(table.not_comparable) for table in report.totals),
        "Verify_Differences": sum(table.differences for table in report.totals),
    }


def seconds_behind(master: MasterInfo, relay: RelayLogInfo, threads: Threads, now: float) -> int | None:
    """MySQL's rule: NULL unless the applier runs; 0 when all is applied and the receiver runs, else by the clock.

    What is not seen fresh is not said to be 0: NULL, or the time since the applier was last heard of.
    """
    receiver, applier = threads.receiver, threads.applier
    if not applier.runs:
        return None
    if master.read_position == relay.exec_position:
        return 0 if receiver.is_connected and applier.silent_since is None else None
    since = applier.silent_since or now
    if applier.status.last_event_timestamp:
        since = min(since, applier.status.last_event_timestamp - receiver.status.clock_difference)
    return max(0, int(now - since))


def _yes(value: bool) -> str:
    return "Yes" if value else "No"


def _synced(record: SyncRecord | None) -> dict[str, object]:
    return {"Last_Synced_Timestamp": _clock(record.at) if record else "", "Last_Synced_To": record.to if record else ""}


def _timestamp(status: ThreadStatus) -> str:
    return _clock(status.last_error_timestamp) if status.last_errno and status.last_error_timestamp else ""


def _clock(timestamp: float) -> str:
    return time.strftime("%y%m%d %H:%M:%S", time.localtime(timestamp))
