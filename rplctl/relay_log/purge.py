"""Removes relay logs that are applied (`relay_log_purge`), or all of them (RESET, CHANGE MASTER).

A purge is crash-safe, as in MySQL. It has four steps:
1. The names are written to a register, the file `relay-bin.~rec~`.
2. The names are removed from the index.
3. The files are unlinked.
4. The register is removed.

If a kill interrupts a purge, the next process finishes it (`finish_purge`). So the index never lists a file that is
missing, and a purged file never returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rplctl.channel import Channel
from rplctl.durable import remove_file, replace_file, sync_folder
from rplctl.failpoint import crash_point
from rplctl.plain_file import read_if_there, size_of
from rplctl.position import RelayLogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.origin import forget_origin, note_purged


def purge_applied(channel: Channel, up_to: RelayLogPosition) -> list[str]:
    """Remove the relay logs before the one that contains `up_to`, the applier's position, and return their names.

    If the index does not list the relay log of `up_to`, nothing is removed. The position may be wrong, and recovery
    decides which relay logs are kept.
    """
    index = RelayLogIndex(channel)
    if index.names()[:1] == [up_to.log_name]:
        return []  # in this usual case, no lock is necessary
    with index.lock():
        finish_purge(channel)
        names = index.names()
        if up_to.log_name not in names:
            return []
        applied = names[: names.index(up_to.log_name)]
        if applied:
            note_purged(channel)
            purge_names(channel, applied)
        return applied


def purge_all(channel: Channel) -> list[str]:
    """Remove every relay log of the channel, even if the index does not list it, and return their names.

    The index becomes empty, and the numbers of later relay logs begin at 1 again. The time zones of the source are
    stored by the number of a relay log, so the file with the time zones is removed first.
    """
    index = RelayLogIndex(channel)
    with index.lock():
        channel.source_zones_path.unlink(missing_ok=True)
        finish_purge(channel)
        names = sorted({*index.names(), *index.files()})
        purge_names(channel, names)
        forget_origin(channel)
        return names


def relay_log_space(channel: Channel) -> int:
    """Return `Relay_Log_Space`: the number of bytes in all relay logs of the index."""
    index = RelayLogIndex(channel)
    return sum(size_of(index.path(name)) for name in index.names())


def purge_names(channel: Channel, names: Sequence[str]) -> None:
    """Remove these relay logs from the index and the folder, in a crash-safe way. The caller holds the index lock."""
    crash_point("crash_before_purge_logs")
    replace_file(register_path(channel), "".join(f"./{name}\n" for name in names).encode())
    crash_point("crash_purge_before_update_index")
    finish_purge(channel)


def finish_purge(channel: Channel) -> list[str]:
    """Finish an interrupted purge, and return the names of its relay logs, or [] if no purge was interrupted.

    The caller holds the index lock.
    """
    if not register_path(channel).exists():
        return []
    index = RelayLogIndex(channel)
    names = registered_names(channel)
    index.remove(names)
    crash_point("crash_purge_critical_after_update_index")
    for name in names:
        index.path(name).unlink(missing_ok=True)
    sync_folder(channel.datadir)
    crash_point("crash_purge_non_critical_after_update_index")
    remove_file(register_path(channel))
    return names


def registered_names(channel: Channel) -> list[str]:
    """Return the relay logs that an interrupted purge must still remove, according to its register.

    Names that are not relay logs of this channel are ignored.
    """
    lines = read_if_there(register_path(channel)).decode("utf-8", "surrogateescape").splitlines()
    if not lines:
        return []
    index = RelayLogIndex(channel)
    return sorted({line.removeprefix("./") for line in lines} & {*index.names(), *index.files()})


def register_path(channel: Channel) -> Path:
    return channel.datadir / f"{channel.relay_log_base}.~rec~"
