"""A channel whose RelayLogInfo is gone: a file or row that was deleted or emptied by hand, or by a damaged disk.

Invariant: the executed position is never guessed. The marker in the target is moved by the transactions themselves, so
the record is made again from it, and that is all there is to do. Without a marker what is known is told, with the
command that goes on from the place the applier itself named last (design D22).
"""

from __future__ import annotations

from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.command.channel.context import APPLIER, Repositories
from rplctl.errors import RplError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.relay_log.index import RelayLogIndex
from rplctl.repository.switch import may_have_target
from rplctl.status import read_status


def is_lost(repositories: Repositories, master: MasterInfo) -> bool:
    """RelayLogInfo is not there, and something was received: neither a new channel nor one after RESET SLAVE."""
    received = master.flushed_relay_log_name or RelayLogIndex(repositories.channel).names()
    return bool(received) and not repositories.relay_log_info.exists()


def made_again(repositories: Repositories, master: MasterInfo, *, dry_run: bool = False) -> RelayLogInfo | None:
    """The record from the target's marker, stored; None without a marker. Raises TargetError."""
    if not may_have_target(repositories.config):
        return None
    marker, _ = repositories.marker()
    if marker is None:
        return None
    info = replace(marker, master_id=master.master_id)
    if not dry_run:
        repositories.relay_log_info.flush(info, force=True)
    return info


def lost_record(repositories: Repositories, master: MasterInfo) -> RplError:
    """Error 1201: what is known of the position, and the command."""
    channel = repositories.channel
    status = read_status(channel.status_path(APPLIER))
    last = status.exec_position
    index = RelayLogIndex(channel)
    names = index.names()
    from rplctl.relay_log.log_file import start_of  # loads numpy: stop and show-status pass by here (design D16)

    begins = start_of(index.path(names[0])) if names else None
    known = [f"the applier said last that it was at {last}"] if last.log_name else []
    known += [f"with GTIDs {status.executed_gtid_set}"] if last.log_name and status.executed_gtid_set else []
    known += [f"the relay logs begin at {begins}"] if begins is not None and begins.log_name else []
    known += [f"received is up to {master.read_position}"] if master.master_log_name else []
    name = f" --channel {channel.name}" if channel.name else ""
    off = " --master-auto-position 0" if master.enabled_auto_position else ""
    place = last if last.log_name else begins if begins is not None and begins.log_name else None
    where = f"{place.log_name} --master-log-pos {place.log_pos}" if place else "FILE --master-log-pos POS"
    checked = "it is exact after rplctl stop; after a crash compare the target's newest rows first"
    return RplError(
        f"Could not initialize master info structure for '{channel.name}': there is no RelayLogInfo in "
        f"{repositories.relay_log_info.where}; known: {', '.join(known) or 'nothing'}",
        errno=er.MASTER_INFO,
        hint=f"rplctl change-master{name}{off} --master-log-file {where}: "
        + (checked if last.log_name else "right if nothing was applied or purged; else the target's rows tell"),
    )
