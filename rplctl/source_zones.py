"""The SYSTEM time zone of a channel's source, with the relay log from which it was in force.

A statement of the log may depend on this zone, but no event names it. The receiver queries a live source at each
connection, and stores a changed zone before the first event of a new relay log. The file may be lost: the next
connection stores the zone again. For a folder of binary logs, the option `source_time_zone` replaces the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypeAlias

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import private_folder, replace_file
from rplctl.plain_file import stored_json
from rplctl.position import log_number
from rplctl.system_zone import SystemZone, zone_named

_Noted: TypeAlias = list[tuple[str, SystemZone]]  # relay log, zone


class SourceZones:
    """The stored zones of one channel; a changed file is read again."""

    def __init__(self, channel: Channel, config: Config) -> None:
        self._path: Path = channel.source_zones_path
        self._option = zone_named(config.source_time_zone) if config.source_time_zone else None
        self._read: tuple[object, _Noted] = (None, [])

    def at(self, relay_log: str) -> SystemZone | None:
        """Return the zone of the source for the events in the relay log; None if it is unknown."""
        if self._option is not None:
            return self._option
        noted = self._noted()
        number = log_number(relay_log)
        return next(
            (zone for name, zone in reversed(noted) if log_number(name) <= number), noted[0][1] if noted else None
        )

    @property
    def last(self) -> SystemZone | None:
        """The zone that was stored last."""
        noted = self._noted()
        return noted[-1][1] if noted else None

    def note(self, relay_log: str, zone: SystemZone, oldest: str) -> None:
        """Store the zone of the events from that relay log on. `oldest`: the first relay log that still exists."""
        number, first = log_number(relay_log), log_number(oldest)
        before = [(name, each) for name, each in self._noted() if log_number(name) < number]
        in_force = sum(log_number(name) <= first for name, _ in before)  # the last of these is still in force
        kept = [*before[max(0, in_force - 1) :], (relay_log, zone)]
        private_folder(self._path.parent)
        replace_file(self._path, json.dumps([[name, each.changes] for name, each in kept]).encode())

    def _noted(self) -> _Noted:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return []
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
        if self._read[0] != stamp:
            self._read = stamp, _parsed(stored_json(self._path))
        return self._read[1]


def _parsed(stored: object) -> _Noted:
    """Return the stored zones; none for a damaged file."""
    try:
        return [
            (str(name), SystemZone(tuple((int(second), int(offset)) for second, offset in (first, *more))))
            for name, (first, *more) in stored or ()  # type: ignore[attr-defined]  # anything may be in it
        ]
    except (TypeError, ValueError):
        return []
