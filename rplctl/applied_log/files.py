"""The files of a channel's binary log: `<log_bin>[-CHAN].NNNNNN` and `<log_bin>[-CHAN].index`.

Each channel has its own binary log, as it has its own relay log, for two reasons. The sources of an instance may be
MySQL and MariaDB servers, and one file cannot contain the events of both. Also, no applier has to wait for another one.
Invariant: the index, the log numbers, the purge register and the locks work as those of relay logs (relay_log.index,
relay_log.purge). Only their names differ.
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
    """The files of a channel's binary log, as a `Channel`, so that the code for relay logs also works with them.

    `datadir`: the folder of the logs. `base`: the file name without its number. `runs`: the run folder of the channel.
    """

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
    """Return the files of the channel's binary log, or None if logging is off.

    Raises ConfigError if `log_bin` is not a valid name.
    """
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
    """Return the names of the logs that the index lists and that exist, oldest first."""
    index = RelayLogIndex(files)
    return [name for name in index.names() if index.path(name).is_file()]
