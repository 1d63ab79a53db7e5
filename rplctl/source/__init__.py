"""The source: a live server or a folder of binary logs, behind one stream of raw events (man rplctl-design)."""

from __future__ import annotations

from pathlib import Path

from rplctl.config import Config
from rplctl.info import MasterInfo
from rplctl.source.base import DumpStart, EventBatch, ReplicaIdentity, SourceIdentity, SourceStream

__all__ = ["DumpStart", "EventBatch", "ReplicaIdentity", "SourceIdentity", "SourceStream", "open_source"]


def open_source(
    info: MasterInfo, password: str, start: DumpStart, replica: ReplicaIdentity, config: Config
) -> SourceStream:
    """Connect and ask for everything from `start` on. Raises SourceError; `transient` when another attempt may help."""
    if info.master_binlog_dir:
        from rplctl.source.binlog_folder import FolderStream

        return FolderStream(Path(info.master_binlog_dir), config.datadir, start)
    from rplctl.source.connection import connect
    from rplctl.source.dump import LiveStream

    connection = connect(info, password, start, replica, config)
    try:
        return LiveStream(connection, start, replica, config)
    except BaseException:
        connection.close()
        raise
