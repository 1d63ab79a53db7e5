"""The system variables and status counters that monitoring tools read."""

from __future__ import annotations

import platform
import socket
from collections.abc import Callable
from typing import Final

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.front.looks import Looks
from rplctl.source.replica_id import replica_identity

SWITCHES: Final = {"ON": 1, "OFF": 0}  # the value that SHOW returns → the value that SELECT returns
AS_TEXT: Final = frozenset({"gtid_mode", "enforce_gtid_consistency"})
LOCK_WAIT_S: Final = 10
_COMMON: Final = {
    "version_comment": "rplctl",
    "version_compile_os": "Linux",
    "version_compile_machine": platform.machine(),
    "read_only": "ON",
    "super_read_only": "ON",
    "autocommit": "ON",
    "skip_networking": "OFF",
    "binlog_checksum": "CRC32",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "report_host": "",
    "license": "Apache-2.0",
    "character_set_client": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "character_set_results": "utf8mb4",
    "character_set_server": "utf8mb4",
    "character_set_database": "utf8mb4",
    "character_set_system": "utf8mb4",
    "collation_connection": "utf8mb4_general_ci",
    "collation_server": "utf8mb4_general_ci",
    "collation_database": "utf8mb4_general_ci",
    "sql_mode": "",
    "init_connect": "",
    "time_zone": "SYSTEM",
    "system_time_zone": "UTC",
    "transaction_isolation": "REPEATABLE-READ",
    "tx_isolation": "REPEATABLE-READ",
    "lower_case_table_names": 0,
    "max_allowed_packet": 1 << 20,
    "net_write_timeout": 10,
    "net_buffer_length": 16384,
    "wait_timeout": 28800,
    "interactive_timeout": 28800,
    "lock_wait_timeout": LOCK_WAIT_S,
    "auto_increment_increment": 1,
    "auto_increment_offset": 1,
    "performance_schema": "OFF",
    "query_cache_size": 0,
    "query_cache_type": "OFF",
    "sql_select_limit": 1 << 32,
    "transaction_read_only": "ON",
    "tx_read_only": "ON",
    "default_storage_engine": "",
    "max_connections": 64,
}


_OPTIONS: Final = (  # options in rplctl.toml that have the name and the meaning of a system variable
    *("sync_master_info", "sync_relay_log", "sync_relay_log_info", "relay_log_purge", "relay_log_space_limit"),
    *("max_relay_log_size", "max_binlog_size", "sync_binlog", "binlog_expire_logs_seconds"),
)
_OF_LOGS: Final = frozenset({"log_bin", "log_slave_updates", "log_replica_updates"})  # ON if any channel has a log
_OF_REPLICAS: Final = (  # options replica_NAME, which are also shown as slave_NAME
    *("net_timeout", "parallel_workers", "preserve_commit_order", "transaction_retries", "exec_mode"),
)


def variables(config: Config, looks: Looks, version: str, names: set[str] | None = None) -> dict[str, object]:
    """Return the values of the system variables by name, in the form of SHOW VARIABLES.

    `names`: the names that the caller needs; None = all. The variables in `live_names` need a check of all channels, so
    they are included only if the caller needs one of them. All other variables are always included.
    """
    me = replica_identity(config, Channel("", config.datadir))
    is_asked = names is None or not _OF_LOGS.isdisjoint(names)
    configs = [config, *(looks.config_of(name) for name in looks.names())] if is_asked else [config]
    logs = "ON" if any(each.log_bin and each.log_replica_updates for each in configs) else "OFF"
    found: dict[str, object] = {
        **_COMMON,
        "version": version,
        "hostname": socket.gethostname(),
        "datadir": f"{config.datadir}/",
        "server_id": me.server_id,
        **dict.fromkeys(_OF_LOGS, logs),
        "master_info_repository": config.master_info_repository,
        "relay_log_info_repository": config.relay_log_info_repository,
    }
    for name in _OPTIONS:
        found[name] = _shown(getattr(config, name))
    for name in _OF_REPLICAS:
        found |= dict.fromkeys((f"replica_{name}", f"slave_{name}"), _shown(getattr(config, f"replica_{name}")))
    live = live_names(version)
    if "mariadb" in version.lower():
        found |= {"gtid_domain_id": 0, "gtid_strict_mode": "OFF", "default_master_connection": ""}
        found |= {"slave_parallel_threads": config.replica_parallel_workers, "slave_parallel_mode": "conservative"}
    else:
        found |= {"server_uuid": me.uuid, "gtid_mode": "ON", "gtid_purged": ""}
        found["enforce_gtid_consistency"] = "ON"
    if names is None or names & set(live):
        found |= dict.fromkeys(live, executed(looks))
    return found


def _shown(value: object) -> object:
    return ("OFF", "ON")[value] if isinstance(value, bool) else value


def live_names(version: str) -> tuple[str, ...]:
    """Return the names of the variables whose values are read from the channels and their targets at each query."""
    is_mariadb = "mariadb" in version.lower()
    return (
        ("gtid_slave_pos", "gtid_current_pos", "gtid_binlog_pos", "gtid_binlog_state")
        if is_mariadb
        else ("gtid_executed",)
    )


def executed(looks: Looks) -> str:
    """Return the GTIDs that the channels have applied, with a comma between the sets of two channels."""
    sets = [look.status.Executed_Gtid_Set for look in looks.all() if look.status.Executed_Gtid_Set]
    return ",".join(sets)


def counters(looks: Looks, own: dict[str, Callable[[], int]], version: str) -> dict[str, object]:
    """Return the status counters of SHOW GLOBAL STATUS by name.

    `own`: the names of the counters of `serve --mysql` itself, each with a function that returns the present value. For
    MariaDB, the result also has two counters of heartbeats.
    """
    channels, _ = looks.readable()
    statuses = [look.status for look in channels]
    both = [each for each in statuses if (each.Slave_IO_Running, each.Slave_SQL_Running) == ("Yes", "Yes")]
    heartbeats: dict[str, object] = {}
    if "mariadb" in version.lower():
        period = next((look.master.heartbeat for look in channels if not look.status.Channel_Name), 0.0)
        heartbeats["Slave_heartbeat_period"] = f"{period:.3f}"
        heartbeats["Slave_received_heartbeats"] = sum(
            look.threads.receiver.status.received_heartbeats for look in channels
        )
    return {
        **{name: read() for name, read in own.items()},
        **heartbeats,
        "Slave_running": "ON" if both else "OFF",
        "Slave_retried_transactions": sum(each.Retried_transactions for each in statuses),
        "Slave_open_temp_tables": 0,
    }
