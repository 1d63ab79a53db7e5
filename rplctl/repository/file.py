"""FILE: a record is stored in master.info or relay-log.info, in the layout of lines.py.

Invariant: a reader sees one complete record, because every flush replaces the file (temporary file, rename).

A flush is durable when it returns, if it is forced, or if the period of the `sync_…` option is reached. Any other flush
only reaches the cache of the operating system (WL#2775 REQ-3: "we optimistically write to the OS' cache"). A power cut
may lose such a flush, but a crash of the process does not lose it. After a power cut, some file systems show an empty
or zeroed file. rplctl then reads `.relay-log.info.synced` instead, which is a link to the last durable record.

Files have mode 0600. If a file has a password and others may read the file, rplctl refuses it (design D14). This module
does not load SQLAlchemy (D16).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Generic

from rplctl.channel import Channel
from rplctl.durable import Guard, is_readable_by_others, private_folder, remove_file, replace_file
from rplctl.errors import ConfigError, file_errors
from rplctl.plain_file import UnfitFile, read_plain
from rplctl.repository.base import Info, RepositoryKind
from rplctl.repository.fields import FieldError
from rplctl.repository.lines import END_MARKER
from rplctl.repository.record import Record

_BLOCK = 4096  # bytes; the block size of a file system is 4096 or a divisor of 4096


def _has_lost_data(data: bytes) -> bool:
    """True if the file looks as if a power cut lost some of its content.

    Such a file is empty, or has zero bytes, or its end is missing. The end is missing if the file has no END_MARKER,
    and ends within a line or with a full block of 4096 bytes. A file that an operator has edited does not look like
    this.
    """
    is_cut = len(data) % _BLOCK == 0 or not data.endswith(b"\n")
    return not data or b"\0" in data or (is_cut and END_MARKER.encode() not in data)


@cache
def _begin_of_ours(record: Record[Any]) -> tuple[int, bytes]:
    """Return the place at which rplctl's own section begins in a file that rplctl wrote.

    The place is the number of the section's first line, counted from 0, and the key in this line.
    """
    lines = record.format(record.empty("")).splitlines()
    return next((number, line.partition(b"=")[0]) for number, line in enumerate(lines) if b"=" in line)


class FileRepository(Generic[Info]):
    """A repository that stores the record of one channel in one file."""

    kind = RepositoryKind.FILE

    def __init__(self, record: Record[Info], channel: Channel, sync_period: int) -> None:
        self._record: Record[Info] = record
        self._channel = channel
        self.path = record.path(channel)
        self._sync_period = sync_period
        self._events_since_sync = 0
        self.guard: Guard = nullcontext

    @property
    def synced_path(self) -> Path:
        """The path of a link to the last durable record, which is read only if the file at `path` has lost its data."""
        return self.path.with_name(f".{self.path.name}.synced")

    @property
    def where(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        """True if the file exists, is not empty, and RESET has not cleared its record.

        Raises RplError 1201 (MasterInfo) or 1872 (RelayLogInfo) if the file is damaged.
        """
        info = self.stored()
        return info is not None and self._record.has_data(info)

    def read(self) -> Info:
        info = self.stored()
        if info is None:
            raise self._record.missing(self._channel.name, f"there is no {self.where}")
        return info

    def stored(self) -> Info | None:
        """Return the record, or None if the file is missing or empty. A record that RESET cleared is returned, too."""
        return self.parsed(self.load())

    def load(self) -> bytes | None:
        """Return the bytes of the file at `path`, or None if there is no file.

        If this file has lost its data in a power cut, return the bytes of the file at `synced_path`.
        """
        data = self._load(self.path)
        if data is not None and _has_lost_data(data):
            data = self._load(self.synced_path) or data
        return data

    def parsed(self, data: bytes | None) -> Info | None:
        """Return the record in the bytes that `load` returned, or None if there are no bytes.

        Raises RplError 1201 (MasterInfo) or 1872 (RelayLogInfo) if the record is damaged or belongs to another channel.
        Raises ConfigError if others may read a file with a password.
        """
        if not data:
            return None
        try:
            self._refuse_cut_off(data)
            info = self._record.parse(data)
        except FieldError as error:
            raise self._record.damaged(self._channel.name, f"{self.where}: {error}", self._repair_hint()) from None
        if info.channel_name and info.channel_name.casefold() != self._channel.name.casefold():
            why = f"{self.where} belongs to channel '{info.channel_name}'"
            raise self._record.damaged(self._channel.name, why, "rplctl import-info")
        if getattr(info, "user_password", "") and is_readable_by_others(self.path):
            why = f"{self.where} holds a password and others may read it"
            hint = f"to protect the password, run: chmod 600 {self.path}"
            raise ConfigError(why, channel=self._channel.name, hint=hint)
        is_named = info.channel_name == self._channel.name
        return info if is_named else replace(info, channel_name=self._channel.name)

    def flush(self, info: Info, *, force: bool, events: int = 1) -> None:
        """Write the record to the file.

        The write is durable if `force` is set, or if the number of events since the last durable write reaches the
        `sync_…` option.
        """
        self._events_since_sync += events
        due = force or 0 < self._sync_period <= self._events_since_sync
        try:
            data = self._record.format(replace(info, channel_name=self._channel.name))
        except FieldError as error:
            raise self._record.damaged(self._channel.name, str(error)) from None
        with file_errors(self._channel.name):  # after an error, replace_file keeps the old file
            private_folder(self.path.parent)
            replace_file(self.path, data, durable=due, guard=self.guard, keep=self.synced_path)
        if due:
            self._events_since_sync = 0

    def remove(self) -> None:
        with file_errors(self._channel.name):
            self.synced_path.unlink(missing_ok=True)
            remove_file(self.path)

    def is_transactional(self) -> bool:
        return False

    def _load(self, path: Path) -> bytes | None:
        """Return the bytes of the file, or None if there is no file.

        A pipe or a device at this path is refused, because reading it could block.
        """
        try:
            return read_plain(path)
        except FileNotFoundError:
            return None
        except UnfitFile:
            why = f"{self.where} is not an info file"
            raise self._record.damaged(self._channel.name, why, self._repair_hint()) from None
        except PermissionError:
            raise ConfigError(
                f"{self.where} cannot be read: permission denied", hint=f"run as the owner of {self.path.parent}"
            ) from None

    def _refuse_cut_off(self, data: bytes) -> None:
        """Raise FieldError if the end of a file that rplctl wrote is missing.

        In a complete file, rplctl's section comes directly after the value lines, and END_MARKER ends the section. A
        server's file has no such section. So if an operator replaces rplctl's file by a server's file, it is refused,
        too. `rplctl import-info` reads such files.
        """
        if not self.synced_path.exists():
            return
        number, first = _begin_of_ours(self._record)
        lines = data.splitlines()
        if END_MARKER.encode() not in lines or not b"".join(lines[number : number + 1]).startswith(first + b"="):
            why = "import-info reads the files of a server"
            raise FieldError(f"lines before {END_MARKER} are missing or were added; {why}")

    def _repair_hint(self) -> str:
        channel = f" --channel {self._channel.name}" if self._channel.name else ""
        return f"correct {self.path} by hand, or remove it and run rplctl change-master{channel}"
