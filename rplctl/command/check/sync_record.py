"""Record the last time at which a channel had everything that its source had, for channels that cron runs.

A successful `start --until-synced` writes the record. The record has the time at which the start read the end of the
source's log. Later rows of the source may be missing, so the time at which the start ended would be wrong. The record
also has a mark, which says that cron runs the channel. A start that leaves its threads running removes the mark, but
keeps the time.

Invariant: only monitoring uses the record. Positions are only in the repositories (design D22).
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
    to: str  # the source's end at that time, FILE:POS
    is_from_cron: bool = True  # False after a start whose threads stay running


def read_sync_record(channel: Channel) -> SyncRecord | None:
    """Return the channel's record. Return None if the channel has no record, or if the record cannot be read."""
    try:
        stored = parsed_json(read_plain(_path(channel)))
        return SyncRecord(float(stored["at"]), str(stored["to"]), bool(stored["is_from_cron"]))
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RplError):
        return None


def note_synced(channel: Channel, at: float, to: str) -> None:
    _write(channel, SyncRecord(at, to))


def note_stays(channel: Channel) -> None:
    """Note that a start has left the threads of the channel running. From now on, `check` reports a stopped thread."""
    record = read_sync_record(channel)
    if record is not None and record.is_from_cron:
        _write(channel, replace(record, is_from_cron=False))


def forget_sync(channel: Channel) -> None:
    """Remove the channel's record after RESET, or after CHANGE MASTER to another source: the channel is then not
    synced.
    """
    _path(channel).unlink(missing_ok=True)


def runs_from_cron(config: Config, record: SyncRecord | None) -> bool:
    """True if cron runs the channel. The option `run_mode` decides.

    If `run_mode` is `auto`, the mark in the record decides. The mark says that the last successful start was
    a `start --until-synced`.
    """
    if config.run_mode == "auto":
        return record is not None and record.is_from_cron
    return config.run_mode == "cron"


def _write(channel: Channel, record: SyncRecord) -> None:
    replace_file(_path(channel), json.dumps(asdict(record)).encode() + b"\n")


def _path(channel: Channel) -> Path:
    return channel.run_folder / "synced.json"
