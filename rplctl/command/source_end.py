"""Where the source's binary log ends right now: what `--until-synced` has to reach.

A server says so itself. In a folder of binary logs it is the end of the newest log's last complete transaction: what a
killed server left behind that will never be applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rplctl.config import Config
from rplctl.info import MasterInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """`gtids`: all that its binary log has or had and the channel takes; '' when the channel does not ask by GTID, or
    that is not to be said. Positions of two sources cannot be compared, GTIDs can.
    """

    position: BinlogPosition
    gtids: str = ""


def source_end(config: Config, master: MasterInfo) -> SourceEnd:
    """Raises SourceError when the source is away, has no binary log or may not be asked."""
    if master.master_binlog_dir:
        return SourceEnd(folder_end(Path(master.master_binlog_dir)))
    from rplctl.secret import reveal
    from rplctl.source.survey import log_end, survey

    with survey(master, reveal(master.user_password, config.datadir), config) as query:
        if not master.uses_gtid or master.ignored_server_ids:  # a set does not say which server wrote what
            return SourceEnd(log_end(query))
        variable = "gtid_executed" if master.enabled_auto_position else "gtid_binlog_pos"
        gtids = str(query(f"SELECT @@GLOBAL.{variable}")[0][0]).replace("\n", "")
        return SourceEnd(log_end(query), _taken(gtids, master))


def _taken(gtids: str, master: MasterInfo) -> str:
    """Without the domains that the channel leaves out."""
    if ":" in gtids or not gtids:
        return gtids
    domains = {gtid: int(gtid.partition("-")[0]) for gtid in gtids.split(",")}
    return ",".join(
        gtid
        for gtid, domain in domains.items()
        if domain not in master.ignore_domain_ids and (not master.do_domain_ids or domain in master.do_domain_ids)
    )


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
