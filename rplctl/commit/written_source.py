"""The source that this instance last wrote into the owner's row of a channel in the target (design D29).

The run folder has a record of this source. If the owner's row has neither the recorded source nor the channel's present
source, the target was restored from a backup. Invariant: the record is written after the owner's row and never before
it. After a crash between the two, the row has the channel's present source.
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
    """Record the source that the owner's row in the target has now."""
    if _written(channel) != (wanted := _source(owner)):
        private_folder(channel.run_folder)
        replace_file(_path(channel), json.dumps(wanted).encode() + b"\n")


def was_written_last(channel: Channel, owner: Owner, *, default: bool) -> bool:
    """True if `owner`, the row in the target, has the source that this instance wrote last. Without a record of that
    source, return `default`.
    """
    written = _written(channel)
    return default if written is None else written == _source(owner)


def forget_written(channel: Channel) -> None:
    """Remove the record of the source that this instance wrote last, because RESET REPLICA removes the
    owner's row too.
    """
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
