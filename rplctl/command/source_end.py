"""Where the source's binary log ends right now: what `--until-synced` has to reach.

A server says so itself. In a folder of binary logs it is the end of the newest log's last complete transaction: what a
killed server left behind that will never be applied.
"""

from __future__ import annotations

from pathlib import Path

from rplctl.config import Config
from rplctl.info import MasterInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition


def source_end(config: Config, master: MasterInfo) -> BinlogPosition:
    """Raises SourceError when the source is away, has no binary log or may not be asked."""
    if master.master_binlog_dir:
        return folder_end(Path(master.master_binlog_dir))
    from rplctl.secret import reveal
    from rplctl.source.survey import log_end, survey

    with survey(master, reveal(master.user_password, config.datadir), config) as query:
        return log_end(query)


def folder_end(folder: Path) -> BinlogPosition:
    """The position after the last complete transaction; log_name '' when the folder has no log yet."""
    from rplctl.relay_log.log_file import Boundary, mapped_file, walk
    from rplctl.source.binlog_folder import log_names, read_head

    names = log_names(folder)
    if not names:
        return BinlogPosition("", FIRST_EVENT_POSITION)
    path = folder / names[-1]
    read_head(path)  # says clearly what is wrong with an encrypted or foreign file
    at = Boundary(FIRST_EVENT_POSITION, BinlogPosition(names[-1], FIRST_EVENT_POSITION))
    with mapped_file(path) as data:
        for _, boundary in walk(data, at):
            at = boundary
    return at.source
