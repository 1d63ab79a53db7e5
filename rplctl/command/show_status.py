"""SHOW SLAVE STATUS: return one row per channel with MySQL's columns, in MySQL's order and format (MySQL manual).

Positions come from the repositories, which are authoritative. The state, the error and the lag of a thread come from
its status file. The lock of a thread shows whether it runs, and its status counts only while it is fresh
(process/thread_report.py).

While the receiver runs, the read position in its status is newer than the one in the repository. Even so, the applier
may already be past it. Then the executed position is also shown as the read position, so that the executed position is
never after the read position.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rplctl import skip_list
from rplctl.channel import Channel
from rplctl.command.channel.context import Repositories, kinds_now, one_engine, open_repositories
from rplctl.command.channel.true_lag import purge_moment, true_lag
from rplctl.command.check.sync_record import read_sync_record
from rplctl.command.process.thread_report import ThreadReport, Threads, threads_of
from rplctl.config import Config, split_list
from rplctl.errors import NotConfigured, UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import RelayLogPosition
from rplctl.relay_log.purge import relay_log_space
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.status import AWAY, ThreadStatus, read_status
from rplctl.target.registry import is_missing_file
from rplctl.verify.report_file import read_report

USE_GTID_WORDS = ("No", "Current_Pos", "Slave_Pos")
_IGNORED_IDS_SHOWN = 20


def _from(source: str = "") -> Any:
    """Return the dataclass field for a column whose value is stored in `source`.

    `source` is OWNER.NAME, or '' if `_status_at` computes the value. The owner is `master` (MasterInfo), `relay`
    (RelayLogInfo) or `config` (the options), or one of these statuses: `io` (receiver), `sql` (applier), `live`
    (applier, but only while it runs), `clone` (reader of a copy).
    """
    return field(metadata={"source": source})


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaveStatus:
    """The status of one channel. The field names are the columns of MySQL 5.7 to 8.0.21, and None is NULL.

    The columns after Master_TLS_Version are additional.
    """

    Slave_IO_State: str = _from("io.state")
    Master_Host: str = _from("master.host")
    Master_User: str = _from("master.user_name")
    Master_Port: int = _from("master.port")
    Connect_Retry: int = _from("master.connect_retry")
    Master_Log_File: str = _from("master.master_log_name")
    Read_Master_Log_Pos: int = _from("master.master_log_pos")
    Relay_Log_File: str = _from("relay.relay_log_name")
    Relay_Log_Pos: int = _from("relay.relay_log_pos")
    Relay_Master_Log_File: str = _from("relay.master_log_name")
    Slave_IO_Running: str = _from()  # Yes | Connecting | No
    Slave_SQL_Running: str = _from()  # Yes | No
    Replicate_Do_DB: str = _from("config.replicate_do_db")
    Replicate_Ignore_DB: str = _from("config.replicate_ignore_db")
    Replicate_Do_Table: str = _from("config.replicate_do_table")
    Replicate_Ignore_Table: str = _from("config.replicate_ignore_table")
    Replicate_Wild_Do_Table: str = _from("config.replicate_wild_do_table")
    Replicate_Wild_Ignore_Table: str = _from("config.replicate_wild_ignore_table")
    Last_Errno: int = _from("sql.last_errno")
    Last_Error: str = _from("sql.last_error")
    Skip_Counter: int = _from()
    Exec_Master_Log_Pos: int = _from("relay.master_log_pos")
    Relay_Log_Space: int = _from()
    Until_Condition: str = _from("sql.until_condition")
    Until_Log_File: str = _from("sql.until_log_name")
    Until_Log_Pos: int = _from("sql.until_log_pos")
    Master_SSL_Allowed: str = _from("master.enabled_ssl")
    Master_SSL_CA_File: str = _from("master.ssl_ca")
    Master_SSL_CA_Path: str = _from("master.ssl_capath")
    Master_SSL_Cert: str = _from("master.ssl_cert")
    Master_SSL_Cipher: str = _from("master.ssl_cipher")
    Master_SSL_Key: str = _from("master.ssl_key")
    Seconds_Behind_Master: int | None = _from()
    Master_SSL_Verify_Server_Cert: str = _from("master.ssl_verify_server_cert")
    Last_IO_Errno: int = _from("io.last_errno")
    Last_IO_Error: str = _from("io.last_error")
    Last_SQL_Errno: int = _from("sql.last_errno")
    Last_SQL_Error: str = _from("sql.last_error")
    Replicate_Ignore_Server_Ids: str = _from()
    Master_Server_Id: int = _from("master.master_server_id")
    Master_UUID: str = _from("master.uuid")
    Master_Info_File: str = _from()
    SQL_Delay: int = _from("relay.sql_delay")
    SQL_Remaining_Delay: int | None = _from("sql.remaining_delay")
    Slave_SQL_Running_State: str = _from()
    Master_Retry_Count: int = _from("master.retry_count")
    Master_Bind: str = _from("master.bind")
    Last_IO_Error_Timestamp: str = _from()
    Last_SQL_Error_Timestamp: str = _from()
    Master_SSL_Crl: str = _from("master.ssl_crl")
    Master_SSL_Crlpath: str = _from("master.ssl_crlpath")
    Retrieved_Gtid_Set: str = _from("io.retrieved_gtid_set")
    Executed_Gtid_Set: str = _from("relay.gtid_executed")
    Auto_Position: int = _from("master.enabled_auto_position")
    Replicate_Rewrite_DB: str = _from()
    Channel_Name: str = _from("master.channel_name")
    Master_TLS_Version: str = _from("master.tls_version")
    # --- since MySQL 8.0.22
    Master_public_key_path: str = _from("master.public_key_path")
    Get_Master_public_key: int = _from("master.get_public_key")
    Network_Namespace: str = _from("master.network_namespace")
    # --- columns of MariaDB and of rplctl
    Last_IO_Hint: str = _from("io.last_hint")
    Last_SQL_Hint: str = _from("sql.last_hint")
    Using_Gtid: str = _from()
    Replicate_Do_Domain_Ids: str = _from()
    Replicate_Ignore_Domain_Ids: str = _from()
    Master_Binlog_Dir: str = _from("master.master_binlog_dir")
    Commit_Mode: str = _from("sql.commit_mode")
    Transactions_Applied: int = _from("sql.transactions")
    Row_Changes_Applied: int = _from("sql.row_changes")
    Spark_Jobs: int = _from("sql.spark_jobs")
    Jobs_Without_Spark: int = _from("sql.small_jobs")
    Rows_By_Spark: int = _from("sql.rows_by_spark")  # row changes and rows of a clone that tasks of Spark decoded
    Rows_By_Driver: int = _from("sql.rows_by_driver")  # rows that the applier decoded itself
    Spark_Workers: int = _from("sql.spark_workers")
    Spark_Job: str = _from("sql.spark_job")  # the permanent job, with spark=always; otherwise ''
    Retried_transactions: int = _from("sql.retried_transactions")  # column of MariaDB: after deadlocks and lock waits
    Skip_Gtids: str = _from()  # GTIDs that the applier will skip
    # errors since the applier's start that replica_exec_mode, replica_skip_errors and on_unsupported_ddl ignored
    Passed_Over_Errors: int = _from("sql.passed_over_errors")
    Relay_Log_Info_Repository: str = _from()  # the present kind: FILE | TABLE transactional | TABLE not transactional
    # The last successful `start --until-synced` read the end of the source's log: the time, and this end; '' if none.
    Last_Synced_Timestamp: str = _from()
    Last_Synced_To: str = _from()
    Target_State: str = _from()  # target_lost or target_of_another, as last seen; otherwise ''
    Clone_Tables: int = _from("sql.clone_tables")  # tables that rplctl clone copies or has copied; 0 if all are done
    Clone_Tables_Done: int = _from("sql.clone_done")
    Clone_Percent: int = _from("sql.clone_percent")
    Clone_Rows_Per_Second: int = _from("live.clone_rows")
    Clone_Bytes_Per_Second: int = _from("live.clone_bytes")
    Clone_Seconds_Left: int | None = _from("live.clone_left")
    # the method that finds the position of a snapshot in the log: exact, GTID window or share lock; '' if unknown
    Clone_Step: str = _from("clone.clone_step")
    Clone_Reader_State: str = _from()
    Clone_Last_Errno: int = _from("clone.last_errno")  # the reader's last error, until the next successful read
    Clone_Last_Error: str = _from("clone.last_error")
    Clone_Last_Hint: str = _from("clone.last_hint")
    Clone_Last_Error_Timestamp: str = _from()
    Verify_Timestamp: str = _from()  # start of the last complete `rplctl verify`; '' if none
    Verify_Tables: int = _from()
    Verify_Tables_Not_Compared: int = _from()
    Verify_Differences: int = _from()  # number of rows that differ
    True_Lag: float | None = _from()  # seconds by the source's clock
    True_Lag_From: str = _from()  # the origin of True_Lag: heartbeat or source; '' if unknown
    Last_Applied_Timestamp: str = _from()  # the last transaction's time by the source's clock, in the local time zone
    Clock_Skew: float | None = _from()  # the source's clock minus the local clock, in seconds
    Clock_Skew_Error: float | None = _from()  # the possible error of Clock_Skew
    Source_Purge_In: int | None = _from()  # seconds until the source purges the log that is read next
    Relay_Disk_Full_In: int | None = _from()  # seconds, at the rate of the last minutes


COLUMNS = tuple(f.name for f in fields(SlaveStatus))
_TAKEN = [(f.name, *f.metadata["source"].split("."), f.type) for f in fields(SlaveStatus) if f.metadata["source"]]
WORKLOG_COLUMNS = COLUMNS[: COLUMNS.index("Master_TLS_Version") + 1]  # the 57 columns of SHOW SLAVE STATUS
SOURCE_COLUMNS = COLUMNS[: COLUMNS.index("Network_Namespace") + 1]  # the 60 columns of SHOW REPLICA STATUS


def show_status(config: Config, channel_name: str, now: float | None = None) -> SlaveStatus:
    """Return the status of the channel. `now` is the time in Unix seconds. None means the present time.

    Raises NotConfigured 3074 or 1200 if the channel does not exist, and RplError 1201 or 1872 if a record is damaged.
    """
    return status_and_threads(config, channel_name, now)[0]


@one_engine()
def status_and_threads(config: Config, channel_name: str, now: float | None = None) -> tuple[SlaveStatus, Threads]:
    """Return the status of the channel as `show_status` does, and the reports of its threads.

    If a `switch-repo` moves the records at this moment, the reading is repeated.
    """
    while True:
        config = kinds_now(config, channel_name)
        try:
            seen = _status_at(config, channel_name, time.time() if now is None else now)
        except NotConfigured:
            if kinds_now(config, channel_name) == config:
                raise
            continue  # a `switch-repo` removed the record before it was read here
        if kinds_now(config, channel_name) == config:
            return seen


def _status_at(config: Config, channel_name: str, now: float) -> tuple[SlaveStatus, Threads]:
    """Return the status and the reports of the threads, from the kinds of repositories that `config` names."""
    repositories = open_repositories(config, channel_name)
    channel, master, relay = repositories.channel, repositories.master(), repositories.relay()
    threads = threads_of(channel, now)
    receiver, synced = threads.receiver, read_sync_record(channel)
    said = receiver.status
    if said.connected and said.read_log_name:
        master = replace(
            master.with_read_position(said.read_position),
            flushed_relay_log_name=said.relay_log_name,
            flushed_relay_log_pos=said.relay_log_pos,
        )
    if is_executed_further(master, relay):
        from rplctl.event.gtid import as_far_as

        master = master.with_read_position(relay.exec_position)
        said = replace(said, retrieved_gtid_set=as_far_as(said.retrieved_gtid_set, relay.gtid_executed))
    applier = threads.applier
    reader = read_status(channel.status_path("cloner")) if applier.status.clone_tables else ThreadStatus()
    sources = {"master": master, "relay": relay, "config": config, "io": said, "sql": applier.status, "clone": reader}
    live = sources["live"] = applier.status if applier.runs else ThreadStatus()
    values = {
        **{column: _found(sources[source], name, kind) for column, source, name, kind in _TAKEN},
        "Slave_IO_Running": "Connecting" if receiver.runs and not receiver.is_connected else _yes(receiver.runs),
        "Slave_SQL_Running": _yes(applier.runs),
        "Replicate_Rewrite_DB": rewrites(config),
        "Skip_Counter": skip_list.read_count(channel.run_folder) or live.skip_counter,
        "Relay_Log_Space": relay_log_space(channel),
        "Seconds_Behind_Master": seconds_behind(master, relay, threads, now),
        "Replicate_Ignore_Server_Ids": _ids(master.ignored_server_ids),
        "Replicate_Do_Domain_Ids": _ids(master.do_domain_ids),
        "Replicate_Ignore_Domain_Ids": _ids(master.ignore_domain_ids),
        "Master_Info_File": repositories.master_info.where,
        "Slave_SQL_Running_State": _running_state(applier),
        "Last_IO_Error_Timestamp": _timestamp(said),
        "Last_SQL_Error_Timestamp": _timestamp(applier.status),
        "Using_Gtid": USE_GTID_WORDS[master.using_gtid] if master.using_gtid < len(USE_GTID_WORDS) else "No",
        "Skip_Gtids": ",".join(skip_list.read_gtids(channel.run_folder)),
        "Relay_Log_Info_Repository": _repository(
            repositories.relay_log_info, has_record=RELAY_LOG_INFO.has_data(relay) or not applier.status.has_applied
        ),
        "Last_Synced_Timestamp": _clock(synced.at) if synced else "",
        "Last_Synced_To": synced.to if synced else "",
        "Clone_Reader_State": reader.state if receiver.runs else "",
        "Clone_Last_Error_Timestamp": _timestamp(reader),
        **_verified(channel),
        **_foreseen(master, relay, threads, now),
    }
    values |= _target_state(repositories, relay, applier)
    return SlaveStatus(**values), threads  # type: ignore[arg-type]  # one key per field, checked at the call


def _target_state(repositories: Repositories, relay: RelayLogInfo, applier: ThreadReport) -> dict[str, object]:
    """Return the columns about the state of the target, as the last start or the applier has found it.

    The target itself is read only if its file is missing, or if its table has no RelayLogInfo. In other cases the
    status of a FILE repository needs no target (design D16).
    """
    state = applier.status.target_state
    is_table = repositories.relay_log_info.kind is RepositoryKind.TABLE
    lacks_record = is_table and not RELAY_LOG_INFO.has_data(relay)
    has_applied = bool(relay.left_at) or applier.status.has_applied
    if state or not has_applied or not (lacks_record or is_missing_file(repositories.config.target_place)):
        return {"Target_State": state}
    from rplctl.commit.belonging import belonging_of

    error = belonging_of(repositories.config, repositories.channel, repositories.engine).error
    if error is None:
        return {"Target_State": ""}
    number, text = error.errno, error.message
    errors = {"Last_Errno": number, "Last_Error": text, "Last_SQL_Errno": number, "Last_SQL_Error": text}
    return {"Target_State": str(error.state), **errors, "Last_SQL_Hint": error.hint}


def _found(source: object, name: str, kind: object) -> object:
    value = getattr(source, name)
    return (_yes(value) if kind == "str" else int(value)) if isinstance(value, bool) else value


def _repository(stored: InfoRepository[RelayLogInfo], *, has_record: bool) -> str:
    if stored.kind is RepositoryKind.FILE:
        return "FILE"
    if not has_record:  # there may be no table
        return "TABLE"
    return f"TABLE {'transactional' if stored.is_transactional() else 'not transactional'}"


def _ids(ids: Sequence[int]) -> str:
    shown = ", ".join(map(str, ids[:_IGNORED_IDS_SHOWN]))
    return shown + (", ..." if len(ids) > _IGNORED_IDS_SHOWN else "")


def rewrites(config: Config) -> str:
    """Return replicate_rewrite_db as MySQL shows it: (old,new),(old,new)."""
    rules = (rule.partition("->") for rule in split_list(config.replicate_rewrite_db))
    return ",".join(f"({old.strip()},{new.strip()})" for old, _, new in rules)


def _running_state(thread: ThreadReport) -> str:
    """Return the state of the applier as text: the state of the copy of tables if one is running, or else its own
    state.

    While the target is unavailable, the applier's own state is shown.
    """
    status = thread.status
    shows_clone = thread.runs and status.cloning and thread.silent_since is None and status.state != AWAY
    return status.cloning if shows_clone else status.state


def _verified(channel: Channel) -> dict[str, object]:
    try:
        report = read_report(channel.verify_report_path)
        when, totals = _clock(report.header.time), list(report.totals)
    except (OSError, UsageError):  # there is no report, or it is damaged (`check` reports this)
        when, totals = "", []
    return {
        "Verify_Timestamp": when,
        "Verify_Tables": len(totals),
        "Verify_Tables_Not_Compared": sum(bool(table.not_comparable) for table in totals),
        "Verify_Differences": sum(table.differences for table in totals),
    }


def is_executed_further(master: MasterInfo, relay: RelayLogInfo) -> bool:
    """True if the applier has passed the end of the relay log at which the receiver stored its read position.

    Then the read position is out of date.
    """
    known = RelayLogPosition(master.flushed_relay_log_name, master.flushed_relay_log_pos)
    return bool(known.log_name and relay.master_log_name) and known.is_before(relay.relay_log_position)


def seconds_behind(master: MasterInfo, relay: RelayLogInfo, threads: Threads, now: float) -> int | None:
    """Return the lag in seconds by MySQL's rule. Return None (NULL) if the applier does not run.

    If everything that was read is applied, the lag is 0. Otherwise, the lag is the age of the first of these that has
    a known time. If no time is known, the result is None.

    * the transaction that is being applied
    * the transaction that is being received
    * the last event that was read

    If the receiver is not connected or the applier has not reported lately, the result is never 0. In this case, the
    result is None, or at least the time since the applier's last report.
    """
    receiver, applier = threads.receiver, threads.applier
    said = receiver.status
    if not applier.runs:
        return None
    is_fresh = receiver.is_connected and applier.silent_since is None
    if master.read_position == relay.exec_position:
        return 0 if is_fresh else None
    in_transfer = said.transfer_timestamp or said.read_timestamp if receiver.is_connected else 0
    began = applier.status.last_event_timestamp or in_transfer
    known = [began - said.clock_difference] if began else []
    if applier.silent_since is not None:
        known.append(applier.silent_since)
    seconds = max(0, int(now - min(known))) if known else 0
    return seconds if seconds or (is_fresh and known) else None


def _foreseen(master: MasterInfo, relay: RelayLogInfo, threads: Threads, now: float) -> dict[str, object]:
    """Return the columns about the lag by the source's clock, and the forecasts of purged logs and a full disk."""
    said, applier = threads.receiver.status, threads.applier.status
    lag = true_lag(master, relay, threads, now)
    is_known = bool(said.clock_error)
    full = said.relay_disk_full_at if threads.receiver.is_connected else 0.0
    purge = purge_moment(threads.receiver)
    return {
        "True_Lag": lag.seconds,
        "True_Lag_From": lag.source,
        "Last_Applied_Timestamp": _clock(applier.last_applied_timestamp) if applier.last_applied_timestamp else "",
        "Clock_Skew": round(said.clock_difference, 3) + 0.0 if is_known else None,
        "Clock_Skew_Error": round(said.clock_error, 3) if is_known else None,
        "Source_Purge_In": max(0, int(purge - now)) if purge else None,
        "Relay_Disk_Full_In": max(0, int(full - now)) if full else None,
    }


def _yes(value: bool) -> str:
    return "Yes" if value else "No"


def _timestamp(status: ThreadStatus) -> str:
    return _clock(status.last_error_timestamp) if status.last_errno and status.last_error_timestamp else ""


def _clock(timestamp: float) -> str:
    return time.strftime("%y%m%d %H:%M:%S", time.localtime(timestamp))
