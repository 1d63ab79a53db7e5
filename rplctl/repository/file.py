"""FILE: master.info and relay-log.info, in the layout of lines.py.

Invariant: a reader sees one complete record, because every flush replaces the file (temporary file, rename). A flush
that is forced or due is durable when it returns. Any other flush reaches the cache of the operating system only: a
power cut may lose it, a crash of the process does not (WL#2775 REQ-3: "we optimistically write to the OS' cache").
After a power cut, some file systems show an empty or zeroed file. In that case `.relay-log.info.synced`, a link to the
last durable record, is read instead.
Files have mode 0600. A file that holds a password and that others may read is refused (design D14). This module does
not load SQLAlchemy (D16).
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

_BLOCK = 4096  # bytes; the block size of a file system is 4096 or divides it


def _has_lost_data(data: bytes) -> bool:
    """True if the file looks as if a power cut lost some of its content. Such a file is empty, has zero bytes, or
    lacks END_MARKER and ends at a block or within a line. Editors do not leave such a file.
    """
    is_cut = len(data) % _BLOCK == 0 or not data.endswith(b"\n")
    return not data or b"\0" in data or (is_cut and END_MARKER.encode() not in data)


@cache
def _begin_of_ours(record: Record[Any]) -> tuple[int, bytes]:
    """Return where rplctl's section begins in a file that rplctl wrote: the number of its first line, from 0, and the
    key there.
    """
    lines = record.format(record.empty("")).splitlines()
    return next((number, line.partition(b"=")[0]) for number, line in enumerate(lines) if b"=" in line)


class FileRepository(Generic[Info]):
    """A repository that stores one record in one file."""

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
        """A link to the last durable record. It is read only if `path` has lost its data."""
        return self.path.with_name(f".{self.path.name}.synced")

    @property
    def where(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        """True if the file exists, is not empty and was not cleared by RESET. Raises RplError 1201/1872 if the file is
        damaged.
        """
        info = self.stored()
        return info is not None and self._record.has_data(info)

    def read(self) -> Info:
        info = self.stored()
        if info is None:
            raise self._record.missing(self._channel.name, f"there is no {self.where}")
        return info

    def stored(self) -> Info | None:
        """Return the record, even a cleared one, or None if the file is missing or empty."""
        return self.parsed(self.load())

    def load(self) -> bytes | None:
        """Return the bytes of the valid file: `synced_path` if `path` has lost its data. Return None if there is no
        file.
        """
        data = self._load(self.path)
        if data is not None and _has_lost_data(data):
            data = self._load(self.synced_path) or data
        return data

    def parsed(self, data: bytes | None) -> Info | None:
        """Return the record in the bytes that `load` returned. Raises RplError if the file cannot be used."""
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
            hint = f"To protect the password, run: chmod 600 {self.path}"
            raise ConfigError(why, channel=self._channel.name, hint=hint)
        is_named = info.channel_name == self._channel.name
        return info if is_named else replace(info, channel_name=self._channel.name)

    def flush(self, info: Info, *, force: bool, events: int = 1) -> None:
        """Write the file. The write is durable if it is forced or if `sync_…` events have passed."""
        self._events_since_sync += events
        due = force or 0 < self._sync_period <= self._events_since_sync
        try:
            data = self._record.format(replace(info, channel_name=self._channel.name))
        except FieldError as error:
            raise self._record.damaged(self._channel.name, str(error)) from None
        with file_errors(self._channel.name):  # after an error replace_file removes the new file: the old one is intact
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
        """Return the bytes of the file, or None if there is no file. A pipe or device at that path is refused, because
        a read could block.
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
        """Raise FieldError if a file of rplctl was cut off. In such a file, rplctl's section begins directly after the
        counted lines and ends at the marker. A server's file has no such section, and may not replace rplctl's file.
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
