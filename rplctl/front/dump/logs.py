"""The channel whose binary log replicas read, and the one SendableLog that all its dumps share.

Invariant: after the channel is found, no dump accesses the target, so replicas can read while the target is down.
"""

from __future__ import annotations

import threading

from rplctl.applied_log.files import BinaryLogFiles, binary_log_files
from rplctl.channel import Channel
from rplctl.front.dump.sendable import SendableLog, fatal
from rplctl.front.looks import Looks


class SendableLogs:
    """The binary logs of an instance that may be sent. A log is opened when the first client reads it."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._lock = threading.Lock()
        self._open: dict[BinaryLogFiles, SendableLog] = {}
        self._channel: str | None = None

    def log(self) -> SendableLog:
        """Return the log of the only channel that has log_bin. Raises RplError 1236 unless exactly one channel has it,
        and TargetError or ConfigError if the channels cannot be listed.
        """
        files = self.files()
        if files is None:
            raise fatal("this instance writes no binary log: set log_bin")
        with self._lock:
            return self._open.setdefault(files, SendableLog(files))

    def files(self) -> BinaryLogFiles | None:
        """Return the files of the only channel that has log_bin, or None if no channel has it. Raises the same errors
        as `log`.
        """
        if self._channel is not None and (files := self._files_of(self._channel)):
            return files
        found = {name: files for name in self._looks.names() if (files := self._files_of(name))}
        if len(found) > 1:
            raise fatal(f"{len(found)} channels write a binary log; replicas need an instance with one such channel")
        for self._channel, files in found.items():
            return files
        return None

    def close(self) -> None:
        with self._lock:
            for log in self._open.values():
                log.close()

    def _files_of(self, name: str) -> BinaryLogFiles | None:
        config = self._looks.config_of(name)
        return binary_log_files(config, Channel(name, config.datadir))
