"""Options of an instance: names as mysqld spells them, types, defaults, ranges, and where each value came from.

Precedence: command line > RPLCTL_* environment > --config file > <datadir>/rplctl.toml >
~/.config/rplctl/rplctl.toml > /etc/rplctl/rplctl.toml > default (design section 4). No `$` expansion anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Config:
    """One instance's options, already merged for one channel."""

    datadir: Path
    target: str = ""  # SQLAlchemy URL; '' = sqlite:///<datadir>/target.db
    master_info_repository: str = "FILE"
    relay_log_info_repository: str = "FILE"
    rep_engine: str = ""  # engine of the repository tables; '' = the target's transactional default
    server_id: int = 0
    sync_master_info: int = 10_000  # events
    sync_relay_log: int = 10_000  # events
    sync_relay_log_info: int = 10_000  # transactions
    relay_log_purge: bool = True
    relay_log_space_limit: int = 0  # bytes, 0 = none
    max_relay_log_size: int = 1 << 30  # bytes
    replica_net_timeout: int = 60  # seconds
    replica_transaction_retries: int = 10
    max_batch_bytes: int = 64 << 20  # of relay log per Spark job
    spark_master: str = ""  # '' = local[number of cores]
    java_home: str = ""
    on_unsupported_ddl: str = "stop"  # stop | skip

    @property
    def target_url(self) -> str:
        return self.target or f"sqlite:///{self.datadir / 'target.db'}"
