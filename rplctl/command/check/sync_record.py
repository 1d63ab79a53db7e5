"""When a channel was last known to have all that its source had: what a channel that runs from cron is judged by.

`start --until-synced` writes it when it ends well, with the moment at which it asked the source where its log ends, for
that is how old the rows may be. A start that stays takes back that the channel runs from cron, not when it was synced.
Invariant: it is news for monitoring and nothing starts from it: positions are the repositories' alone (design D22).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import replace_file
from rplctl.errors import RplError
from rplctl.plain_file import parsed_json, read_plain


@dataclass(frozen=True, slots=True)
class SyncRecord:
    at: float  # Unix seconds
    to: str  # the source's end then, FILE:POS
    is_from_cron: bool = True  # nothing that stays was started since


def read_sync_record(channel: Channel) -> SyncRecord | None:
    """None when there never was one, or it cannot be read."""
    try:
        stored = parsed_json(read_plain(_path(channel)))
        return SyncRecord(float(stored["at"]), str(stored["to"]), bool(stored["is_from_cron"]))
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RplError):
        return None


def note_synced(channel: Channel, at: float, to: str) -> None:
    _write(channel, SyncRecord(at, to))


def note_stays(channel: Channel) -> None:
    """A start whose threads go on: from now on one that does not run is missed."""
    record = read_sync_record(channel)
    if record is not None and record.is_from_cron:
        _write(channel, replace(record, is_from_cron=False))


def forget_sync(channel: Channel) -> None:
    """RESET, and CHANGE MASTER to another place: it is not synced to there."""
    _path(channel).unlink(missing_ok=True)


def runs_from_cron(config: Config, record: SyncRecord | None) -> bool:
    """True if `run_mode` says so; without it, True if the last start that ended well was one for cron."""
    if config.run_mode == "auto":
        return record is not None and record.is_from_cron
    return config.run_mode == "cron"


def _write(channel: Channel, record: SyncRecord) -> None:
    replace_file(_path(channel), json.dumps(asdict(record)).encode() + b"\n")


def _path(channel: Channel) -> Path:
    return channel.run_folder / "synced.json"
