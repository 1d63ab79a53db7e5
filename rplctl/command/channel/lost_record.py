"""Handle a lost RelayLogInfo: somebody or a damaged disk deleted or emptied its file or row.

Invariant: rplctl never guesses the executed position. If the target has a marker, the record is created again from the
marker, because each transaction writes the marker itself. Without a marker, the error lists the known positions. Its
hint is the command that continues at the last position that the applier has reported (design D22).
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
    """True if the channel has received events, but has no RelayLogInfo. False for a new channel, and after RESET
    SLAVE.
    """
    received = master.flushed_relay_log_name or RelayLogIndex(repositories.channel).names()
    return bool(received) and not repositories.relay_log_info.exists()


def record_from_marker(repositories: Repositories, master: MasterInfo, *, dry_run: bool = False) -> RelayLogInfo | None:
    """Create RelayLogInfo from the target's marker, store it except in a dry run, and return it.

    Return None if the target has no marker. Raises TargetError if the target reports an error.
    """
    if not may_have_target(repositories.config):
        return None
    marker, _ = repositories.marker()
    if marker is None:
        return None
    info = replace(marker, master_id=master.master_id)
    if not dry_run:
        repositories.relay_log_info.flush(info, force=True)
    return info


_UNSURE = "which is right only if nothing was applied or purged (otherwise compare the target's rows first)"


def lost_record(repositories: Repositories, master: MasterInfo) -> RplError:
    """Return error 1201 for a lost RelayLogInfo, with the known positions and the command that continues."""
    channel = repositories.channel
    status = read_status(channel.status_path(APPLIER))
    last = status.exec_position
    index = RelayLogIndex(channel)
    names = index.names()
    from rplctl.relay_log.log_file import start_of  # loads numpy; stop and show-status import this module (design D16)

    begins = start_of(index.path(names[0])) if names else None
    known = [f"the last reported position of the applier is {last}"] if last.log_name else []
    known += [f"with GTIDs {status.executed_gtid_set}"] if last.log_name and status.executed_gtid_set else []
    known += [f"the relay logs begin at {begins}"] if begins is not None and begins.log_name else []
    known += [f"the read position is {master.read_position}"] if master.master_log_name else []
    name = f" --channel {channel.name}" if channel.name else ""
    off = " --master-auto-position 0" if master.enabled_auto_position else ""
    place = last if last.log_name else begins if begins is not None and begins.log_name else None
    where = f"{place.log_name} --master-log-pos {place.log_pos}" if place else "FILE --master-log-pos POSITION"
    checked = "which is exact after a stop (after a crash, first compare the newest rows with the source)"
    return RplError(
        f"Could not initialize master info structure for '{channel.name}': the record RelayLogInfo, which has the "
        f"executed position, is missing from {repositories.relay_log_info.where}"
        + "".join(f"; {text}" for text in known),
        errno=er.MASTER_INFO,
        hint=f"to set this position, {checked if last.log_name else _UNSURE}, run: "
        f"rplctl change-master{name}{off} --master-log-file {where}",
    )
