"""Where the relay logs on disk were fetched from, and what was executed when fetching began: `relay_origin.json` in the
run folder. What follows from it is in useful.py.

Invariant: the file is written before the first relay log that it describes and before the first one is purged, and it
goes with the last one. Without it (an older rplctl made the relay logs) nothing is known against them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rplctl.channel import Channel
from rplctl.durable import private_folder, remove_file, replace_file
from rplctl.errors import RplError
from rplctl.info import MasterInfo
from rplctl.plain_file import parsed_json, read_plain


@dataclass(frozen=True, slots=True)
class RelayOrigin:
    place: str  # HOST:PORT, or a folder
    gtids: str  # executed when fetching began; '' by file and position
    is_whole: bool  # none of the relay logs that were fetched since then was purged


def note_origin(channel: Channel, master: MasterInfo, gtids: str) -> None:
    """Record where the first of new relay logs will come from."""
    private_folder(channel.run_folder)
    _write(channel, RelayOrigin(master.place, gtids, is_whole=True))


def move_origin(channel: Channel, master: MasterInfo) -> None:
    """Record that the relay logs stay useful for a source at another place: CHANGE MASTER has kept them."""
    found = read_origin(channel)
    if found is not None and found.place != master.place:
        _write(channel, replace(found, place=master.place))


def note_purged(channel: Channel) -> None:
    """Record that relay logs go because they are applied."""
    found = read_origin(channel)
    if found is not None and found.is_whole:
        _write(channel, replace(found, is_whole=False))


def forget_origin(channel: Channel) -> None:
    """Forget it after the relay logs themselves."""
    remove_file(_path(channel))


def read_origin(channel: Channel) -> RelayOrigin | None:
    """Return what is recorded, or None."""
    try:
        found = parsed_json(read_plain(_path(channel)))
        return RelayOrigin(str(found["place"]), str(found["gtids"]), is_whole=bool(found["is_whole"]))
    except (OSError, ValueError, KeyError, TypeError, RplError):
        return None


def other_source(channel: Channel, place: str) -> str:
    """Return that the relay logs are of another source than MasterInfo's at `place`; '' if they are not."""
    found = read_origin(channel)
    if found is None or not place or found.place == place:
        return ""
    return f"the relay logs were fetched from {found.place}, and the channel reads from {place}"


def _write(channel: Channel, origin: RelayOrigin) -> None:
    replace_file(_path(channel), json.dumps(asdict(origin)).encode() + b"\n")


def _path(channel: Channel) -> Path:
    return channel.run_folder / "relay_origin.json"
