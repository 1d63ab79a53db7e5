"""The time zone that SYSTEM means on a channel's source, for each relay log.

A statement in the log may depend on this zone, but no event names the zone. So the receiver reads it from the source at
each connection. If the zone has changed, the receiver begins a new relay log, and stores the zone with the name of this
log. If the file with the zones is lost, the next connection stores the present zone again. For a folder of binary logs,
the option `source_time_zone` replaces the file.
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
    """The stored time zones of one channel. If another process changes the file, it is read again."""

    def __init__(self, channel: Channel, config: Config) -> None:
        self._path: Path = channel.source_zones_path
        self._option = zone_named(config.source_time_zone) if config.source_time_zone else None
        self._read: tuple[object, _Noted] = (None, [])

    def at(self, relay_log: str) -> SystemZone | None:
        """Return the zone of the source for the events in this relay log. Return None if the zone is unknown."""
        if self._option is not None:
            return self._option
        noted = self._noted()
        number = log_number(relay_log)
        return next(
            (zone for name, zone in reversed(noted) if log_number(name) <= number), noted[0][1] if noted else None
        )

    @property
    def last(self) -> SystemZone | None:
        """The zone that was stored last. The value is None if no zone is stored."""
        noted = self._noted()
        return noted[-1][1] if noted else None

    def note(self, relay_log: str, zone: SystemZone, oldest: str) -> None:
        """Store the zone of the events in this relay log and in all later ones.

        `oldest`: the first relay log that still exists; zones that only earlier logs need are removed.
        """
        number, first = log_number(relay_log), log_number(oldest)
        before = [(name, each) for name, each in self._noted() if log_number(name) < number]
        in_force = sum(log_number(name) <= first for name, _ in before)  # the last of them is in force in `oldest`
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
    """Return the zones in the parsed JSON of the file. Return an empty list if the file is missing or damaged."""
    try:
        return [
            (str(name), SystemZone(tuple((int(second), int(offset)) for second, offset in (first, *more))))
            for name, (first, *more) in stored or ()  # type: ignore[attr-defined]  # anything may be in it
        ]
    except (TypeError, ValueError):
        return []
