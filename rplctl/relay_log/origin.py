"""Records from which source the relay logs on disk were fetched, and which GTIDs the channel had executed by then.

Both are in `relay_origin.json` in the run folder, and useful.py reads them. Invariant: the file is written before the
first of these relay logs is created, and updated before the first of them is purged. It is removed after all of them
are removed. If there is no file, because an older rplctl fetched the relay logs, all relay logs are accepted.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOrigin:
    """The contents of `relay_origin.json`: the source from which the relay logs on disk were fetched."""

    place: str  # HOST:PORT, or a folder
    gtids: str  # the GTIDs that were executed when fetching began; '' for a channel without GTIDs
    is_whole: bool  # True if none of the relay logs that were fetched since then has been purged

    def differs_from(self, place: str) -> str:
        """Return the reason why the relay logs are not from the source at `place`, or '' if they are.

        `place`: the address of the source in MasterInfo (HOST:PORT, or a folder). An empty address never differs.
        """
        if not place or self.place == place:
            return ""
        return f"the relay logs were fetched from {self.place}, and the channel reads from {place}"


def note_origin(channel: Channel, master: MasterInfo, gtids: str) -> None:
    """Record the source of new relay logs, before the first of them is created.

    `gtids`: the GTIDs that the channel has executed at this time.
    """
    private_folder(channel.run_folder)
    _write(channel, RelayOrigin(place=master.place, gtids=gtids, is_whole=True))


def move_origin(channel: Channel, master: MasterInfo) -> None:
    """Record the new address of the source, after a CHANGE MASTER that kept the relay logs."""
    found = read_origin(channel)
    if found is not None and found.place != master.place:
        _write(channel, replace(found, place=master.place))


def note_purged(channel: Channel) -> None:
    """Record that some relay logs are purged, because their transactions were applied."""
    found = read_origin(channel)
    if found is not None and found.is_whole:
        _write(channel, replace(found, is_whole=False))


def forget_origin(channel: Channel) -> None:
    """Remove the file with the origin, after all relay logs were removed."""
    remove_file(_path(channel))


def read_origin(channel: Channel) -> RelayOrigin | None:
    """Return the recorded origin of the relay logs, or None if its file is missing or damaged."""
    try:
        found = parsed_json(read_plain(_path(channel)))
    except (OSError, ValueError, RplError):
        return None
    match found:
        case {"place": str(place), "gtids": str(gtids), "is_whole": bool(is_whole)}:
            return RelayOrigin(place=place, gtids=gtids, is_whole=is_whole)
    return None


def _write(channel: Channel, origin: RelayOrigin) -> None:
    replace_file(_path(channel), json.dumps(asdict(origin)).encode() + b"\n")


def _path(channel: Channel) -> Path:
    return channel.run_folder / "relay_origin.json"
