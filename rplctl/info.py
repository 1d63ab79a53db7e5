"""The two records of positions and settings: MasterInfo and RelayLogInfo (WL#2775, WL#5125).

The fields have the order of the lines in the files of MySQL 8.0.30 (WL#2775). The last fields of each record are
MariaDB's or rplctl's own. They are in the `key=value` section of the files. A repository in a file and a repository
in a table store the same records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, RelayLogPosition

SET_BY_COMMAND = 4  # flushed_relay_log_pos, without a log name, after CHANGE MASTER has set the read position
DEFAULT_HEARTBEAT_PERIOD = 30.0  # seconds: half of replica_net_timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterInfo:
    """The record of the receiver: its connection, and the next position to read (MySQL's `slave_master_info`)."""

    master_log_name: str = ""
    master_log_pos: int = FIRST_EVENT_POSITION
    host: str = ""
    user_name: str = ""
    user_password: str = ""  # in its stored form, which secret.py defines
    port: int = 3306
    connect_retry: int = 60
    enabled_ssl: bool = False
    ssl_ca: str = ""
    ssl_capath: str = ""
    ssl_cert: str = ""
    ssl_cipher: str = ""
    ssl_key: str = ""
    ssl_verify_server_cert: bool = False
    heartbeat: float = DEFAULT_HEARTBEAT_PERIOD
    bind: str = ""
    ignored_server_ids: tuple[int, ...] = ()
    uuid: str = ""  # of the source at the last connection (MySQL); '' for MariaDB
    retry_count: int = 86400
    ssl_crl: str = ""
    ssl_crlpath: str = ""
    enabled_auto_position: bool = False
    channel_name: str = ""
    tls_version: str = ""
    public_key_path: str = ""
    get_public_key: bool = False
    network_namespace: str = ""
    master_compression_algorithm: str = "uncompressed"
    master_zstd_compression_level: int = 3
    tls_ciphersuites: str | None = None
    source_connection_auto_failover: bool = False
    gtid_only: bool = False
    # --- MariaDB's section
    using_gtid: int = 0  # 0 No, 1 Current_Pos, 2 Slave_Pos
    do_domain_ids: tuple[int, ...] = ()
    ignore_domain_ids: tuple[int, ...] = ()
    # --- rplctl's fields
    master_id: int = 0  # WL#2775's key, unique per instance
    master_server_id: int = 0  # of the source at the last connection, to detect a wrong server
    master_binlog_dir: str = ""  # a folder of binary logs that replaces a server
    flushed_relay_log_name: str = ""  # end of the relay log at the last flush of this record (WL#9452)
    flushed_relay_log_pos: int = 0

    @property
    def read_position(self) -> BinlogPosition:
        return BinlogPosition(self.master_log_name, self.master_log_pos)

    def with_read_position(self, position: BinlogPosition) -> Self:
        return replace(self, master_log_name=position.log_name, master_log_pos=position.log_pos)

    @property
    def place(self) -> str:
        """The source as HOST:PORT, or its folder of binary logs. The value is '' if no source is configured."""
        return self.master_binlog_dir or (f"{self.host}:{self.port}" if self.host else "")

    @property
    def is_configured(self) -> bool:
        return bool(self.host or self.master_binlog_dir)

    @property
    def has_password(self) -> bool:
        return bool(self.user_password)

    @property
    def uses_gtid(self) -> bool:
        """True if the receiver requests events by GTID. Positions then become invalid when the source changes."""
        return self.enabled_auto_position or self.using_gtid != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPosition:
    """The position after a transaction that is prepared but not committed (commit mode `xa`).

    WL#3970 calls the fields `group_relay_log_…_prepared` and `group_xid`.
    """

    xid: str
    relay: RelayLogPosition
    source: BinlogPosition
    gtid_executed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayLogInfo:
    """The record of the applier: the executed position in the source's log and in the relay log.

    MySQL stores this record in `slave_relay_log_info`.
    """

    relay_log_name: str = ""  # base name; files contain ./name
    relay_log_pos: int = 0
    master_log_name: str = ""
    master_log_pos: int = 0
    sql_delay: int = 0
    number_of_workers: int = 0
    id: int = 1
    channel_name: str = ""
    privilege_checks_username: str | None = None
    privilege_checks_hostname: str | None = None
    require_row_format: bool = False
    require_table_primary_key_check: str = "STREAM"
    assign_gtids_to_anonymous_transactions_type: str = "OFF"
    assign_gtids_to_anonymous_transactions_value: str = ""
    # --- rplctl's fields
    master_id: int = 0
    gtid_executed: str = ""  # the set of applied GTIDs, in the notation of MySQL or MariaDB
    prepared: PreparedPosition | None = None  # in a file with commit_mode=xa, between prepare and commit; else None
    # only in a file in mode marker: the last `place` that the applier wrote; the operator has set any other `place`
    left_at: str = ""

    @property
    def exec_position(self) -> BinlogPosition:
        return BinlogPosition(self.master_log_name, self.master_log_pos)

    @property
    def relay_log_position(self) -> RelayLogPosition:
        return RelayLogPosition(self.relay_log_name, self.relay_log_pos)

    @property
    def place(self) -> str:
        return f"{self.relay_log_position} {self.exec_position}"

    def is_at(self, other: RelayLogInfo) -> bool:
        return self.relay_log_position == other.relay_log_position and self.exec_position == other.exec_position

    def moved_to(self, other: RelayLogInfo) -> Self:
        """Return a copy of this record with the positions and the GTIDs of `other`. The settings are unchanged."""
        return replace(self.at(other.relay_log_position, other.exec_position), gtid_executed=other.gtid_executed)

    def at(self, relay: RelayLogPosition, source: BinlogPosition) -> Self:
        return replace(
            self,
            relay_log_name=relay.log_name,
            relay_log_pos=relay.log_pos,
            master_log_name=source.log_name,
            master_log_pos=source.log_pos,
        )
