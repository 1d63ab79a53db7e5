"""The files of a channel's binary log: `<log_bin>[-CHAN].NNNNNN` and `<log_bin>[-CHAN].index`.

Each channel has its own binary log, as it has its own relay log. Sources of both vendors may replicate to one
instance, and one file cannot hold the events of both. Also, no applier waits for another. Invariant: index, log
numbers, purge register and locks work as for relay logs (relay_log.index, relay_log.purge), under other names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import ConfigError
from rplctl.relay_log.index import RelayLogIndex

_BASE = re.compile(r"[A-Za-z0-9_@-]{1,128}")


@dataclass(frozen=True, slots=True)
class BinaryLogFiles(Channel):
    """A channel's binary log as a `Channel` for the relay log's code; `datadir` is the folder of the logs."""

    base: str = ""
    runs: Path = Path()

    @property
    def relay_log_base(self) -> str:
        return self.base

    @property
    def relay_log_index_path(self) -> Path:
        return self.datadir / f"{self.base}.index"

    @property
    def run_folder(self) -> Path:
        return self.runs

    def lock_path(self, role: str) -> Path:
        return self.runs / f"binlog-{role}.lock"


def binary_log_files(config: Config, channel: Channel) -> BinaryLogFiles | None:
    """Return the files; None if logging is off. Raises ConfigError if `log_bin` is not a valid name."""
    if not config.log_bin or not config.log_replica_updates:
        return None
    place = config.datadir / config.log_bin
    base = f"{place.name}{channel.suffix}"
    if not _BASE.fullmatch(base) or base == channel.relay_log_base:
        raise ConfigError(
            f"log_bin = {config.log_bin!r}: not a name of logs without an extension",
            hint="to set a name (init changes only this setting), run: rplctl init --log-bin binlog",
        )
    return BinaryLogFiles(channel.name, place.parent, base, channel.run_folder)


def existing_names(files: BinaryLogFiles) -> list[str]:
    """Return the existing logs of the index, oldest first."""
    index = RelayLogIndex(files)
    return [name for name in index.names() if index.path(name).is_file()]
