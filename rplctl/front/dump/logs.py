"""Finds the channel whose binary log replicas read, and the SendableLog that all dumps of this log share.

Invariant: after the channel is found, no dump accesses the target. So replicas can read while the target is down.
"""

from __future__ import annotations

import threading

from rplctl.applied_log.files import BinaryLogFiles, binary_log_files
from rplctl.channel import Channel
from rplctl.front.dump.sendable import SendableLog, fatal
from rplctl.front.looks import Looks


class SendableLogs:
    """The binary logs of an instance that replicas may read. A log is opened when the first client reads it."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._lock = threading.Lock()
        self._open: dict[BinaryLogFiles, SendableLog] = {}
        self._channel: str | None = None

    def log(self) -> SendableLog:
        """Return the log of the only channel whose option log_bin is set.

        Raises RplError 1236 if no channel or several channels have this option. Raises TargetError or ConfigError if
        the channels cannot be listed.
        """
        files = self.files()
        if files is None:
            raise fatal("this instance writes no binary log: set log_bin")
        with self._lock:
            return self._open.setdefault(files, SendableLog(files))

    def files(self) -> BinaryLogFiles | None:
        """Return the files of the only channel whose option log_bin is set. Return None if there is no such channel.

        Raises RplError 1236 if several channels have this option. Raises TargetError or ConfigError if the channels
        cannot be listed.
        """
        if self._channel is not None and (files := self._files_of(self._channel)):
            return files
        found = {name: files for name in self._looks.names() if (files := self._files_of(name))}
        if len(found) > 1:
            raise fatal(f"{len(found)} channels write a binary log; replicas need an instance with one such channel")
        for self._channel, files in found.items():
            return files
        return None

    def channel(self) -> str:
        """Return the name of the channel whose log `files` finds, or '' if there is none. Raises the same errors."""
        return self._channel or "" if self.files() is not None else ""

    def close(self) -> None:
        with self._lock:
            for log in self._open.values():
                log.close()

    def _files_of(self, name: str) -> BinaryLogFiles | None:
        config = self._looks.config_of(name)
        return binary_log_files(config, Channel(name, config.datadir))
