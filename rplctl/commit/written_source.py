"""Records on this host which source this instance last wrote into the channel's owner row in the target (design D29).

The owner row is the channel's row in the table rplctl_channel_owner. If this row has neither the recorded source nor
the channel's present source, the target was restored from a backup. Invariant: the record, a file in the run folder, is
written after the owner row. If a crash comes between these two writes, the owner row has the channel's present source.
"""

from __future__ import annotations

import json
from pathlib import Path

from rplctl.channel import Channel
from rplctl.durable import private_folder, remove_file, replace_file
from rplctl.errors import RplError
from rplctl.own_tables.owner import Owner
from rplctl.plain_file import parsed_json, read_plain


def note_written(channel: Channel, owner: Owner) -> None:
    """Record the source of `owner` on this host, after `owner` was written to rplctl_channel_owner in the target."""
    if _written(channel) != (wanted := _source(owner)):
        private_folder(channel.run_folder)
        replace_file(_path(channel), json.dumps(wanted).encode() + b"\n")


def was_written_last(channel: Channel, owner: Owner, *, default: bool) -> bool:
    """True if `owner`, the channel's row in rplctl_channel_owner, has the source that this instance wrote there last.

    If no source is recorded on this host, the result is `default`.
    """
    written = _written(channel)
    return default if written is None else written == _source(owner)


def forget_written(channel: Channel) -> None:
    """Remove the record of the source, because RESET REPLICA also removes the channel's row in the target."""
    remove_file(_path(channel))


def _written(channel: Channel) -> list[str | int] | None:
    try:
        found = parsed_json(read_plain(_path(channel)))
    except (OSError, ValueError, RplError):
        return None
    return found if isinstance(found, list) else None


def _source(owner: Owner) -> list[str | int]:
    return [owner.Source_uuid, owner.Source_server_id, owner.Source_place]


def _path(channel: Channel) -> Path:
    return channel.run_folder / "target_source.json"
