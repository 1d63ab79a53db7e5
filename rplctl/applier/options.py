"""The options that START REPLICA gives to one run of the applier: an UNTIL condition, positions at which the run ends,
and Spark options.

The applier process receives the options as JSON. As in MySQL, they are not stored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from rplctl import mysql_errors as er
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.position import BinlogPosition, RelayLogPosition

AFTER_GTIDS = ("sql_after_gtids", "master_gtid_pos")  # kinds that stop once all listed GTIDs are applied
OPTIONS_FOLLOW = "--options-follow"  # this argument of the process says that the options follow on standard input
UNTIL_KINDS = {  # the values are those of Until_Condition in SHOW SLAVE STATUS
    "none": "None",
    "master_pos": "Master",
    "relay_pos": "Relay",
    "sql_before_gtids": "SQL_BEFORE_GTIDS",
    "sql_after_gtids": "SQL_AFTER_GTIDS",
    "master_gtid_pos": "Gtid",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """An UNTIL condition of START REPLICA.

    `kind` is a key of UNTIL_KINDS. `log_name` and `log_pos` are set for the kinds `master_pos` and `relay_pos`, and
    `gtids` for the kinds with GTIDs.
    """

    kind: str = "none"
    log_name: str = ""
    log_pos: int = 0
    gtids: str = ""

    @property
    def source_position(self) -> BinlogPosition | None:
        return BinlogPosition(self.log_name, self.log_pos) if self.kind == "master_pos" else None

    @property
    def shown(self) -> str:
        """The condition in the words of MySQL's error log, for a message."""
        return f"{self.kind.upper()} {self.gtids}" if self.gtids else f"position {self.log_pos} in {self.log_name}"

    @property
    def relay_position(self) -> RelayLogPosition | None:
        return RelayLogPosition(self.log_name, self.log_pos) if self.kind == "relay_pos" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    until: Until = Until()
    spark_master: str = ""
    spark_conf: str = ""  # added to the option `spark_conf` of the configuration
    insecure_cluster: bool = False
    until_source: BinlogPosition | None = None  # stop with exit code 0 once all transactions before it are applied
    until_source_gtids: str = ""  # instead of `until_source`, with GTIDs: the position may be of another source

    @classmethod
    def from_json(cls, text: str) -> StartOptions:
        """Return the options from their JSON text. An empty text means no options.

        Raises UsageError for an unknown UNTIL kind or a malformed position.
        """
        stored = json.loads(text or "{}")
        until = Until(**stored.get("until", {}))
        if until.kind not in UNTIL_KINDS:
            raise UsageError(er.BAD_SLAVE_UNTIL_COND_TEXT, errno=er.BAD_SLAVE_UNTIL_COND)
        source = stored.get("until_source", "")
        return cls(
            until=until,
            spark_master=stored.get("spark_master", ""),
            spark_conf=stored.get("spark_conf", ""),
            insecure_cluster=stored.get("insecure_cluster", False),
            until_source=BinlogPosition.parse(source) if source else None,
            until_source_gtids=stored.get("until_source_gtids", ""),
        )

    def on(self, config: Config) -> Config:
        """Return `config` with the Spark options of `rplctl start`, which override those in the configuration files."""
        return replace(
            config,
            spark_master=self.spark_master or config.spark_master,
            spark_conf=",".join(filter(None, [config.spark_conf, self.spark_conf])),
            insecure_cluster=self.insecure_cluster or config.insecure_cluster,
        )
