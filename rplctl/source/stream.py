"""Opens the stream of a source: of a live server, or of a folder of binary logs."""

from __future__ import annotations

from pathlib import Path

from rplctl.config import Config
from rplctl.info import MasterInfo
from rplctl.source.base import DumpStart, ReplicaIdentity, SourceStream
from rplctl.source.binlog_folder import FolderStream
from rplctl.source.connection import connect
from rplctl.source.dump import LiveStream


def open_source(
    info: MasterInfo, password: str, start: DumpStart, replica: ReplicaIdentity, config: Config
) -> SourceStream:
    """Connect and ask for everything from `start` on. Raises SourceError; `transient` when another attempt may help."""
    if info.master_binlog_dir:
        return FolderStream(Path(info.master_binlog_dir), config.datadir, start)
    connection = connect(info, password, start, replica, config)
    try:
        return LiveStream(connection, start, replica, config)
    except BaseException:
        connection.close()
        raise
