"""The source of the relay logs on disk, and the GTIDs that the channel had executed when it began to fetch them.

Both are in `relay_origin.json` in the run folder, and useful.py uses them. Invariant: the file is written before the
first of these relay logs is created. It is updated before the first of them is purged, and removed after all of them
are removed. Without the file (relay logs of an older rplctl), all relay logs are accepted.
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
    """The record of the origin."""

    place: str  # HOST:PORT, or a folder
    gtids: str  # executed when fetching began; '' for a channel without GTIDs
    is_whole: bool  # True if no relay log that was fetched since then was purged

    def differs_from(self, place: str) -> str:
        """Return the reason if MasterInfo's source, at `place`, is another one; '' if not."""
        if not place or self.place == place:
            return ""
        return f"the relay logs were fetched from {self.place}, and the channel reads from {place}"


def note_origin(channel: Channel, master: MasterInfo, gtids: str) -> None:
    """Record the source of new relay logs, before the first of them."""
    private_folder(channel.run_folder)
    _write(channel, RelayOrigin(place=master.place, gtids=gtids, is_whole=True))


def move_origin(channel: Channel, master: MasterInfo) -> None:
    """Record that CHANGE MASTER has kept the relay logs for a source with another address."""
    found = read_origin(channel)
    if found is not None and found.place != master.place:
        _write(channel, replace(found, place=master.place))


def note_purged(channel: Channel) -> None:
    """Record that applied relay logs are purged."""
    found = read_origin(channel)
    if found is not None and found.is_whole:
        _write(channel, replace(found, is_whole=False))


def forget_origin(channel: Channel) -> None:
    """Remove the record after the relay logs."""
    remove_file(_path(channel))


def read_origin(channel: Channel) -> RelayOrigin | None:
    """Return the record; None if there is none, or if it is damaged."""
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
