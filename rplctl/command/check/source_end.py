"""Find the present end of the source's binary log, at which `start --until-synced` stops.

A server reports the end of its log. A folder of binary logs ends after the last complete transaction that the channel
accepts (folder_end.py). Incomplete and ignored transactions do not count, because they will never be applied.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from rplctl.channel import Channel
from rplctl.command.channel.context import ask_source
from rplctl.config import Config
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.source.replica_id import replica_identity


@dataclass(frozen=True, slots=True)
class SourceEnd:
    """The end of the source's log, as a position and, if the channel uses GTIDs, also as a GTID set.

    `gtids` contains the executed GTIDs and those in the log that the channel accepts; '' if they are unknown. The set
    is needed because GTIDs of two sources can be compared, but their positions cannot.
    """

    position: BinlogPosition
    gtids: str = ""
    is_comparable: bool = True  # False: the channel uses GTIDs, but only the position of the source's end is known
    asked_at: float = field(default_factory=time.time, compare=False)  # Unix seconds


def source_end(config: Config, master: MasterInfo, relay: RelayLogInfo) -> SourceEnd:
    """Return the end of the source's log. `relay` has the channel's executed GTIDs.

    Raises SourceError if the source is unreachable, has no binary log or refuses the query.
    """
    if master.master_binlog_dir:
        return _end_of_folder(config, master, relay)
    from rplctl.source.survey import executed_gtids, log_end

    with ask_source(config, master) as query:
        gtids = ""
        if master.uses_gtid and not master.ignored_server_ids:  # a GTID set does not show the server ids
            gtids = without_ignored(executed_gtids(query, of_mysql=master.enabled_auto_position), master)
        return SourceEnd(log_end(query), gtids, bool(gtids) or not master.uses_gtid)


def without_ignored(gtids: str, master: MasterInfo) -> str:
    """Return the GTIDs without those in MariaDB's domains that the channel ignores."""
    if ":" in gtids or not gtids:
        return gtids
    domains = {gtid: int(gtid.partition("-")[0]) for gtid in gtids.split(",")}
    return ",".join(
        gtid
        for gtid, domain in domains.items()
        if domain not in master.ignore_domain_ids and (not master.do_domain_ids or domain in master.do_domain_ids)
    )


def _end_of_folder(config: Config, master: MasterInfo, relay: RelayLogInfo) -> SourceEnd:
    folder, servers = Path(master.master_binlog_dir), list(master.ignored_server_ids)
    if not config.replicate_same_server_id:
        servers.append(replica_identity(config, Channel(relay.channel_name, config.datadir)).server_id)
    if not (master.uses_gtid or master.do_domain_ids or master.ignore_domain_ids):
        from rplctl.command.check.last_commit import last_commit

        commit = last_commit(folder, servers)
        if commit is not None:
            return SourceEnd(commit)
    from rplctl.command.check.folder_end import LeftOut, folder_end, gtids_of_folder

    left_out = LeftOut(master)
    left_out.servers = servers
    end = folder_end(folder, left_out)
    if not master.uses_gtid or not end.log_name:
        return SourceEnd(end)
    gtids = gtids_of_folder(folder, master, relay.gtid_executed, left_out)
    return SourceEnd(end, gtids, is_comparable=bool(gtids))
